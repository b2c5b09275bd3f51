"""The tape in the debugger: a node with several outputs has as many rows, and all of them are its own."""

from driving import app_of
from recording import timeline_of

import gviz.engine as torch
from gviz.tui.drawing.tape import TapeRows
from gviz.tui.widgets.tape_panel import Tape


def rows_of(widget):
    return ["".join(part.text for part in widget.render_line(y)) for y in range(widget.size.height)]


def program():
    x = torch.arange(6.0, requires_grad=True)
    a, b, c = x.split(2)
    d = a * b
    e, f = d.unbind()
    return (e + f).sum() + c.sum()


def timeline():
    return timeline_of(program)


def test_every_output_has_a_row_and_every_row_a_node():
    rows = TapeRows(recorded := timeline())
    nodes = recorded.nodes
    found = [rows.at(row) for row in range(len(rows))]
    assert found[:8] == [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (3, 1), (4, 0)]
    assert [rows.first_of(place) for place in range(len(nodes))] == [
        row for row, (_, output_nr) in enumerate(found) if not output_nr
    ]


async def test_a_click_on_the_row_of_an_output_selects_its_node():
    app = app_of(timeline(), at=1)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("v", "G")
        await pilot.pause()
        rows = rows_of(app.screen.query_one(Tape))
        at = next(at for at, row in enumerate(rows) if row.split()[:1] == ["f"])
        await pilot.click(Tape, offset=(8, at))
        await pilot.pause()
        selected = app.screen.cursor.selected
        assert app.screen.cursor.timeline.info(selected).name == "e, f"


def loop():
    w = torch.ones(2, requires_grad=True)
    for _ in range(30):
        (w * 2).sum().backward()


async def test_the_title_names_the_iteration_now_if_the_rows_are_of_an_older_one():
    """A parameter is made once, and its .grad changes in every iteration."""
    recorded = timeline_of(loop)
    app = app_of(recorded, at=len(recorded))
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.press("9", *":sel 1", "enter")
        await pilot.pause()
        assert app.screen.query_one(Tape).border_title.endswith("; now 30")


async def test_the_title_names_the_iterations_in_view():
    app = app_of(recorded := timeline_of(loop), at=1)
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.press("9", "g")
        await pilot.pause()
        tape = app.screen.query_one(Tape)
        rows = rows_of(tape)[1:]
        last = recorded.info(int(rows[-1].split()[0])).iteration + 1
        assert tape.border_title == f"9 Tape, iterations 1 to {last}"
        await pilot.press("G")
        await pilot.pause()
        first = recorded.info(int(rows_of(tape)[1].split()[0])).iteration + 1
        assert tape.border_title == f"9 Tape, iterations {first} to 30; now 1"
    app = app_of(timeline(), at=1)
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.press("9")
        assert app.screen.query_one(Tape).border_title == "9 Tape"
