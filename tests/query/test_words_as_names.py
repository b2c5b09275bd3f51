"""Nodes that are called as the command language calls something else, or are asked for by their gradient."""

import pytest
from driving import transcript
from recording import timeline_of

import gviz
import gviz.engine as torch
from gviz.errors import GvizError
from gviz.explain.typed_question import answer
from gviz.query.moments import event_at
from gviz.query.nodes import NamedNodes, node_at


def program():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    error = x * 3
    nan = error + 1
    backward = nan.sum()
    return backward, x


@pytest.fixture(scope="module")
def named():
    return timeline_of(program)


@pytest.mark.parametrize("word", ["error", "nan", "backward"])
def test_a_word_that_means_nothing_says_which_node_is_called_so(named, word):
    node = node_at(NamedNodes(named), word, len(named))
    also = f"{word} is also #{node}: write #{node}"
    assert named.info(node).name == word
    with pytest.raises(GvizError) as caught:
        event_at(named, word)
    assert caught.value.hint == also
    assert also in transcript(named, f"goto {word}")
    assert event_at(named, f"#{node}") == named.info(node).born


def test_why_says_the_same_of_an_error(named):
    with pytest.raises(GvizError) as caught:
        answer(NamedNodes(named), "error", len(named))
    (node,) = NamedNodes(named).called("error", len(named))
    assert caught.value.hint == f"error is also #{node}: write #{node}"


def fails():
    start = torch.tensor([1.0, 2.0], requires_grad=True)
    error = start * 3
    error.backward()


def test_a_word_that_means_a_moment_names_the_node_beside_it(tmp_path, capfd):
    with pytest.raises(RuntimeError), gviz.record(tmp_path / "run.gviz"):
        fails()
    timeline = gviz.load(tmp_path / "run.gviz")
    said = transcript(timeline, "goto start", "goto #1", "goto error", "why error", at=1)
    names = NamedNodes(timeline)
    start, error = names.last("start", len(timeline)), names.last("error", len(timeline))
    assert said.count(f"start is also #{start}: write #{start}\n") == 1
    assert f"error is also #{error}: write #{error}\nevent {len(timeline)}" in said
    assert f"(error is also #{error}: write #{error})" in " ".join(said.split())
    gviz.why(timeline, "start.grad", at="error")
    assert capfd.readouterr().err == f"gviz: error is also #{error}: write #{error}\n"


def test_a_breakpoint_at_a_name_that_is_an_event_says_how_the_event_is_written(named):
    said = transcript(
        named, "break nan", "break backward if value > 3", "break on nan", "break x", "delete", "until end"
    )
    assert said.count("stops at the event") == 2
    assert "breakpoint 1: nan\nnan is taken as a name; break on nan stops at the event\n" in said
    assert "nothing later is at end; hint: goto end is for a moment." in said


def test_where_no_node_is_called_so_none_is_named():
    with pytest.raises(GvizError) as caught:
        event_at(timeline_of(lambda: torch.ones(2, requires_grad=True) * 2), "error")
    assert not caught.value.hint


@pytest.mark.parametrize("text", ["x.grad", "x.value", "#1.grad", "1", "#1"])
def test_a_node_is_written_alike_wherever_one_is_asked_for(named, text):
    names = NamedNodes(named)
    assert node_at(names, text, len(named)) == 1
    assert answer(names, text, len(named)).node == 1


def test_a_tensor_called_as_a_gradient_comes_before_the_owner_of_it():
    def doubled():
        w = torch.ones(2, requires_grad=True)
        (w * w).sum().backward()
        return w.grad * 2

    timeline = timeline_of(doubled)
    assert timeline.info(node_at(NamedNodes(timeline), "w.grad", len(timeline))).name == "w.grad"


def test_a_gradient_that_never_comes_is_no_moment_and_the_hint_is_not_what_was_typed(named):
    with pytest.raises(GvizError, match="no gradient arrives at x") as caught:
        event_at(named, "x.grad")
    assert caught.value.hint == "why x.grad explains it"
    with pytest.raises(GvizError, match=r"there is no moment x\.value") as caught:
        event_at(named, "x.value")
    assert caught.value.hint.startswith("change x.value is where it changed")


@pytest.mark.parametrize("text", ["#99.grad", "y.grad"])
def test_a_gradient_of_nothing_is_refused(named, text):
    with pytest.raises(GvizError, match="there is no") as caught:
        node_at(NamedNodes(named), text, len(named))
    assert f"did you mean {text}" not in caught.value.hint


def clips():
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    for _ in range(2):
        (w * w).sum().backward()
        norm = (w.grad * w.grad).sum().sqrt()  # as clip_grad_norm_ returns it
    return norm


def test_a_tensor_that_is_called_as_a_function_is_leaves_the_function_its_name():
    timeline = timeline_of(clips)
    said = transcript(timeline, "print norm(w.grad) * 2", "print norm * 3", "print max(norm, 1)", at=len(timeline))
    assert {"norm(w.grad) * 2 = 40", "norm * 3 = 60", "max(norm, 1) = 20"} <= {*said.splitlines()}


@pytest.mark.parametrize("stop", ["break change norm(w.grad)", "break norm(w.grad) > 0", "break norm > 0"])
def test_such_a_tensor_and_such_a_function_are_stopped_at(stop):
    timeline = timeline_of(clips)
    assert "[2 times" in transcript(timeline, stop, "info break").splitlines()[-1]
