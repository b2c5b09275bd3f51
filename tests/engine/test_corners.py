"""Zeros, ties, borders, infinities and what is no number: values and gradients beside PyTorch's."""

import pytest
from expressions import attempted, looked_at, split
from twin import compare

OF_ONE = """
import torch
nan, inf = float("nan"), float("inf")
v = torch.tensor([0., 1., -1., 2., -2.5, .5, -.5, 1.5, inf, -inf, nan, 30., -30., 100.], requires_grad=True)
"""
FUNCTIONS = split("""
v.neg() | v.reciprocal() | v.square() | v.sign() | v.abs() | v.exp() | v.exp2() | v.expm1() | v.log() | v.log2() | v.log10()
v.log1p() | v.sqrt() | v.rsqrt() | v.sigmoid() | v.logit() | v.logit(.1) | v.sinc() | v.erf() | v.erfc() | v.erfinv()
v.lgamma() | v.digamma() | v[:8].digamma() | torch.polygamma(0, v) | torch.polygamma(2, v[:8]) | v.sin() | v.cos() | v.tan()
v.asin() | v.acos() | v.atan() | v.arctan() | v.sinh() | v.cosh() | v.tanh() | v.asinh() | v.acosh() | v.atanh() | v.deg2rad()
v.rad2deg() | v.floor() | v.ceil() | v.round() | v.round(decimals=1) | v.trunc() | v.fix() | v.frac() | v.positive()
v.nan_to_num() | v.nan_to_num(1., 2., 3.) | v.clamp(-1, 1) | v.clamp(.5) | v.clamp(max=-1) | v.clamp(1, -1) | v.clamp(nan, 1)
v.clamp_min(1) | v.clamp_max(1) | v.clip(0, 1) | v ** 0 | v ** 1 | v ** 2 | v ** 3 | v ** -1 | v ** .5 | v ** -.5 | v ** 1.5
v ** 0. | 2 ** v | 0 ** v | (-1) ** v | 1 ** v | v // 2 | v % 2 | v % -2 | v % 0. | 2 % v | v.fmod(2) | v.fmod(-2.) | v / 0 | 0 / v
2 - v | v.copysign(-1.) | v.copysign(-0.) | v.xlogy(2) | v.xlogy(0) | torch.xlogy(2, v) | torch.xlogy(0, v) | v.float_power(2)
torch.div(v, 2, rounding_mode="floor") | torch.div(v, 2, rounding_mode="trunc") | torch.div(v, 2, rounding_mode=None)
v.add(2, alpha=3) | v.sub(2, alpha=3) | torch.rsub(v, 2, alpha=3) | v.lerp(v, .3) | torch.where(v > 0, v, 0)
torch.where(v > 0, v.sqrt(), v) | torch.where(v > 0, 1., v) | v.isnan() | v.isinf() | v.isfinite() | v.isposinf() | v.isneginf()
v.signbit() | v.isreal() | v.eq(1) | (v * 1).eq_(1) | (v * 1).lt_(v) | (v * 1).clamp_(-1, 1) | (v * 1).pow_(2) | (v * 1).round_()
""")
OF_TWO = """
import torch
nan, inf = float("nan"), float("inf")
a = torch.tensor([0., -0., 1., 1., -1., 2., nan, 1., inf, -inf, inf, 0., 0., -2., 3.], requires_grad=True)
b = torch.tensor([0., 0., 1., -1., -1., 0., 1., nan, inf, -inf, -inf, 2., -2., .5, -3.], requires_grad=True)
w = torch.tensor([0., 1., .5, .4, .6, .2, -1., 2., .5, .5, .5, .5, .5, .5, .5], requires_grad=True)
"""
PAIRS = split("""
a + b | a - b | a * b | a / b | a // b | a % b | a.fmod(b) | a ** b | a.atan2(b) | a.hypot(b) | a.maximum(b) | a.minimum(b)
a.fmax(b) | a.fmin(b) | torch.max(a, b) | a.min(b) | a.copysign(b) | a.xlogy(b) | a.logaddexp(b) | a.logaddexp2(b) | a.ldexp(b)
a.clamp(b, w) | a.clamp(w, b) | a.clamp(b) | a.clamp(max=b) | a.clamp_min(b) | a.clamp_max(b) | a.lerp(b, .5) | a.lerp(b, .2)
a.lerp(b, w) | a.addcmul(b, w, value=2) | a.addcdiv(b, w, value=2) | torch.where(a > b, a, b) | a.heaviside(b) | a.float_power(b)
a.dist(b) | a[:6].dist(b[:6], 1) | a[:6].dist(b[:6], inf) | a[:6].dist(b[:6], 3) | a[:6].dist(b[:6], .5) | a[:6].dist(a[:6])
torch.cdist(a[:6].view(2, 3), b[:6].view(2, 3)) | torch.cdist(a[:6].view(3, 2), b[:4].view(2, 2), 1) | torch.cdist(a[:6].view(2, 3), b[:6].view(2, 3), inf)
torch.cdist(a[:4].view(2, 2), b[:6].view(3, 2), 3) | torch.cdist(a[:4].view(2, 2), b[:6].view(3, 2), .5) | torch.cdist(a[:4].view(2, 2), b[:6].view(3, 2), 0)
torch.cdist(a[:6].view(2, 1, 3), b[:6].view(2, 3)) | torch.cdist(a[:6].view(2, 3), a[:6].view(2, 3)) | torch.cdist(a.view(5, 3), b.view(5, 3))
torch.div(a, b, rounding_mode="floor") | torch.div(a, b, rounding_mode="trunc") | torch.div(a, b, rounding_mode=None)
a.add(b, alpha=.3) | a.sub(b, alpha=3) | torch.rsub(a, b, alpha=3) | a[:3].cross(b[2:5]) | (a * 1).copysign_(b)
(a * 1).atan2_(b) | (a * 1).lerp_(b, .3) | (a * 1).addcmul_(b, w) | (a * 1).xlogy_(b) | (a * 1).hypot_(b) | (a * 1).fmod_(b)
""")
NUMBERS = """
import torch
i = torch.tensor([7, -7, 3]); u = torch.tensor([255, 1], dtype=torch.uint8); x = torch.tensor([1.5, -2.5, 0.])
t = torch.tensor([True, False]); nan = float("nan")
"""
WHOLE = split("""
u + 300 | u == -1 | u == 300 | u + (-1) | u << 1 | u << 8 | u // 0 | i // 0 | i % 0 | i % -2 | i.fmod(0) | i // torch.tensor([1, 0, 2])
x // 0 | x % 0 | torch.div(i, 0, rounding_mode="trunc") | torch.div(i, 2, rounding_mode="trunc")
torch.div(i, 2, rounding_mode="floor") | torch.div(x, 2, rounding_mode="x") | i ** -1 | i ** torch.tensor([-1, 2, -1])
2 ** torch.tensor([-1, 2]) | i ** .5 | i ** 2. | t ** 2 | t ** True | t ** t | True ** t | x.clamp() | i.clamp(.5, 1.5) | t.clamp(0, 1)
u.clamp(-5, 300) | x.clamp(torch.tensor(0.), 1.) | torch.clamp(x, torch.tensor([0., 1.])) | torch.addcdiv(i, i, i)
torch.addcmul(i, i, i, value=.5) | torch.copysign(i, -1) | torch.heaviside(x, torch.tensor([.5])) | torch.where(x > 0, 1, 2)
torch.where(x > 0, 1., 2) | torch.where(x, 1, 2) | torch.where(x > 0) | torch.where(x > 0, x, i) | torch.where(x > 0, i, 2.5)
torch.where(x > 0, x.double(), x) | torch.where(t, i, i) | torch.add(2, x) | torch.sub(2, x) | torch.mul(2, x) | torch.div(2, x)
torch.maximum(x, 2) | i.add(i, alpha=.5) | i.add(x, alpha=.5) | t.add(t, alpha=2) | i.add(1, alpha=True) | t.add(t, alpha=True)
x.sub(True) | True - x | 1 - t | t - 1 | t - t | -t | +t | abs(t) | t * t | t / t | t // t | t << 1 | 1 << i | i << -1 | i << 63 | i << 64
i >> 70 | x << 1 | ~x | ~i | ~t | t & True | i & 1. | 1 & i | i ^ 1 | torch.bitwise_and(1, i) | torch.bitwise_or(i, 8)
torch.isclose(x, x, rtol=-1) | torch.hypot(i, i) | torch.polygamma(-1, x) | i.float_power(2) | torch.float_power(2, i) | 5 % x
torch.round(i, decimals=1) | x.round(decimals=-1) | x == None | x != None | x == "a" | x == [1, 2, 3] | x // None | i.frac() | t.floor()
x.lerp(x.double(), .5) | x.clamp_min(torch.tensor([[1.], [2.]])) | i.clamp_max(2) | torch.isclose(x, i) | x.addcmul(x[:2], x)
""")


