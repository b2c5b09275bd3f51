"""One vocabulary of moments: the same words in every option and command, and all of them said where one is unknown."""

import threading
from contextlib import nullcontext

import pytest
from click.testing import CliRunner
from driving import transcript
from recording import timeline_of
from stories import demo, failed, iterations

import gviz.engine as torch
from gviz.api.export_options import span
from gviz.api.moment_argument import moment_of
from gviz.cli.main import gviz
from gviz.errors import GvizError
from gviz.events import GradAccumulated, GradFlowed, NodeFreed
from gviz.query.moments import begin_of, event_at, remark
from gviz.query_syntax.moment import A_MOMENT, MOMENT_WORDS, MOMENTS, SUCH_MOMENTS
from gviz.query_syntax.stop_condition import stop
from gviz.trace import stepping
from gviz.tui.breakpoints import hits_of
from gviz.tui.cursor import Cursor


def ends(timeline, kind):
    return [phase.end for phase in timeline.phases if phase.kind == kind]


@pytest.mark.parametrize(("word", "short"), [("forward", "fwd"), ("backward", "bwd")])
def test_a_pass_is_through_in_the_iteration_where_one_stands_and_in_the_last_from_outside(word, short):
    timeline = iterations(3)
    first, *_, last = ends(timeline, word)
    for text in (word, short):
        assert event_at(timeline, text) == moment_of(timeline, text) == last
        assert event_at(timeline, text, n=2) == first
        assert f"event {first}, " in transcript(timeline, f"goto {text}", at=2)


def test_where_there_is_no_such_pass_it_is_the_last_of_all():
    def program():
        x = torch.ones(2, requires_grad=True)
        for times in (2, 3):
            (x * times).sum().backward()
        return x * 4

    timeline = timeline_of(program)
    assert event_at(timeline, "backward", n=len(timeline)) == ends(timeline, "backward")[-1]
    assert timeline.iteration_at(len(timeline)).start > ends(timeline, "backward")[-1]


def test_of_a_program_that_runs_a_name_may_come_and_until_lets_it_run_there():
    timeline = demo()
    timeline.growing = True
    with pytest.raises(GvizError, match="there is no blah so far") as caught:
        event_at(timeline, "blah")
    assert caught.value.hint == "until blah lets the program run there"
    with pytest.raises(GvizError, match="there is no moment bl ah"):
        event_at(timeline, "bl ah")


@pytest.mark.parametrize("command", ["why x.grad", "node x", "print x + 1"])
def test_before_the_first_tensor_of_a_program_that_runs_no_name_is_unknown_for_good(command):
    timeline = timeline_of(lambda: None)
    timeline.growing = True
    assert "ask again when the program has made its first tensor" in " ".join(transcript(timeline, command).split())
    timeline.growing = False
    assert "ask again" not in transcript(timeline, command)


@pytest.mark.parametrize("word", MOMENT_WORDS)
def test_every_word_is_known(word):
    timeline = failed()
    if word in ("nan", "inf"):
        with pytest.raises(GvizError, match=r"no (nan or )?inf in this recording"):
            event_at(timeline, word)
    else:
        assert 0 <= event_at(timeline, word) <= len(timeline)


def test_what_is_no_moment_is_answered_in_a_line_with_some_that_are():
    with pytest.raises(GvizError) as caught:
        event_at(demo(), "blah")
    assert caught.value.what == "there is no moment blah"
    assert caught.value.hint == f"a moment is {SUCH_MOMENTS}"
    assert len(caught.value.hint) < 80


def test_every_word_is_explained():
    said = " ".join(how for how, _ in MOMENTS)
    assert all(word in said for word in MOMENT_WORDS)


@pytest.mark.parametrize("command", ["open", "show", "why", "explain", "export", "whatif"])
def test_every_command_takes_them(command):
    said = " ".join(CliRunner().invoke(gviz, [command, "--help"]).output.split())
    assert A_MOMENT.replace("\n", " ") in said


@pytest.mark.parametrize("word", ["forward", "backward"])
def test_a_pass_is_said_to_mean_its_end_wherever_it_is_offered(word):
    assert next(means for how, means in MOMENTS if word in how).startswith("the end of the ")
    assert "the end of that pass" in A_MOMENT
    assert A_MOMENT in " ".join(CliRunner().invoke(gviz, ["explain", "--help"]).output.split())


def with_two_losses():
    """Three iterations with two backward passes each, from two lines."""

    def program():
        v, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
        for _ in range(3):
            (v * v).backward()
            (w * w).backward()

    return timeline_of(program)


