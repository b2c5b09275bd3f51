"""Corrections that a loop over samples adds again in each turn, and sums of loops that are meant."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
net, pos = nn.Linear(4, 3), nn.Parameter(0.1 * torch.randn(3))
delta, base = nn.Parameter(0.02 * torch.ones(3, 3)), 0.8 * torch.eye(3) + 0.1
layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])
opt = torch.optim.SGD([*net.parameters(), delta, pos, *layers.parameters()], lr=0.05)

def forward_loss(probs, T, correction):
    total = 0.0
    for p, label in zip(probs, y):
        T = T + correction  #!!
        total = total - torch.log((p @ T)[label])
    return total / len(y)

for epoch in range(3):
    probs, T = net(x).softmax(1), base
    loss = 0.0
    STEP
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def program(step):
    return PROGRAM.replace("STEP", step.replace("\n", "\n    "))


REPEATED = {
    "an index": program(
        "for i in range(6):\n    T = T + delta  #!\n    loss = loss - torch.log((probs[i] @ T)[y[i]])\n"
        "loss = loss / 6"),
    "in a function": program("loss = forward_loss(probs, T, delta)").replace("#!!", "#!"),
    "a list of losses": program(
        "each = []\nfor i, p in enumerate(probs):\n    T = T + delta  #!\n    each.append(-torch.log((p @ T)[y[i]]))\n"
        "loss = torch.stack(each).mean()"),
    "subtracted": program(
        "for i in range(6):\n    T = T - delta  #!\n    loss = loss - torch.log((probs[i] @ T)[y[i]])"),
}  # fmt: skip
MEANT = {
    "once before the loop": program(
        "T = T + delta\nfor i in range(6):\n    loss = loss - torch.log((probs[i] @ T)[y[i]])"),
    "another name": program(
        "for i in range(6):\n    now = T + delta\n    loss = loss - torch.log((probs[i] @ now)[y[i]])"),
    "another correction each": program(
        "for i in range(6):\n    T = T + delta * x[i, 0]\n    loss = loss - torch.log((probs[i] @ T)[y[i]])"),
    "a ramp from zero": program(
        "ramp = torch.zeros(3)\nfor i in range(6):\n    ramp = ramp + pos\n"
        "    loss = loss + (probs[i] - ramp).pow(2).sum()"),
    "a simulation": program(
        "v, where = probs[0] + 1, probs[1] + 0\nfor i in range(6):\n    v = v + pos\n    where = where + 0.1 * v\n"
        "    loss = loss + (where - x[i, :3]).pow(2).sum()"),
    "layers": program(
        "h = probs\nfor layer in layers:\n    h = h + pos\n    h = torch.tanh(layer(h))\nloss = h.pow(2).mean()"),
    "iterations of one value": program(
        "h = probs\nfor step in range(5):\n    h = h + pos\nloss = F.nll_loss(h, y)"),
    "a sum of logits": program(
        "total = probs[0]\nfor i in range(6):\n    total = total + pos\n    total = total + probs[i]\n"
        "loss = total.pow(2).sum()"),
}  # fmt: skip


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "repeated-correction"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", REPEATED)
def test_a_correction_that_is_added_again_is_found(name, engine, checks):
    (one,) = found(REPEATED[name], engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "note"
    assert "6 times" in one.finding.text
    assert "with 6 times the correction" in said
    assert REPEATED[name].splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MEANT)
def test_sums_of_loops_that_are_meant_are_not_reported(name, engine, checks):
    assert found(MEANT[name], engine, checks) == []
