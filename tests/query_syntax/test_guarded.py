"""Expressions stay inside their language and inside their time."""

import ast
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gviz.query_syntax import expression_limits, expression_operations
from gviz.query_syntax import safe_expression as guarded
from gviz.query_syntax.expression_limits import TooMuch
from gviz.query_syntax.expression_names import METHODS
from gviz.query_syntax.expression_operations import Numbers


def told(text, **names):
    return guarded.evaluate(guarded.compiled(guarded.parsed(text)), names)


ROW = np.zeros(9000, np.int64)
SQUARE = np.zeros((500, 500))
LARGE = {
    "value": np.ones(600_000),
    "row": ROW,
    "column": ROW[:, None],
    "square": SQUARE,
    "cube": SQUARE[:, :, None],
    "square_of_1000": np.ones((3000, 3000)),
    "stack": np.ones((1000, 500, 500), np.int8),
    "w": np.ones((10, 400, 400)),
}


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9",
        "2**-(9**9)*2**5000",
        "1 << 10**10",
        "'a' * 10**10",
        "[0] * 10**10",
        "10**1200 * 10**1200",
        "'%1000000000d' % 1",
        "round(5, -10**10)",
        "sum(1 for a in value for b in value)",
        "np.maximum([0] * 9000, [[0]] * 9000)",
        "np.where([0] * 9000, [[0]] * 9000, 1)",
        "np.isclose([0] * 9000, b=[[0]] * 9000)",
        "row + column",
        "row < column",
        "row < column < 1",
        "row == column",
        "row in column",
        "row / [[1]] * 9000 - column",
        "row & column",
        "np.dot(column, np.transpose(column))",
        "np.matmul(column, np.transpose(column))",
        "column.dot(column.T)",
        "column @ column.T",
        "stack @ square",
        "[np.dot(square, square) for a in value]",
        "any(len(b) > 1 for a in ['a' * 10**6] for b in [a + a + a + a + a + a + a + a + a + a + a + a + a + a])",
        "w[[0] * 10**6][:, [0] * 400].size",
        "w[[0] * 10**6, :].size",
        "w[[[0] * 1000] * 1000]",
        "w[0:9, [0] * 10**6]",
        "['a' * 10**6 for a in value][0]",
        "'a' * 10**9",
        "'a' * value.astype(int).sum() * 10**3",
        "[0] * row[0].astype(bool).sum() * 0 + [1] * (np.int64(10)**10)",
        "'a' * 10**6",
        "[[0] * 1000] * 1001",
        "str([[0] * 10**6] * 10**6)",
        "str([square] * 1000)",
        "[[0] * 10**6] * 10**6 == [[0] * 10**6 + [1]] * 10**6",
        "([0] * 10**6, 1) in [([0] * 10**6, 2)] * 10**6",
        "{(((0,) * 10**6,) * 10**6)}",
        "{(((0,) * 10**6,) * 10**6): 1}",
        "int('f' * 10**6, 16)",
        "np.int64(3) ** (2**100)",
        "[value * 2 for a in value]",
        "[(value * 2)[:1] for a in value]",
        "[-value for a in value]",
        "[value.imag for a in [0] * 10**6]",
        "[value[::-1].copy() for a in [0] * 10**6]",
        "[v.split() for v in ['a ' * 10**5] * 100]",
        "np.array([1], dtype={'names': ['a'], 'formats': ['(1000000000,)f8']})",
        "np.percentile(w, [50] * 10**6)",
        "np.exp([[0.5] * 10**4] * 10**4)",
        "square.clip(0, cube)",
        "[[0] * 9000] * 9000",
        "np.array([row] * 9000)",
        "len(np.array([2**64]) ** 1000000000)",
        "sum([2**4000, 1])",
        "np.prod([[2**70]])",
        "np.diff(row, 1000000000)",
        "np.diff(row, n=1000000000)",
        "value.astype('U300000')",
        "value.astype(str)",
        "np.where(value > 0, 'a' * 300000, 'b')",
        "np.where(value > 0, 'some', 'text')",
        "np.array(['b'] * 3000 + ['a' * 300000])",
        "np.array([[['b']]])",
        "np.array([1], 'O') * 1000000000",
        "np.array([1], dtype='O')",
        "np.percentile(square, [50] * 10**6)",
        "np.linalg.norm(square_of_1000, 'nuc')",
    ],
)
def test_what_would_take_for_ever_is_refused_when_it_comes_to_it(text):
    with pytest.raises(TooMuch):
        told(text, **{name: value for name, value in LARGE.items() if re.search(rf"\b{name}\b", text)})


