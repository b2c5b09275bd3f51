"""Losses between two trained results: a target sends a gradient back, and two views of one batch have no target."""

import pytest

PROGRAM = """import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net, top = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), nn.Linear(4, 4)
opt = torch.optim.SGD([*net.parameters(), *top.parameters()], lr=0.01)
for i in range(3):
    x = torch.randn(8, 6)
    other = x + 0.1 * torch.randn(8, 6)
    loss = F.cross_entropy(top(net(x)), torch.randint(0, 4, (8,)))
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
SYMMETRIC = {
    "two calls": "loss = loss + F.mse_loss(net(x), net(other))",
    "two halves of one call": "a, b = net(torch.cat([x, other])).chunk(2)\n    loss = loss + F.smooth_l1_loss(a, b)",
    "neighbours": "z = net(x)\n    loss = loss + F.mse_loss(z[1:], z[:-1])",
    "a divergence of two calls": "p, q = F.log_softmax(net(x), dim=1), F.softmax(net(other), dim=1)\n"
    "    loss = loss + F.kl_div(p, q, reduction='batchmean')",
    "a divergence of a batch and its attack": "near = other.clone()\n"
    "    for _ in range(2):\n"
    "        near.requires_grad_()\n"
    "        kl = F.kl_div(F.log_softmax(net(near), dim=1), F.softmax(net(x), dim=1).detach(), reduction='sum')\n"
    "        near = (near + 0.1 * torch.autograd.grad(kl, near)[0].sign()).detach()\n"
    "    loss = loss + F.kl_div(F.log_softmax(net(near), dim=1), F.softmax(net(x), dim=1), reduction='batchmean')",
    "a divergence from the mean of both": "p, q = F.softmax(net(x), dim=1), F.softmax(top(x[:, :4]), dim=1)\n"
    "    m = ((p + q) / 2).log()\n"
    "    loss = loss + F.kl_div(m, p, reduction='batchmean') + F.kl_div(m, q, reduction='batchmean')",
    "a divergence from a detached teacher": "q = F.softmax(top(x[:, :4]), dim=1).detach()\n"
    "    loss = loss + F.kl_div(F.log_softmax(net(x), dim=1), q, reduction='batchmean')",
    "two normalized results": "loss = loss + F.mse_loss(F.normalize(net(x), dim=1), F.normalize(net(other), dim=1))",
}
WITH_TARGET = {
    "a further layer": "loss = loss + F.mse_loss(top(net(x)), net(other))",
    "a further value": "best = net(other).max(1).values\n"
    "    loss = loss + F.mse_loss(net(x)[:, 0], torch.ones(8) + 0.9 * best)",
    "a loss that is not symmetric": "p, q = net(x).sigmoid(), net(other).sigmoid()\n"
    "    loss = loss + F.binary_cross_entropy(p, q)",
    "a divergence of two models": "p, q = F.log_softmax(net(x) / 2, dim=1), F.softmax(top(x[:, :4]) / 2, dim=1)\n"
    "    loss = loss + 4 * nn.KLDivLoss(reduction='batchmean')(p, q)",
    "two models": "loss = loss + F.mse_loss(net(x), top(x[:, :4]))",
}


def kinds(loss, engine, checks):
    outcome = checks.of_text(PROGRAM.replace("LOSS", loss), engine)
    assert outcome.errors == []
    return {one.finding.kind for one in outcome.found}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SYMMETRIC)
def test_a_distance_of_two_views_has_no_target(name, engine, checks):
    assert kinds(SYMMETRIC[name], engine, checks) == set()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WITH_TARGET)
def test_a_trained_target_is_found(name, engine, checks):
    assert "attached-target" in kinds(WITH_TARGET[name], engine, checks)
