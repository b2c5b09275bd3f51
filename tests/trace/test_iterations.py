"""Which graphs are one turn of a program's loop."""

from functools import partial

import pytest
from recording import iterations_known, timeline_of

import gviz
import gviz.engine as torch
from gviz.explain.iteration_words import iteration_called
from gviz.query.moments import event_at
from gviz.trace.iterations import Loop
from gviz.tui.drawing.iterations_and_passes import pass_rows


def put_together(places):
    """The places of one graph after the other, those of one iteration without a blank."""
    loop = Loop()
    for at, place in enumerate(places):
        if at:
            loop.begin_graph(at + 1)
        loop.begin_pass(ord(place))
    ends = [*loop.starts[1:], len(places) + 1]
    return " ".join(places[start - 1 : end - 1] for start, end in zip(loop.starts, ends, strict=True))


@pytest.mark.parametrize(
    "iterations",
    [
        "a a a",
        "ab ab",
        "abc abc ab",
        "a b c",
        "a a b b",
        "s ab ab",
        "ab ab cd cd",
        "a a b a a b",
        "a a b b a a b b",
        "dg d d dg d",
        "ab ab x ab",
        "ab ab b ab",
    ],
)
def test_a_turn_is_over_where_the_program_comes_back_to_a_place(iterations):
    assert put_together(iterations.replace(" ", "")) == iterations


def test_what_was_a_graph_by_itself_joins_its_turn_once_the_program_comes_back():
    told = [put_together("abab"[:count]) for count in range(1, 5)]
    assert told == ["a", "a b", "ab a", "ab ab"]


def test_a_graph_that_has_no_pass_yet_is_taken_for_what_the_last_turn_had():
    loop = Loop()
    for place in "dgd":
        loop.begin_pass(ord(place))
        loop.begin_graph(loop.starts[-1] + 10)
    assert loop.starts == [1, 21]
    loop.begin_pass(ord("d"))
    assert loop.starts == [1, 21, 31]


def test_the_second_turn_is_one_as_soon_as_it_begins_with_the_first_ones_forward():
    assert iterations_known(two_optimizers) == [1, 2, 3]


def in_turns():
    w = torch.tensor([2.0], requires_grad=True)
    for step in range(4):
        out = w * 2.0
        if step % 2:
            out.sum().backward()
        else:
            out.sum().backward()


def test_turns_that_begin_with_one_forward_are_several_wherever_their_passes_are():
    timeline = timeline_of(in_turns)
    assert [len(timeline.pass_ends(one)) for one in timeline.iterations] == [1, 1, 1, 1]


def two_optimizers():
    g, d = (torch.tensor([value], requires_grad=True) for value in (2.0, 3.0))
    opt_g, opt_d = (torch.optim.SGD([weight], lr=0.1) for weight in (g, d))
    for _ in range(3):
        fake = g * 0.5
        opt_d.zero_grad()
        d_loss = (d - fake.detach()).sum()
        d_loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        g_loss = (d * fake).sum()
        g_loss.backward()
        opt_g.step()


