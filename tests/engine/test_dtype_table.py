"""Every public op on every dtype, and on pairs with tensors and numbers of others, beside PyTorch: dtype, value, error."""

import importlib
import warnings

import numpy as np
import pytest

import gviz.engine as torch

DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"]
OTHERS = [*DTYPES, "0-d bool", "0-d int64", "0-d float64", "True", "2", "0.5"]


def words(text):
    return text.split()


OF_ONE = words("""
neg positive reciprocal square sign sgn abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sigmoid logit sinc erf erfc
erfinv lgamma digamma sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh deg2rad rad2deg floor ceil round trunc
frac isnan isinf isfinite isposinf isneginf isreal signbit logical_not bitwise_not nan_to_num sum mean nansum nanmean
prod std var std_mean var_mean amax amin aminmax max min argmax argmin median nanmedian mode any all count_nonzero sort
argsort msort unique unique_consecutive bincount histc norm diff cov corrcoef trapezoid
""")
OVER_DIM = words("""
sum mean nansum prod std var amax amin max min argmax argmin median nanmedian mode any all count_nonzero sort argsort
cumsum cumprod cummax cummin logcumsumexp logsumexp
""")
WITH = {
    **{name: {"dim": 0} for name in OVER_DIM},
    "kthvalue": {"k": 1, "dim": 0},
    "topk": {"k": 1, "dim": 0},
    "norm": {"p": 2, "dim": 0},
    "quantile": {"q": 0.5, "dim": 0},
    "round": {"decimals": 1},
    "clamp": {"min": 1, "max": 2},
    "clamp_min": {"min": 0.5},
    "clamp_max": {"max": 1.5},
}
OF_TWO = words("""
add sub rsub mul div true_divide floor_divide remainder fmod pow float_power hypot ldexp logaddexp logaddexp2 xlogy atan2
copysign heaviside maximum minimum fmax fmin eq ne lt le gt ge isclose logical_and logical_or logical_xor bitwise_and
bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift dist clamp clamp_min clamp_max searchsorted
""")
IN_PLACE = words("add sub mul div floor_divide remainder fmod pow copysign xlogy eq lt")
CLOSE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-10}


def operand(package, kind):
    """The operand that a name in `OTHERS` means."""
    if kind in ("True", "2", "0.5"):
        return {"True": True, "2": 2, "0.5": 0.5}[kind]
    if kind.startswith("0-d "):
        return package.tensor(1, dtype=getattr(package, kind[4:]))
    return package.tensor([1, 1, 2]).to(getattr(package, kind))


def outcome(call):
    """The results' dtypes and values, or the type and the first line of an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call()
        except Exception as error:
            return type(error).__name__, str(error).split("\n")[0].split(" - got")[0]
    listed = result if isinstance(result, tuple) else [result]
    return [(str(t.dtype), tuple(t.shape), t.numpy()) for t in listed]


def assert_same(name, arguments, call):
    """`call`, a function of a package, has the same outcome with PyTorch and with the engine."""
    expected, got = outcome(lambda: call(importlib.import_module("torch"))), outcome(lambda: call(torch))
    where = f"{name} of {arguments}\n  PyTorch: {expected}\n  engine:  {got}"
    if isinstance(expected, tuple) or isinstance(got, tuple):
        assert got == expected, where
        return
    assert [entry[:2] for entry in got] == [entry[:2] for entry in expected], where
    for (kind, _, theirs), (_, _, ours) in zip(expected, got, strict=True):
        tolerance = CLOSE.get(kind.removeprefix("torch."), 0)
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=where)


@pytest.mark.torch
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", OF_ONE)
def test_of_one(name, kind):
    assert_same(name, kind, lambda p: getattr(p, name)(p.tensor([2, 0, 1]).to(getattr(p, kind))))


@pytest.mark.torch
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", WITH)
def test_with_arguments(name, kind):
    data = [[2, 0, 1], [1, 0, 2]]
    assert_same(name, kind, lambda p: getattr(p, name)(p.tensor(data).to(getattr(p, kind)), **WITH[name]))


@pytest.mark.torch
@pytest.mark.parametrize("kind", DTYPES)
def test_polygamma(kind):
    for n in (0, 1, 2):
        assert_same("polygamma", (n, kind), lambda p, n=n: p.polygamma(n, p.tensor([2, 1, 3]).to(getattr(p, kind))))


@pytest.mark.torch
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", OF_TWO)
def test_of_two(name, kind):
    for other in OTHERS:
        assert_same(
            name,
            (kind, other),
            lambda p, other=other: getattr(p, name)(p.tensor([0, 1, 2]).to(getattr(p, kind)), operand(p, other)),
        )


@pytest.mark.torch
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name, kind):
    for other in OTHERS:
        assert_same(
            name + "_",
            (kind, other),
            lambda p, other=other: getattr(p.tensor([0, 1, 2]).to(getattr(p, kind)), name + "_")(operand(p, other)),
        )


@pytest.mark.torch
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "==", "<"])
def test_operators(sign, kind):
    for other in OTHERS:
        for text in (f"a {sign} b", f"b {sign} a"):
            assert_same(
                text,
                (kind, other),
                lambda p, text=text, other=other: eval(
                    text, {"a": p.tensor([1, 1, 2]).to(getattr(p, kind)), "b": operand(p, other)}
                ),
            )
