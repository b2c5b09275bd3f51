"""Copies of what holds a tensor with its graph: the line that stored it, which detaches it only if nothing needs it.

The line to name ends with ``#!``.
"""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last, self.kept, self.parts = nn.Linear(3, 4), nn.Linear(4, 1), None, {}
    def forward(self, x):
        h = self.first(x).relu()
        STORE
        return self.last(h)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
TRAIN = """
for i in range(2):
    loss = net(torch.randn(5, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    best = copy.deepcopy(net)
"""
TRAINER = """
class Trainer:
    def __init__(self):
        self.model, self.opt = net, opt
    def fit(self):
        for i in range(2):
            self.loss = self.model(torch.randn(5, 3)).pow(2).mean()
            self.opt.zero_grad()
            self.loss.backward()
            self.opt.step()
            self.best = copy.deepcopy(self.model)
Trainer().fit()
"""
HOOK = """
def keep(module, args, output):
    module.activation = output  #!
net.first.register_forward_hook(keep)
"""


def stored(line):
    return HEAD.replace("STORE", line)


COPIES = {
    "an attribute": (stored("self.kept = h  #!") + TRAIN, "self.kept = h.detach()", "so net cannot be copied"),
    "two attributes": (
        stored("self.kept = h  #!\n        self.parts['too'] = h") + TRAIN, "self.parts['too'] = h.detach()", "net"),
    "a model next to a loss": (stored("self.parts['h'] = h  #!") + TRAINER, "h.detach()", "so self.model cannot"),
    "a result that the method reads from there": (
        stored("self.kept = h  #!\n        h = self.kept * 2") + TRAIN, "", "set self.kept to None"),
    "a term of the loss": (
        stored("self.kept = h.pow(2).mean()  #!") + TRAIN.replace("\n    opt.zero", " + net.kept\n    opt.zero", 1), "",
        "set self.kept to None"),
    "an assignment that is still running": (
        stored("self.kept = h  #!")
        + "class Run:\n    def go(self):\n        self.result = self.fit()\n    def fit(self):"
        + TRAIN.replace("\n", "\n        ") + "\nRun().go()\n", "self.kept = h.detach()", "self.kept keeps a graph"),
    "a hook": (stored("pass") + HOOK + TRAIN, "", "detach() what is stored; or set module.activation to None"),
    "a list": (
        stored("pass") + "outs = []\nfor i in range(2):\n    out = net(torch.randn(4, 3))\n    outs.append(out)  #!\n"
        "saved = copy.deepcopy(outs)\n", "", "store out.detach()"),
    "a tensor": (stored("pass") + "z = net(torch.randn(4, 3)).exp()\nsaved = copy.deepcopy(z)  #!\n",
                 "saved = z.detach().clone()", "has a graph, so it cannot be copied"),
    "a result that nothing stores by name": (
        stored("pass") + "state = {'out': net(torch.randn(4, 3))}\nsaved = copy.deepcopy(state)  #!\n", "",
        "store X.detach()"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_of_a_graph_names_the_line_that_stored_it(name, engine, checks):
    text, new, says = COPIES[name]
    (one,) = [one.finding for one in checks.of_text(text, engine).found if one.level == "error"]
    assert one.kind == "failed"
    assert text.splitlines()[one.at.line - 1].endswith("#!")
    assert says in f"{one.text}\n{one.fix}"
    assert (one.edit is not None) is bool(new)
    if one.edit is not None:
        assert new in one.edit.new
        assert checks.of_text(one.edit.applied(text), engine).errors == []
