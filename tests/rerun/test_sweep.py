"""A range as so many changes."""

import pytest

from gviz.errors import GvizError
from gviz.rerun.change_parser import sweep


def test_a_range_goes_from_end_to_end():
    assert [x for x, _ in sweep("x = -1 .. 3", 5)] == [-1.0, 0.0, 1.0, 2.0, 3.0]
    assert list(sweep("grad x=0..1", 2)) == [(0.0, "grad x= 0.0"), (1.0, "grad x= 1.0")]
    assert list(sweep("x = 3", 5)) == []


@pytest.mark.parametrize(("text", "points"), [("x = 1..1", 5), ("x = 0..1e999", 5), ("x = 0..1", 1), ("x = 0..1", 0)])
def test_what_is_no_range_is_refused(text, points):
    with pytest.raises(GvizError):
        list(sweep(text, points))
