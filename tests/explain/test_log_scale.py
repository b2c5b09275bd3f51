"""The logarithm of a scale in a loss: flows and Gaussians whose sign is wrong, and those whose sign is right."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(2, 4)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
x, y = torch.randn(16, 2), torch.randn(16, 2)
for step in range(3):
    s, m = net(x).chunk(2, 1)
    BODY
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def program(body):
    return PROGRAM.replace("BODY", body.replace("\n", "\n    "))


WRONG = {
    "a flow to noise": "u = (y - m) * torch.exp(-s)\ndet = s.sum(1)  #!\nloss = -(-0.5 * u.pow(2).sum(1) + det).mean()",
    "a flow from noise": "u = y * torch.exp(s) + m\ndet = -s.sum(1)  #!\nloss = -(-0.5 * u.pow(2).sum(1) + det).mean()",
    "a sign turned twice": "u = y * torch.exp(s) + m\ndet = s.squeeze(0)\n"
    "logp = -0.5 * u.pow(2).sum(1) - det.sum(1)  #!\nloss = -logp.mean()",
    "half a variance": "err = (y - m).pow(2) * torch.exp(-s)\nloss = (0.5 * err - 0.5 * s).mean()  #!",
    "a divisor": "err = ((y - m) / torch.exp(s)).pow(2)\nloss = (0.5 * err - s).mean()  #!",
    "a reciprocal": "err = ((y - m) * torch.reciprocal(torch.exp(s))).pow(2)\nloss = (0.5 * err - s).mean()  #!",
}
RIGHT = {
    "a flow to noise": "u = (y - m) * torch.exp(-s)\ndet = -s.sum(1)\nloss = -(-0.5 * u.pow(2).sum(1) + det).mean()",
    "a flow from noise": "u = y * torch.exp(s) + m\ndet = s.sum(1)\nloss = -(-0.5 * u.pow(2).sum(1) + det).mean()",
    "half a variance": "err = (y - m).pow(2) * torch.exp(-s)\nloss = (0.5 * err + 0.5 * s).mean()",
    "a divisor": "err = ((y - m) / torch.exp(s)).pow(2)\nloss = (0.5 * err + s).mean()",
    "a reciprocal": "err = ((y - m) * torch.reciprocal(torch.exp(s))).pow(2)\nloss = (0.5 * err + s).mean()",
    "a small penalty": "z = m + torch.exp(s) * torch.randn(16, 2)\nloss = (z - y).pow(2).mean() + 0.01 * s.mean()",
    "two terms": "err = (y - m).pow(2) * torch.exp(-s)\nloss = (0.5 * err + 0.5 * s).mean() - 0.3 * s.mean()",
    "two terms in another order": "err = (y - m).pow(2) * torch.exp(-s)\n"
    "loss = -0.3 * s.mean() + (0.5 * err + 0.5 * s).mean()",
    "a divergence": "z = m + torch.exp(0.5 * s) * torch.randn(16, 2)\n"
    "kl = -0.5 * (1 + s - m.pow(2) - s.exp()).sum(1).mean()\nloss = (z - y).pow(2).sum(1).mean() + kl",
    "a bonus for entropy": "z = m + torch.exp(s) * torch.randn(16, 2)\nloss = (z - y).pow(2).mean() - 0.1 * s.mean()",
    "counts": "loss = (torch.exp(s) - y.abs() * s).mean() + m.pow(2).mean()",
    "no term of its own": "loss = (y * torch.exp(s) + m).pow(2).mean()",
}


def found_in(body, engine, checks):
    outcome = checks.of_text(program(body), engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "log-scale"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sign_is_found_where_the_logarithm_is_summed(name, engine, checks):
    (one,) = found_in(WRONG[name], engine, checks)
    assert one.level == "note"
    assert "nothing holds it back" in "\n".join(row for _, row, _ in lines(one.finding))
    assert program(WRONG[name]).splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_sign_is_no_finding(name, engine, checks):
    assert [str(one) for one in found_in(RIGHT[name], engine, checks)] == []
