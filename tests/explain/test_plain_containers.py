"""Layers in a list or a dictionary, which the parameters() of a model leaves out, and layers that it has."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        MADE
        self.out = nn.Linear(4, 1)
    def forward(self, x):
        USED
        return self.out(x)
net = Net()
opt = torch.optim.SGD(PARAMETERS, lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
for step in range(3):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
EACH = "for layer in self.layers:\n    x = torch.tanh(layer(x))"


def program(made, used=EACH, parameters="net.parameters()"):
    text = PROGRAM.replace("PARAMETERS", parameters)
    return text.replace("MADE", made.replace("\n", "\n        ")).replace("USED", used.replace("\n", "\n        "))


PLAIN = {
    "a list": (program("self.layers = [nn.Linear(4, 4) for _ in range(3)]  #!"), 6, "list", "nn.ModuleList(["),
    "a list that grows": (
        program("self.layers = []  #!\nfor _ in range(2):\n    self.layers.append(nn.Linear(4, 4))"),
        4, "list", "nn.ModuleList()"),
    "a dictionary": (
        program("self.heads = {'a': nn.Linear(4, 4), 'b': nn.Linear(4, 4)}  #!",
                "x = self.heads['a'](x) + self.heads['b'](x)"),
        4, "dictionary", "nn.ModuleDict({"),
    "blocks that have lists of their own": (
        program("self.blocks = [Block() for _ in range(2)]  #!", EACH.replace("layers", "blocks")).replace(
            "class Net(", "class Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        layers = [nn.Linear(4, 4)]\n        layers += [nn.ReLU(), nn.Linear(4, 4)]\n"
            "        self.layers = nn.Sequential(*layers)\n    def forward(self, x):\n        return self.layers(x)\n"
            "class Net("),
        8, "list", "nn.ModuleList(["),
    "parameters": (
        program("self.scales = [nn.Parameter(torch.full((4,), 0.9)) for _ in range(2)]  #!",
                "for scale in self.scales:\n    x = x * scale"),
        2, "list", "nn.ParameterList(["),
}  # fmt: skip
REGISTERED = {
    "a module list": program("self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])"),
    "a sequence": program("self.layers = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))"),
    "a list that the optimizer has, too": program(
        "self.layers = [nn.Linear(4, 4) for _ in range(3)]",
        parameters="[*net.parameters(), *(p for layer in net.layers for p in layer.parameters())]"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PLAIN)
def test_layers_in_a_plain_container_are_one_finding_at_its_line(name, engine, checks):
    text, count, kind, mended = PLAIN[name]
    (one,) = checks.of_text(text, engine).found
    assert (one.finding.kind, one.level) == ("never-stepped", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert f"is a plain {kind}: no optimizer updates what is in it" in said
    assert f"its {count} parameters have a gradient" in said
    assert mended in one.finding.edit.new
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert (after.errors, [str(each) for each in after.found]) == ([], [])


NO_EDIT = {
    "functions among the layers": program(
        "self.layers = [nn.Linear(4, 4), torch.tanh, nn.Linear(4, 4)]", "for layer in self.layers:\n    x = layer(x)"),
    "numbers as keys": program(
        "self.heads = {0: nn.Linear(4, 4), 1: nn.Linear(4, 4)}", "x = self.heads[0](x) + self.heads[1](x)"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NO_EDIT)
def test_a_container_that_no_module_list_can_be_has_no_edit(name, engine, checks):
    (one,) = checks.of_text(NO_EDIT[name], engine).found
    assert "is a plain" in one.finding.text
    assert one.finding.edit is None


@pytest.mark.parametrize("engine", ENGINES)
def test_the_edit_uses_the_names_that_the_program_has(engine, checks):
    text = program("self.layers = [torch.nn.Linear(4, 4) for _ in range(3)]")
    text = text.replace("from torch import nn\n", "").replace("(nn.", "(torch.nn.").replace(" nn.L", " torch.nn.L")
    text = text.replace("F = nn.", "F = torch.nn.")
    (one,) = checks.of_text(text, engine).found
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert (after.errors, [str(each) for each in after.found]) == ([], [])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_of_a_list_that_is_trained_alone_is_no_plain_list(engine, checks):
    text = program("self.layers = [nn.Linear(4, 4) for _ in range(3)]", parameters="net.layers[-1].parameters()")
    assert not [one for one in checks.of_text(text, engine).found if "is a plain" in one.finding.text]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", REGISTERED)
def test_layers_that_an_optimizer_has_are_no_finding(name, engine, checks):
    outcome = checks.of_text(REGISTERED[name], engine)
    assert (outcome.errors, [str(one) for one in outcome.found]) == ([], [])
