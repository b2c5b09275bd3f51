"""Checkpoints that end with an error, because backward does not run again what the forward ran.

The line of the first difference ends with ``#!``, and that of its cause with ``#?``.
"""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import random
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
random.seed(1)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last, self.calls, self.hidden = nn.Linear(4, 4), nn.Linear(4, 4), 0, []
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(6)])
    def forward(self, x, memory):
        h = self.first(x).relu()
        BODY
        return h.tanh() + x
net = Block()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(4):
    net.hidden, x = [], torch.randn(20, 4, requires_grad=True)
    loss = checkpoint(net, x, {}, use_reentrant=False).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BODIES = {
    "a cache": (
        "if 'past' in memory:\n    h = torch.cat([memory['past'], h])  #!\nmemory['past'] = h  #?\nh = h.exp()[-20:]",
        "runs #", "store nothing in memory['past']"),
    "a cache of its own": (
        "self.hidden.append(h)  #?\nh = torch.stack(self.hidden).exp().mean(0)  #!", "has another shape",
        "store nothing in self.hidden"),
    "a counter": (
        "self.calls += 1  #?\nif self.calls % 2:\n    h = self.last(h).exp()  #!",
        "in the forward, but not in backward", "change self.calls outside"),
    "a length of Python's random numbers": (
        "count = random.randint(1, 20)  #?\nh = h[:count].exp().sum(0)  #!", "has another shape",
        "draw it outside"),
    "layers that are left out at random": (
        "for layer in self.layers:\n    if self.training and random.random() < 0.5:  #?\n        continue\n"
        "    h = torch.tanh(layer(h))  #!", "a checkpoint runs", "draw it outside"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", BODIES)
def test_the_first_difference_of_the_runs_and_its_cause_are_named(name, engine, checks):
    body, title, fix = BODIES[name]
    text = HEAD.replace("BODY", body.replace("\n", "\n        "))
    outcome = checks.of_text(text, engine)
    assert outcome.errors == ["CheckpointError"]
    (one,) = [each.finding for each in outcome.found if each.level == "error"]
    assert one.kind == "failed"
    assert title in one.text
    assert fix in one.fix
    rows = text.splitlines()
    assert rows[one.at.line - 1].endswith("#!")
    cause, call, message = one.parts
    assert rows[cause.at.line - 1].endswith("#?")
    assert "checkpoint(net" in rows[call.at.line - 1]
    assert "CheckpointError" in message.text


@pytest.mark.parametrize("engine", ENGINES)
def test_without_a_known_cause_the_forward_is_shown(engine, checks):
    body = "if torch.is_grad_enabled() and x.grad_fn is None and next(turns):\n    h = self.last(h).exp()  #!"
    text = HEAD.replace("BODY", body.replace("\n", "\n        "))
    text = text.replace("class Block", "turns = iter([True, False] * 9)\nclass Block")
    (one,) = [each.finding for each in checks.of_text(text, engine).found if each.level == "error"]
    assert text.splitlines()[one.at.line - 1].endswith("#!")
    assert "the forward ran" in one.parts[0].text
    assert "let it do the same in both runs" in one.fix
