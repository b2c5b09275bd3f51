"""A backward that never reads its incoming gradient: a mistake where the numbers disagree, and else none."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 1)
class Mine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        FORWARD
    @staticmethod
    def backward(BACKWARD
net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(4):
    loss = LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SAVED = "ctx.save_for_backward(x)\n"
SWISH = f"{SAVED}return x * torch.sigmoid(x)"
SLOPE = "(x,) = ctx.saved_tensors\ns = torch.sigmoid(x)\n"
APPLIED = "((Mine.apply(net(x)) - y) ** 2).mean()"


def program(forward, backward, loss=APPLIED):
    words = {"FORWARD": forward, "BACKWARD": backward}
    text = PROGRAM.replace("LOSS", loss)
    for word, value in words.items():
        text = text.replace(word, value.replace("\n", "\n        "))
    return text


IGNORED = {
    "a product": (
        program(SWISH, f"ctx, grad_output):\n{SLOPE}return s * (1 + x * (1 - s))  #!"),
        "return grad_output * s * (1 + x * (1 - s))",
    ),
    "a sum": (
        program(SWISH, f"ctx, grad_output):\n{SLOPE}return s + x * s * (1 - s)  #!"),
        "return grad_output * (s + x * s * (1 - s))",
    ),
    "with an argument without a gradient": (
        program(SWISH, f"ctx, g):\n{SLOPE}return s * (1 + x * (1 - s)), None  #!").replace(
            "forward(ctx, x)", "forward(ctx, x, slope)").replace("Mine.apply(net(x))", "Mine.apply(net(x), 1.0)"),
        "return g * s * (1 + x * (1 - s)), None",
    ),
    "a variable": (
        program(SWISH, f"ctx, g):\n{SLOPE}g_in = s * (1 + x * (1 - s))\nreturn g_in  #!"), "return g * g_in"),
    "a factor": (
        program(f"{SAVED}return (x * x).sum()", "ctx, g):\n(x,) = ctx.saved_tensors\nreturn 2 * x  #!",
                "0.25 * Mine.apply(net(x) - y)"),
        "return g * 2 * x",
    ),
}  # fmt: skip
READ = {
    "the chain rule": program(SWISH, f"ctx, g):\n{SLOPE}return g * s * (1 + x * (1 - s))"),
    "all arguments": program(SWISH, f"ctx, *grads):\n{SLOPE}return grads[0] * s * (1 + x * (1 - s))"),
    "all arguments at once": program(SWISH, f"*given):\nctx, g = given\n{SLOPE}return g * s * (1 + x * (1 - s))"),
    "a loss at the end": program(
        f"{SAVED}return (x * x).sum()", "ctx, g):\n(x,) = ctx.saved_tensors\nreturn 2 * x", "Mine.apply(net(x) - y)"),
    "a gradient that is given": program(
        f"{SAVED}return torch.ones(1)", "ctx, g):\n(x,) = ctx.saved_tensors\nreturn x",
        "0.1 * Mine.apply(net(x) - y).sum()"),
    "a gradient that is stopped": program(
        "return x * 1.0", "ctx, g):\nreturn None", "(Mine.apply(net(x)) + net(x)).mean()"),
}  # fmt: skip


def found_in(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.level != "note"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", IGNORED)
def test_a_backward_without_its_gradient_is_found_and_mended(name, engine, checks):
    text, mended = IGNORED[name]
    (one,) = found_in(text, engine, checks)
    assert (one.finding.kind, one.level) == ("wrong-rule", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "the backward of #" in said
    assert " Mine ignores g" in said
    assert mended in one.finding.edit.new
    assert [str(each) for each in found_in(one.finding.edit.applied(text), engine, checks)] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_product_that_would_have_another_shape_is_no_edit(engine, checks):
    text = program(f"{SAVED}return (x * x).sum(dim=1)", "ctx, g):\n(x,) = ctx.saved_tensors\nreturn 2 * x  #!",
                   "(Mine.apply(net[:2](x)) * torch.arange(16.0)).mean() + net(x).mean()")  # fmt: skip
    (one,) = found_in(text, engine, checks)
    assert "ignores g" in one.finding.text
    assert one.finding.edit is None


@pytest.mark.parametrize("engine", ENGINES)
def test_without_an_edit_the_place_is_the_line_that_computes_what_is_returned(engine, checks):
    backward = "ctx, g):\n(x,) = ctx.saved_tensors\ng_in = 2 * x  #!\nreturn g_in"
    text = program(f"{SAVED}return (x * x).sum(dim=1)", backward,
                   "(Mine.apply(net[:2](x)) * torch.arange(16.0)).mean() + net(x).mean()")  # fmt: skip
    (one,) = found_in(text, engine, checks)
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", READ)
def test_a_backward_that_reads_its_gradient_or_needs_none_is_not_reported(name, engine, checks):
    assert [str(one) for one in found_in(READ[name], engine, checks)] == []
