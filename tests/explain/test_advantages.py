"""Advantages that a column and a row of data broadcast to a matrix, and matrices of data that are meant.

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
policy, critic = nn.Linear(5, 3), nn.Linear(5, 1)
opt = torch.optim.SGD([*policy.parameters(), *critic.parameters()], lr=0.01)
x, ret, done = torch.randn(8, 5), torch.randn(8), torch.rand(8).round()
act = torch.randint(0, 3, (8,))
for step in range(2):
    logp = F.log_softmax(policy(x), 1)
    chosen = logp[torch.arange(8), act]
    value = critic(x)
    fit = F.mse_loss(value.squeeze(-1), ret)
    LOSS
    opt.zero_grad()
    (loss + fit).backward()
    opt.step()
"""


def net(loss):
    return HEAD.replace("LOSS", loss.replace("\n", "\n    "))


PAIRS = {
    "a detached value": (
        "adv = ret - value.detach()  #!\nloss = -(adv * chosen).mean()", "ret - value.detach().squeeze(-1)"),
    "the other order": (
        "adv = value.detach() - ret  #!\nloss = (chosen * adv).mean()", "value.detach().squeeze(-1) - ret"),
    "a value without gradients": (
        "with torch.no_grad():\n    adv = ret - critic(x)  #!\nloss = -(chosen * adv).sum()", "critic(x).squeeze(-1)"),
    "a normalized advantage and a clipped ratio": (
        "with torch.no_grad():\n    v = critic(x)\n    adv = ret - v  #!\n"
        "adv = (adv - adv.mean()) / (adv.std() + 1e-8)\nratio = (chosen - chosen.detach()).exp()\n"
        "loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()", "ret - v.squeeze(-1)"),
    "a column that the line makes": (
        "v = value.squeeze().detach()\nadv = ret.view(-1, 1) - v  #!\nloss = -(adv * chosen).mean()",
        ".squeeze(-1) - v"),
    "a column of log-probabilities": (
        "adv = ret - value.detach()  #!\nloss = -(logp.gather(1, act[:, None]) * adv).mean()", "ret.unsqueeze(-1) - "),
    "a step ahead": (
        "nxt = critic(x + 1).detach()\nboot = (1 - done) * nxt  #!\nadv = ret + 0.9 * boot - value.detach()\n"
        "loss = -(adv * chosen).mean()", ""),
    "a target of rows": (
        "target = ret + critic(x + 1).detach()  #!\nloss = F.smooth_l1_loss(chosen, target)", ".squeeze(-1)"),
    "a target of columns": (
        "target = ret + critic(x + 1).detach()  #!\nloss = F.mse_loss(critic(x), target)", "ret.unsqueeze(-1) + "),
}  # fmt: skip
MEANT = {
    "squeezed": "adv = ret - value.squeeze(-1).detach()\nloss = -(adv * chosen).mean()",
    "both columns": "adv = ret[:, None] - value.detach()\nloss = -(adv * chosen[:, None]).mean()",
    "a kernel": "w = (-(ret[:, None] - ret) ** 2).exp()\nloss = (w * chosen).mean()",
    "a kernel between two sets": (
        "other = torch.randn(8, 1)\nw = (-(ret - other) ** 2).exp()\nloss = ((w * chosen).sum(1) - ret).pow(2).mean()"
    ),
    "a kernel with a mask": (
        "other = torch.randn(8, 1)\nw = (ret - other).abs()\nkeep = (torch.eye(8) == 0).float()\n"
        "loss = (w * keep * chosen).mean()"
    ),
    "a kernel of columns that the line makes": "w = (ret - done.unsqueeze(1)).exp()\nloss = (w * chosen).mean()",
    "a matrix product": "other = torch.randn(8, 1)\nw = ret - other\nloss = (w @ chosen).mean()",
    "scores of pairs": "other = torch.randn(8, 1)\nloss = (((ret - other) - (chosen - chosen[:, None])) ** 2).mean()",
    "a matrix that is only printed": "print((ret - value.detach()).mean())\nloss = -(ret * chosen).mean()",
}


def pairs(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "broadcast"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PAIRS)
def test_a_matrix_of_data_that_weighs_a_row_is_reported_where_it_is_made(name, engine, checks):
    loss, edit = PAIRS[name]
    text = net(loss)
    (one,) = pairs(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "warning"
    assert "becomes (8,8)" in said
    assert "each of these meets 8 numbers" in said
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert (one.finding.edit is not None) == bool(edit)
    if edit:
        assert edit in one.finding.edit.new
        assert pairs(one.finding.edit.applied(text), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MEANT)
def test_a_matrix_of_data_that_is_meant_is_no_finding(name, engine, checks):
    assert [str(one) for one in pairs(net(MEANT[name]), engine, checks)] == []
