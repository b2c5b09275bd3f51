"""The screen where the first nan or infinity appears says where, why, and what to press next."""

import re

from driving import app_of, rows_of, transcript
from recording import timeline_of

import gviz.engine as torch
from gviz.tui.styled_lines import line, plain, wrapped

SMALL = 80, 24


def logarithm():
    weight = torch.ones(64, requires_grad=True)
    prediction = weight - torch.linspace(0.5, 2, 64)
    loss = torch.log(prediction).sum()
    loss.backward()


def root():
    weight = torch.ones(3, requires_grad=True)
    length = (weight * torch.tensor([1.0, 0.0, 2.0])).sqrt()
    loss = length.sum()
    loss.backward()


def masked_softmax():
    scores = torch.ones(2, 3, requires_grad=True)
    mask = torch.tensor([[True, False, False], [True, True, True]])
    hidden = scores.masked_fill(mask, -torch.inf)
    shares = torch.softmax(hidden, dim=1)
    shares.sum().backward()


async def panel(program):
    """The rows of the node panel at the first nan or infinity, on the smallest screen."""
    timeline = timeline_of(program)
    app = app_of(timeline)
    async with app.run_test(size=SMALL) as pilot:
        await pilot.press("c")
        await pilot.pause()
        assert app.screen.cursor.position == timeline.error_index.first_bad()
        return [row[48:].strip("│ ") for row in rows_of(app)[2:22]]


async def test_the_smallest_screen_has_place_cause_fix_and_keys():
    rows = await panel(logarithm)
    text = " ".join(rows)
    assert "the first nan: #" in rows[1]
    assert rows[1].endswith("log")
    assert rows[2].startswith("at   test_first_nan.py:")
    for name in ("at", "why", "fix", "next"):
        assert any(row.startswith(f"{name} ") for row in rows)
    assert "where prediction is -" in text
    assert "next e: why in full · S: back" in text
    why = text[text.index("why ") : text.index("fix ")]
    assert "μ" not in why
    assert "rms" not in why


async def test_a_number_of_a_backward_rule_says_so():
    rows = await panel(root)
    assert " ".join(rows[1:3]).startswith("the first inf: backward of #")


async def test_line_and_cause_are_those_of_the_node_that_is_named():
    """The -inf of the mask is meant: the nan of the softmax is the first bad number, and the mask is where from."""
    text = " ".join(await panel(masked_softmax))
    first = masked_softmax.__code__.co_firstlineno
    mask, softmax = first + 3, first + 4
    cause = text[text.index("the first nan: #") : text.index("next e: why in full")]
    assert re.search(
        rf"softmax +at +test_first_nan.py:{softmax} in masked_softmax +why +hidden\[1, :\] is all -inf", cause
    )
    assert re.search(rf"from #\d+ hidden = masked_fill +at +test_first_nan.py:{mask} +fix", cause)


def test_a_stop_at_nan_says_what_it_stopped_at():
    assert "breakpoint 1: nan" in transcript(timeline_of(logarithm), "break on nan", "continue")


def test_a_long_name_in_a_narrow_row_is_broken_where_a_part_begins():
    rows = [plain(row) for row in wrapped(line("or binary_cross_entropy_with_logits"), 25)]
    assert rows == ["or", "binary_cross_entropy_", "with_logits"] or rows == ["or binary_cross_entropy_", "with_logits"]
    rows = [plain(row) for row in wrapped(line("a" * 40), 25)]
    assert rows == ["a" * 25, "a" * 15]
