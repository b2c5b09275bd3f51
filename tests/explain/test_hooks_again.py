"""Hooks that each iteration registers again, and hooks that were registered once, or a fixed number of times."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(24, 6), torch.randint(0, 3, (24,))
"""
MODEL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 0.1
        self.body = nn.Sequential(nn.Linear(6, 8), nn.Tanh())
        self.head = nn.Linear(8, 3)
        INIT

    def forward(self, x):
        FORWARD
        return self.head(self.body(x))


net = Net()
BEFORE
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(12):
    LOOP
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    AFTER
"""


def program(init="pass", forward="pass", before="pass", loop="pass", after="pass"):
    text = HEAD + MODEL
    words = {"INIT": init, "FORWARD": forward, "BEFORE": before, "LOOP": loop, "AFTER": after}
    for word, value in words.items():
        indent = {"INIT": 8, "FORWARD": 8, "LOOP": 4, "AFTER": 4}.get(word, 0)
        text = text.replace(word, value.replace("\n", "\n" + " " * indent))
    return text


OF_BODY = "for p in self.body.parameters():\n    p.register_hook(lambda g: g * self.scale)"
AGAIN = {
    "in forward": (program(forward=f"{OF_BODY}  #!"), 12, "lambda g: g * self.scale"),
    "in forward of one tensor": (
        program(forward="self.body[0].weight.register_hook(lambda g: g / 2)  #!"), 12, "self.body[0].weight.regis"),
    "in the loop": (
        program(loop="for p in net.body.parameters():\n    p.register_hook(lambda g: g.tanh())  #!"), 12, "tanh"),
    "every other iteration": (
        program(loop="if epoch % 2:\n    kind = 4\n    net.head.weight.register_hook(lambda g: g / 4)  #!"), 6, ""),
}  # fmt: skip
ONCE = {
    "in __init__": program(init=OF_BODY),
    "removed after each pass": program(
        loop="handle = net.head.weight.register_hook(lambda g: g / 4)", after="handle.remove()"),
    "on results": program(forward="x = self.body(x) * 1.0\nx.register_hook(lambda g: g / 4)\nreturn self.head(x)"),
    "that only look": program(forward="self.head.weight.register_hook(lambda g: None)"),
    "several of one parameter": program(
        before="net.head.weight.register_hook(lambda g: g / 2)\nnet.head.weight.register_hook(lambda g: g + 0.01)"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", AGAIN)
def test_a_hook_that_is_registered_again_is_found_and_mended(name, engine, checks):
    text, often, mended = AGAIN[name]
    (one,) = checks.of_text(text, engine).found
    assert (one.finding.kind, one.level) == ("changed-by-hook", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert f"ran {often} times in one backward pass" in said
    assert "and once in the first pass" in said
    if not mended:
        assert one.finding.edit is None
        return
    assert mended in one.finding.edit.new
    assert [str(each) for each in checks.of_text(one.finding.edit.applied(text), engine).found] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ONCE)
def test_a_hook_that_is_registered_once_is_not_reported(name, engine, checks):
    assert [str(one) for one in checks.of_text(ONCE[name], engine).found] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_hook_that_is_registered_several_times_before_the_loop_may_be_meant(engine, checks):
    text = program(before="for _ in range(3):\n    net.head.weight.register_hook(lambda g: g / 2)")
    (one,) = checks.of_text(text, engine).found
    assert (one.finding.kind, one.level) == ("changed-by-hook", "note")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_gradient_that_only_its_own_hook_makes_small_has_not_vanished(engine, checks):
    text = program(before="for p in net.body.parameters():\n    p.register_hook(lambda g: g * 1e-12)")
    assert "vanishing" not in {one.finding.kind for one in checks.of_text(text, engine).found}
