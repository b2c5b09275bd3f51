"""A graph that is handed out draws itself, wherever it is."""

import re
from html import unescape

import graphviz
import pytest
from recording import events_of
from render.logs import two_shares

import gviz
import gviz.engine as torch
from gviz import make_dot
from gviz.api.drawable import drawn
from gviz.errors import GvizError
from gviz.events import StackSeen
from gviz.explain.event_description import sentence
from gviz.render.scene import caption


@pytest.fixture(autouse=True)
def no_program(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        (lambda x, y: x * 2, {"other"}),
        (lambda x, y: x * y, {"self", "other"}),
        (lambda x, y: torch.exp(x), {"result"}),
        (lambda x, y: x**3, {"self"}),
    ],
)
def test_only_what_a_gradient_asks_for_is_kept(made, kept):
    x, y = (torch.tensor(2.0, requires_grad=True) for _ in range(2))
    assert set(re.findall(r"saved: (\w+)", make_dot(made(x, y), show_saved=True).source)) == kept


def test_it_is_a_digraph_of_the_graphviz_package_and_can_be_changed():
    graph = make_dot(two_shares().timeline)
    assert isinstance(graph, graphviz.Digraph)
    graph.attr(rankdir="TB")
    graph.node("mine", "my own remark")
    assert "my own remark" in graph.pipe(format="svg", encoding="utf-8")


def test_it_shows_the_moment_it_was_asked_for():
    timeline = two_shares().timeline
    assert "event 18/29" in make_dot(timeline, at=18).source
    assert "event 29/29" in make_dot(timeline).source


def test_a_notebook_shows_it():
    shown = make_dot(two_shares().timeline)._repr_mimebundle_()
    assert "loss = add #5" in shown["image/svg+xml"]


def test_it_writes_itself(tmp_path):
    graph = make_dot(two_shares().timeline)
    path = graph.render("graph", tmp_path, format="png", cleanup=True)
    assert path == str(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["graph.png"]


def test_a_format_that_is_not_drawn_is_refused():
    with pytest.raises(GvizError, match="gviz cannot draw 'jpg'"):
        make_dot(two_shares().timeline).pipe(format="jpg")


def model_and_loss():
    model = torch.nn.Linear(3, 1)
    return model, torch.relu(model(torch.ones(2, 3))).sum() * torch.tensor(2.0)


def test_the_graph_behind_a_tensor_is_drawn_without_a_recording():
    model, loss = model_and_loss()
    source = make_dot(loss, params=dict(model.named_parameters())).source
    for title in ("weight param #", "bias param #", "relu #", "sum #", "mul #"):
        assert title in source
    assert "role-root" in source
    assert "event" not in source
    assert "state-current" not in source
    assert source.count("edge-forward") >= 4
    assert __file__.rpartition("/")[2] not in source


def rows_of(source):
    """What stands in boxes, piece by piece."""
    return [unescape(text) for text in re.findall(r">([^<>]+)</", source)]


@pytest.mark.parametrize(("most", "shown"), [(50, "(0, 1)"), (5, "(0, …"), (1, "(0…")])
def test_arguments_of_operations_are_shown_as_long_as_asked_for(most, shown):
    loss = torch.ones(2, 3, requires_grad=True).mean((0, 1))
    rows = rows_of(make_dot(loss, show_attrs=True, max_attr_chars=most).source)
    assert rows[rows.index("dim") + 1] == shown
    assert "keepdim" in rows
    assert "keepdim" not in rows_of(make_dot(loss).source)


def test_leaves_are_named_only_if_they_are_in_the_graph():
    model, loss = model_and_loss()
    other = torch.ones(1, requires_grad=True)
    assert "weight param" not in make_dot(loss).source
    assert "stranger" not in make_dot(loss, [("stranger", other)]).source
    assert "<x&gt;" not in make_dot(loss, {"<x>": model.weight}).source
    assert "&lt;x&gt; param" in make_dot(loss, {"<x>": model.weight}).source


def test_a_tensor_may_be_drawn_again_recorded_and_differentiated_afterwards(tmp_path):
    _, loss = model_and_loss()
    first = make_dot(loss).source
    assert make_dot(loss).source == first
    with gviz.record(tmp_path / "x.gviz"):
        loss.backward()
        assert make_dot(loss).source
    assert "edge-flowed" in make_dot(gviz.load(tmp_path / "x.gviz")).source


def test_what_is_no_graph_is_refused():
    with pytest.raises(GvizError, match=r"cannot draw a builtins\.int"):
        make_dot(3)


def test_a_drawing_made_while_recording_leaves_no_trace_in_it():
    def program(draw):
        x = torch.ones(2, requires_grad=True)
        y = (x * x)[0]
        if draw:
            assert "edge-forward" in make_dot(y, {"x": x}).source
        z = y + x.sum()
        z.backward()
        return x, z

    drawn, plain = (events_of(lambda draw=draw: program(draw)) for draw in (True, False))
    said = [
        [(type(e), getattr(e, "node", None)) for e in log if not isinstance(e, StackSeen)] for log in (drawn, plain)
    ]
    assert said[0] == said[1]


def test_a_graph_that_was_not_recorded_is_there_as_it_stands():
    x = torch.ones(3, requires_grad=True)
    timeline = drawn((x * 2).sum()).timeline
    end = timeline.at(len(timeline))
    assert caption(timeline, end) == "as it stands"
    assert sentence(timeline, end.n).endswith("the graph as it stands: how it came about was not recorded.")
