"""What statistics tell of a tensor in an expression, judged by numpy with all of its elements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gviz
import gviz.engine as torch
from gviz.errors import NotStored
from gviz.query.expressions import Evaluator
from gviz.query_syntax import safe_expression as guarded
from gviz.query_syntax.expression_operations import Numbers
from gviz.query_syntax.statistics_proxy import StatisticsProxy, summarized
from gviz.values.value import Value, capture, shape_of, statistics

ALWAYS = ("norm(t)", "t.norm()", "np.linalg.norm(t)", "zeros(t)", "any(isnan(t))", "any(np.isinf(t))", "any(t)",
          "all(t)", "np.all(np.isfinite(t))", "len(t)", "t.shape[0]", "t.size", "zeros(isnan(t))")  # fmt: skip
WHERE_FINITE = ("max(t)", "t.max()", "np.min(t)", "t.min()", "mean(t)", "max(t) - min(t) > 3", "max(abs(t))")
NEVER = ("t + 1", "t > 3", "t[0]", "sum(t)", "max(t, axis=0)", "[v for v in t]", "t.sum()", "float(t)",
         "max(t, t)", "np.sqrt(t)", "t if t else 1", "mean(abs(t - 1))")  # fmt: skip

NUMBERS = st.one_of(st.floats(-100, 100, width=32), st.sampled_from([0.0, np.nan, np.inf, -np.inf]))


def told(text, array):
    return guarded.evaluate(guarded.compiled(guarded.parsed(text)), {"t": array})


def of_statistics(array):
    return summarized("the value of #4", capture(array, limit=-1))


@pytest.mark.parametrize("text", [*ALWAYS, *WHERE_FINITE])
@given(array=arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 3)), elements=NUMBERS))
def test_statistics_tell_what_numpy_says_or_nothing(text, array):
    try:
        known = told(text, of_statistics(array))
    except NotStored:
        assert text in WHERE_FINITE
        assert np.isinf(array).any()
    else:
        np.testing.assert_allclose(known, told(text, array.view(Numbers)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("array", [np.array([[3, -4]]), np.array([[3 + 4j, 0]]), np.array([[True, False]])])
@pytest.mark.parametrize("text", ["norm(t)", "max(abs(t))", "zeros(t)", "any(isnan(t))"])
def test_other_kinds_of_numbers_are_told_of_too(text, array):
    assert told(text, of_statistics(array)) == pytest.approx(told(text, array.view(Numbers)))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_norm_leaves_the_range_only_where_its_numbers_do(kind):
    array = np.full((4, 300), np.finfo(kind).max / 100, kind) if kind is not np.float64 else np.full((4, 300), 1e150)
    for text in ("norm(t)", "t.norm()"):
        assert told(text, array.view(Numbers)) == pytest.approx(told(text, of_statistics(array)))
    assert told("norm(t)", of_statistics(array)) == pytest.approx(float(array[0, 0]) * 1200**0.5)


@pytest.mark.parametrize("array", [np.zeros((2, 0), np.float32), np.zeros((0, 3), np.int64)])
@pytest.mark.parametrize("text", ["norm(t)", "zeros(t)", "any(t)", "all(t)", "norm(isnan(t))"])
def test_a_tensor_without_elements_is_told_of_as_numpy_does(text, array):
    empty = summarized("it", Value(str(array.dtype), array.shape, None, statistics(array)))
    np.testing.assert_equal(np.asarray(told(text, empty)), np.asarray(told(text, array.view(Numbers))))


@pytest.mark.parametrize(
    ("text", "array"),
    [
        ("max(t)", np.array([2**63 - 1, -5])),  # as a float it is another number
        ("min(t)", np.array([7, -(2**53) - 1])),
        ("max(abs(t))", np.array([-128, 5], np.int8)),  # numpy: -128
        ("min(abs(t))", np.array([-128, -5], np.int8)),
        ("max(abs(t))", np.array([2**63 - 1, 5])),
        ("any(isnan(t))", np.array([complex(np.nan, np.inf), 1])),  # of infinite magnitude
        ("any(np.isinf(t))", np.array([1.5e308 + 1.5e308j])),
        ("np.fabs(t).max()", np.array([1j])),
        ("t.T.max()", np.ones((2, 3))),
        ("t.real.max()", np.ones(3)),
    ],
)
def test_what_statistics_cannot_tell_is_not_told(text, array):
    with pytest.raises(NotStored):
        told(text, of_statistics(array))


def test_complex_numbers_have_no_largest_in_their_statistics():
    with pytest.raises(NotStored):
        told("max(t)", of_statistics(np.array([3 + 4j, 1])))


@pytest.mark.parametrize("text", NEVER)
def test_where_elements_are_needed_it_says_how_they_are_kept(text):
    with pytest.raises(NotStored, match=r"the value of #4 was not stored: record with --values all"):
        told(text, of_statistics(np.ones((2, 3), np.float32)))


def test_without_statistics_nothing_is_known():
    with pytest.raises(NotStored):
        summarized("it", shape_of(np.ones(3)))
    assert isinstance(of_statistics(np.ones(3)), StatisticsProxy)


def test_a_tensor_alone_is_shown_by_its_statistics_and_its_elements_are_refused(tmp_path):
    def program():
        w = torch.linspace(-1.0, 3.0, 500).requires_grad_()
        (w * 2).sum().backward()
        return w

    with gviz.record(tmp_path / "t.gviz", limit=16):
        w = program()
    assert w.grad.tolist() == [2.0] * 500
    timeline = gviz.load(tmp_path / "t.gviz")
    evaluator = Evaluator(timeline)
    end = len(timeline)
    assert evaluator.evaluated("w", end) == "(500,) [-1 .. 3] μ 1 rms 1.53"
    assert evaluator.evaluated("w.grad", end).startswith("(500,) [2 .. 2]")
    assert evaluator.evaluated("norm(w.grad)", end) == "44.72"
    for text in ("w * 2", "abs(w)", "w[0]"):
        with pytest.raises(NotStored):
            evaluator.evaluated(text, end)
