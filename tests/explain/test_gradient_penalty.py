"""Gradient penalties with several norms for each sample, and penalties with one for each sample or point.

The line to name ends with ``#!``.
"""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
critic = nn.Sequential(nn.Conv2d(2, 3, 3, 2, 1), nn.Tanh(), nn.Flatten(), nn.Linear(12, 1))
seq = nn.Sequential(nn.Linear(5, 4), nn.Tanh())
head = nn.Linear(24, 1)
opt = torch.optim.Adam([*critic.parameters(), *seq.parameters(), *head.parameters()], lr=0.01)
for step in range(3):
    x = torch.rand(4, 2, 4, 4).requires_grad_(True)
    t = torch.rand(4, 6, 5).requires_grad_(True)
    PENALTY
    loss = critic(x).mean() + head(seq(t).flatten(1)).mean() + 10 * gp
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
IMAGES = "d = critic(x)\ng = torch.autograd.grad(d, x, torch.ones_like(d), create_graph=True)[0]\n"
SUMMED = "(g,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)\n"
STEPS = "(g,) = torch.autograd.grad(head(seq(t).flatten(1)).sum(), t, create_graph=True)\n"
POINTS = "(g,) = torch.autograd.grad(seq(t).sum(-1).sum(), t, create_graph=True)\n"


def net(penalty):
    return HEAD.replace("PENALTY", penalty.replace("\n", "\n    "))


PARTIAL = {
    "a norm over the channels": (
        net(f"{IMAGES}gp = ((g.norm(2, dim=1) - 1) ** 2).mean()  #!"), 64, 'g.flatten(1).norm(2, dim=1)'),
    "a function": (net(f"{SUMMED}n = torch.norm(g, dim=1)  #!\ngp = (n - 1).pow(2).mean()"), 64, "g.flatten(1), dim=1"),
    "a function of linalg, one-sided": (
        net(f"{SUMMED}n = torch.linalg.norm(g, dim=1)  #!\ngp = torch.relu(n - 1).pow(2).mean()"), 64, "g.flatten(1)"),
    "a root of a sum of squares": (
        net(f"{SUMMED}n = torch.sqrt(torch.sum(g ** 2, dim=1) + 1e-12)  #!\ngp = ((n - 1) ** 2).mean()"),
        64, "torch.sum(g.flatten(1) ** 2, dim=1)"),
    "a sum of products": (
        net(f"{SUMMED}n = (g * g).sum(1).sqrt()  #!\ngp = ((1 - n) ** 2).sum() / 64"),
        64, "g.flatten(1) * g.flatten(1)"),
    "height and width": (net(f"{SUMMED}n = g.norm(2, dim=(2, 3))  #!\ngp = ((n - 1) ** 2).mean()"), 8, ""),
    "a loss with ones": (
        net(f"{SUMMED}n = torch.linalg.vector_norm(g, dim=1)  #!\ngp = F.mse_loss(n, torch.ones_like(n))"),
        64, "g.flatten(1)"),
    "each step of a sequence": (
        net(f"{STEPS}n = (g.norm(dim=-1) + 1e-8)  #!\ngp = ((n - 1.0) ** 2).mean()"), 24, "g.flatten(1).norm(dim=-1)"),
    "rows of channels": (
        net(f"{SUMMED}rows = g.view(-1, 16)\nn = rows.norm(2, dim=1)  #!\ngp = ((n - 1) ** 2).mean()"), 8, ""),
}  # fmt: skip
WHOLE = {
    "a view": f"{IMAGES}g = g.view(g.size(0), -1)\ngp = ((g.norm(2, dim=1) - 1) ** 2).mean()",
    "flat": f"{SUMMED}gp = ((g.flatten(1).norm(2, dim=1) - 1) ** 2).mean()",
    "all dimensions": f"{SUMMED}gp = ((g.pow(2).sum(dim=(1, 2, 3)).sqrt() - 1) ** 2).mean()",
    "all dimensions, kept": f"{SUMMED}n = g.pow(2).sum(dim=(1, 2, 3), keepdim=True)\ngp = ((n.sqrt() - 1) ** 2).mean()",
    "a norm at each point": f"{POINTS}gp = ((g.norm(dim=-1) - 1) ** 2).mean()",
    "squares without a constant": f"{SUMMED}gp = g.pow(2).sum(1).mean()",
    "norms without a constant": f"{SUMMED}gp = g.norm(dim=1).mean()",
    "a reference for each point": f"{STEPS}gp = ((g.norm(dim=-1) - torch.rand(4, 6)) ** 2).mean()",
    "the length of a path": (
        "noise = torch.randn(4, 6, 4)\n(g,) = torch.autograd.grad((seq(t) * noise).sum(), t, create_graph=True)\n"
        "gp = ((g.pow(2).sum(2).mean(1).sqrt() - 0.5) ** 2).mean()"
    ),
    "norms that are only printed": f"{SUMMED}print((g.norm(dim=1) - 1).pow(2).mean())\ngp = g.pow(2).mean()",
    "the norm of features": "gp = ((seq(t).norm(dim=-1) - 1) ** 2).mean()",
    "the gradient of an error at each point": (
        "(g,) = torch.autograd.grad(F.mse_loss(seq(t), t[..., :4].detach()), t, create_graph=True)\n"
        "gp = ((g.norm(dim=-1) - 1) ** 2).mean()"
    ),
}


def partial(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "partial-norm"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PARTIAL)
def test_norms_of_parts_of_a_gradient_are_reported(name, engine, checks):
    text, norms, edit = PARTIAL[name]
    (one,) = partial(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "warning"
    assert f"a penalty takes {norms} norms of a gradient" in said
    assert "for 4 samples" in said
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert (one.finding.edit is not None) == bool(edit)
    if edit:
        assert edit in one.finding.edit.new
        assert partial(one.finding.edit.applied(text), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WHOLE)
def test_one_norm_for_each_sample_or_point_is_no_finding(name, engine, checks):
    assert [str(one) for one in partial(net(WHOLE[name]), engine, checks)] == []
