"""Calls of a module whose result is dropped: only what a hook takes of them is wanted, or nothing is used."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6)
    def forward(self, x):
        self.hidden = self.act(self.first(x))
        return self.last(self.hidden)
net, head, taken = Net(), nn.Linear(6, 3), {}
net.act.register_forward_hook(lambda module, inputs, output: taken.__setitem__("out", output))
opt = torch.optim.SGD([*HELD.parameters(), *head.parameters()], lr=0.1)
for i in range(3):
    x = torch.randn(8, 6)
    net(x)
    loss = F.cross_entropy(head(USED), torch.randint(0, 3, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def found(held, used, engine, checks):
    outcome = checks.of_text(PROGRAM.replace("HELD", held).replace("USED", used), engine)
    assert outcome.errors == []
    return [(one.level, one.finding.kind, one.finding.fix) for one in outcome.found]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("used", ["taken['out']", "net.hidden"])
def test_a_layer_behind_the_features_needs_no_gradient(used, engine, checks):
    assert found("net.first", used, engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_layer_behind_the_features_that_an_optimizer_has_is_a_note(engine, checks):
    ((level, kind, fix),) = found("net", "taken['out']", engine, checks)
    assert (level, kind) == ("note", "not-reached")
    assert fix.startswith("leave its layer out, if only these are wanted")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_call_of_which_nothing_is_used_is_still_found(engine, checks):
    ((level, kind, fix),) = found("net", "x", engine, checks)
    assert (level, kind) == ("warning", "not-reached")
    assert fix.startswith("keep its result")
