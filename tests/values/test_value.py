import numpy as np
import pytest

from gviz.values.value import Stats, capture, statistics


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "bool", "complex64"])
def test_statistics_are_those_of_the_elements(dtype):
    array = (np.arange(3000).reshape(30, 100) % 7).astype(dtype)
    size = np.abs(array).astype(float)
    stats = statistics(array)
    assert (stats.min, stats.max, stats.zero) == (size.min(), size.max(), np.count_nonzero(size == 0))
    assert stats.mean == pytest.approx(size.mean())
    assert stats.rms == pytest.approx(np.sqrt((size**2).mean()))


def test_what_is_not_finite_is_counted_and_left_out():
    array = np.array([np.nan, 3.0, -4.0, np.inf, -np.inf, 0.0], "float32")
    assert statistics(array) == Stats(
        -4.0, 3.0, pytest.approx(-1 / 3), pytest.approx(np.sqrt(25 / 3)), 1, 2, 1, minus=1
    )


@pytest.mark.parametrize("size", [1e300, 1e-300, 0.0])
def test_squares_leave_no_range(size):
    assert statistics(np.full(200, -size)).rms == pytest.approx(size)


@pytest.mark.parametrize("size", [3e37, 3e-37, 3e17, 3e-17])
@pytest.mark.parametrize("count", [200, 200_000])
def test_squares_leave_no_range_of_float32_either(size, count):
    assert statistics(np.full(count, -size, np.float32)).rms == pytest.approx(size)


def test_nothing_has_no_statistics():
    assert np.isnan(statistics(np.empty((0, 3))).mean)


@pytest.mark.parametrize("size", [1, 33, 1000, 10_000, 100_000])
def test_sums_in_float32_lose_no_more_than_a_rounding_or_two(size):
    array = np.random.default_rng(size).random(size).astype(np.float32)
    wide, stats = array.astype(np.float64), statistics(array)
    exact = [wide.mean(), np.sqrt((wide * wide).mean())]
    assert [stats.mean, stats.rms] == pytest.approx(exact, rel=4 * np.finfo(np.float32).eps, abs=0)


def test_what_a_broadcast_repeats_is_looked_at_once():
    array = np.float32([[0.0], [np.inf], [np.nan], [3.0]])
    assert statistics(np.broadcast_to(array, (4, 10**14))) == Stats(
        0.0, 3.0, 1.5, statistics(array).rms, nan=10**14, inf=10**14, zero=10**14, minus=0
    )
    assert np.isnan(statistics(np.broadcast_to(array[:1], (0, 7))).mean)


@pytest.mark.parametrize(
    ("numbers", "counts"),
    [
        (np.arange(40), True),
        (np.arange(40.0), True),
        (np.arange(40)[::-1], True),
        (np.arange(1, 41), False),
        (np.append(np.arange(39), 38), False),
        (np.append(np.zeros(2), np.arange(2, 40)), False),
        (np.append(np.arange(39.0), np.nan), False),
        (np.zeros(1), False),
    ],
)
def test_numbers_that_count_up_are_known_by_their_statistics(numbers, counts):
    assert capture(numbers).counts_up is counts
    assert capture(numbers, limit=-1).counts_up is counts
