"""Choosing an iteration or a pass."""

from driving import app_of, rows_of, transcript
from recording import timeline_of
from stories import demo, iterations

import gviz.engine as torch
from gviz.trace.stepping import end
from gviz.tui.cursor import Cursor
from gviz.tui.drawing import iterations_and_passes
from gviz.tui.drawing.iterations_and_passes import pass_rows
from gviz.tui.glyphs import UNICODE
from gviz.tui.screens.overlay_pages import ChooserScreen


def twice():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        (g,) = torch.autograd.grad(x * x, x, create_graph=True)
        g.backward()

    return timeline_of(program)


def test_every_iteration_and_phase_is_a_row_and_the_moment_is_in_one_of_each():
    timeline = iterations(3)
    rows = pass_rows(timeline, timeline.phases[3].start)
    assert [event for _, event, _ in rows if event in {one.start for one in timeline.iterations}]
    assert len(rows) == len(timeline.iterations) + len(timeline.phases)
    assert [text.split("  ")[0] or text.split("  ")[1] for text, _, here in rows if here] == [
        "iteration 2",
        "backward pass 2",
    ]


def test_of_many_passes_the_last_is_told_too():
    def program():
        w = torch.tensor(2.0, requires_grad=True)
        for factor in (1.0, 2.0, 3.0):
            (w * factor).backward(create_graph=True)
        meta = w * 5.0
        meta.backward()

    (first, *_) = pass_rows(timeline_of(program), 1)
    assert first[0].endswith(", mul 2, mul 4, …, meta 10")


def test_every_iteration_is_told_with_its_loss():
    def program():
        w = torch.tensor(2.0, requires_grad=True)
        for factor in (1.0, 3.0):
            loss = w * factor
            loss.backward()
        (torch.ones(2, requires_grad=True) * w).backward(torch.ones(2))

    rows = [text for text, _, _ in pass_rows(timeline_of(program), 1) if not text.startswith(" ")]
    assert [text.partition(", ")[2] for text in rows] == ["loss 2", "loss 6", ""]


def test_a_pass_that_makes_a_graph_says_so():
    said = transcript(twice(), "passes")
    assert "makes a graph of its own (create_graph)" in said
    assert "backward pass 2" in said


def test_a_long_recording_lists_what_is_near(monkeypatch):
    monkeypatch.setattr(iterations_and_passes, "MOST", 6)
    timeline = iterations(9)
    rows = pass_rows(timeline, timeline.iterations[5].start)
    assert len(rows) <= 6
    assert any(here for _, _, here in rows)


async def test_the_chooser_goes_where_it_was_told_and_escape_nowhere():
    timeline = iterations(3)
    app = app_of(timeline, at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("P")
        await pilot.pause()
        await pilot.press("end", "enter")
        await pilot.pause()
        assert app.screen.cursor.position == timeline.phases[-1].start
        await pilot.press("P", "home", "escape")
        await pilot.pause()
        assert app.screen.cursor.position == timeline.phases[-1].start
        await pilot.press("P", "k", "enter")
        await pilot.pause()
        assert app.screen.cursor.position == pass_rows(timeline, 0)[-2][1]


async def test_the_chooser_is_no_higher_than_its_rows_and_lies_over_the_panels():
    app = app_of(iterations(1))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("P")
        await pilot.pause()
        chooser = app.screen.query_one("#chooser")
        assert chooser.outer_size.height == chooser.option_count + 2
        assert app.screen.styles.background.a < 1


async def test_the_further_lines_of_a_long_row_are_indented():
    rows = [("a row " * 20, False), ("short", True)]
    app = app_of(iterations(1))
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(ChooserScreen("Rows", rows, UNICODE))
        await pilot.pause()
        shown = [row for row in rows_of(app) if "a row" in row or "short" in row]
        lines = [row.partition("a row")[0].rpartition("│")[2] for row in shown if "a row" in row]
        assert len(shown) == 3
        await pilot.press("escape")
    first, further = map(len, lines)
    assert further - first == 4


def test_a_node_that_the_user_has_selected_stays_selected_at_the_ends_of_passes():
    timeline = iterations(2)
    loss = timeline.nodes[-1]
    ends = [phase.end for phase in timeline.phases if phase.kind == "backward"]
    cursor = Cursor(timeline, 1)
    assert (cursor.travel(end, "end"), cursor.selected)[1] == loss
    for moment in (len(timeline), *ends[:1]):
        cursor = Cursor(timeline, 2)
        cursor.select(1)
        cursor.seek(moment)
        assert cursor.selected == 1
    root = timeline.phases[1].start
    cursor.seek(root)
    assert cursor.selected == timeline.at(root).actor != 1
    cursor.seek(len(timeline))
    assert cursor.selected == loss  # a move has selected another one in between


def test_the_next_event_of_a_selected_node_keeps_it_selected_for_the_end():
    timeline = demo()
    cursor = Cursor(timeline, 3)
    cursor.select(1)
    cursor.to("")
    cursor.seek(len(timeline))
    assert cursor.selected == 1
