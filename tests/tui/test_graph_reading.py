"""A large graph is read a little at a time: other panels are there at once, keys act, and the graph comes by itself."""

import pytest
from driving import app_of, rows_of, until
from stories import demo
from textual.widgets import OptionList

from gviz.errors import GvizError
from gviz.tui import graph_view
from gviz.tui.graph_view import Folds
from gviz.tui.screens.debugger_screen import GraphReading


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(graph_view, "SOON", 1)


@pytest.fixture
def by_hand(monkeypatch):
    """What goes on with the work, to be called by the test."""
    monkeypatch.setattr(GraphReading, "_soon", lambda self: None)


@pytest.mark.usefixtures("everything_is_large", "by_hand")
async def test_panels_are_there_and_keys_act_before_the_graph_is_read():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        start = app._start
        assert start.query_one("#tape").display
        assert not start.query_one("#graph").display
        await pilot.press("n")
        assert start.cursor.position == 3
        await pilot.press(*":close all", "enter")
        await pilot.pause()
        assert "still being read" in start.remark
        await pilot.press("7")
        await pilot.pause()
        assert any("still being read" in row for row in rows_of(app))
        await pilot.press("P")
        await pilot.pause()
        assert app.screen.query_one(OptionList).option_count
        await pilot.press("escape", "escape")
        start.graph_reading._yield_to_screen()
        while start.graph_reading._work is not None:
            start.graph_reading._yield_to_screen()
        await pilot.press(*":close all", "enter")
        await pilot.pause()
        assert "every module is collapsed" in start.remark


@pytest.mark.usefixtures("everything_is_large")
async def test_the_graph_comes_by_itself():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app._start.query_one("#graph").display)
        assert app._start.remark == ""


@pytest.mark.usefixtures("everything_is_large")
def test_who_prepares_nothing_waits_for_the_graph():
    timeline = demo()
    known, iteration = Folds(timeline), timeline.iteration_at(1)
    assert known.ready(iteration)
    whole = known.graph(iteration)
    known = Folds(timeline)
    known.reads_later = True
    with pytest.raises(GvizError, match="still being read"):
        known.graph(iteration)
    assert [str(far) for far in known.read_graph(iteration)][-1].startswith("reading the calls: node 0 of")
    assert known.graph(iteration) == whole
