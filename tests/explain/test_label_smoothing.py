"""Smoothed targets that add 1/N or eps/N."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net, eps, classes = nn.Linear(4, 10), 0.1, 10
opt = torch.optim.SGD(net.parameters(), lr=0.01)
class Smoothing:
    def __init__(self, eps):
        self.eps, self.classes = eps, 10
        self.confidence = 1.0 - eps
    def targets(self, labels):
        BODY
smoothing = Smoothing(eps)
for i in range(2):
    y = smoothing.targets(torch.randint(0, classes, (6,)))
    loss = -(y * net(torch.randn(6, 4)).log_softmax(1)).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
HOT = "y = F.one_hot(labels, self.classes).float()\n"
SMOOTHED = {
    "in one line": HOT + "return (1 - self.eps) * y + 1 / self.classes  #!",
    "by the size": HOT + "y = y * (1.0 - self.eps) + 1.0 / y.size(-1)  #!\nreturn y",
    "in a variable": HOT + "share = 1 / self.classes  #!\nreturn y * (1 - self.eps) + share",
    "in place": HOT + "return y.mul_(1 - self.eps).add_(1 / self.classes)  #!",
    "by fill": "y = torch.empty(6, 10)\ny.fill_(1 / (self.classes - 1))  #!\n"
    "return y.scatter_(1, labels[:, None], self.confidence)",
    "by scatter": "y = torch.full((6, 10), 1.0 / (self.classes - 1))  #!\n"
    "return y.scatter_(1, labels[:, None], self.confidence)",
}
RIGHT = {
    "eps / N": HOT + "return (1 - self.eps) * y + self.eps / self.classes",
    "eps of a share": HOT + "return (1 - self.eps) * y + self.eps * (1 / self.classes)",
    "by scatter": "y = torch.full((6, 10), self.eps / (self.classes - 1))\n"
    "return y.scatter_(1, labels[:, None], self.confidence)",
    "of two classes": HOT + "return (1 - 0.2) * y + 0.2 / 2",
    "without a rest": HOT + "return y + 1 / self.classes",
    "a mean of two": HOT + "return (1 - self.eps) * y + self.eps * torch.full_like(y, 1 / self.classes)",
}


def found(body, engine, checks):
    program = PROGRAM.replace("BODY", body.replace("\n", "\n        "))
    outcome = checks.of_text(program, engine)
    assert outcome.errors == []
    return program, [one for one in outcome.found if one.finding.kind == "label-smoothing"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SMOOTHED)
def test_a_share_of_one_is_found(name, engine, checks):
    program, (one,) = found(SMOOTHED[name], engine, checks)
    assert one.level == "note"
    assert program.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "eps" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_a_share_of_eps_is_not(name, engine, checks):
    assert found(RIGHT[name], engine, checks)[1] == []
