"""What the elements have in common whose gradient is not what differences say: by how much it is wrong, and where."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from gviz.numbers import number
from gviz.values import Array
from gviz.whatif.differences import Checked

_UNLIKELY = 100
"""In so many ways the elements that differ could lie among those tried, at least, that their place is told."""

_SURE = 1e-2
"""By so much of itself what is sent misses the slope at most, where it surely agrees."""


def patterns(one: Checked) -> Iterator[str]:
    """Sentences about the elements that differ, as far as there is something simple to say."""
    by = factor(one)
    if by is not None:
        yield _BY.get(by) or f"what is sent is {number(by)} times what differences say"
    where = _where(one)
    if where:
        yield where


_BY = {
    0.0: "nothing but 0 is sent where differences say something else",
    -1.0: "what is sent has the other sign than what differences say",
}


def factor(one: Checked) -> float | None:
    """By what all that differ are too large, where that is one factor."""
    sent, expected = one.recorded[one.differs], one.differences[one.differs]
    if len(sent) < 2 or not expected.all():
        return None
    factors = sent / expected
    found = float(f"{factors.mean():.3g}")
    return found if np.allclose(factors, factors[0], rtol=1e-2, atol=0) else None


def _where(one: Checked) -> str:
    """Between which numbers of the input those that differ are told from those that agree."""
    surely = np.isclose(one.recorded, one.differences, rtol=_SURE, atol=0)  # where both are next to 0 nobody knows
    wrong, right = one.numbers[one.differs], one.numbers[one.agrees & surely]
    if one.numbers.dtype.kind != "f" or comb(len(wrong) + len(right), len(wrong)) < _UNLIKELY:
        return ""
    for sign, numbers in (("", np.positive), ("±", np.abs)):
        for far, near in ((wrong, right), (right, wrong)):
            low, high = _apart(numbers(far), numbers(near))
            if low < high:
                return _told(sign, far is wrong, number(low), number(high))
    return ""


def _apart(far: Array, near: Array) -> tuple[float, float]:
    """The largest of those near zero or below, and the smallest of the others."""
    return float(near.max()), float(far.min())


def _told(sign: str, far_is_wrong: bool, low: str, high: str) -> str:
    beyond, within = ("beyond", "within") if sign else ("from", "up to")
    far, near = f"those {beyond} {sign}{high}", f"those {within} {sign}{low}"
    up = "" if sign else " on"
    if far_is_wrong:
        return f"{far}{up} differ, {near} agree"
    return f"{near} differ, {far}{up} agree"
