"""Reductions, orders and cumulative operations at ties, zeros, nothing, and what is no number, beside PyTorch's."""

import pytest
from expressions import attempted, looked_at, split
from twin import compare

TENSORS = {
    "ties": "[[1., 5., 5., 0.], [4., 4., 6., 0.], [0., 0., 2., -2.]]",
    "zeros": "[[1., 0., 3.], [0., 0., 2.], [4., 5., 6.]]",
    "equal": "[[2., 2., 2.], [1., 1., 2.]]",
    "nought": "[[0., 0.], [0., 0.]]",
    "single": "3.",
    "odd": "[[1., nan, 3.], [nan, nan, 2.], [inf, -inf, 1.], [-inf, -inf, -inf]]",
    "nothing": "[[], []]",
}
GIVEN_TWICE = """
import torch
x = torch.ones(2, 3); y = x * 1
def refused(call):
    try: see("taken", call())
    except Exception as error: see(type(error).__name__)
for call in (torch.sum, torch.argmax, torch.median, torch.logsumexp, torch.cumsum): attempt(lambda: call(x, 0, axis=0)); attempt(lambda: call(x, dim=0, axis=0))
for call in (torch.mean, torch.nansum, torch.prod, torch.amax, torch.max, torch.any, torch.std, torch.cumprod, torch.count_nonzero): refused(lambda: call(x, 0, axis=0)); refused(lambda: call(x, dim=0, axis=0))
for call in (torch.sum, torch.mean, torch.prod, torch.amax, torch.max, torch.any): refused(lambda: call(x, 0, True, keepdims=True)); refused(lambda: call(x, 0, keepdim=True, keepdims=True))
see(torch.sum(x, axis=0), torch.sum(x, 0, keepdims=True), x.cumsum(axis=0)); attempt(lambda: x.sum(0, axis=1)); attempt(lambda: x.cumsum(0, keepdims=True))
attempt(lambda: torch.addcmul(x, x, x, tensor2=x)); attempt(lambda: torch.addcmul(x, x, x, tensor2=x, value=3)); attempt(lambda: torch.flip(x, [0], dims=[0]))
attempt(lambda: x.addcmul(x, x, tensor1=y)); refused(lambda: torch.addmm(x, x, x.T, mat2=x))
refused(lambda: y.addcmul_(x, x, tensor1=x)); refused(lambda: torch.flip(x, [0], input=x)); see(y)
"""
SETUP = """
import torch
nan, inf = float("nan"), float("inf")
m = torch.tensor({data}, requires_grad=True)
"""
REDUCTIONS = split("""
m.sum() | m.sum(0) | m.sum(-1, keepdim=True) | m.sum((0, 1)) | m.sum(dtype=torch.float64) | m.sum(0, dtype=torch.float64) | m.mean()
m.mean(0) | m.mean(-1, True) | m.mean(0, dtype=torch.float64) | m.nansum() | m.nansum(-1) | m.nanmean() | m.nanmean(0) | m.prod()
m.prod(0) | m.prod(-1, True) | m.prod(dtype=torch.float64) | m.std() | m.std(0) | m.std(-1, unbiased=False) | m.std(correction=0)
m.var() | m.var(0, keepdim=True) | m.var(-1, correction=2) | m.var(0, correction=3) | m.std(correction=100) | torch.std_mean(m)
torch.var_mean(m, 0, keepdim=True) | m.logsumexp(0) | m.logsumexp(-1) | m.norm() | m.norm(1) | m.norm(2, 0) | m.norm(0) | m.norm(.5)
m.norm(1.5) | m.norm(3) | m.norm(inf) | m.norm(-inf) | m.norm(-1) | m.norm(3, -1, True) | m.norm(inf, 0) | m.norm(2, dtype=torch.float64)
m.amax() | m.amax(0) | m.amin(-1, True) | m.max() | m.max(0) | m.max(-1, True) | m.min() | m.min(0) | m.argmax() | m.argmin(-1)
m.argmax(keepdim=True) | torch.aminmax(m) | m.aminmax(dim=0) | m.median() | m.median(0) | m.median(-1, True) | m.nanmedian()
m.nanmedian(0) | m.cumsum(0) | m.cumsum(-1) | m.cumsum(0, dtype=torch.float64) | m.cumprod(0) | m.cumprod(-1) | m.cummax(0)
m.cummax(-1) | m.cummin(0) | m.logcumsumexp(0) | m.logcumsumexp(-1) | m.sort() | m.sort(0, True) | m.sort(stable=True) | m.argsort()
m.argsort(0, descending=True) | m.msort() | m.diff() | m.diff(dim=0) | m.diff(2) | m.any() | m.any(0) | m.all(-1) | m.count_nonzero()
m.count_nonzero(0) | m.unique() | m.unique(return_inverse=True, return_counts=True) | torch.unique_consecutive(m)
m.unique_consecutive(return_inverse=True, return_counts=True) | m.unique_consecutive(dim=0) | torch.trapezoid(m)
torch.trapezoid(m, dx=.5) | torch.cov(m) | torch.corrcoef(m) | m.topk(1) | m.sum(axis=0, keepdims=True) | m.square().sum().sqrt()
""")
ASIDE = {
    ("nothing", "torch.trapezoid(m)"),  # PyTorch writes to what it returns, which moves its version
    ("nothing", "torch.trapezoid(m, dx=.5)"),
    ("zeros", "torch.corrcoef(m)"),  # a difference of nearly equal numbers
}
QUANTILES = """
import torch
nan = float("nan")
for data in ([[1., 5., 2.], [4., 0., 6.]], [[1., nan, 3.], [2., 5., nan]], [3.]):
    m = torch.tensor(data)
    for q in (.3, .5, 1, torch.tensor([0., .25, 1.])):
        for dim, keepdim in ((None, False), (0, False), (-1, True), (None, True)):
            for how in ("linear", "lower", "higher", "midpoint", "nearest"):
                numbers(m.quantile(q, dim, keepdim, interpolation=how), m.nanquantile(q, dim, keepdim, interpolation=how))
x = torch.tensor([3., 1., 2., 5.], requires_grad=True)
(x.quantile(.4) * 2 + x.quantile(torch.tensor([.1, .9])).sum()).backward(); numbers(x.grad)
for call in (lambda: x.quantile(2), lambda: x.quantile(torch.tensor([.5, -1])), lambda: x.half().quantile(.5),
             lambda: x.quantile(torch.tensor(.5).double()), lambda: x[:0].quantile(.5), lambda: x.quantile(torch.ones(1, 1)),
             lambda: x.quantile(.5, interpolation="x")): attempt(call)
"""
SIGNS_OF_NAN = split("""
x.mean() | rows.mean(1) | x.var() | x.std(0) | rows.var(1, unbiased=False) | torch.var_mean(rows, 1)[0] | torch.var_mean(rows, 1)[1]
rows.T.std((0, 1)) | torch.ones(1).var() | torch.ones(3).std(correction=5)
""")
ARGUMENTS = split("""
x.sum((0, 0)) | x.sum(3) | x.sum(dim=()) | x.sum(axis=0) | torch.sum(x, (0, 1)) | x.sum([0]) | x.sum(dim=None, keepdim=True) | x.mean((0, 0))
x.amax((0, 0)) | x.std((0, 0)) | x.any((0, 0)) | x.max(2) | x.argmax(2) | x.cumsum(2) | x.sort(2) | x.topk(4) | x.topk(-1) | x.kthvalue(0)
x.kthvalue(4) | x.kthvalue(2, 0, keepdim=True) | x.std(0, True) | x.std(0, True, True) | x.std(True) | x.std(False) | x.std(0, correction=3)
torch.std_mean(x, True) | torch.std(x, dim=()) | x.norm("a") | x.norm(p="fro") | x.norm("fro", (0, 1), True) | x.norm(None) | x.norm(2, None, True)
n.max() | n.max(0) | n.min() | n.amax() | n.amin((0, 1)) | n.argmax() | n.argmax(0) | n.aminmax() | n.aminmax(dim=0) | n.median() | n.median(0)
n.mode(0) | n.kthvalue(1, 0) | n.norm(inf) | n.norm(inf, 0) | n.bincount() | i.bincount() | i[:0].bincount() | i.bincount(minlength=6)
i.bincount(torch.tensor([.5, 1., 2., 1., 1., 1.])) | x.bincount() | (-i).bincount() | i.mode() | i.median() | i.norm() | i.mean()
i.sum(dtype=torch.uint8) | x.sum(dtype=torch.int64) | x.mean(dtype=torch.int64) | i.prod(dtype=torch.float32) | i.cumsum(0, dtype=torch.int8)
x.histc(4) | x.histc(4, 0, 3) | x.histc(0) | x.histc(3, 2, 1) | i.histc() | s.diff() | x.diff(n=-1) | x.diff(prepend=torch.zeros(1))
x.diff(prepend=torch.zeros(2, 1), append=torch.ones(2, 2)) | x.unique(dim=0, return_inverse=True) | x.unique(dim=1, return_counts=True) | s.unique(dim=0)
torch.searchsorted(torch.tensor([1., 2., 2., 5.]), x) | torch.searchsorted(torch.tensor([1., 2., 2., 5.]), x, right=True)
torch.searchsorted(torch.tensor([1., 2., 5.]), 2) | torch.searchsorted(x.sort().values, x) | torch.searchsorted(x.sort().values, x[0])
torch.searchsorted(torch.tensor([5., 1.]), x, sorter=torch.tensor([1, 0])) | torch.searchsorted(x.sort().values, x, side="x")
torch.bucketize(x, torch.tensor([1., 4.])) | torch.bucketize(x, torch.tensor([1., 4.]), right=True, out_int32=True) | torch.bucketize(x, x)
x.cross(x) | x.cross(x, dim=0) | torch.cross(x, torch.ones(1, 3), dim=1) | x.cross(i) | x.cross(x.double()) | torch.cov(i) | torch.cov(x, correction=0)
torch.cumulative_trapezoid(x) | torch.cumulative_trapezoid(x, x) | torch.trapezoid(x, torch.tensor([0., 1., 3.])) | torch.trapezoid(x, dim=0)
torch.cdist(x, x[0]) | torch.cdist(i, i) | torch.cdist(x, x.double()) | torch.cdist(x, x, -1) | torch.cdist(x, x, 2, "x") | torch.cdist(x, x[:, :1])
torch.cov(torch.ones(2, 2, 2)) | x.logcumsumexp(0) | i.logcumsumexp(0) | x.dist(x[0]) | i.dist(i) | t.topk(1) | t.median() | t.argmax() | t.sort()
""")