@pytest.mark.parametrize(
    "text",
    [
        "lambda: 1",
        "f'{1:1000000}'",
        "(x := 1)",
        "{a: a for a in value}",
        "{a for a in value}",
        "np.load('x')",
        "np.linalg.svd(value)",
        "value.tofile('x')",
        "value.__class__",
        "value[None]",
        "value[:, None]",
        "(max or min)(1)",
        "sum(1 for a in value for b in value for c in value)",
        "1" * 2000,
        "-" * 900 + "1",
        "x +",
        "__import__('os')",
        "[__import__('os'), [1 for __import__ in [1]]]",
        "(__import__('os'), [1 for __import__ in [1]])[1]",
        "_evaluation.call(max, 1)",
        "[1 for _evaluation in [max]]",
        "[1 for slice in [max]]",
        "np",
        "[n.max(1) for n in [np]]",
        "[1 for value[0] in [1]]",
        "[a for a in [[0]] for a[0] in [a]]",
        "[1 for value.T in [1]]",
        "[1 async for v in value]",
        "b'a' * 10**9",
        "b'%1000000000d' % 1",
        "{**{1: 2}}",
        "max(**{'axis': 0})",
        "[*value]",
        "value.max",
        "[1 for np in [1]]",
        "[len for len in [1]]",
    ],
)
def test_what_is_not_of_the_language_is_refused_before_it_runs(text):
    with pytest.raises(guarded.RefusedExpression):
        guarded.compiled(guarded.parsed(text))


NUMBERS = st.integers(-50, 50) | st.floats(-50, 50)


@given(st.recursive(
    NUMBERS.map(repr),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "//", "<", "==", "and"]), inner).map(
        lambda parts: f"({' '.join(parts)})"
    ),
    max_leaves=8,
))  # fmt: skip
def test_it_is_pythons_own_arithmetic(text):
    def outcome(evaluate):
        try:
            return evaluate()
        except ArithmeticError as error:
            return type(error)

    assert outcome(lambda: told(text)) == pytest.approx(outcome(lambda: eval(text)), nan_ok=True)  # text is ours


@pytest.mark.parametrize("text", [
    "a + b", "a - [1.0, 2.0]", "a < b", "0 < b.max() < 3 < 1", "2 in a", "2 not in a", "a @ b", "a.dot(b)",
    "np.dot(b, 2)",
    "np.matmul(stack, a)", "stack @ b", "np.matmul(b, a)", "np.maximum(a, b)", "np.where(a > 1, a, [0, 1])",
    "a.clip(0, 1)",
    "np.percentile(a, [10, 50, 90])", "np.dot(stack, a)", "np.array([[1, 2], [3, 4]])", "[1] + [2]", "(1, 2) < (1, 3)",
    "'a' + 'b'", "[v for v in b if 0 < v < 2]", "np.sum(a, axis=0)", "1 > 2 > 1 / 0", "many + many",
    "np.maximum(many, 1)", "np.linalg.norm(great)", "a.astype('int32')", "np.diff(b, 1)",
    "np.array([1, 2], dtype=np.float32)", "np.linalg.norm(a, 'fro')", "np.linalg.norm(a, 2)",
])  # fmt: skip
def test_what_is_not_too_much_is_what_numpy_says(text):
    names = {
        "a": np.arange(4.0).reshape(2, 2),
        "b": np.arange(2.0),
        "stack": np.ones((3, 2, 2)),
        "many": np.ones(10**6 + 1),
        "great": np.ones((1000, 1000)),
    }
    np.testing.assert_array_equal(told(text, **names), eval(text, {"np": np, **names}))


@pytest.mark.parametrize(
    "text",
    [
        "(w > 0).mean()",
        "w.abs().max()",
        "(w @ w.T).sum()",
        "((w - w.mean()) ** 2).mean() ** 0.5 / (w.std() + 1e-5)",
        "np.percentile(w, [1, 50, 99])",
        "np.median(abs(w))",
        "len(np.unique(w))",
        "w[w > 2].sum()",
        "w[np.argsort(w[:, 0])][:5].sum()",
        "where(w > 2)[:3]",
        "np.exp(w - w.max(axis=1)[:, 0:0].sum()).sum()",
        "max(w.max(axis=0) - w.min(axis=0))",
        "w.astype('float64').cumsum()[-1]",
        "np.isclose(w, w.T.T).all()",
        "[row.max() for row in w][:3]",
        "sum(row @ row for row in w)",
        "norm(w) > 3 and zeros(w) < 0.5",
    ],
)
def test_statistics_of_a_large_tensor_are_computed(text):
    tensor = np.linspace(-3, 3, 2048 * 1024, dtype=np.float32).reshape(2048, 1024).view(Numbers)
    told(text.replace("[:, 0:0].sum()", ".max()"), w=tensor)