@pytest.mark.torch
@pytest.mark.parametrize("expression", FUNCTIONS)
def test_functions_of_one(expression):
    compare(OF_ONE + looked_at(expression, "v"), rtol=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("expression", PAIRS)
def test_functions_of_two(expression):
    compare(OF_TWO + looked_at(expression, "abw"), rtol=1e-5)


@pytest.mark.torch
def test_whole_numbers_and_refusals():
    compare(NUMBERS + attempted(WHOLE))


@pytest.mark.torch
def test_a_scaled_sum_is_rounded_once():
    for kind in ("float16", "float32", "float64"):
        compare(f"""
import torch
step = torch.arange(1, 385)
a, b = (((step * n) % 101 / 17).to(torch.{kind}) for n in (37, 59))
numbers(a.add(b, alpha=0.3), a.sub(b, alpha=1.7))
""", rtol=0, atol=0)  # fmt: skip


SAVED = {
    "alpha": "x + y | x - y | x + 2 | 2 - x | x.add(y, alpha=2) | torch.rsub(x, y, alpha=3)",
    "self": "x * y | x / y | x ** 2 | x.log() | x.clamp(0, 1) | x.maximum(y) | x.std() | x.norm() | x.div(2, rounding_mode='floor')",
    "result": "x.exp() | x ** y | x.tanh() | x.hypot(y) | x.max() | x.prod() | x.std() | x.logsumexp(0) | x.cumprod(0) | x.amax()",
    "exponent": "x ** 2 | x ** y | x.square() | x ** .5",
    "min": "x.clamp(0) | x.clamp(y) | x.clamp(max=y) | x.clamp_min(.4) | x.clamp_min(y) | torch.aminmax(x)[0]",
    "max": "x.clamp(0) | x.clamp(max=1) | x.clamp(y, y) | torch.aminmax(x)[0]",
    "dim": "x.sum(0) | x.nansum() | x.nansum(0) | x.amax() | x.amax(0) | x.std() | x.std(0) | x.norm() | x.cumsum(0) | x.sort(0)[0]",
    "correction": "x.std() | x.std(0) | x.var(unbiased=False) | x.var(correction=0)",
    "self_sym_sizes": "x.sum() | x.mean() | x.max(0)[0] | x.topk(1, 0)[0]",
    "self_sym_numel": "x.mean() | x.mean(0)",
    "ord": "x.norm() | x.norm(3)",
    "weight": "x.lerp(y, .3) | x.lerp(y, x)",
    "value": "x.addcmul(y, x, value=2) | x.addcdiv(y, x)",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", SAVED)
def test_saved_attributes(name):
    calls = "".join(f"attempt(lambda: ({expression}).grad_fn._saved_{name})\n" for expression in split(SAVED[name]))
    compare("""
import torch
x = torch.tensor([.3, .5, .7], requires_grad=True); y = torch.tensor([1.2, 1.5, 2.], requires_grad=True)
""" + calls)  # fmt: skip
