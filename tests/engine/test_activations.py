"""Activations, beside PyTorch: values, graphs, borders, in-place forms, refusals."""

import pytest
from twin import compare

import gviz.engine as torch

pytestmark = pytest.mark.torch

BEGIN = """
import torch.nn.functional as F
def data(kind=torch.float64):
    v = [-7., -3., -1., -.5, -.25, 0., .25, .5, 1., 2.5, 3., 6., 25., 2., float('inf'), -float('inf')]
    return torch.tensor(v, dtype=kind, requires_grad=True)
def tried(f, kind=torch.float64):
    x = data(kind)
    y = f(x)
    see(y)
    y.backward(torch.arange(1, y.numel() + 1).to(y.dtype).reshape(y.shape))
    see(x)
"""
CALLS = {
    "relu": "F.relu(x)",
    "relu6": "F.relu6(x)",
    "leaky relu": "F.leaky_relu(x, 0.2)",
    "rrelu": "F.rrelu(x)",
    "elu": "F.elu(x, 0.7)",
    "selu": "F.selu(x)",
    "celu": "F.celu(x, 0.7)",
    "gelu": "F.gelu(x[:14])",
    "gelu by tanh": "F.gelu(x[:14], approximate='tanh')",
    "silu": "F.silu(x)",
    "mish": "F.mish(x)",
    "softplus": "F.softplus(x)",
    "softplus bent": "F.softplus(x, 2, 4)",
    "softsign": "F.softsign(x)",
    "softshrink": "F.softshrink(x)",
    "hardshrink": "F.hardshrink(x)",
    "tanhshrink": "F.tanhshrink(x)",
    "hardtanh": "F.hardtanh(x)",
    "hardtanh wide": "F.hardtanh(x, -.5, 2.5)",
    "hardsigmoid": "F.hardsigmoid(x)",
    "hardswish": "F.hardswish(x)",
    "logsigmoid": "F.logsigmoid(x)",
    "threshold": "F.threshold(x, .25, 20.)",
    "glu": "F.glu(x)",
    "glu of rows": "F.glu(x.view(2, 8), 0)",
    "prelu": "F.prelu(x, torch.tensor([.2], dtype=x.dtype))",
    "prelu by channel": "torch.prelu(x.view(2, 4, 2), torch.tensor([.2, .3, .4, .5], dtype=x.dtype))",
    "softmax": "F.softmax(x[:12].view(3, 4), 1)",
    "softmax of columns": "x[:12].view(3, 4).softmax(0)",
    "softmax in float64": "torch.softmax(x[:13], 0, torch.float64)",
    "softmax of infinity": "F.softmax(x[8:15], 0)",
    "log softmax": "F.log_softmax(x[:13], -1)",
    "softmin": "F.softmin(x[:13], 0)",
}
WRITTEN = ["relu", "relu6", "leaky_relu", "rrelu", "elu", "selu", "celu", "silu", "mish", "hardtanh", "hardsigmoid",
           "hardswish"]  # fmt: skip


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_values_graphs_and_borders(call, kind):
    compare(f"{BEGIN}\ntried(lambda x: {call}, torch.{kind})", rtol=2e-6, atol=2e-6 if kind == "float32" else 1e-12)


@pytest.mark.parametrize("name", WRITTEN)
def test_written_in_place(name):
    compare(f"{BEGIN}\ntried(lambda x: F.{name}(x * 1, inplace=True))")


@pytest.mark.parametrize("name", ["relu_", "leaky_relu_", "rrelu_", "elu_", "selu_", "celu_", "hardtanh_"])
def test_underscored(name):
    compare(f"{BEGIN}\ntried(lambda x: F.{name}(x * 1))\nattempt(lambda: F.{name}(data()))")


def test_threshold_underscored():
    compare(f"{BEGIN}\ntried(lambda x: F.threshold_(x * 1, .3, 2.))")


REFUSALS = [
    "F.prelu(x, torch.ones(3))",
    "F.prelu(x, torch.ones(1, 4))",
    "F.prelu(torch.tensor(1.), torch.ones(3))",
    "F.prelu(x.double(), torch.ones(1))",
    "F.glu(torch.ones(2, 3))",
    "F.glu(torch.tensor(1.))",
    "F.glu(x, 5)",
    "F.softshrink(x, -1)",
    "F.softshrink(whole)",
    "F.hardtanh(x, 1, -1)",
    "F.hardtanh(x, 1, 1)",
    "F.relu6(torch.tensor([7, -3]))",
    "F.hardtanh(torch.tensor([1, 5]), -1.5, 2.7)",
    "F.hardtanh(torch.zeros(3).bool())",
    "F.threshold(torch.tensor([1, 5]), 2, 3)",
    "F.celu(x, 0.)",
    "F.gelu(x[:14], approximate='x')",
    "F.rrelu(x, .5, .1)",
    "F.softmax(x, 5)",
    "F.softmax(whole, 1)",
    "F.log_softmax(whole, 0)",
    "F.softmax(torch.tensor(3.), 0)",
    "F.log_softmax(torch.tensor(3.), 0)",
    "F.softmax(torch.ones(0, 3), 1)",
    "F.log_softmax(torch.ones(3, 0), 1)",
    "F.softmax(x)",
    *[f"F.{name}(whole)" for name in (*WRITTEN, "gelu", "softplus", "hardshrink", "logsigmoid", "glu", "softsign")],
    "F.leaky_relu(x * 1, -.1, inplace=True).sum().backward()",
    "F.elu(x * 1, -.1, inplace=True).sum().backward()",
    "F.celu(x * 1, -.1, inplace=True).sum().backward()",
]


@pytest.mark.parametrize("call", REFUSALS)
def test_what_is_refused(call):
    begin = "x = torch.arange(8.).view(2, 4).requires_grad_()\nwhole = torch.arange(4).view(2, 2)"
    compare(f"import torch.nn.functional as F\n{begin}\nattempt(lambda: {call})")


def test_an_implicit_dimension_is_warned_of():
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
        assert torch.nn.functional.softmax(torch.ones(2, 4)).sum(1).tolist() == [1, 1]


def test_rrelu_draws_slopes_when_training():
    torch.manual_seed(3)
    x = torch.full((500,), -1.0, requires_grad=True)
    y = torch.nn.functional.rrelu(x, 0.1, 0.3, training=True)
    y.sum().backward()
    assert -0.3 <= y.min().item() < -0.28
    assert -0.12 < y.max().item() <= -0.1
    assert x.grad.tolist() == (-y).tolist()


def test_a_hard_gumbel_sample_is_one_hot_and_has_the_soft_gradient():
    torch.manual_seed(4)
    logits = torch.zeros(6, 5, requires_grad=True)
    sample = torch.nn.functional.gumbel_softmax(logits, tau=0.5, hard=True)
    assert sorted(sample.detach().round().sum(1).tolist()) == [1] * 6
    (sample * torch.arange(5.0)).sum().backward()
    assert logits.grad.abs().sum().item() > 0
