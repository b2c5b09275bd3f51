"""Functions that save an intermediate, whose second derivatives lack a term, and functions that rightly save one.

The line to name ends with ``#!``.
"""

from time import perf_counter

import pytest
from explain.programs import recorded_text

from gviz.explain.finding import lines
from gviz.explain.findings.custom_functions.saved_intermediates import constant_intermediates
from gviz.explain.recording_survey import Survey

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
from torch.autograd.function import once_differentiable
torch.manual_seed(0)
"""
PENALTY = """
class Act(nn.Module):
    def forward(self, x):
        return Fn.apply(x)
critic = nn.Sequential(nn.Linear(2, 40), Act(), nn.Linear(40, 40), Act(), nn.Linear(40, 1))
opt = torch.optim.SGD(critic.parameters(), lr=0.01)
for i in range(2):
    real, fake = torch.randn(20, 2), torch.randn(20, 2)
    opt.zero_grad()
    difference = critic(fake).mean() - critic(real).mean()
    between = ((real + fake) / 2).requires_grad_()
    slope, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    loss = difference + 10 * (slope.norm(2, dim=1) - 1).pow(2).mean()
    loss.backward()
    opt.step()
"""


def function(forward, backward, head="class Fn(torch.autograd.Function):"):
    """A function of these lines."""
    indented = ["\n".join(f"        {row}" for row in rows.splitlines()) for rows in (forward, backward)]
    return (
        f"{head}\n    @staticmethod\n    def forward(ctx, x):\n{indented[0]}\n"
        f"    @staticmethod\n    def backward(ctx, g):\n{indented[1]}\n"
    )


SWISH = "s = torch.sigmoid(x)\nctx.save_for_backward(x, s)  #!\nreturn x * s"
OF_SWISH = "x, s = ctx.saved_tensors\nreturn g * (s * (1 + x * (1 - s)))"
RELU = "mask = (x > 0).float()\nctx.save_for_backward(mask)\nreturn x * mask"
SOFTMAX = "top = x.max(1, keepdim=True).values\nctx.save_for_backward(x, top)\nreturn (x - top).exp().sum(1, keepdim=True).log() + top + 0 * x"  # noqa: E501
OF_SOFTMAX = (
    "x, top = ctx.saved_tensors\ne = (x - top).exp()\nreturn g.sum(1, keepdim=True) * e / e.sum(1, keepdim=True)"
)

MISTAKES = {
    "a gradient penalty": function(SWISH, OF_SWISH) + PENALTY,
    "a root mean square": function(
        "r = (x.pow(2).mean(1, keepdim=True) + 1e-3).rsqrt()\nctx.save_for_backward(x, r)  #!\nreturn x * r",
        "x, r = ctx.saved_tensors\nreturn g * r - x * r.pow(3) * (g * x).mean(1, keepdim=True)",
    )
    + PENALTY,
    "an attribute of ctx": function(
        "ctx.slope = torch.cos(x)  #!\nreturn torch.sin(x)", "return g * ctx.slope"
    ) + PENALTY,
    "a view of the input": function(
        "flat = x.reshape(-1)\nctx.save_for_backward(flat)  #!\nreturn (flat * flat).view(x.shape)",
        "flat, = ctx.saved_tensors\nreturn g * 2 * flat.view(g.shape)",
    )
    + PENALTY,
    "a second derivative by the input": function(SWISH, OF_SWISH)
    + """
net, last = nn.Linear(1, 20), nn.Linear(20, 1)
opt = torch.optim.SGD([*net.parameters(), *last.parameters()], lr=0.01)
for i in range(2):
    x = torch.rand(30, 1).requires_grad_()
    u = last(Fn.apply(net(x)))
    du, = torch.autograd.grad(u.sum(), x, create_graph=True)
    ddu, = torch.autograd.grad(du.sum(), x, create_graph=True)
    loss = (ddu + u).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}  # fmt: skip
FIRST_ONLY = PENALTY.replace("difference + 10", "difference  #")
HEALTHY = {
    "an intermediate that backward computes again": function(
        "ctx.save_for_backward(x)\nreturn x * torch.sigmoid(x)",
        "x, = ctx.saved_tensors\ns = torch.sigmoid(x)\nreturn g * (s * (1 + x * (1 - s)))",
    )
    + PENALTY,
    "the output": function(
        "y = torch.tanh(x)\nctx.save_for_backward(y)\nreturn y", "y, = ctx.saved_tensors\nreturn g * (1 - y * y)"
    )
    + PENALTY,
    "an input as an attribute": function("ctx.x = x\nreturn torch.sin(x)", "return g * torch.cos(ctx.x)") + PENALTY,
    "a mask": function(RELU, "mask, = ctx.saved_tensors\nreturn g * mask") + PENALTY,
    "a maximum that cancels out": function(SOFTMAX, OF_SOFTMAX) + PENALTY,
    "no second derivative": function(SWISH, OF_SWISH) + FIRST_ONLY.replace(", create_graph=True", ""),
    "a slope that is only measured": function(SWISH, OF_SWISH) + FIRST_ONLY,
    "a backward of its own for the second derivative": function(
        "s = x.sigmoid()\nctx.save_for_backward(s, g)\nreturn g * s * (1 - s)".replace("(s, g)", "(x, g)"),
        "x, given = ctx.saved_tensors\ns = x.sigmoid()\nslope = s * (1 - s)\n"
        "return g * given * slope * (1 - 2 * s), g * slope",
        "class Second(torch.autograd.Function):",
    )
    .replace("forward(ctx, x)", "forward(ctx, x, g, s)")
    .replace("g * slope\n", "g * slope, None\n")
    + function(
        "s = torch.sigmoid(x)\nctx.save_for_backward(x, s)\nreturn s * 1",
        "x, s = ctx.saved_tensors\nreturn Second.apply(x, g, s)",
    )
    + PENALTY,
    "an intermediate of data": function(SWISH, OF_SWISH)
    + """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(2):
    x = torch.randn(5, 3).requires_grad_()
    slope, = torch.autograd.grad(net(Fn.apply(x)).sum(), x, create_graph=True)
    opt.zero_grad()
    (slope - 1).pow(2).sum().backward()
    opt.step()
""",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_saved_intermediate_is_named_where_it_is_saved(name, engine, checks):
    text = HEAD + MISTAKES[name]
    found = {one.finding.kind: one for one in checks.of_text(text, engine).found}
    one = found["constant-intermediate"]
    assert one.level == "warning"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "depends on the input" in "\n".join(row for _, row, _ in lines(one.finding))
    assert "again in backward; @once_differentiable" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_rightly_saved_is_left_alone(name, engine, checks):
    found = checks.of_text(HEAD + HEALTHY[name], engine).found
    assert [str(one) for one in found if one.level != "note" or one.finding.kind == "constant-intermediate"] == []


def test_many_calls_take_linear_time(tmp_path):
    many = "x = torch.rand(4, requires_grad=True)\ny = x\nfor i in range(1500):\n    y = Fn.apply(y)\n"
    twice = "g, = torch.autograd.grad(y.sum(), x, create_graph=True)\ng.pow(2).sum().backward()\n"
    timeline = recorded_text(HEAD + function(RELU, "mask, = ctx.saved_tensors\nreturn g * mask") + many + twice,
                             tmp_path, "builtin")  # fmt: skip
    survey = Survey(timeline)
    survey.nodes  # noqa: B018  # read before the clock starts
    began = perf_counter()
    assert [one for one in constant_intermediates(survey) if one is not None] == []
    assert perf_counter() - began < 5
