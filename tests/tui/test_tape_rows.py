"""The tape keeps rows that cannot have changed: each says what it would say if it were made anew."""

import random

import pytest
from driving import app_of
from render.logs import LOGS

from gviz.tui.drawing.tape import Entry, columns_for, row, rows_of
from gviz.tui.glyphs import UNICODE
from gviz.tui.styled_lines import plain
from gviz.tui.widgets.tape_panel import Tape


@pytest.mark.parametrize("name", LOGS)
async def test_a_row_that_is_kept_says_what_is_so_now(name):
    timeline = LOGS[name]().timeline
    moments = [*range(len(timeline) + 1), *random.Random(name).choices(range(len(timeline) + 1), k=len(timeline))]
    app = app_of(timeline)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("v")
        tape = app.screen.query_one(Tape)
        for n in moments:
            tape.moment = moment = timeline.at(n)
            await pilot.pause()
            width, widest = tape.scrollable_content_region.width, (tape._longest_title, tape._longest_shape)
            columns = columns_for(width, timeline.nodes[-1], *widest)
            for at, (node, output_nr) in enumerate(rows_of(timeline), start=1):
                fresh = row(timeline, moment, Entry(node, moment.state(node), output_nr), columns, UNICODE)
                assert plain(tape.row(at)) == plain(fresh)
