"""Second derivatives of networks of relus, which are 0, and derivatives that are not."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.out = nn.Linear(1, 8), nn.Linear(8, 8), nn.Linear(8, 1)
        self.act = ACT
    def forward(self, t):
        return self.out(self.act(self.two(self.act(self.one(t)))))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def grad(u, t):
    return torch.autograd.grad(u.sum(), t, create_graph=True)[0]
for i in range(3):
    t = torch.rand(6, 1, requires_grad=True)
    u = net(t)
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OSCILLATOR = "loss = (grad(grad(u, t), t) + u).pow(2).mean()"


def flat(act, loss, engine, checks):
    text = PROGRAM.replace("LOSS", loss.replace("\n", "\n    ")).replace("ACT", act)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [one for one in outcome.found if one.finding.kind == "flat-derivative"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("act", "loss", "edit"),
    [
        ("nn.ReLU()  #!", OSCILLATOR, "self.act = nn.Tanh()"),
        ("nn.LeakyReLU(0.2)  #!", OSCILLATOR, "self.act = nn.Tanh()"),
        ("F.relu", "du = grad(u, t)\nloss = (0.5 * grad(2 * du, t) - u).abs().mean()", ""),
        (
            "torch.relu",
            "du = grad(u, t)\nd = torch.autograd.grad(du, t, torch.ones_like(du), retain_graph=True)[0]\n"
            "loss = (u + d).mean()",
            "",
        ),
    ],
)
def test_a_second_derivative_of_relus_is_found(act, loss, edit, engine, checks):
    text, (one,) = flat(act, loss, engine, checks)
    assert one.level == "warning"
    assert "is always 0" in one.finding.text
    line = text.splitlines()[one.finding.at.line - 1]
    if not edit:
        assert "self.act(" in line
        return
    assert line.endswith("#!")
    assert edit in one.finding.edit.new
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert [each for each in after.found if each.finding.kind == "flat-derivative"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("act", "loss"),
    [
        ("nn.Tanh()", OSCILLATOR),
        ("lambda x: torch.relu(x) * torch.sigmoid(x)", OSCILLATOR),
        ("nn.ReLU()", "loss = (grad(u, t) - 1).pow(2).mean()"),
        ("nn.ReLU()", "loss = (grad(grad(u.pow(2), t), t) - 1).pow(2).mean()"),
        ("nn.ReLU()", "g = grad(u.pow(2), net.out.bias)\nloss = u.mean() + grad(g, net.out.bias).sum()"),
        ("nn.ReLU()", "g = grad(u, net.two.weight)\nloss = u.mean() + grad(g, net.two.weight).sum()"),
        ("nn.ReLU()", "if i == 2: print(grad(grad(u, t), t))\nloss = u.pow(2).mean()"),
    ],
)
def test_derivatives_that_are_not_flat_are_not(act, loss, engine, checks):
    assert flat(act, loss, engine, checks)[1] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_of_several_activations_the_first_is_named_if_they_ran_as_modules(engine, checks):
    sequence = "net = nn.Sequential(nn.Linear(1, 8), nn.ReLU(),  #!\n    nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))"
    text = PROGRAM.replace("LOSS", OSCILLATOR).replace("ACT", "nn.Tanh()").replace("net = Net()", sequence)
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "flat-derivative"]
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert one.finding.edit is None
    by_function = text.replace("Linear(8, 8), nn.ReLU(),", "Linear(8, 8),").replace(
        "nn.Linear(1, 8), nn.ReLU(),", "nn.Linear(1, 8),"
    )
    by_function += "\nothers = nn.ReLU(), nn.ReLU()\n"
    by_function = by_function.replace("u = net(t)", "u = net[2](torch.relu(net[1](torch.relu(net[0](t)))))")
    (one,) = [each for each in checks.of_text(by_function, engine).found if each.finding.kind == "flat-derivative"]
    assert "u = net[2]" in by_function.splitlines()[one.finding.at.line - 1]
