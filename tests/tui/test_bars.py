"""A scroll bar that is painted in one go looks as Textual's own."""

import pytest
from driving import app_of
from stories import chain
from textual.geometry import Region
from textual.widget import Widget

from gviz.tui.app import DebuggerApp
from gviz.tui.session_options import SessionOptions, Title


@pytest.mark.parametrize("theme", ["gviz-dark", "gviz-light", "gviz-ansi"])
async def test_a_bar_looks_as_one_of_textuals(theme):
    app = DebuggerApp(chain(40), SessionOptions(Title("a.py"), at=20), ascii=False, theme=theme)
    seen = []
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        panel = app.screen.query_one("#tape")
        bar = panel.vertical_scrollbar
        for row in (0, 1, 7, 20, panel.max_scroll_y):
            panel.scroll_to(y=row, animate=False, force=True, immediate=True)
            await pilot.pause()
            for bar.mouse_over in (False, True):
                whole = Region(0, 0, 1, bar.size.height)
                painted = bar.render_lines(whole)
                assert painted == Widget.render_lines(bar, whole)
                assert bar.render_lines(Region(0, 2, 1, 3)) == painted[2:5]
                seen.append(painted)
    assert len({str(rows) for rows in seen}) > 3, "it moves, and looks otherwise under the mouse"


async def test_a_press_on_a_bar_scrolls():
    app = app_of(chain(40), at=1)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        tape = app.screen.query_one("#tape")
        before = tape.scroll_offset.y
        await pilot.click(tape.vertical_scrollbar, offset=(0, tape.vertical_scrollbar.size.height - 1))
        await pilot.pause(0.5)
        assert tape.scroll_offset.y > before
