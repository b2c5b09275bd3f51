"""Tensors in full: matrix, histogram, heat map; and what a pass has made."""

import numpy as np
from driving import app_of, transcript
from recording import timeline_of

import gviz.engine as torch
from gviz.tui.drawing.tensor_elements import tensor_lines
from gviz.tui.glyphs import ASCII, UNICODE
from gviz.tui.styled_lines import cells, plain
from gviz.values.value import Value, capture


def matrix():
    def program():
        x = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -60.0]], requires_grad=True)
        (x * x).sum().backward()

    return timeline_of(program)


def rows(array, width=60, glyphs=UNICODE):
    return [plain(row) for row in tensor_lines(matrix(), "x", "value", capture(np.asarray(array)), width, glyphs)]


def test_every_element_stands_in_the_matrix():
    said = transcript(matrix(), "goto end", "tensor x", "tensor x.grad").splitlines()
    assert ["1", "-2", "3"] in [row.split() for row in said]
    assert ["4", "5", "-60"] in [row.split() for row in said]
    assert ["8", "10", "-120"] in [row.split() for row in said]


def test_the_histogram_counts_all_elements():
    array = np.linspace(-1, 1, 77)
    counted = [int(row.split()[-1]) for row in rows(array) if " .. " in row and "[" not in row and "min" not in row]
    assert sum(counted) == 77


def test_nan_and_infinity_are_counted_and_seen():
    array = np.ones((3, 4))
    array[1, 2], array[0, 0] = np.nan, np.inf
    array[2, 2] = 5
    text = "\n".join(rows(array))
    assert "! 1 nan, 1 inf" in text
    assert "!!" in text


def test_no_row_is_wider_than_the_room_and_no_element_is_lost():
    array = np.arange(4 * 50, dtype=float).reshape(4, 50) * 1.5
    drawn = list(tensor_lines(matrix(), "x", "value", capture(array, limit=10**6), 44, UNICODE))
    assert max(map(cells, drawn)) <= 44
    words = " ".join(map(plain, drawn)).split()
    assert all(f"{x:g}" in words for x in array.reshape(-1))


def test_slices_of_more_dimensions_say_which():
    text = "\n".join(rows(np.arange(8.0).reshape(2, 2, 2)))
    assert "[0, :, 0:2]" in text
    assert "[1, :, 0:2]" in text


def test_what_was_not_stored_says_so():
    said = [plain(row) for row in tensor_lines(matrix(), "x", "value", Value("float32", (300,)), 60, UNICODE)]
    assert any("not stored" in row for row in said)


def test_ascii_has_nothing_else():
    text = "\n".join(rows(np.linspace(-3, 3, 64).reshape(8, 8), glyphs=ASCII))
    assert ASCII.text(text).isascii()


async def test_the_inspector_shows_the_matrix():
    timeline = matrix()
    app = app_of(timeline, at=len(timeline))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(*":select x", "enter", "enter")
        await pilot.pause()
        panel = app.screen.query_one("#inspector")
        text = "\n".join("".join(part.text for part in panel.render_line(y)) for y in range(panel.size.height))
        assert "-120" in text
        assert "spread" in text


def test_what_a_pass_has_made_is_said_in_the_tape():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        (g,) = torch.autograd.grad(x * x, x, create_graph=True)
        g.backward()

    timeline = timeline_of(program)
    made = [node for node in timeline.nodes if timeline.info(node).created.during[0]]
    first = timeline.info(made[0]).born
    said = transcript(timeline, f"goto {first + 2}", "tape")
    assert "made in pass 1" in said