def gradients_of_several_batches():
    w = torch.tensor([2.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for turn in range(4):
        loss = (w * (turn + 1.0)).sum()
        loss.backward()
        if turn % 2:
            optimizer.step()
            optimizer.zero_grad()


def two_losses_of_one_forward():
    w = torch.tensor([2.0], requires_grad=True)
    for _ in range(2):
        out = w * 3.0
        out.sum().backward(retain_graph=True)
        (out * 2.0).sum().backward()
        w.grad = None


@pytest.mark.parametrize(
    ("program", "iterations", "losses"),
    [(two_optimizers, 3, 2), (gradients_of_several_batches, 4, 1), (two_losses_of_one_forward, 2, 2)],
)
def test_an_iteration_is_a_turn_of_the_training_loop(program, iterations, losses):
    timeline = timeline_of(program)
    assert [len(timeline.pass_ends(one)) for one in timeline.iterations] == [losses] * iterations
    assert iteration_called(timeline) == "iteration"
    assert sum(text.startswith("iteration ") for text, _, _ in pass_rows(timeline, 1)) == iterations


def a_plain_loop():
    w = torch.tensor([2.0], requires_grad=True)
    for value in (1.0, 2.0, 3.0):
        (w * torch.tensor(value)).sum().backward()


def validation_without_no_grad():
    w = torch.tensor([2.0], requires_grad=True)
    for value in (1.0, 2.0):
        (w * torch.tensor(value)).sum().backward()
        w.exp().log()  # no pass goes through it


def two_loops():
    w = torch.tensor([2.0], requires_grad=True)
    for value in (1.0, 2.0):
        (w * torch.tensor(value)).sum().backward()
    for value in (3.0, 4.0):
        (w + torch.tensor(value)).sum().backward()


@pytest.mark.parametrize(
    ("program", "iterations"),
    [
        (a_plain_loop, ["mul sum"] * 3),
        (gradients_of_several_batches, ["mul sum"] * 4),
        (two_optimizers, ["mul detach sub sum mul sum"] * 3),
        (validation_without_no_grad, ["mul sum exp log"] * 2),
        (two_loops, ["mul sum"] * 2 + ["add sum"] * 2),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_five_programs_of_the_definition(program, iterations):
    timeline = timeline_of(program)
    assert [" ".join(computed(timeline, one)) for one in timeline.iterations] == iterations


def net_and_teacher():
    net, teacher = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    return net, teacher, torch.optim.SGD(net.parameters(), lr=0.1)


def targets_of_a_teacher(validate=False, average=False, turns=3):
    net, teacher, optimizer = net_and_teacher()
    for _ in range(turns):
        x = torch.randn(4, 3)
        with torch.no_grad():
            y = teacher(x).tanh()
        loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if average:
            with torch.no_grad():
                for ours, theirs in zip(teacher.parameters(), net.parameters(), strict=True):
                    ours.mul_(0.9).add_(theirs, alpha=0.1)
        if validate:
            with torch.no_grad():
                (net(torch.randn(4, 3)) - torch.randn(4, 2)).abs().mean()


def values_of_the_next_state():
    net, teacher, optimizer = net_and_teacher()
    states = torch.randn(9, 3)
    for _ in range(3):
        x, after = states[torch.randint(0, 9, (4,))], states[torch.randint(0, 9, (4,))]
        q = net(x).sin()
        with torch.no_grad():
            best = net(after).argmax(1, keepdim=True)
            y = teacher(after).gather(1, best).exp()
        optimizer.zero_grad()
        (q - y).pow(2).mean().backward()
        optimizer.step()


def features_of_a_frozen_part(turns=3):
    _, backbone, _ = net_and_teacher()
    x = torch.randn(4, 3)
    head = torch.nn.Linear(2, 1)
    for _ in range(turns):
        with torch.no_grad():
            h = backbone.weight.mul(2.0).sum() + x.exp() @ backbone.weight.T
        head(h).pow(2).mean().backward()


def a_state_that_goes_on():
    cell = torch.nn.RNNCell(3, 2)
    h = torch.zeros(4, 2)
    for _ in range(3):
        h = cell(torch.randn(4, 3), h)
        h.exp().sum().backward()
        h = h.detach()


def targets_before_the_step():
    net, teacher, optimizer = net_and_teacher()
    x, y = torch.randn(4, 3), torch.randn(4, 2)
    for _ in range(3):
        loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        with torch.no_grad():
            y = teacher(x).tanh()
        optimizer.step()


def norms_of_the_gradients():
    w, size = torch.ones(3, requires_grad=True), torch.ones(())
    for _ in range(3):
        (w.sin() / size).sum().backward()
        with torch.no_grad():
            size = w.grad.norm()
        w.grad = None


def copies_of_a_weight(has_data):
    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        x = torch.randn(3) if has_data else 2.0
        old = w.detach()
        (w.sin() * old * x).sum().backward()


def scores_of_a_late_weight():
    w, scale = torch.ones(3, requires_grad=True), None
    for _ in range(3):
        x = torch.randn(3)
        with torch.no_grad():
            y = x if scale is None else x.exp() * scale
        h = w.sin()
        scale = torch.ones(3, requires_grad=True) if scale is None else scale
        (h * y).sum().backward()


def values_in_a_second_loop():
    a_plain_loop()
    values_of_the_next_state()


@pytest.mark.parametrize(
    ("program", "begins"),
    [
        (targets_before_the_step, ["addmm sub pow mean"] * 3),
        (norms_of_the_gradients, ["sin div sum norm"] * 3),
        (partial(copies_of_a_weight, has_data=True), ["detach sin mul"] * 3),
        (partial(copies_of_a_weight, has_data=False), ["detach sin mul", *["sin mul mul"] * 2]),
        (scores_of_a_late_weight, ["sin mul sum", *["exp mul sin"] * 2]),
        (values_in_a_second_loop, ["mul sum"] * 3 + ["index index addmm sin"] * 3),
    ],
    ids=["before the step", "norms", "weight and data", "weight", "late weight", "second loop"],
)
def test_an_iteration_begins_with_these_operations(program, begins):
    timeline = timeline_of(program)
    infos = [timeline.info(node) for node in timeline.nodes]
    created = [[info for info in infos if one.start <= info.born <= one.end] for one in timeline.iterations]
    names = [[info.op.name for info in one if info.created.kind == "op" and info.op.name != "t"] for one in created]
    assert [" ".join(one[: len(first.split())]) for one, first in zip(names, begins, strict=True)] == begins


@pytest.mark.parametrize(
    ("program", "operations"),
    [
        (targets_of_a_teacher, "addmm tanh addmm sub pow mean add_ add_"),
        (partial(targets_of_a_teacher, validate=True), "addmm tanh addmm sub pow mean add_ add_ addmm sub abs mean"),
        (partial(targets_of_a_teacher, average=True), "addmm tanh addmm sub pow mean add_ add_ mul_ add_ mul_ add_"),
        (
            partial(targets_of_a_teacher, validate=True, average=True),
            "addmm tanh addmm sub pow mean add_ add_ mul_ add_ mul_ add_ addmm sub abs mean",
        ),
        (values_of_the_next_state, "index index addmm sin addmm argmax addmm gather exp sub pow mean add_ add_"),
        (features_of_a_frozen_part, "mul sum exp permute mm add addmm pow mean"),
        (a_state_that_goes_on, "addmm addmm add tanh exp sum detach"),
    ],
    ids=["teacher", "teacher and validation", "average", "average and validation", "next state", "frozen", "state"],
)
def test_a_graph_begins_with_what_is_computed_for_it_without_tracking(program, operations):
    timeline = timeline_of(program)
    infos = [timeline.info(node) for node in timeline.nodes]
    created = [[info for info in infos if one.start <= info.born <= one.end] for one in timeline.iterations]
    names = [[info.op.name for info in one if info.created.kind == "op"] for one in created]
    assert [" ".join(name for name in one if name != "t") for one in names] == [operations] * 3
    data = [sum(info.created.kind == "constant" for info in one) for one in created]
    assert data[1] == data[2], "each batch is in its own iteration"
    phases = {timeline.phase_at(one.start).kind for one in timeline.iterations[1:]}
    assert phases == {"forward"}


def computed(timeline, iteration):
    """The names of the operations of one iteration that no optimizer computed."""
    for node in timeline.nodes.of(iteration):
        created = timeline.info(node).created
        if created.kind == "op" and (created.requires_grad or created.untracked == "detach"):
            yield timeline.op(created.op).name


def test_a_moment_of_an_iteration_is_of_the_whole_turn():
    timeline = timeline_of(two_optimizers)
    n = event_at(timeline, "iteration 2")
    assert timeline.info(timeline.event(timeline.pass_start(4)).roots[0][0]).name == "g_loss"
    assert timeline.pass_start(4) < n <= timeline.iterations[1].end


def test_a_flight_recorder_keeps_whole_turns(tmp_path):
    with gviz.record(tmp_path / "last.gviz", last=2):
        two_optimizers()
    kept = gviz.load(tmp_path / "last.gviz")
    assert len(kept.iterations) == 2


def one_after_the_other():
    two_optimizers()
    gradients_of_several_batches()


@pytest.mark.parametrize(
    ("program", "last", "passes"),
    [(two_optimizers, 1, [2]), (two_optimizers, 2, [2, 2]), (one_after_the_other, 5, [2, 1, 1, 1, 1])],
)
def test_the_first_turn_that_is_kept_is_a_turn_as_those_that_were_dropped(tmp_path, program, last, passes):
    with gviz.record(tmp_path / "last.gviz", last=last):
        program()
    kept = gviz.load(tmp_path / "last.gviz")
    assert [len(kept.pass_ends(one)) for one in kept.iterations] == passes
    assert kept.dropped.events


def test_a_half_turn_that_was_kept_before_its_turn_was_known_is_dropped(tmp_path):
    with gviz.record(tmp_path / "last.gviz", last=1) as recording:
        losses = [torch.tensor([value], requires_grad=True) for value in (2.0, 3.0)]
        for _ in range(2):
            (losses[0] * 2.0).sum().backward()
            (losses[1] * 3.0).sum().backward()
            for _ in range(9):
                torch.rand(1)  # that much is worth to be dropped
            recording.flush()
    kept = gviz.load(tmp_path / "last.gviz")
    assert [len(kept.pass_ends(one)) for one in kept.iterations] == [2]


def without_a_pass_at_the_end():
    w = torch.tensor([2.0], requires_grad=True)
    for _ in range(5):
        x = torch.rand(1)
        (w * x).sum().backward()
        with torch.no_grad():
            w.sub_(w.grad)
        w.grad = None
    return w * torch.rand(1)


def with_data_at_the_end():
    result = without_a_pass_at_the_end()
    result.sum().backward()
    torch.rand(3)


@pytest.mark.parametrize(
    ("program", "passes"), [(without_a_pass_at_the_end, [1, 1, 0]), (with_data_at_the_end, [1, 1])]
)
def test_a_flight_recorder_keeps_turns_that_have_a_pass_with_their_data(tmp_path, program, passes):
    with gviz.record(tmp_path / "last.gviz", last=2):
        program()
    kept = gviz.load(tmp_path / "last.gviz")
    assert [len(kept.pass_ends(one)) for one in kept.iterations] == passes
    first = kept.event(kept.iterations[0].start)
    assert (first.kind, kept.nodes.name(first.node)) == ("constant", "x")


@pytest.mark.parametrize("program", [targets_of_a_teacher, features_of_a_frozen_part])
def test_a_flight_recorder_keeps_what_is_computed_for_a_graph_without_tracking(tmp_path, program):
    with gviz.record(tmp_path / "last.gviz", last=2):
        program(turns=9)
    with gviz.record(tmp_path / "all.gviz"):
        program(turns=9)
    kept, everything = (gviz.load(tmp_path / f"{name}.gviz") for name in ("last", "all"))
    assert len(kept.iterations) == 2
    for one, other in zip(kept.iterations, everything.iterations[-2:], strict=True):
        assert one.end - one.start == other.end - other.start
        assert (
            kept.info(kept.event(one.start).node).op.name == everything.info(everything.event(other.start).node).op.name
        )


def test_a_second_pass_through_a_graph_is_of_its_iteration_though_data_was_made_before():
    def program():
        w = torch.tensor([2.0], requires_grad=True)
        loss = (w * w).sum()
        loss.backward(retain_graph=True)
        torch.tensor([1.0])
        loss.backward()
        with torch.no_grad():
            w -= 0.1

    timeline = timeline_of(program)
    assert [phase.kind for phase in timeline.phases].count("backward") == 2
    assert len(timeline.iterations) == 1


def trained(before=None, after=None, turns=4):
    """A training loop; what else is done before and after the step of a turn. A penalty is added to the loss."""
    w = torch.tensor([2.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for turn in range(turns):
        penalty = before(w, turn) if before else 0.0
        x = torch.rand(1)
        loss = (w * x).sum() + penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if after:
            after(w, turn)


def measured(w, turn):
    for _ in range(2):
        y = torch.rand(1)
        (w + y).sum().item()


def measured_each_other_turn(w, turn):
    if turn % 2:
        measured(w, turn)


def penalized(w, turn):
    return (w * w).sum() if turn == 2 else 0.0


def measured_and_penalized(w, turn):
    measured_each_other_turn(w, turn + 1)
    return penalized(w, turn)


@pytest.mark.parametrize("extra", [measured, measured_each_other_turn])
def test_what_no_pass_goes_through_is_beside_the_graph_that_comes_after_it(extra):
    timeline = timeline_of(lambda: trained(after=extra))
    assert [len(timeline.pass_ends(one)) for one in timeline.iterations] == [1, 1, 1, 1]
    for one in timeline.iterations[1:]:
        first = timeline.event(one.start)
        assert (first.kind, timeline.nodes.name(first.node)) == ("constant", "x")
        assert timeline.phase_at(one.start).start == one.start


def test_what_was_beside_a_graph_once_begins_none_any_more():
    known = iterations_known(lambda: trained(after=measured_each_other_turn, turns=6))
    assert known == [1, 2, 3, 4, 5, 6]
    timeline = timeline_of(lambda: trained(after=measured_each_other_turn, turns=6))
    assert timeline.phases[-1].kind == "forward"
    assert len(timeline.pass_ends(timeline.iterations[-1])) == 1


@pytest.mark.parametrize("extra", [penalized, measured_and_penalized])
def test_a_graph_begins_with_whatever_its_pass_goes_through(extra):
    timeline = timeline_of(lambda: trained(before=extra))
    assert [len(timeline.pass_ends(one)) for one in timeline.iterations] == [1, 1, 1, 1]
    third = timeline.iterations[2]
    assert timeline.info(timeline.event(timeline.pass_start(3)).roots[0][0]).name == "loss"
    made = [timeline.info(node).op.name for node in timeline.nodes if timeline.info(node).iteration == third.index]
    assert made.count("mul") == 2


def test_a_graph_begins_with_what_is_made_for_its_usual_first_line():
    def program():
        w, size = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
        for turn in range(4):
            x = torch.rand(1)
            if turn == 2:
                x = x * size
            (w * x).sum().backward()
            w.grad = None

    timeline = timeline_of(program)
    made = [info for info in map(timeline.info, timeline.nodes) if info.name == "x" and info.op.name == "mul"]
    assert [info.iteration for info in made] == [2]
    assert len(timeline.iterations) == 4


def test_a_graph_of_its_own_begins_with_its_first_line_whatever_is_made_in_it():
    def two_losses(w, turn):
        other = (w * w).sum() if turn == 2 else None
        x = torch.rand(1)
        loss = (w * x).sum()
        torch.autograd.backward([loss, other] if other is not None else [loss])
        with torch.no_grad():
            w -= 0.1

    def program():
        w = torch.tensor([2.0], requires_grad=True)
        for turn in range(4):
            two_losses(w, turn)

    timeline = timeline_of(program)
    made = [timeline.info(node).iteration for node in timeline.nodes if timeline.info(node).name == "other"]
    assert made == [2]
    assert len(timeline.iterations) == 4


@pytest.mark.parametrize("last", [1, 2])
def test_a_flight_recorder_keeps_turns_with_what_is_beside_them(tmp_path, last):
    with gviz.record(tmp_path / "last.gviz", last=last):
        trained(after=measured, turns=6)
    kept = gviz.load(tmp_path / "last.gviz")
    assert [len(kept.pass_ends(one)) for one in kept.iterations if kept.pass_ends(one)] == [1] * last
