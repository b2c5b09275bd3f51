"""Means of parts with different numbers of targets, which add up before a step; most are written by hand."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    opt.zero_grad()
    total = 0
    for n in LENGTHS:
        x, y = torch.randn(2, 12, 3), torch.randint(0, 4, (2, 12))
        mask = (torch.arange(12) < n).float().expand(2, 12)
        ce = F.cross_entropy(net(x).transpose(1, 2), y, reduction="none")
        LOSS
    opt.step()
"""


def program(loss, lengths="(2, 5, 9)"):
    return PROGRAM.replace("LENGTHS", lengths).replace("LOSS", loss.replace("\n", "\n        "))


MISTAKES = {
    "a mask": "loss = (ce * mask).sum() / mask.sum()\n(loss / 3).backward()  #!",
    "a number": "count = mask.sum().item()\nloss = (ce * mask).sum() / count\n(loss / 3).backward()  #!",
    "a clamp": "loss = (mask * ce).sum() / mask.sum().clamp(min=1)\n(loss / 3).backward()  #!",
    "an index": "loss = ce[mask.bool()].mean() / 3  #!\nloss.backward()",
    "a masked fill": "loss = ce.masked_fill(mask == 0, 0.0).sum() / mask.sum()  #!\nloss.backward()",
    "a term next to another": (
        "loss = (ce * mask).sum() / mask.sum()\nloss = loss + 0.01 * net.weight.pow(2).sum()  #!\nloss.backward()"
    ),
    "features of each target": (
        "err = (net(x) - 1).pow(2) * mask[..., None]\nloss = err.sum() / mask.sum() / 3  #!\nloss.backward()"
    ),
    "a sum of a library": """
y[:, n:] = -100
loss = F.cross_entropy(net(x).view(-1, 4), y.view(-1), ignore_index=-100, reduction="sum")
loss = loss / (y != -100).sum()  #!
loss.backward()""",
}
HEALTHY = {
    "a weight by the number of targets": "loss = (ce * mask).sum() / mask.sum()\n(loss * mask.sum() / 32).backward()",
    "the number of all targets": "loss = (ce * mask).sum() / 32\nloss.backward()",
    "means of sequences": "loss = ((ce * mask).sum(1) / mask.sum(1)).mean()\n(loss / 3).backward()",
    "a mean of all places": "loss = (ce * mask).mean()\n(loss / 3).backward()",
    "gradients that are divided": """
(ce * mask).sum().backward()
total += int(mask.sum())
if n == 9:
    for p in net.parameters():
        p.grad.div_(total)""",
    "weights that are no mask": "loss = (ce * mask * 0.5 * (1 + y)).sum() / 24\n(loss / 3).backward()",
    "a step for each part": "opt.zero_grad()\nloss = (ce * mask).sum() / mask.sum()\nloss.backward()\nopt.step()",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MISTAKES)
def test_uneven_means_by_hand_are_found_at_the_loss(name, engine, checks):
    text = program(MISTAKES[name])
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = [each for each in outcome.found if each.finding.kind == "uneven-means"]
    assert one.level == "note"
    least, most = (number.value for number in one.finding.numbers)
    assert (most / least, one.finding.parts[0].text.endswith("has a larger weight")) == (4.5, True)
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "of all parts" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_parts_that_weigh_each_target_alike_are_no_uneven_means(name, engine, checks):
    outcome = checks.of_text(program(HEALTHY[name]), engine)
    assert outcome.errors == []
    assert "uneven-means" not in {one.finding.kind for one in outcome.found}


@pytest.mark.parametrize("engine", ENGINES)
def test_means_of_as_many_targets_are_no_uneven_means(engine, checks):
    outcome = checks.of_text(program(MISTAKES["a mask"], "(5, 5, 5)"), engine)
    assert [str(one) for one in outcome.found if one.finding.kind == "uneven-means"] == []
