"""Numbers that lead to their event by keys alone, and what the mouse rests on told in full."""

import pytest
from driving import app_of
from stories import demo
from textual.command import CommandPalette

from gviz.tui.screens.overlay_pages import InspectorScreen, show_sheet
from gviz.tui.styled_lines import line, link
from gviz.tui.widgets.graph_canvas import GraphCanvas
from gviz.tui.widgets.node_panel import NodePanel
from gviz.tui.widgets.panel_messages import Seek
from gviz.tui.widgets.tape_panel import Tape


async def test_arrows_choose_a_number_of_the_node_panel_and_enter_goes_to_its_event():
    timeline = demo()
    app = app_of(timeline, at=len(timeline))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("G", "8", "right")
        panel = app.screen.query_one(NodePanel)
        events = [event for _, _, event in panel._links]
        assert len(events) > 2
        y = panel._links[0][0]
        assert "selected" in [style for _, style in panel.row(y)]
        assert panel.border_subtitle == f"Enter: event {events[0]}"
        await pilot.press("right", "enter")
        await pilot.pause()
        assert app.screen.cursor.position == events[1]
        await pilot.press("left")
        last = panel._links[-1][2]
        await pilot.press("enter")
        await pilot.pause()
        assert app.screen.cursor.position == last


async def test_enter_without_a_chosen_number_opens_the_inspector_where_the_same_keys_work():
    timeline = demo()
    app = app_of(timeline, at=len(timeline))
    async with app.run_test(size=(120, 40)) as pilot:
        debugger = app.screen
        await pilot.press("G", "8", "enter")
        await pilot.pause()
        assert isinstance(app.screen, InspectorScreen)
        await pilot.press("right")
        event = app.screen.query_one(NodePanel)._links[0][2]
        await pilot.press("enter")
        await pilot.pause()
        assert app.screen is debugger
        assert debugger.cursor.position == event


async def test_a_page_with_an_answer_leads_to_the_events_it_names():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(120, 40)) as pilot:
        debugger = app.screen
        show_sheet(debugger, "Answer", lambda _: [line("made at ", ("event 7", link("key", 7)))])
        await pilot.pause()
        await pilot.press("right", "enter")
        await pilot.pause()
        assert app.screen is debugger
        assert debugger.cursor.position == 7
        show_sheet(debugger, "Answer", lambda _: [line("nothing")])
        await pilot.pause()
        await pilot.press("right", "enter")
        await pilot.pause()
        assert (app.screen, debugger.cursor.position) == (debugger, 7)


async def test_the_mouse_is_told_every_digit_of_what_it_rests_on():
    timeline = demo()
    app = app_of(timeline, at=len(timeline))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("v", "G")
        await pilot.pause()
        tape, graph = app.screen.query_one(Tape), app.screen.query_one(GraphCanvas)
        assert tape.display
        assert graph.display
        await pilot.hover(Tape, offset=(5, 3))
        assert str(tape.tooltip).startswith(timeline.info(timeline.nodes[1]).name or "#2")
        assert "value: " in str(tape.tooltip)
        node = timeline.nodes[-1]
        place = graph.place(node)
        x, y = place.x + graph.margin - graph.scroll_offset.x + 3, place.y - graph.scroll_offset.y + 2
        await pilot.hover(GraphCanvas, offset=(x, y))
        assert f"#{node}" in str(graph.tooltip)
        await pilot.hover(GraphCanvas, offset=(x, 0))
        assert "value: " in str(app.screen.query_one(NodePanel).tooltip)


@pytest.mark.parametrize("key", ["enter", "question_mark"])
async def test_a_page_that_has_left_takes_no_other_with_it(key):
    app = app_of(demo(), at=3)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(key)
        await pilot.pause()
        page = app.screen
        page.on_seek(Seek(5))
        page.on_seek(Seek(6))  # a second click, while the page leaves
        await pilot.pause()
        await pilot.press("ctrl+p")
        await pilot.pause()
        page.dismiss()
        await pilot.pause()
        assert isinstance(app.screen, CommandPalette)
        assert app._start.cursor.position == 5


@pytest.mark.parametrize("key", ["M", "P"])
async def test_a_list_that_has_left_takes_no_page_with_it(key):
    app = app_of(demo(), at=3)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(key)
        await pilot.pause()
        chooser = app.screen
        await pilot.press("escape", "ctrl+p")
        await pilot.pause()
        chooser.action_leave()  # a key that came to it while it left
        await pilot.pause()
        assert isinstance(app.screen, CommandPalette)
