"""A graph that is handed out draws itself, wherever it is."""

import graphviz
import pytest
from render.logs import two_shares

from gviz.errors import GvizError
from gviz.render.make_dot import make_dot


@pytest.fixture(autouse=True)
def no_program(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")


def test_it_is_a_digraph_of_the_graphviz_package_and_can_be_changed():
    graph = make_dot(two_shares().timeline)
    assert isinstance(graph, graphviz.Digraph)
    graph.attr(rankdir="TB")
    graph.node("mine", "my own remark")
    assert "my own remark" in graph.pipe(format="svg", encoding="utf-8")


def test_it_shows_the_moment_it_was_asked_for():
    timeline = two_shares().timeline
    assert "event 18/29" in make_dot(timeline, 18).source
    assert "event 29/29" in make_dot(timeline).source


def test_a_notebook_shows_it():
    shown = make_dot(two_shares().timeline)._repr_mimebundle_()
    assert "loss = Add #5" in shown["image/svg+xml"]


def test_it_writes_itself(tmp_path):
    graph = make_dot(two_shares().timeline)
    path = graph.render("graph", tmp_path, format="png", cleanup=True)
    assert path == str(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["graph.png"]


def test_a_format_that_is_not_drawn_is_refused():
    with pytest.raises(GvizError, match="gviz cannot draw 'jpg'"):
        make_dot(two_shares().timeline).pipe(format="jpg")
