"""What the elements have in common whose gradient is wrong: by which factor, and where."""

import numpy as np
import pytest

from gviz.rerun.finite_differences import GradientCheck, common_factor, mismatch_patterns


def compared(numbers, sent, expected):
    numbers, sent, expected = (np.array(given, dtype=float) for given in (numbers, sent, expected))
    places = np.arange(len(numbers))
    agrees = np.isclose(sent, expected, rtol=1e-3, atol=1e-3)
    return GradientCheck("x", 0, 1, sent, expected, places, numbers.shape, numbers, agrees, at_kink=agrees & False)


def test_one_element_has_no_factor():
    assert common_factor(compared([1, 2], [3, 4], [6, 4])) is None
    assert common_factor(compared([1, 2], [3, 4], [6, 8])) == 0.5


def test_what_is_due_nothing_is_of_no_factor():
    assert common_factor(compared([1, 2, 3], [3, 3, 3], [6, 6, 0])) is None


def test_factors_that_are_not_one():
    assert common_factor(compared([1, 2, 3], [3, 4, 5], [6, 6, 6])) is None


NUMBERS = [-4, -3, -2, -1, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("differs", "where"),
    [
        (lambda n: n > 0, "those from 1 on differ, those up to -1 agree"),
        (lambda n: n < 0, "those up to -1 differ, those from 1 on agree"),
        (lambda n: abs(n) > 2, "those beyond ±3 differ, those within ±2 agree"),
        (lambda n: abs(n) < 3, "those within ±2 differ, those beyond ±3 agree"),
    ],
)
def test_where_the_elements_lie_that_differ(differs, where):
    numbers = [*NUMBERS, *NUMBERS]
    one = compared(numbers, [1 + differs(n) for n in numbers], [1] * 16)
    assert list(mismatch_patterns(one)) == ["what is sent is 2 times what differences say", where]


def test_no_border_is_told_within_numbers_that_are_the_same():
    one = compared([1, 1, 1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 1, 2, 2, 2, 2, 2, 2, 2], [1] * 10)
    assert list(mismatch_patterns(one)) == ["what is sent is 2 times what differences say"]


def test_a_border_that_may_be_chance_is_not_told():
    one = compared([1, 2, 3, 4], [1, 1, 2, 2], [1] * 4)
    assert list(mismatch_patterns(one)) == ["what is sent is 2 times what differences say"]


def test_elements_whose_slope_is_next_to_nothing_make_no_border():
    """They agree, whatever the rule is: that they lie among those that differ says nothing."""
    numbers = [*NUMBERS, *NUMBERS]
    sent = [2.0 if n > 0 else 1.0 for n in numbers]
    one = compared([*numbers, 3.5], [*sent, 2e-5], [1.0] * 16 + [1e-5])
    assert list(mismatch_patterns(one))[-1] == "those from 1 on differ, those up to -1 agree"
