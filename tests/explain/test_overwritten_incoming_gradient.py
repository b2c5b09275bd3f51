"""Writes in place to the gradient that a backward or a hook gets, and writes to tensors of their own."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
class Change(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        BACKWARD
        return g
def hook(grad):
    HOOK
    return grad
net, other = nn.Linear(3, 4), nn.Linear(3, 4)
opt = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.01)
for i in range(3):
    x = torch.randn(5, 3)
    beside = other(x)
    h = net(x)
    h.register_hook(hook)
    out = Change.apply(h)
    loss = LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SUM, SQUARES, BOTH = "out.sum() + beside.pow(2).mean()", "(out - beside).pow(2).mean()", "(out + beside).pow(2).mean()"


def program(backward="pass", loss=SQUARES, hook="pass"):
    parts = {"BACKWARD": backward.replace("\n", "\n        "), "LOSS": loss, "HOOK": hook.replace("\n", "\n    ")}
    text = PROGRAM
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


def found_in(text, engine, checks):
    return [one for one in checks.of_text(text, engine).found if one.finding.kind == "written-gradient"]


WRITTEN = {
    "one element of a sum": (program("g[2, 1] = 0.0  #!", SUM), "warning", "expanded", True),
    "one element of sums": (program("g[2, 1] *= 9  #!", "out.sum(1).pow(2).mean()"), "warning", "expanded", True),
    "some elements": (program("g[x < 0] = 0  #!"), "note", "writes to the gradient that it gets", True),
    "a factor": (program("g *= 0.5  #!"), "note", "writes to the gradient that it gets", True),
    "an alias": (program("part = g.view(-1)\npart[0] = 0  #!"), "note", "writes to the gradient that it gets", False),
    "in a loop": (program("for row in range(2):\n    g[row] = 0  #!"), "note", "writes to the gradient", False),
    "a hook": (program(hook="grad[0] = 0  #!"), "note", "a hook of", True),
    "a hook in a function": (program(hook="grad.clamp_(-1e-2, 1e-2)  #!"), "note", "a hook of", True),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRITTEN)
def test_a_write_to_the_gradient_that_arrives_is_found(name, engine, checks):
    text, level, words, has_edit = WRITTEN[name]
    (one,) = found_in(text, engine, checks)
    assert (one.level, text.splitlines()[one.finding.at.line - 1][-2:]) == (level, "#!")
    assert words in one.finding.text
    assert (one.finding.edit is not None) is has_edit
    if has_edit:
        assert ".clone()" in one.finding.edit.new
        assert found_in(one.finding.edit.applied(text), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_write_that_changes_the_gradient_of_another_operation_is_certain(engine, checks):
    (one,) = found_in(program("g[x < 0] = 0", BOTH), engine, checks)
    assert one.level == "warning"
    assert "gets, too" in one.finding.text
    assert "sends one tensor to both" in one.finding.parts[0].text


@pytest.mark.parametrize("engine", ENGINES)
def test_zeros_that_follow_are_not_reported(engine, checks):
    found = checks.of_text(WRITTEN["one element of a sum"][0], engine).found
    assert [one.finding.kind for one in found if one.level != "note"] == ["written-gradient"]


OWN = {
    "a copy": program("g = g.clone()\ng[x < 0] = 0", SUM),
    "a copy of another name": program("part = g.clone()\npart[x < 0] = 0\ng = part", SUM),
    "a new tensor": program("mask = torch.ones_like(g)\nmask[x < 0] = 0\ng = g * mask", SUM),
    "zeros to fill": program("part = torch.zeros_like(g)\npart[x >= 0] = g[x >= 0]\ng = part"),
    "a product": program("g = g * 2\ng[0] = 0", SUM),
    "a mask in a hook": program(hook="mask = torch.ones_like(grad)\nmask[0] = 0\ngrad = grad * mask"),
    "a contiguous copy of an expanded gradient": program("g = g.contiguous()\ng[0] = 0", SUM),
    "a statistic": program(hook="seen.copy_(grad)").replace("def hook", "seen = torch.zeros(5, 4)\ndef hook"),
    "a .grad after its accumulation": program().replace(
        "for i in", "net.bias.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5))\nfor i in"
    ),
    "clipping in the loop": program().replace(
        "    opt.step()", "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    opt.step()"
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OWN)
def test_a_write_to_a_tensor_of_its_own_is_right(name, engine, checks):
    assert found_in(OWN[name], engine, checks) == []
