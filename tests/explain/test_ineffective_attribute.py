"""``requires_grad`` set on a module, which does nothing, and other attributes without an effect."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(24, 4), torch.randn(24, 1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.head = nn.Linear(8, 1)
        INIT
    def freeze(self):
        FREEZE
    def forward(self, x):
        h = self.encoder(x)
        for layer in self.layers:
            h = torch.relu(layer(h))
        return self.head(h)
net = Net()
SETUP
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01)
for epoch in range(4):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def program(setup="pass", init="pass", freeze="pass"):
    text = PROGRAM.replace("SETUP", setup)
    for word, value in {"INIT": init, "FREEZE": freeze}.items():
        text = text.replace(word, value.replace("\n", "\n        "))
    return text


FLAGS = {
    "a part": (program("net.encoder.requires_grad = False  #!"), ["Net.encoder freezes", "4 times since, and 1 more"]),
    "children": (
        program("for child in list(net.children())[:-1]:\n    child.requires_grad = False  #!"),
        ["child.requires_grad_(False)"],
    ),
    "children with names": (
        program("for name, child in net.named_children():\n"
                "    if name != 'head':\n        child.requires_grad = False  #!"),
        ["child.requires_grad_(False)"],
    ),
    "a list": (program("net.layers.requires_grad = False  #!"), ["Net.layers freezes", "and 3 more"]),
    "items of a list": (
        program("for layer in net.layers:\n    layer.requires_grad = False  #!"), ["layer.requires_grad_(False)"]),
    "one item": (program("net.layers[0].requires_grad = False  #!"), ["net.layers[0].requires_grad_(False)"]),
    "in its class": (program(init="self.encoder.requires_grad = False  #!"), ["self.encoder.requires_grad_(False)"]),
    "in a method": (
        program("net.freeze()", freeze="for part in (self.encoder, self.layers):\n    part.requires_grad = False  #!"),
        ["part.requires_grad_(False)"],
    ),
    "a model": (
        program("other = nn.Linear(4, 4)\nother.requires_grad = False  #!").replace("net(x)", "net(other(x))").replace(
            "if p.requires_grad", "") .replace("net.parameters()", "nn.ModuleList([net, other]).parameters()"),
        ["other freezes", "other.requires_grad_(False)"],
    ),
    "next to tensors": (
        program("scale = torch.ones(1, requires_grad=True)\nscale.requires_grad = False\n"
                "for p in net.head.parameters():\n    p.requires_grad = False\nbody = net.encoder\n"
                "body.requires_grad = False  #!").replace("net(x)", "net(x * scale)"),
        ["body.requires_grad_(False)"],
    ),
    "to train a part again": (
        program("for p in net.encoder.parameters():\n    p.requires_grad = False\n"
                "net.encoder.requires_grad = True  #!"),
        ["Net.encoder unfreezes", "requires no gradient", "net.encoder.requires_grad_(True)"],
    ),
}  # fmt: skip
HEALTHY = {
    "parameters": program("for p in net.encoder.parameters():\n    p.requires_grad = False"),
    "one parameter": program("net.encoder[0].weight.requires_grad = False"),
    "the method": program("net.encoder.requires_grad_(False)"),
    "both": program("net.encoder.requires_grad = False\nnet.encoder.requires_grad_(False)"),
    "a part that is trained": program("net.encoder.requires_grad = True"),
    "a part that no optimizer has": program("net.encoder.requires_grad = False").replace(
        "net.parameters() if", "net.head.parameters() if"),
    "a property": program("net.requires_grad = False").replace(
        "    def freeze(self):",
        "    @property\n    def requires_grad(self):\n        return self.head.weight.requires_grad\n"
        "    @requires_grad.setter\n    def requires_grad(self, flag):\n        self.encoder.requires_grad_(flag)\n"
        "    def freeze(self):"),
    "an option that the class reads": program("net.requires_grad = False", "self.requires_grad = True").replace(
        "h = self.encoder(x)", "h = self.encoder(x)\n        if not self.requires_grad:\n            h = h * 1.0"),
    "an option that is given": program("net = Net(False)").replace(
        "def __init__(self):", "def __init__(self, requires_grad=True):").replace(
        "super().__init__()", "super().__init__()\n        self.requires_grad = requires_grad"),
    "a model that is frozen after its training": program("net.encoder.requires_grad = True") + (
        "for p in net.parameters():\n    p.requires_grad = False\nnet(x)\n"),
    "a flag that is set back": program("net.encoder.requires_grad = False\nnet(x)\nnet.encoder.requires_grad = True"),
    "a tensor named like a module": program(
        "encoder = torch.ones(4, requires_grad=True)\nencoder.requires_grad = False"),
}  # fmt: skip


def found_in(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.level != "note"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_of_a_module_is_found_and_set_for_its_parameters(name, engine, checks):
    text, words = FLAGS[name]
    (one,) = found_in(text, engine, checks)
    assert (one.finding.kind, one.level) == ("module-flag", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding)) + one.finding.edit.new
    assert [word for word in words if word not in said] == []
    assert [str(each) for each in found_in(one.finding.edit.applied(text), engine, checks)] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_flag_that_means_something_is_not_reported(name, engine, checks):
    found = found_in(HEALTHY[name], engine, checks)
    if name == "a part that no optimizer has":
        found = [one for one in found if one.finding.kind != "never-stepped"]
    assert [str(one) for one in found] == []


UNREAD = {
    "a misspelt flag": (
        program("for p in net.encoder.parameters():\n    p.require_grad = False  #!"),
        ["require_grad is no attribute of a tensor", "p.requires_grad = False"],
    ),
    "another one": (program("net.head.bias.requires_gradient = False  #!"), ["net.head.bias.requires_grad = False"]),
    "the rate of an optimizer": (
        program().replace("    opt.step()", "    opt.step()\n    opt.lr = 0.001  #!"),
        ["opt.lr has no effect", 'group["lr"]'],
    ),
    "a rate that falls": (
        program().replace("    opt.step()", "    opt.step()\n    opt.learning_rate = 0.01 / (epoch + 1)  #!"),
        ["opt.learning_rate has no effect", 'group["lr"]'],
    ),
}
READ = {
    "a flag that the program reads": program(
        "net.head.weight.require_grad = False\nprint(net.head.weight.require_grad)"
    ),
    "a rate that is copied to the groups": program().replace(
        "    opt.step()", "    opt.step()\n    opt.lr = 0.001\n    for group in opt.param_groups:\n"
        "        group['lr'] = opt.lr"
    ),
    "an attribute of the program's own object": program(
        "class Node:\n    def __init__(s):\n        s.require_grad = True\nn = Node()\nn.require_grads = False"
    ),
    "a decay by hand": program("opt = torch.optim.SGD(net.parameters(), lr=0.01)\nopt.weight_decay = 0.01").replace(
        "    opt.step()",
        "    opt.step()\n    for p in net.parameters():\n        p.data *= 1 - 0.01 * opt.weight_decay",
    ).replace("opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01)\n", ""),
    "an optimizer of the program's own": program(
        "class Own(torch.optim.SGD):\n    pass\nopt = Own(net.parameters(), lr=0.01)\nopt.lr = 0.001"
    ).replace("opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01)\n", ""),
    "a rate that is also written to the groups": program().replace(
        "    opt.step()",
        "    opt.step()\n    opt.lr = 0.001\n    for group in opt.param_groups:\n        group['lr'] = 0.001",
    ),
    "a flag of the settings": program(
        "from types import SimpleNamespace\noptions = SimpleNamespace(rate=0.01)\noptions.requires_gradient = False"
    ),
    "the rate of something else": program("class Settings: pass\noptions = Settings()\noptions.lr = 0.01"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", UNREAD)
def test_an_attribute_that_nothing_reads_is_reported(name, engine, checks):
    text, words = UNREAD[name]
    (one,) = found_in(text, engine, checks)
    assert (one.finding.kind, one.level) == ("unread-attribute", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert [word for word in words if word not in said] == []
    if one.finding.edit is not None:
        assert [str(each) for each in found_in(one.finding.edit.applied(text), engine, checks)] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", READ)
def test_an_attribute_that_the_program_reads_is_not_reported(name, engine, checks):
    assert [str(one) for one in found_in(READ[name], engine, checks)] == []
