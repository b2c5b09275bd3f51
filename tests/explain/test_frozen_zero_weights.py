"""Weights that are frozen while all of them are zero: adapters that were added before the model was frozen."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)

class Adapted(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer, self.a, self.b = layer, nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)
        nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return self.layer(x) + self.b(self.a(x))

class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.layer = nn.Embedding(5, 4, padding_idx=0), nn.Linear(4, 4)
        self.first, self.recurrent = nn.Parameter(torch.zeros(1, 4)), nn.Linear(4, 4)

    def forward(self, ids):
        return torch.tanh(self.layer(self.table(ids)).mean(1) + self.first @ self.recurrent.weight)

MODEL
opt = torch.optim.SGD([p for p in [*model.parameters(), *head.parameters()] if p.requires_grad], lr=0.1)
for i in range(3):
    loss = head(model(DATA)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    EACH
"""
LINEAR = "torch.randn(6, 4)"
HEAD = "head = nn.Linear(4, 1)\n"
BRANCH = """
class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.zero = nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 1, 1)
        nn.init.zeros_(self.zero.weight)
        nn.init.zeros_(self.zero.bias)

    def forward(self, x):
        return (x + self.zero(torch.relu(self.conv(x)))).flatten(1)

head = nn.Linear(4, 1)
"""
IMAGES = "torch.randn(3, 1, 2, 2)"
SICK = {
    "a whole model": (
        f"model = nn.Sequential(Adapted(nn.Linear(4, 4)))\n{HEAD}model.requires_grad_(False)  #!",
        LINEAR,
    ),
    "in a loop": (
        f"model = Adapted(nn.Linear(4, 4))\n{HEAD}for p in model.parameters():\n    p.requires_grad = False  #!",
        LINEAR,
    ),
    "a branch of convolutions": (f"{BRANCH}model = Branch()\nmodel.requires_grad_(False)  #!", IMAGES),
}
RIGHT = {
    "frozen before": ("layer = nn.Linear(4, 4).requires_grad_(False)\nmodel = Adapted(layer)\n" + HEAD, LINEAR),
    "unfrozen again": (
        f"model = Adapted(nn.Linear(4, 4))\n{HEAD}model.requires_grad_(False)\n"
        "for p in [*model.a.parameters(), *model.b.parameters()]:\n    p.requires_grad = True",
        LINEAR,
    ),
    "trainable zeros": (f"model = Adapted(nn.Linear(4, 4))\n{HEAD}", LINEAR),
    "zeros that a state replaces": (
        f"model = Adapted(nn.Linear(4, 4))\n{HEAD}model.requires_grad_(False)\n"
        "with torch.no_grad():\n    model.b.weight.fill_(0.1)",
        LINEAR,
    ),
    "biases of zeros": (
        f"model = nn.Linear(4, 4)\nnn.init.zeros_(model.bias)\n{HEAD}model.requires_grad_(False)", LINEAR),
    "a first state of zeros and a padding row": (
        f"model = Embedded()\n{HEAD}model.requires_grad_(False)", "torch.randint(0, 5, (6, 3))"),
    "an adapter that no loss uses": (
        f"other = Adapted(nn.Linear(4, 4))\nother.requires_grad_(False)\nother({LINEAR})\n"
        f"model = nn.Linear(4, 4)\n{HEAD}",
        LINEAR,
    ),
    "frozen after the training": (
        f"model, head = Adapted(nn.Linear(4, 4)), nn.Linear(4, 1)\n(head(model({LINEAR})) * 0).sum().backward()\n"
        "model.requires_grad_(False)",
        LINEAR,
    ),
    "unfrozen for the next stage": (
        f"model = Adapted(nn.Linear(4, 4))\n{HEAD}model.requires_grad_(False)",
        LINEAR,
        "model.requires_grad_(i == 2)",
    ),
}  # fmt: skip


def found(case, engine, checks):
    model, data, each = (*case, "pass")[:3]
    text = PROGRAM.replace("MODEL", model).replace("DATA", data).replace("EACH", each)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [one for one in outcome.found if one.finding.kind == "frozen-zero"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SICK)
def test_the_line_that_freezes_zeros_is_named(name, engine, checks):
    text, (one,) = found(SICK[name], engine, checks)
    assert one.level == "warning"
    assert len(one.finding.text) < 80
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_other_zeros_have_no_finding(name, engine, checks):
    assert found(RIGHT[name], engine, checks)[1] == []
