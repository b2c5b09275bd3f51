"""Statistics taken of many arrays at once are those of each."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gviz.events import GradAccumulated, StepStarted
from gviz.trace.codec import values_of
from gviz.trace.file.bulk_statistics import shorten
from gviz.values.value import Value, decode, statistics

NUMBERS = st.one_of(
    st.floats(-100, 100, width=32), st.sampled_from([0.0, -0.0, 1e30, -1e30, 1e-30, math.nan, math.inf, -math.inf])
)
DTYPES = {"float32": "<f4", "float64": "<f8", "float16": "<f2", "int64": "<i8", "bfloat16": "<u2"}


def value_of(numbers, dtype):
    if dtype == "bfloat16":
        data = (np.asarray(numbers, "<f4").view("<u4") >> 16).astype("<u2").tobytes()
    else:
        with np.errstate(all="ignore"):
            data = np.nan_to_num(numbers).clip(-1e9, 1e9).astype("<i8") if dtype == "int64" else np.asarray(numbers)
            data = data.astype(DTYPES[dtype]).tobytes()
    return Value(dtype, (len(numbers),), data)


def as_floats(stats):
    return [stats.min, stats.max, stats.mean, stats.rms]


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=40), min_size=1, max_size=8), st.sampled_from(sorted(DTYPES)))
def test_each_as_by_itself(arrays, dtype):
    values = [value_of(numbers, dtype) for numbers in arrays]
    expected = [statistics(decode(dtype, value.shape, value.data)) for value in values]
    shorten(values, 0)
    for value, stats in zip(values, expected, strict=True):
        assert value.data is None
        assert value.stats is not None
        assert (value.stats.nan, value.stats.inf, value.stats.zero) == (stats.nan, stats.inf, stats.zero)
        assert as_floats(value.stats)[:2] == pytest.approx(as_floats(stats)[:2], nan_ok=True, rel=0, abs=0)
        scale = 1e-6 * stats.rms if stats.rms == stats.rms else 0
        assert as_floats(value.stats)[2:] == pytest.approx(as_floats(stats)[2:], nan_ok=True, rel=1e-6, abs=scale)


def test_short_values_and_those_of_several_events_stay_themselves():
    short, long = value_of([1.0, 2.0], "float32"), value_of([1.0] * 9, "float32")
    shorten(values_of([StepStarted(1, 1, (short, None, long)), GradAccumulated(1, 2, long, None)]), 8)
    assert short.data is not None
    assert short.stats is None
    assert long.stats == statistics(np.ones(9, np.float32))


def test_a_batch_of_many_blocks():
    values = [value_of(np.full(5000, float(place)), "float32") for place in range(200)]
    shorten(values, 100)
    assert [value.stats.mean for value in values] == list(range(200))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_many_elements_lose_no_more_than_one_rounding(dtype):
    """Added one after the other, 8000 numbers would be off by 60 roundings."""
    draw = np.random.default_rng(0)
    arrays = [draw.random(8000).astype(dtype) for _ in range(20)]
    values = [Value(dtype, array.shape, array.tobytes()) for array in arrays]
    shorten(values, 0)
    for array, value in zip(arrays, values, strict=True):
        wide = array.astype(np.longdouble)
        exact = [float(wide.mean()), float(np.sqrt((wide * wide).mean()))]
        assert as_floats(value.stats)[2:] == pytest.approx(exact, rel=3 * np.finfo(dtype).eps, abs=0)