def test_a_loop_may_be_long_but_not_longer(monkeypatch):
    monkeypatch.setattr(expression_limits, "WORK", 30_000_000)
    assert told("sum(v for v in value)", value=np.ones(1000)) == 1000
    assert told("1 < sum(v for v in value) < 9", value=np.ones(3))
    code = guarded.compiled(guarded.parsed("any(v < 0 for v in value)"))
    assert not guarded.evaluate(code, {"value": np.ones(5000)})
    assert not guarded.evaluate(code, {"value": np.ones(5000)})  # each evaluation counts anew
    with pytest.raises(TooMuch, match="it would take about"):
        guarded.evaluate(code, {"value": np.ones(50_000)})


@pytest.mark.parametrize(
    "text", ["[[0] * 1000 for v in value]", "['a' * 1000 for v in value]", "[value * 1 for v in value]"]
)
def test_what_loops_give_is_counted(monkeypatch, text):
    monkeypatch.setattr(expression_limits, "MEMORY", 1_000_000)
    assert len(told(text, value=np.ones(20))) == 20
    with pytest.raises(TooMuch, match="memory"):
        told(text, value=np.ones(2000))


def test_memory_is_counted_while_it_is_held(monkeypatch):
    """A hundred temporaries after each other are no more than one; a hundred in a list are."""
    monkeypatch.setattr(expression_limits, "MEMORY", 1_000_000)
    names = {"value": np.ones(20_000)}
    assert told("sum((value * v).sum() for v in [2] * 100)", **names) == 4_000_000
    with pytest.raises(TooMuch, match="memory"):
        told("len([value * v for v in [2] * 100])", **names)


def test_what_is_refused_says_why_and_what_to_write():
    with pytest.raises(
        TooMuch, match=r"^it would take .* of memory, and the tensors it reads are 70.3 KiB$"
    ) as refusal:
        told("row * column", row=ROW.astype("f4"), column=ROW.astype("f4")[:, None])
    assert refusal.value.hint == "reduce or index the tensors first: x.max(), x[:100]"


def test_every_method_has_a_cost():
    assert {
        *expression_operations.OF_ARRAYS,
        *expression_operations.OF_TEXTS,
        *expression_operations.OF_LISTS,
    } == METHODS


def test_names_of_a_loop_are_its_own():
    assert guarded.bound_names(ast.parse("[v for v in value]")) == {"v"}


def test_functions_take_an_axis_and_are_called_what_they_are_called_here():
    array = np.array([[0, 1], [0, 0]])
    assert told("any(x, axis=1)", x=array).tolist() == [True, False]
    with pytest.raises(TypeError, match=r"^zeros\(\) got an unexpected keyword argument 'axis'"):
        told("zeros(x, axis=1)", x=array)


def test_where_gives_the_indices_or_chooses_between_two():
    array = np.array([[0.5, 0.0], [0.0, 2.0]])
    assert told("where(x == 0)", x=array).tolist() == [[0, 1], [1, 0]]
    assert told("where(x > 0, x, -1).sum()", x=array) == 0.5
    assert told("[argmin(x), argmax(x), argmax(x, axis=1)[1]]", x=array) == [1, 3, 1]
    with pytest.raises(TooMuch):
        told("where(x > 0, x, y)", x=np.zeros((9000, 1)), y=np.zeros((1, 9000)))


def test_the_largest_number_can_be_rounded():
    tensor = np.array([2.345, 1.5], np.float32).view(Numbers)
    assert told("round(max(t), 1)", t=tensor) == pytest.approx(2.3)
    assert told("round(t.max())", t=tensor) == 2
    assert told("round(2.345, 1)") == 2.3


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("sum(a, 1)", "a.sum(1)"), ("mean(a, 0)", "a.mean(0)"), ("max(a, -1)", "a.max(-1)"),
        ("any(a > 2, 1)", "(a > 2).any(1)"),
        ("sum(a, (0, 1))", "a.sum()"), ("norm(a, 1)", "abs(a).sum()"), ("max(a.sum(), 1)", "a.sum()"),
        ("max(1, 2)", "2"),
    ],
)  # fmt: skip
def test_a_number_after_a_tensor_is_the_dimension(text, same):
    a = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(told(text, a=a), told(same, a=a))
