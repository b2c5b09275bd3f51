"""Functions of their own result, and functions with a layer, a factor or another function in between."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net, out = nn.Linear(3, 2), nn.Linear(2, 2)
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
        self.prob = nn.Sequential(nn.Linear(3, 2), nn.Sigmoid())
    def forward(self, x):
        return self.body(x)
policy = Policy()
opt = torch.optim.SGD([*net.parameters(), *out.parameters(), *policy.parameters()], lr=0.1)
y = (torch.arange(12).view(6, 2) % 3 > 0).float()
for i in range(2):
    x = torch.randn(6, 3)
    u = net(x)
    base = out(u).pow(2).mean() + policy(x).pow(2).mean() + policy.prob(x).mean()
    BODY
    opt.zero_grad()
    (loss + base).backward()
    opt.step()
"""
WRONG = {
    "the correction of an action": (
        "warning",
        "a = torch.tanh(u)\nloss = u.pow(2).mean() - torch.log(1 - torch.tanh(a).pow(2) + 1e-6).mean()  #!",
        "1 - a.pow(2)",
    ),
    "the correction as a method": (
        "warning",
        "a = u.tanh()\nloss = u.pow(2).mean() - (1 - a.tanh() ** 2 + 1e-6).log().sum(1).mean()  #!",
        "1 - a ** 2",
    ),
    "the correction of a clamped term": (
        "warning",
        "a = torch.tanh(u)\nd = torch.tanh(a)  #!\nloss = -torch.log((1 - d * d).clamp(min=1e-6)).mean()",
        "d = a",
    ),
    "a model that ends in a sigmoid": (
        "warning",
        "p = torch.sigmoid(policy.prob(x))  #!\nloss = F.binary_cross_entropy(p, y)",
        "p = policy.prob(x)",
    ),
    "a prediction of probabilities": (
        "warning",
        "loss = F.binary_cross_entropy(policy.prob(x), y)\nwith torch.no_grad(): torch.sigmoid(policy.prob(x))  #!",
        "policy.prob(x)",
    ),
    "a mean of a model that ends in a tanh": (
        "note",
        "mean = 2.0 * torch.tanh(policy(x))  #!\nloss = (mean - y).pow(2).mean()",
        "2.0 * policy(x)",
    ),
}
RIGHT = {
    "the right correction": "a = torch.tanh(u)\nloss = -torch.log(1 - a.pow(2) + 1e-6).mean()",
    "the correction of what is not squashed": "loss = u.tanh().mean() - torch.log(1 - u.tanh() ** 2 + 1e-6).mean()",
    "a layer between": "loss = torch.tanh(out(torch.tanh(u))).pow(2).mean()",
    "a factor between": "loss = torch.tanh(3.0 * policy(x)).pow(2).mean()",
    "an offset between": "loss = torch.tanh(policy(x) + y).pow(2).mean()",
    "gates": "c = torch.sigmoid(u) * torch.tanh(u)\nloss = (torch.sigmoid(u) * torch.tanh(c)).pow(2).mean()",
    "a tanh of a sigmoid": "loss = torch.tanh(torch.sigmoid(u)).mean()",
    "bounded data": "seen = torch.tanh(torch.randn(6, 2))\nloss = (torch.tanh(seen) * u).pow(2).mean()",
    "a mean of several": "loss = torch.tanh(torch.tanh(u).mean(1)).pow(2).mean()",
    "attention": "w = torch.softmax(torch.tanh(u), 1)\nloss = torch.tanh(w * u).sum(1).pow(2).mean()",
}


def found_in(body, engine, checks):
    text = PROGRAM.replace("BODY", body.replace("\n", "\n    "))
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [one for one in outcome.found if one.finding.kind == "squashed-twice"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_a_function_of_its_own_result_is_found(name, engine, checks):
    level, body, mended = WRONG[name]
    text, (one,) = found_in(body, engine, checks)
    assert one.level == level
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert mended in one.finding.edit.new


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_functions_with_something_between_are_no_finding(name, engine, checks):
    assert [str(one) for one in found_in(RIGHT[name], engine, checks)[1]] == []
