"""Hinges that are always 0 because a mask has the wrong sign, and hinges that are 0 for a good reason."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import math
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net, head = nn.Linear(6, 5), nn.Linear(5, 1)
data, eye = torch.randn(12, 6), torch.eye(12)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.05)

def hardest(scores, hidden, value):
    scores = scores.clone()
    scores[hidden] = value
    return scores.max(dim=1).values

for i in range(3):
    za = F.normalize(net(data + 0.1 * torch.randn(12, 6)), dim=-1)
    zp = F.normalize(net(data + 0.1 * torch.randn(12, 6)), dim=-1)
    sim = za @ zp.t()
    dist, pos = 1 - sim, (1 - sim).diagonal()
    HINGE
    loss = hinge.mean() + head(za).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def program(hinge):
    return PROGRAM.replace("HINGE", hinge.replace("\n", "\n    "))


FLAT = {
    "a diagonal": (
        program("far = sim.clone()\nfar.diagonal().fill_(-float('inf'))  #!\n"
                "hinge = F.relu(pos - (1 - far).max(1).values + 0.5)"), "fill_(float('inf'))"),
    "masked_fill": (
        program("neg = dist.masked_fill(eye.bool(), math.inf).amax(1)  #!\n"
                "hinge = torch.clamp(pos - neg + 0.2, min=0)"),
        "-math.inf"),
    "plus infinity by name": (
        program("neg = dist.masked_fill(eye.bool(), float('inf')).amax(1)  #!\nhinge = F.relu(pos - neg + 0.5)"),
        ", -float('inf')"),
    "the least": (
        program("near = sim.masked_fill(eye.bool(), float('-inf'))  #!\n"
                "hinge = torch.relu(near.min(dim=1)[0] - sim.diagonal() + 0.2)"), "float('inf')"),
    "a large number": (
        program("neg = (dist + eye * 1e9).max(dim=1)[0]  #!\nhinge = F.relu(0.3 + pos - neg)"), "-1e9"),
    "where": (
        program("neg = torch.where(eye > 0, 1e6, dist).topk(1, dim=1).values[:, 0]  #!\n"
                "hinge = torch.relu(pos - neg + 0.2)"), "-1e6"),
}  # fmt: skip
RIGHT = {
    "the other sign": program(
        "far = sim.clone()\nfar.diagonal().fill_(float('inf'))\nhinge = F.relu(pos - (1 - far).max(1).values + 0.5)"),
    "the nearest": program("neg = dist.masked_fill(eye.bool(), math.inf).amin(1)\nhinge = F.relu(pos - neg + 0.2)"),
    "a hinge that is met": program("neg = dist.masked_fill(eye.bool(), -math.inf).amax(1)\n"
                                   "hinge = F.relu(pos - neg - 2.5)"),
    "a hinge that is huge": program(
        "neg = dist.masked_fill(eye.bool(), 1e6).amax(1)\nhinge = F.relu(neg - pos + 0.2)"),
    "infinite distances without a mask": program("neg = (1 / (1 - eye)).mul(dist).amax(1)\n"
                                                 "hinge = F.relu(pos - neg + 0.2)"),
    "large distances": program("neg = (1e6 * (1 + dist)).amax(1)\nhinge = F.relu(pos - neg)"),
    "all of them hidden": program(
        "neg = dist.masked_fill(eye < 2, math.inf).amin(1)\nhinge = F.relu(pos - neg + 0.2)"),
    "half of the rows": program(
        "rows = (torch.arange(12) < 6)[:, None]\nneg = dist.masked_fill(rows, math.inf).amax(1)\n"
        "hinge = F.relu(pos - neg + 0.9)"),
    "in the first pass only": program(
        "neg = dist.masked_fill(eye.bool() & (i == 0), math.inf).amax(1)\nhinge = F.relu(pos - neg + 0.9)"),
}  # fmt: skip


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "flat-hinge"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FLAT)
def test_a_hinge_that_a_mask_switches_off_is_found_and_mended(name, engine, checks):
    text, mended = FLAT[name]
    (one,) = found(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "warning"
    assert "picks the mask in every row" in said
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert mended in one.finding.edit.new
    assert found(one.finding.edit.applied(text), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_a_hinge_that_is_on_or_met_is_not_reported(name, engine, checks):
    assert found(RIGHT[name], engine, checks) == []
