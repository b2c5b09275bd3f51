"""A method `backward` of a module, which autograd never calls, and those that the program calls or that are rules."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
OWNER
net = nn.Sequential(nn.Linear(3, 3), Reverse(), nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    opt.zero_grad()
    loss = net(torch.randn(4, 3)).pow(2).mean()
    loss.backward()
    opt.step()
LATER
"""
MODULE = """class Reverse(nn.Module):
    def forward(self, x):
        return x.view_as(x)
    def backward(self, grad):
        return -grad"""
INHERITED = """class Reverse(nn.Identity):
    @staticmethod
    def backward(ctx, grad):
        return -grad"""
FUNCTION = """class Turn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        return -grad
class Reverse(nn.Module):
    def forward(self, x):
        return Turn.apply(x)"""


def program(owner=MODULE, later=""):
    return PROGRAM.replace("OWNER", owner).replace("LATER", later)


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "module-backward"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("owner", [MODULE, MODULE.replace("(self, grad)", "(self, ctx, grad)"), INHERITED])
def test_the_backward_of_a_module_is_named_with_its_class_and_line(owner, engine, checks):
    text = program(owner)
    (one,) = found(text, engine, checks)
    assert one.level == "warning"
    assert "Reverse.backward" in one.finding.text
    assert "def backward" in text.splitlines()[one.finding.at.line - 1]
    assert "autograd.Function" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text",
    [
        program(FUNCTION),
        program(later="print(net[1].backward(torch.ones(3)))"),
        program(later="for layer in reversed(net):\n    if hasattr(layer, 'backward'):\n        layer.backward(loss)"),
        program(MODULE.replace("def backward(self, grad):\n        return -grad", "def backward(self):\n        pass")),
        program()
        .replace("    loss.backward()", "    net[1].run(loss)")
        .replace("return -grad", "grad.backward()\n    def run(self, loss):\n        getattr(self, 'backward')(loss)"),
        program(MODULE.replace("forward(self, x):", "forward(self, x):  # none").replace("backward", "turned")),
    ],
)
def test_a_rule_of_a_function_and_a_method_that_the_program_calls_are_no_finding(text, engine, checks):
    assert found(text, engine, checks) == []
