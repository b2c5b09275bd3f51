"""Settings that a warm-up overwrites, and numbers that are meant to change from step to step."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
class Average:
    def __init__(self, parameters, decay=0.999, least=0.05):
        self.shadow = [p.detach().clone() for p in parameters]
        self.decay, self.count = decay, 0
        self.decay = decay
        self.least = least
        self.lowest = float("inf")
        self.count = 0
    def limited(self, n):
        value = (1 + n) / (10 + n)
        return min(self.decay, value)
    def step(self, parameters):
        self.count += 1
        BODY
        with torch.no_grad():
            for s, p in zip(self.shadow, parameters):
                s.mul_(FACTOR).add_(p, alpha=1 - FACTOR)
average = Average(net.parameters())
for i in range(3):
    loss = net(torch.randn(6, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    average.step(net.parameters())
"""
OVERWRITTEN = {
    "by a method": "self.decay = self.limited(self.count)  #!",
    "in one line": "self.decay = min(self.decay, (1 + self.count) / (10 + self.count))  #!",
    "by its complement": "self.decay = 1 - min(self.decay, (1 + self.count) / (10 + self.count))  #!",
    "by a minimum with a square": "self.decay = min(1 - 1 / (self.count + 1) ** 0.5, self.decay)  #!",
}
KEPT = {
    "a variable": ("decay = self.limited(self.count)", "decay"),
    "another attribute": ("self.now = self.limited(self.count)", "self.now"),
    "a decay": ("self.decay = max(self.least, self.decay * 0.9)", "self.decay"),
    "a falling limit": ("self.decay = min(self.decay, 1 / self.count)", "self.decay"),
    "a running minimum": ("self.decay = min(self.decay, float(self.shadow[0].abs().max()))", "self.decay"),
    "the least of some numbers": ("self.lowest = min(self.lowest, 1 / self.count)", "self.decay"),
    "a switch": ("self.decay = 1 - self.decay", "self.decay"),
    "a growing number": ("self.decay = min(self.decay * 1.01, 0.9999)", "self.decay"),
}


def found(body, factor, engine, checks):
    program = PROGRAM.replace("BODY", body).replace("FACTOR", factor)
    outcome = checks.of_text(program, engine)
    assert outcome.errors == []
    return program, [one for one in outcome.found if one.finding.kind == "overwritten-setting"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OVERWRITTEN)
def test_a_setting_that_its_warm_up_overwrites_is_found(name, engine, checks):
    program, (one,) = found(OVERWRITTEN[name], "self.decay", engine, checks)
    assert one.level == "note"
    assert program.splitlines()[one.finding.at.line - 1].endswith("#!")
    mended = one.finding.edit.applied(program)
    assert "s.mul_(decay_now).add_(p, alpha=1 - decay_now)" in mended
    assert checks.of_text(mended, engine).found == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KEPT)
def test_a_number_that_is_meant_to_change_is_not(name, engine, checks):
    assert found(*KEPT[name], engine, checks)[1] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "more",
    ["    def result(self):\n        return self.decay\n", "    def step(self, parameters):\n        decay_now = 0\n"],
)
def test_a_result_that_others_read_or_a_name_that_is_taken_gets_no_edit(more, engine, checks):
    head = "    def step(self, parameters):\n"
    program = PROGRAM.replace(head, more if head in more else more + head).replace("FACTOR", "self.decay")
    outcome = checks.of_text(program.replace("BODY", OVERWRITTEN["in one line"]), engine)
    (one,) = [each for each in outcome.found if each.finding.kind == "overwritten-setting"]
    assert one.finding.edit is None
