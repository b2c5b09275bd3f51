"""An error that ended a pass and was caught by the program: found, stopped at, and named wherever its node is seen."""

import contextlib

import pytest
from driving import app_of, transcript
from recording import events_of, timeline_of
from replay import replay

import gviz.engine as torch
from gviz import emit
from gviz import events as e
from gviz.render.boxes.graph_options import Options
from gviz.render.picture_request import moment_scene
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.tui.cursor import Cursor
from gviz.tui.glyphs import glyphs
from gviz.tui.language.command import Command
from gviz.tui.line_mode import moved
from gviz.tui.screens.overlay_pages import Sheet
from gviz.tui.session import Session
from gviz.tui.stop_reason import Reason


def spoiled():
    """What the product saved is overwritten; the error is caught, and more happens."""
    x = torch.tensor(3.0, requires_grad=True)
    s = torch.ones(2)
    y = s[0] * x
    s[1] = 5.0
    with contextlib.suppress(RuntimeError):
        y.backward()
    return x, s, y, s.sum()


@pytest.fixture(scope="module")
def timeline():
    return timeline_of(spoiled)


@pytest.fixture(scope="module")
def product(timeline):
    return next(node for node in timeline.nodes if timeline.info(node).op.name == "mul")


def test_goto_error_stands_at_the_end_of_the_pass_with_the_node_that_failed(timeline, product):
    (error,) = timeline.errors
    assert not timeline.failures
    said = transcript(timeline, "goto error", "explain", "explain error", at=1)
    assert f"event {error}, backward, node #{product} y = mul" in said
    assert said.count("was changed in place, but") >= 3  # the failure of the moment, and two answers


def test_running_on_stops_there_in_both_directions(timeline):
    (error,) = timeline.errors
    assert f"event {error}" in transcript(timeline, "continue", at=1)
    assert f"event {error}" in transcript(timeline, "reverse-continue", at=len(timeline))


def test_a_breakpoint_on_error_stops_there_too(timeline):
    (error,) = timeline.errors
    said = transcript(timeline, "break on error", "continue", "continue", at=1)
    assert f"event {error}," in said
    assert said.count("breakpoint 1.") == 1


def test_an_error_that_was_caught_once_and_not_the_second_time_is_two():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        y = x * x
        y.backward()
        with contextlib.suppress(RuntimeError):
            y.backward()
        try:
            y.backward()
        except RuntimeError as error:
            emit.channel.emit(e.Failed(type(error).__name__, str(error), 0, 0, ""))

    timeline = timeline_of(program)
    assert [type(timeline.event(n)).__name__ for n in timeline.errors] == ["BackwardFinished", "Failed"]
    assert timeline.errors[0] < timeline.errors[1] - 1, "the pass whose error nobody caught is not told twice"


def test_the_node_has_failed_from_then_on_in_box_and_tape(timeline, product):
    (error,) = timeline.errors
    for n in (error, len(timeline)):
        state = timeline.at(n).state(product)
        assert state is not None
        assert state.step == "failed"
        box = next(box for box in moment_scene(timeline, n, Options()).boxes if box.node == product)
        assert box.status == "! failed"
        assert "error" in box.states
        tape = transcript(timeline, "graph", at=n).splitlines()
        assert "! failed" in next(row for row in tape if f"  {product} y = mul" in row)
    assert timeline.at(error - 1).state(product).step == "running"


async def test_the_bar_marks_it_and_the_node_is_selected(timeline, product):
    app = app_of(timeline, at=1)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("c")
        await pilot.pause()
        assert app.screen.selected == product
        text = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        assert "stopped: error" in text.splitlines()[0]
        assert "RuntimeError at" in text
        await pilot.press("less_than_sign")
        await pilot.pause()
        assert "!" in list(app.screen._compositor.render_strips())[1].text


async def test_what_is_cut_says_how_to_see_all_of_it(timeline):
    app = app_of(timeline, at=timeline.errors[0])
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        rows = [strip.text for strip in app.screen._compositor.render_strips()]
        assert rows[-2].rstrip().endswith("… ; more")
        await pilot.press("semicolon")
        await pilot.pause()
        assert "expected version 0 instead" in " ".join(
            "".join(text for text, _ in row) for row in app.screen.query_one(Sheet)._lines
        )


@pytest.mark.parametrize(("line", "sheet"), [("goto blah", True), ("goto #999", False)])
async def test_an_answer_too_long_for_the_bottom_row_is_a_page(timeline, line, sheet):
    app = app_of(timeline, at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*f":{line}", "enter")
        await pilot.pause()
        assert bool(app.screen.query(Sheet)) == sheet


@pytest.mark.parametrize(
    "reason",
    [
        Reason("breakpoint", "breakpoint 1", 1),
        Reason("held", "breakpoint() at x.py:3"),
        Reason("held", "paused at x.py:3", thread="worker"),
        Reason("held", "the program is at event 9"),
    ],
)
def test_why_a_program_is_held_is_said_also_where_an_error_was(timeline, reason):
    (error,) = timeline.errors
    session = Session(Cursor(timeline, 1), glyphs(ascii=False))
    stop = session.cursor.follow_program(error, 1, reason)
    assert stop.reason == reason
    assert f"{reason.words}." in list(moved(session, Command("continue"), stop))


def test_a_pass_that_failed_on_its_way_to_a_node_is_its_latest():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        y = x * x
        z = y * y
        z.backward()
        for _ in range(2):
            with contextlib.suppress(RuntimeError):
                z.backward()
        return z

    log = MemoryLog()
    grown = Timeline(log)
    for event in events_of(program):
        log.append(event)
        if grown.refresh():
            n = len(grown)
            assert {node: grown.at(n).state(node) for node in grown.nodes} == replay(log, n)
    x = grown.nodes[0]
    first, second = grown.errors
    assert [grown.at(n).state(x).pass_nr for n in (first - 3, first, first + 1, second)] == [1, 2, 3, 3]
    assert [grown.at(n).state(x).step for n in (first - 3, first, second)] == ["done", "none", "none"]
