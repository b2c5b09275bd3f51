"""A ``.grad`` that the program has changed since backward: who wrote, at which line, and what that did to it."""

import numpy as np
import pytest
from explain.programs import HERE, line_of, recorded
from hypothesis import given
from hypothesis import strategies as st

from gviz.explain.asked import answers
from gviz.explain.grad_writes import factor

ENGINES = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])


def asked(engine, place, name="clipped"):
    return answers(recorded("updates", name, engine), place)[0]


@ENGINES
@pytest.mark.parametrize(
    ("place", "now", "how", "line"),
    [
        ("w.grad", "[3 4]", "multiplied by 0.5 at clipped.py:8", "torch.nn.utils.clip_grad_norm_([w], 5.0)"),
        ("v.grad", "[6 7]", "cut off at 7 in 1 of 2 elements at clipped.py:9", "torch.nn.utils.clip_grad_value_"),
    ],
)
def test_clipping_is_named_with_its_line_and_what_it_did(engine, place, now, how, line):
    found = asked(engine, place)
    assert found.text.endswith(f".grad is {now}: backward made it [6 8], and then it was {how}")
    assert found.parts[0].text.startswith(line)
    assert found.parts[0].event == found.event


@ENGINES
def test_the_shares_make_what_was_there_before_the_write(engine):
    *_, before = asked(engine, "w.grad").parts
    assert before.text == "before that it was [6 8], from backward"
    assert [part.kind for part in before.parts] == ["contribution", "contribution"]


@ENGINES
def test_several_writes_are_told_in_their_order(engine):
    found = asked(engine, "u.grad")
    assert found.text.endswith("it was changed 2 times, last at clipped.py:11")
    assert [part.text for part in found.parts[:2]] == [
        "multiplied by 0.25 at clipped.py:10: u.grad /= 4",
        "changed from [1.5 2] to [2.5 3] at clipped.py:11: u.grad = u.grad + 1",
    ]


@ENGINES
def test_a_nan_that_clipping_spreads_is_followed_to_its_birth(engine):
    found = asked(engine, "w.grad", "nan_through_clipping")
    assert found.kind == "nan-born-backward"
    assert found.at.line == line_of(HERE / "updates" / "nan_through_clipping.py")
    carried = next(part for part in found.parts if part.kind == "carried")
    assert carried.text.startswith(
        "from the .grad of #2 scale to that of others at nan_through_clipping.py:7: torch.nn"
    )


@given(st.floats(0.01, 100), st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=9))
def test_a_factor_is_found_in_single_precision(scale, elements):
    before = np.array(elements, np.float32)
    after = before * np.float32(scale)
    found = factor(before.astype(float), after.astype(float))
    if abs(before).max(initial=0) > 1e-3:
        assert found == pytest.approx(scale, rel=1e-3)


def test_no_factor_is_made_up():
    assert factor(np.array([1.0, 2.0]), np.array([2.0, 5.0])) is None
    assert factor(np.array([0.0, 0.0]), np.array([2.0, 5.0])) is None
