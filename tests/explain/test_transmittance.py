"""Weights with a cumulative product that includes the element itself, and products that do not."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net, x, target = nn.Linear(3, 4), torch.randn(6, 12, 3), torch.rand(6, 3)
z, steps = torch.linspace(1, 2, 12), torch.full((6, 12), 0.1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)

def composite(alpha, colors):
    trans = torch.cumprod(1 - alpha, dim=1)  #!!
    return ((trans * alpha).unsqueeze(-1) * colors).sum(1)

for i in range(3):
    raw = net(x)
    density, colors = F.relu(raw[..., 3]), torch.sigmoid(raw[..., :3])
    WEIGHTS
    loss = F.mse_loss(out, target)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OUT = "\nout = (w[..., None] * colors).sum(1)"


def program(weights):
    return PROGRAM.replace("WEIGHTS", f"{weights}{OUT if 'out =' not in weights else ''}".replace("\n", "\n    "))


ALPHA = "alpha = 1 - torch.exp(-density * 0.1)"
INCLUSIVE = {
    "in the last dimension": (
        program(f"{ALPHA}\nT = torch.cumprod(1.0 - alpha + 1e-10, dim=-1)  #!\nw = alpha * T"), "[..., :-1], (1, 0)"),
    "as a method": (program(f"{ALPHA}\nw = (1 - alpha).cumprod(-1) * alpha  #!"), "(1 - alpha).cumprod(-1)[..., :-1]"),
    "of the exponential": (
        program("e = torch.exp(-density * steps)\nT = torch.cumprod(e, 1)  #!\nw = (1 - e) * T"), "value=1.0"),
    "in a function": (program(f"{ALPHA}\nout = composite(alpha, colors)").replace("#!!", "#!"), "value=1.0"),
    "times the color first": (
        program(f"{ALPHA}\nT = torch.cumprod(1 - alpha, -1)  #!\n"
                "out = (T[..., None] * colors * alpha[..., None]).sum(1)"), "value=1.0"),
    "stick breaking": (
        program("v = torch.sigmoid(raw[..., 3])\nw = v * torch.cumprod(1 - v, dim=-1)  #!"), "value=1.0"),
    "a cumulative sum": (
        program("s = density * steps\nT = torch.exp(-torch.cumsum(s, dim=-1))  #!\nw = (1 - torch.exp(-s)) * T"),
        "(torch.cumsum(s, dim=-1) - s)"),
    "in the first dimension": (program(f"{ALPHA}\nw = alpha * torch.cumprod(1 - alpha, dim=0)  #!"), ""),
    "a sum in the first dimension": (
        program("s = density * steps\nT = torch.exp(-s.cumsum(0))  #!\nw = (1 - torch.exp(-s)) * T"),
        "(s.cumsum(0) - s)"),
    "normalized weights": (
        program(f"{ALPHA}\nw = alpha * torch.cumprod(1 - alpha, -1)  #!\nw = w / (w.sum(-1, keepdim=True) + 1e-6)"),
        "value=1.0"),
    "divided by": (
        program(f"{ALPHA}\nT = torch.cumprod(1 - alpha, -1)  #!\nw = alpha * T + 0.1 * z / (1 + T)"), "value=1.0"),
    "computed twice": (
        program("T = torch.cumprod(torch.exp(-density * 0.1), -1)  #!\nw = (1 - torch.exp(-density * 0.1)) * T"),
        "value=1.0"),
}  # fmt: skip
EXCLUSIVE = {
    "a 1 in front": program(
        f"{ALPHA}\nones = torch.ones(6, 1)\n"
        "T = torch.cumprod(torch.cat([ones, 1 - alpha], -1), -1)[..., :-1]\nw = alpha * T"),
    "shifted": program(f"{ALPHA}\nT = torch.cumprod(1 - alpha, -1)\nT = torch.roll(T, 1, -1)\nw = alpha * T"),
    "a slice": program(
        f"{ALPHA}\nT = torch.cumprod(1 - alpha, -1)\n"
        "w = torch.cat([alpha[..., :1], alpha[..., 1:] * T[..., :-1]], -1)"),
    "divided by its own factor": program(
        f"{ALPHA}\nT = torch.cumprod(1 - alpha + 1e-6, -1) / (1 - alpha + 1e-6)\nw = alpha * T"),
    "a product divided by the factor": program(
        f"{ALPHA}\nT = torch.cumprod(1 - alpha, -1)\nw = alpha * T / (1 - alpha).clamp_min(1e-6)"),
    "of another tensor": program(
        f"{ALPHA}\nkeep = torch.sigmoid(raw[..., 0])\nw = alpha * torch.cumprod(1 - keep, -1)"),
    "another tensor of the same function": program(
        "v, u = torch.sigmoid(raw[..., 3]), torch.sigmoid(raw[..., 0])\nw = v * torch.cumprod(1 - u, -1)"),
    "another function of the same tensor": program(
        "w = torch.sigmoid(density) * torch.cumprod(1 - torch.tanh(density), -1)"),
    "another step": program(
        "T = torch.cumprod(torch.exp(-density * 0.2), -1)\nw = (1 - torch.exp(-density * 0.1)) * T"),
    "only a part of it": program(
        "v = torch.sigmoid(raw[..., 3])\nw = v * torch.cumprod(1 - 0.5 * v, -1)"),
    "more than the whole": program(f"{ALPHA}\nw = (1 + alpha) * torch.cumprod(1 - alpha, -1)"),
    "one of two events": program(
        "p, q = 0.5 * torch.sigmoid(raw[..., 3]), 0.5 * torch.sigmoid(raw[..., 0])\n"
        "w = p * torch.cumprod(1 - (p + q), -1)"),
    "not the complement": program(f"{ALPHA}\nw = alpha * torch.cumprod(alpha, -1)"),
    "a sum without itself": program(
        "s = density * steps\nT = torch.exp(-(torch.cumsum(s, -1) - s))\nw = (1 - torch.exp(-s)) * T"),
    "the density of a survival": program("s = density * steps\nw = s * torch.exp(-torch.cumsum(s, -1))"),
    "what is left after it": program("s = density * steps\nw = torch.exp(-s) * torch.exp(-torch.cumsum(s, -1))"),
    "another complement than that of a sum": program(
        "s = density * steps\nw = (1 - torch.sigmoid(s)) * torch.exp(-torch.cumsum(s, -1))"),
    "the complement of another sum": program(
        "s, other = density * steps, F.softplus(raw[..., 0])\n"
        "w = (1 - torch.exp(-other)) * torch.exp(-torch.cumsum(s, -1))"),
    "a faster decay": program(
        "s = density * steps\nw = (1 - torch.exp(-2 * s)) * torch.exp(-torch.cumsum(s, -1))"),
    "a survival that is no weight": program(f"{ALPHA}\nw = torch.cumprod(1 - alpha, -1)"),
}  # fmt: skip


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "inclusive-product"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", INCLUSIVE)
def test_a_product_that_includes_the_element_is_found_and_mended(name, engine, checks):
    text, mended = INCLUSIVE[name]
    (one,) = found(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "warning"
    assert "includes the element itself" in said
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    if mended and one.finding.edit is not None:
        assert mended in one.finding.edit.new
        assert found(one.finding.edit.applied(text), engine, checks) == []
    else:
        assert not mended


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", EXCLUSIVE)
def test_a_product_over_the_elements_before_is_not_reported(name, engine, checks):
    assert found(EXCLUSIVE[name], engine, checks) == []