@pytest.mark.torch
@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("expression", REDUCTIONS)
def test_reductions(expression, name):
    if (name, expression) not in ASIDE:
        compare(SETUP.format(data=TENSORS[name]) + looked_at(expression, "m"), rtol=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("expression", SIGNS_OF_NAN)
def test_the_sign_of_the_mean_and_variance_of_too_few_elements(expression):
    compare(f"import torch\nx, rows = torch.zeros(0), torch.ones(2, 0)\nsee(torch.signbit({expression}).tolist())")


@pytest.mark.torch
def test_arguments():
    compare("""
import torch
inf = float("inf"); x = torch.tensor([[1., 5., 3.], [4., 2., 6.]]); n = torch.zeros(0, 2); i = torch.tensor([3, 1, 2, 2, 0, 1])
s = torch.tensor(3.); t = torch.tensor([True, False])
""" + attempted(ARGUMENTS), rtol=1e-5)  # fmt: skip


@pytest.mark.torch
def test_the_kth_of_equal_values_is_pytorchs():
    compare("""
import torch
nan = float("nan")
for size in range(1, 12):
    line = (torch.arange(size * 4) * 7 % 5 % 3).reshape(4, size).float()
    line[0, size // 2] = nan
    for k in range(1, size + 1):
        see(line.kthvalue(k).indices, line.t().kthvalue(k, 0).indices, line.median(1).indices)
""")


@pytest.mark.torch
def test_quantiles():
    compare(QUANTILES)


@pytest.mark.torch
def test_named_results_show_themselves_as_pytorchs():
    compare("""
import torch
x = torch.tensor([[1., 5., 3.], [4., 2., 6.]])
for result in (x.max(0), x.min(1), x.median(0), x.mode(0), x.kthvalue(1), x.sort(), x.topk(2), x.cummax(0), x.aminmax()):
    print(result); see(type(result).__name__); print(torch.std_mean(x))
see(x.max(0).values, x.aminmax().max, x.sort()[1])
""")  # fmt: skip


@pytest.mark.torch
def test_what_is_given_twice_is_refused():
    compare(GIVEN_TWICE)
