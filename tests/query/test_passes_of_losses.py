"""The backward pass of one of several losses, as a moment and in pictures of what led to the loss."""

import json
import shlex

import pytest

import gviz
import gviz.engine as builtin
from gviz.api.export import export
from gviz.api.export_options import span
from gviz.errors import GvizError
from gviz.query.moments import event_at
from gviz.trace import load

ENGINES = [builtin, pytest.param("torch", marks=pytest.mark.torch)]


@pytest.fixture(params=ENGINES, ids=["builtin", "torch"])
def engine(request):
    return pytest.importorskip("torch") if request.param == "torch" else request.param


def two_losses(engine):
    g = engine.tensor([1.0, -2.0], requires_grad=True)
    d = engine.tensor([0.5, 3.0], requires_grad=True)
    for _ in range(2):
        fake = g * 2
        d_loss = (d * fake.detach()).sum()
        d_loss.backward()
        g_loss = (d * fake).sum()
        g_loss.backward()
    return d_loss, g_loss


def test_the_pass_of_a_loss_is_a_moment_by_the_name_of_the_loss(engine, tmp_path):
    with gviz.record(tmp_path / "t.gviz"):
        two_losses(engine)
    timeline = load(tmp_path / "t.gviz")
    first, second = [phase for phase in timeline.phases if phase.kind == "backward"][-2:]
    assert event_at(timeline, "backward d_loss") == first.end
    assert event_at(timeline, "bwd g_loss") == second.end
    number = timeline.info(timeline.at(event_at(timeline, "d_loss")).actor).node
    assert event_at(timeline, f"backward #{number}") == first.end
    assert event_at(timeline, "d_loss.grad") == first.start
    assert span(timeline, "backward d_loss", pytest.fail) == tuple(range(first.start, first.end + 1))
    with pytest.raises(GvizError, match="backward pass"):
        event_at(timeline, "backward fake")
    with pytest.raises(GvizError, match="no moment"):
        event_at(timeline, "backward nothing")


def gradients(path):
    """Return the names of the tensors to which a gradient flows in a picture."""
    picture = json.loads(path.read_text())
    return {edge["target"] for edge in picture["edges"] if edge["kind"] == "gradient" and "flowed" in edge["states"]}


def test_a_picture_of_a_loss_shows_the_gradients_of_its_own_pass(engine, tmp_path):
    with gviz.record(tmp_path / "t.gviz"):
        two_losses(engine)
    part = {"node": "d_loss", "ancestors": True}
    (own,) = export(tmp_path / "t.gviz", tmp_path / "own.json", **part)
    (later,) = export(tmp_path / "t.gviz", tmp_path / "later.json", at="backward g_loss", **part)
    (last,) = export(tmp_path / "t.gviz", tmp_path / "last.json", **(part | {"node": "g_loss"}))
    g, d = "n1", "n2"
    assert d in gradients(own)
    assert g not in gradients(own)
    assert g in gradients(later)  # from the pass of g_loss
    assert {g, d} <= gradients(last)


def test_the_hint_about_a_missing_gradient_is_a_command_that_can_be_typed(engine, tmp_path):
    trace = tmp_path / "a trace.gviz"
    with gviz.record(trace):
        two_losses(engine)
    with pytest.raises(GvizError, match="no gradient arrives") as caught:
        export(trace, tmp_path / "f.svg", at="detach.grad")
    words = shlex.split(caught.value.hint.removesuffix(" explains it"))
    assert words == ["gviz", "explain", str(trace), "detach.grad"]
