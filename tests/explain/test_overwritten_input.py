"""Activations in place of a tensor that the code around them reads again, and those that are meant so."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 2)
class Act(nn.Module):
    def forward(self, x):
        return F.relu_(x)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        INIT
    def forward(self, x):
        FORWARD
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.block, self.head = nn.Linear(4, 8), Block(), nn.Linear(8, 2)
    def forward(self, x):
        return self.head(self.block(self.stem(x)))
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(4):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CONV = """self.conv = nn.Sequential(
    nn.ReLU(inplace=True),  #!
    nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 8))"""
BODY = "self.act, self.fc = nn.ReLU(inplace=True), nn.Linear(8, 8)"
FC = "self.fc = nn.Linear(8, 8)"


def program(init, forward):
    pieces = {"INIT": init, "FORWARD": forward}
    text = PROGRAM
    for word, value in pieces.items():
        text = text.replace(word, value.replace("\n", "\n        "))
    return text


OVERWRITTEN = {
    "a sum in place": (CONV, "out = self.conv(x)\nout += x\nreturn out"),
    "a sum with the call": (CONV, "return self.conv(x) + x"),
    "another name": (CONV, "skip = x\nx = self.conv(x)\nreturn x + skip"),
    "a name chosen before": (CONV, "skip = x if self.training else x.clone()\nout = self.conv(x)\nreturn out + skip"),
    "another layer": (CONV + "\nself.skip = nn.Linear(8, 8)", "out = self.conv(x)\nreturn out + self.skip(x)"),
    "joined": (CONV + "\nself.fc = nn.Linear(16, 8)", "out = self.conv(x)\nreturn self.fc(torch.cat([out, x], 1))"),
    "leaky": (
        CONV.replace("nn.ReLU(inplace=True),  #!", "nn.LeakyReLU(0.2, inplace=True),  #!"),
        "out = self.conv(x)\nreturn out + x",
    ),
    "a module of its own": (
        BODY + "  #!",
        "out = self.act(x)\nreturn self.fc(out) + x",
    ),
    "a function": (FC, "out = F.relu(x, inplace=True)  #!\nreturn self.fc(out) + x"),
}
NOT_MENDED = {
    "a module of the program": (
        "self.conv = nn.Sequential(Act(), nn.Linear(8, 8))", "out = self.conv(x)  #!\nreturn out + x"),
}  # fmt: skip
MEANT = {
    "the input first": (CONV, "return x * 0.5 + self.conv(x)"),
    "no read": (CONV, "return self.conv(x)"),
    "the same variable": (BODY, "x = self.act(x)\nreturn self.fc(x) + x"),
    "a copy": (CONV, "return self.conv(x.clone()) + x"),
    "a relu before": (CONV, "x = x.abs() + 1\nreturn self.conv(x) + x"),
    "the sum before": (CONV, "skip = x * 1.0\nout = self.conv(x)\nreturn out + skip"),
    "inside of a part": (
        "self.conv = nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 8))",
        "return self.conv(x) + x",
    ),
    "called for its effect": (BODY, "self.act(x)\nreturn self.fc(x) + x"),
    "its result twice": (BODY, "out = self.act(self.fc(x))\nreturn out * 2 + out"),
    "without inplace": (CONV.replace("nn.ReLU(inplace=True),  #!", "nn.ReLU(),"), "return self.conv(x) + x"),
    "set again": (CONV, "out = self.conv(x)\nx = out * 0.5\nreturn out + x"),
    "in eval only": (CONV, "out = self.conv(x)\nwith torch.no_grad():\n    size = x.norm()\nreturn out"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*OVERWRITTEN, *NOT_MENDED])
def test_a_tensor_that_is_overwritten_and_read_again_is_noted(name, engine, checks):
    text = program(*{**OVERWRITTEN, **NOT_MENDED}[name])
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = outcome.found
    assert (one.level, one.finding.kind) == ("note", "overwritten-input")
    assert one.finding.at.line == next(n for n, row in enumerate(text.splitlines(), 1) if row.endswith("#!"))
    assert "in place overwrites" in one.finding.text
    if name in OVERWRITTEN:
        mended = one.finding.edit.applied(text)
        assert mended.count("inplace=True") == text.count("inplace=True") - 1
        assert [str(other) for other in checks.of_text(mended, engine).found] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MEANT)
def test_an_activation_in_place_that_is_meant_so_is_not_noted(name, engine, checks):
    outcome = checks.of_text(program(*MEANT[name]), engine)
    assert outcome.errors == []
    assert [str(one) for one in outcome.found] == []
