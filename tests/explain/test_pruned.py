"""Pruned weights that the momentum of an optimizer moves again, and pruned weights that stay zero."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 20), torch.randn(16, 20)
net = nn.Sequential(nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 20))
opt = OPTIMIZER
weight, masks = net[0].weight, {}
for i in range(8):
    if i == 3:
        PRUNE
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    if i >= 3:
        MASK
    opt.step()  #!
    AFTER
"""
SGD = "torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)"
KEPT = "keep = (weight.detach().abs() > 0.1).float()"


def pruned(prune, mask, after="pass", optimizer=SGD):
    text = PROGRAM
    for word, value in (("PRUNE", prune), ("MASK", mask), ("AFTER", after), ("OPTIMIZER", optimizer)):
        text = text.replace(word, value.replace("\n", "\n        "))
    return text


BY_DATA = f"{KEPT}\nweight.data = weight.data * keep"
IN_PLACE = f"{KEPT}\nwith torch.no_grad():\n    weight.mul_(keep)"
MOVED = {
    "through data": pruned(BY_DATA, "weight.grad.data = weight.grad.data * keep"),
    "in place, with Adam": pruned(
        IN_PLACE, "weight.grad.mul_(keep)", optimizer="torch.optim.Adam(net.parameters(), lr=0.01)"),
    "by a hook": pruned(f"{IN_PLACE}\nweight.register_hook(lambda g: g * keep)", "pass"),
    "whole units": pruned(
        "rows = weight.detach().norm(dim=1).argsort()[:8]\nweight.data[rows] = 0.0", "weight.grad[rows] = 0.0"),
    "whose gradient has zeros by itself": pruned(
        f"{KEPT}\nkeep[:, :4] = 1.0\nwith torch.no_grad():\n    weight.mul_(keep)", "weight.grad.mul_(keep)").replace(
        "\nnet =", "\nx[:, :4] = 0.0\nnet ="),
}  # fmt: skip
AGAIN = "if i >= 3:\n    weight.data.mul_(keep)"
STAY = {
    "masked after the step": pruned(BY_DATA, "weight.grad.data = weight.grad.data * keep",
                                    "if i >= 3:\n        weight.data = weight.data * keep"),
    "no momentum": pruned(
        BY_DATA, "weight.grad.mul_(keep)", optimizer="torch.optim.SGD(net.parameters(), lr=0.05, weight_decay=0.1)"),
    "a new optimizer": pruned(f"{IN_PLACE}\nopt = {SGD}", "weight.grad.mul_(keep)"),
    "weights that may grow again": pruned(IN_PLACE, "pass"),
    "a clipped gradient": pruned(IN_PLACE, "nn.utils.clip_grad_norm_(net.parameters(), 0.1)"),
    "weights that the program fills again": pruned(
        BY_DATA, "weight.grad.mul_(keep)", "if i == 4:\n        weight.data = weight.data + 0.01",
        "torch.optim.SGD(net.parameters(), lr=0.05)"),
    "a mask that the gradient lacks": pruned(IN_PLACE, "weight.grad.mul_(keep)\nweight.grad.add_(0.01)"),
    "weights that are set by a new start": pruned("weight.data[:4] = 0.0", "weight.grad[4:] = 0.0").replace(
        "[4:]", "[12:]"),
    "a clipped gradient that has zeros by itself": pruned(
        "weight.data[:8] = 0.0", "nn.utils.clip_grad_norm_(net.parameters(), 0.1)").replace(
        "\nnet =", "\nx[:, :8] = 0.0\nnet ="),
}  # fmt: skip


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "pruned-moved"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MOVED)
def test_pruned_weights_that_momentum_moves_are_found(name, engine, checks):
    (one,) = found(MOVED[name], engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "warning"
    assert "weights were zero, now 0" in said
    assert MOVED[name].splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", STAY)
def test_weights_that_stay_zero_or_may_move_are_not_reported(name, engine, checks):
    assert [str(one) for one in found(STAY[name], engine, checks)] == []