def test_a_pass_is_counted_over_the_recording_and_a_backward_by_its_iteration():
    timeline = with_two_losses()
    ends = {phase.pass_nr: phase.end for phase in timeline.phases if phase.kind == "backward"}
    assert [event_at(timeline, f"pass {nr}") for nr in ends] == [*ends.values()]
    assert event_at(timeline, "backward 2") == ends[4]
    assert remark(timeline, "backward 2") == "this is backward pass 4, of iteration 2; 'pass 2' is backward pass 2"
    assert remark(timeline, "pass 2") == ""
    starts = [phase.start for phase in timeline.phases if phase.pass_nr == 2]
    assert begin_of(timeline, "pass 2", len(timeline)) == starts[0]
    with pytest.raises(GvizError) as caught:
        event_at(timeline, "pass 7")
    assert (caught.value.what, caught.value.hint) == ("there is no backward pass 7", "the last one is pass 6")


def thrice():
    w = torch.tensor(3.0, requires_grad=True)
    for factor in (1.0, 2.0, 3.0):
        y = w * factor
        y.backward()


@pytest.fixture(scope="module")
def repeated():
    return timeline_of(thrice)


def ys(timeline):
    return [node for node in timeline.nodes if timeline.info(node).name == "y"]


ANSWERS = {"goto y": "#{} y = mul", "select y": "#{} y = mul", "why y": "#{} y = mul", "node y": "y = mul  #{}"}


@pytest.mark.parametrize("command", [*ANSWERS, "print y"])
@pytest.mark.parametrize("nr", [0, 1, 2])
def test_of_several_of_a_name_every_command_means_the_last_made_by_now(repeated, command, nr):
    node = ys(repeated)[nr]
    for at in (repeated.nodes.born(node), repeated.nodes.born(node) + 3):
        said = transcript(repeated, command, at=at).split("(gviz)")[1]
        assert ANSWERS.get(command, f"print y\ny = {3 * nr + 3}\n").format(node) in said


@pytest.mark.parametrize("command", ANSWERS)
def test_where_none_is_made_yet_the_next_is_meant(repeated, command):
    assert ANSWERS[command].format(ys(repeated)[0]) in transcript(repeated, command, at=0)


@pytest.mark.parametrize("expression", ["y", "y.grad"])
def test_what_is_not_made_yet_has_no_value_and_says_when_it_is_made(repeated, expression):
    first = ys(repeated)[0]
    said = transcript(repeated, f"print {expression}", at=0)
    assert f"there is no {expression} yet; #{first} is made by event {repeated.nodes.born(first)}" in said


def test_from_outside_a_name_means_the_last(repeated):
    assert event_at(repeated, "y") == moment_of(repeated, "y") == repeated.nodes.born(ys(repeated)[-1])


def test_to_a_name_goes_on_to_the_next_node_of_that_name_and_back(repeated):
    one, other, _ = ys(repeated)
    before = repeated.nodes.born(other) - 1
    cursor = Cursor(repeated, before)
    assert (cursor.to("y").position, cursor.selected) == (repeated.nodes.born(other), other)
    assert (cursor.reverse_to("y").position, cursor.selected) == (
        max(n for n in repeated.events_of(one) if n <= before),
        one,
    )


def parts(timeline, node, *kinds):
    return [n for n, event in timeline.select(kinds) if event.node == node]


@pytest.mark.parametrize("name", ["x.grad", "#1.grad"])
def test_a_gradient_is_the_moment_at_which_its_last_part_arrives(repeated, name):
    arrived = parts(repeated, 1, GradAccumulated)
    named = name.replace("x", "w")
    assert event_at(repeated, named) == arrived[-1]
    assert [event_at(repeated, named, n=n) for n in arrived] == arrived
    assert event_at(repeated, named, n=0) == arrived[0]
    assert event_at(repeated, named, n=arrived[1] - 1) == arrived[0]
    assert "node #1 w: .grad " in transcript(repeated, f"goto {named}", at=2)


def test_the_gradient_of_what_is_no_leaf_is_the_moment_where_its_parts_meet():
    timeline = demo()
    meeting = [n for n, event in timeline.select((GradFlowed,)) if event.node == 3][-1]
    assert event_at(timeline, "a.grad") == event_at(timeline, "on receive a") == meeting
    assert event_at(timeline, "a.grad", n=meeting - 1) == meeting > event_at(timeline, "on receive a", n=meeting - 1)
    assert "incoming gradient 1 += 3, now 4 (2 of 2)" in transcript(timeline, "goto a.grad")
    cursor = Cursor(timeline, 1)
    assert (cursor.goto("a.grad").position, cursor.selected) == (meeting, 3)
    assert (cursor.goto("on receive a").position, cursor.selected) == (meeting, 4)


@pytest.mark.parametrize(
    "text", ["on receive x", "on accumulate w", "on backward a", "change x.grad", "change norm(x.grad)"]
)
def test_what_break_takes_is_the_moment_at_which_it_stopped_last(text):
    timeline = demo()
    hits = [hit.n for hit in hits_of(timeline, stop(text)).after(0)]
    assert hits
    assert event_at(timeline, text) == hits[-1]
    assert event_at(timeline, text, n=0) == hits[0]
    assert all(event_at(timeline, text, n=n) == n for n in hits)


