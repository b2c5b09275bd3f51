"""Derivatives of the first three orders where functions have kinks, ties, poles and jumps, against PyTorch."""

import numpy as np
import pytest
from twin import run

POINTS = [-7.0, -6.0, -3.0, -1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 3.0, 6.0, 7.0, 20.0, 21.0]
OF_ONE = [
    "F.relu(x)", "F.relu6(x)", "F.hardtanh(x)", "F.hardtanh(x, -.5, .5)", "F.hardswish(x)", "F.softshrink(x)", "F.softshrink(x, 1.)",
    "F.softshrink(x, 0.)", "F.hardshrink(x)", "F.hardshrink(x, 1.)", "F.threshold(x, 0., 5.)", "F.threshold(x, .5, .1)",
    "F.leaky_relu(x)", "F.leaky_relu(x, -.5)", "F.leaky_relu(x, 2.)", "F.rrelu(x)", "F.elu(x)", "F.elu(x, 2.)", "F.elu(x, 0.)",
    "F.elu(x, -1.)", "F.selu(x)", "F.celu(x)", "F.celu(x, .5)", "F.celu(x, -.5)", "F.gelu(x)", "F.silu(x)", "F.mish(x)",
    "F.softplus(x)", "F.softplus(x, 2., 1.)", "F.softplus(x, .5, 3.)", "F.softsign(x)", "F.tanhshrink(x)", "F.logsigmoid(x)",
    "F.elu(x * 1, inplace=True)", "F.selu(x * 1, inplace=True)", "F.celu(x * 1, inplace=True)", "F.celu(x * 1, .5, True)",
    "F.leaky_relu(x * 1, inplace=True)", "F.hardtanh(x * 1, inplace=True)", "F.hardswish(x * 1, inplace=True)",
    "F.threshold(x * 1, 0., 1., inplace=True)", "(x * 1).relu_()", "x.abs()", "x.sign() * x", "x.sgn() * x", "x.clamp(-1, 1)",
    "x.clamp(min=0)", "x.clamp(max=0)", "x.clamp(x, x)", "x.clamp(1, -1)", "x ** 0", "x ** 1", "x ** 2", "x ** 3", "x ** .5",
    "x ** 1.5", "x ** 2.5", "x ** -1", "x ** x", "0. ** x", "2. ** x", "torch.zeros_like(x) ** x", "x ** torch.zeros_like(x)",
    "x ** torch.ones_like(x)", "x ** (torch.ones_like(x) * 2)", "x.sqrt()", "x.rsqrt()", "x.log()", "x.log1p()", "x.reciprocal()",
    "x.asin()", "x.acos()", "x.atanh()", "x.acosh()", "x.sinc()", "x.logit(.5)", "torch.xlogy(x, x)", "torch.atan2(x, x)",
    "torch.atan2(x, torch.zeros_like(x))", "torch.hypot(x, torch.zeros_like(x))", "x.floor() * x", "x.round() * x", "x.trunc() * x",
    "x.frac()", "x.fmod(1.)", "x.remainder(1.)", "torch.copysign(x, x)", "torch.copysign(x, torch.zeros_like(x))",
    "torch.maximum(x, x)", "torch.fmin(x, x)", "torch.stack([x, x * 1]).max(0).values", "torch.stack([x, -x]).amax(0)",
    "torch.stack([x, -x]).amin(0)", "torch.stack([x, -x]).max() * x", "torch.stack([x, -x, x]).median(0).values",
    "torch.stack([x, -x]).sort(0).values[0]", "torch.stack([x, -x]).cummax(0).values[1]", "torch.stack([x, -x]).cummin(0).values[1]",
    "torch.stack([x, x * 0]).norm(dim=0)", "torch.stack([x, x * 0]).norm(1, dim=0)", "torch.stack([x, x * 0]).norm(3, dim=0)",
    "torch.stack([x, x * 0]).norm(.5, dim=0)", "torch.stack([x, x * 0]).norm(1.5, dim=0)", "torch.stack([x, -x]).norm(float('inf'), dim=0)",
    "torch.stack([x, -x]).norm(-float('inf'), dim=0)", "torch.stack([x, -x]).norm(0, dim=0) * x", "torch.linalg.vector_norm(x[:, None], dim=1)",
    "torch.linalg.norm(x[:, None] * 0)", "torch.dist(x, x)", "F.normalize(x[:, None])", "torch.stack([x, x]).std(0)",
    "torch.stack([x, x * 0, x]).prod(0)", "torch.stack([x, x * 0, x]).cumprod(0)[2]", "torch.where(x > 0, x, x * 2)",
    "x.masked_fill(x >= 0, 1.)", "F.glu(torch.stack([x, x * 0], 1), 1)", "torch.logaddexp(x, -x)", "torch.logaddexp(x, x)",
    "torch.stack([x, x]).logsumexp(0)", "F.l1_loss(x, x, reduction='none')", "F.hinge_embedding_loss(x, -torch.ones_like(x), reduction='none')",
    "F.margin_ranking_loss(x, torch.zeros_like(x), torch.ones_like(x), reduction='none')",
    "F.soft_margin_loss(x, torch.ones_like(x), reduction='none')", "F.soft_margin_loss(x * 200, torch.ones_like(x))",
    "F.binary_cross_entropy(x.clamp(0, 1), torch.zeros_like(x), reduction='none')", "F.binary_cross_entropy(x.clamp(0, 1), torch.ones_like(x))",
    "F.binary_cross_entropy_with_logits(x, torch.zeros_like(x), reduction='none')",
    "F.triplet_margin_loss(x[:, None], x[:, None], x[:, None], margin=0., reduction='none')",
]  # fmt: skip
OF_TWO = [
    "F.prelu(x, y[:1])", "F.prelu(x[None], y)", "torch.maximum(x, y)", "torch.minimum(x, y)", "torch.fmax(x, y)", "torch.fmin(x, y)",
    "F.huber_loss(x, y, reduction='none')", "F.huber_loss(x, y, reduction='none', delta=.5)", "F.huber_loss(x, y, reduction='sum', delta=3.)",
    "F.huber_loss(x, y)", "F.smooth_l1_loss(x, y, reduction='none')", "F.smooth_l1_loss(x, y, reduction='none', beta=.5)",
    "F.smooth_l1_loss(x, y, reduction='none', beta=0.)", "F.smooth_l1_loss(x, y)", "F.l1_loss(x, y, reduction='none')", "F.mse_loss(x, y)",
    "x.clamp(y, y + 1)", "x.clamp(min=y)", "x.clamp(max=y)", "torch.where(x > y, x, y)", "torch.lerp(x, y, x)", "torch.atan2(x, y)",
    "torch.hypot(x, y)", "F.pairwise_distance(x[:, None], y[:, None], eps=0.)", "torch.dist(x, y)", "x.fmod(y)",
    "x.remainder(y)", "torch.copysign(x, y)", "torch.xlogy(x, y)", "x ** y", "F.margin_ranking_loss(x, y, torch.ones_like(x))",
    "F.poisson_nll_loss(x, y, reduction='none')", "F.gaussian_nll_loss(x, y, x.abs(), reduction='none')", "torch.logaddexp(x, y)",
]  # fmt: skip
PROGRAM = """
import torch
import torch.nn.functional as F
points = {points}
x = torch.tensor(points, dtype=torch.{dtype}, requires_grad=True)
y = torch.tensor({others}, dtype=torch.{dtype}, requires_grad=True)
wanted = [x, y][:{count}]
weights = lambda t: torch.arange(1, t.numel() + 1, dtype=t.dtype).reshape(t.shape)
result = {expression}
numbers(result)
total = (result * weights(result)).sum()
for order in range(3):
    # what no longer depends on the points has slope 0, whatever says so: zeros, None, a tensor without memory
    slopes = torch.autograd.grad(total, wanted, create_graph=True, materialize_grads=True) if total.requires_grad else []
    slopes = [slope + 0 for slope in slopes] or [torch.zeros_like(one) for one in wanted]
    numbers(*slopes)
    total = sum((slope * weights(slope)).sum() for slope in slopes)
"""


def derivatives(expression, count, dtype, package):
    others = [0.0, -6.0, 3.0, -1.0, 0.0, -0.5, 0.0, -0.0, 0.0, 0.0, 2.5, 3.0, 0.0, -7.0, 0.0, 21.0]
    text = PROGRAM.format(expression=expression, count=count, dtype=dtype, points=POINTS, others=others)
    return run(text, package)


def assert_alike(expression, count, dtype):
    expected, got = (derivatives(expression, count, dtype, package) for package in ("torch", "gviz.engine"))
    size = 1
    for order, (one, other) in enumerate(zip(expected, got, strict=True)):
        if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
            # Sums that cancel lose digits, by the size of what they add.
            size = max(size, np.abs(one[np.isfinite(one)]).max(initial=1))
            tolerance = {"float64": 1e-9, "float32": 3e-5}[dtype]
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance * size, err_msg=f"seen[{order}]")
        else:
            assert one == other, f"seen[{order}]"


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("expression", OF_ONE)
def test_of_one(expression, dtype):
    assert_alike(expression, 1, dtype)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("expression", OF_TWO)
def test_of_two(expression, dtype):
    assert_alike(expression, 2, dtype)