def test_what_never_happens_is_no_moment():
    untracked = timeline_of(lambda: torch.ones(2).mul(2))
    with pytest.raises(GvizError, match="no gradient arrives at #2"):
        event_at(untracked, "#2.grad")
    with pytest.raises(GvizError, match="there is no moment on receive nosuch"):
        event_at(demo(), "on receive nosuch")
    with pytest.raises(GvizError, match="there is no event"):
        event_at(demo(), "on nosuch")


def test_a_pass_is_one_of_the_thread_in_which_one_stands():
    together = threading.Barrier(2)

    def work(first):
        y = torch.ones(2, requires_grad=True) * 2
        together.wait()
        if first:
            y.sum().backward()
        together.wait()
        if not first:
            y.sum().backward()

    def program():
        threads = [threading.Thread(target=work, args=(first,)) for first in (True, False)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    timeline = timeline_of(program)
    one, other = [phase for phase in timeline.phases if phase.kind == "backward"]
    assert event_at(timeline, "backward", one.start) == one.end
    assert event_at(timeline, "backward", other.start) == other.end
    assert event_at(timeline, "backward") == other.end


def test_an_iteration_and_a_pass_of_it_are_found_by_their_number():
    timeline = iterations(3)
    for number, (forward, backward) in enumerate(
        zip(ends(timeline, "forward"), ends(timeline, "backward"), strict=True)
    ):
        assert event_at(timeline, f"forward {number + 1}") == forward
        assert event_at(timeline, f"bwd {number + 1}") == backward
        through = event_at(timeline, f"iteration {number + 1}", n=2)
        assert timeline.iteration_at(through).index == number
        assert through >= backward
        assert f"event {through}, " in transcript(timeline, f"goto iteration {number + 1}", at=2)


@pytest.mark.parametrize("number", ["0", "4", "9" * 19, "9" * 5000], ids=lambda number: str(len(number)) + number[0])
def test_where_there_is_no_iteration_of_that_number_it_is_said_how_many_there_are(number):
    with pytest.raises(GvizError, match=f"there is no iteration {number[:18]}") as caught:
        event_at(iterations(3), f"iteration {number}")
    assert caught.value.hint == "there are 3"


def test_the_moments_of_an_iteration_are_from_its_beginning_to_where_it_is_through():
    timeline = iterations(3)
    moments = span(timeline, "iteration 2", pytest.fail)
    assert moments[0] == timeline.iterations[1].start
    assert moments[-1] == event_at(timeline, "iteration 2")
    assert span(timeline, "backward 2", pytest.fail)[-1] == ends(timeline, "backward")[1]


def validates(guard):
    """A turn of a training, a validation on other data, and another turn."""
    model = torch.nn.Linear(2, 1)
    for turn in range(4):
        loss = model(torch.rand(3, 2)).sum()
        loss.backward()
        for p in model.parameters():
            p.data -= p.grad * 0.1
            p.grad = None
        if turn == 1:
            with guard():
                val = model(torch.rand(3, 2)).mean()
            val.item()


@pytest.mark.parametrize("guard", [torch.no_grad, nullcontext])
def test_what_an_iteration_evaluates_after_its_pass_is_neither_its_forward_nor_its_end(guard):
    timeline = timeline_of(lambda: validates(guard))
    assert len(timeline.iterations) == 4
    val = next(node for node in timeline.nodes if timeline.info(node).name == "val")
    born = timeline.info(val).born
    assert timeline.iteration_at(born).index == 1
    assert timeline.phase_at(event_at(timeline, "forward 2")).end < ends(timeline, "backward")[1]
    assert event_at(timeline, "forward", born) == event_at(timeline, "forward 2")
    assert ends(timeline, "backward")[1] < event_at(timeline, "iteration 2") < timeline.phase_at(born).start


def test_a_forward_ends_with_its_loss_and_not_with_what_its_last_line_has_freed():
    def program():
        w = torch.ones(2, requires_grad=True)
        for _ in range(3):
            loss = (w * 2).exp().sum()
            loss.backward()
            w.grad = None

    timeline = timeline_of(program)
    for number, iteration in enumerate(timeline.iterations, 1):
        (forward,) = timeline.phases_in(iteration, "forward")
        at = event_at(timeline, f"forward {number}")
        assert (timeline.info(timeline.at(at).node).name, timeline.info(timeline.at(at).node).iteration) == (
            "loss", iteration.index,
        )  # fmt: skip
        assert isinstance(timeline.event(forward.end), NodeFreed) is (number > 1)
        assert stepping.finish(timeline, forward.start) == forward.end  # where a program that runs can be paused
        assert begin_of(timeline, f"forward {number}", at) == forward.start
