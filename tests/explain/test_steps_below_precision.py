"""Parameters of a short dtype most of whose elements no step changes, and those that are trained."""

import pytest

BUILTIN_TOO = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 4))
with torch.no_grad():
    for p in net.parameters():
        p[0] = 0.0001
DTYPE
opt = OPTIMIZER
for i in range(12):
    x = torch.randn(16, 6).to(net[0].weight.dtype)
    loss = (net(x) - x[:, :4]).float().pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ADAM = "torch.optim.Adam(net.parameters(), lr={}, eps=1e-4)"
RMSPROP = "torch.optim.RMSprop(net.parameters(), lr=1e-6, eps=1e-3)"
HALF, SHORT = "net = net.half()  #!", "net.to(torch.bfloat16)  #!"


def unchanged(dtype, optimizer, engine, checks, before=""):
    text = PROGRAM.replace("DTYPE", before + dtype).replace("OPTIMIZER", optimizer)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [one for one in outcome.found if one.finding.kind == "unchanged"]


@pytest.mark.parametrize("engine", BUILTIN_TOO)
@pytest.mark.parametrize(("optimizer", "name"), [(ADAM.format(1e-5), "Adam"), (RMSPROP, "RMSprop")])
def test_elements_of_half_that_no_step_changes_are_found(optimizer, name, engine, checks):
    text, (one,) = unchanged(HALF, optimizer, engine, checks)
    assert one.level == "warning"
    assert f"of the elements in float16 never change: the steps of {name} round away" in one.finding.text
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.torch
def test_elements_of_bfloat16_that_no_step_changes_are_found(checks):
    text, (one,) = unchanged(SHORT, ADAM.format(1e-4), "torch", checks)
    assert "of the elements in bfloat16 never change" in one.finding.text
    assert "and lr is 0.0001 (136 elements of 4 parameters in 12 steps)" in str(one.finding)
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", BUILTIN_TOO)
@pytest.mark.parametrize(("dtype", "rate"), [(HALF, 0.003), ("pass", 1e-7)])
def test_larger_steps_and_longer_numbers_are_not(dtype, rate, engine, checks):
    assert unchanged(dtype, ADAM.format(rate), engine, checks)[1] == []


@pytest.mark.parametrize("engine", BUILTIN_TOO)
def test_a_few_steps_are_not(engine, checks, monkeypatch):
    monkeypatch.setattr(f"{__name__}.PROGRAM", PROGRAM.replace("range(12)", "range(4)"))
    assert unchanged(HALF, ADAM.format(1e-5), engine, checks)[1] == []


ROUNDING = """
class Adam(torch.optim.Adam):
    def step(self, closure=None):
        old = [p.detach().clone() for p in self.param_groups[0]["params"]]
        super().step()
        for p, before in zip(self.param_groups[0]["params"], old):
            gap = 2.0 ** (before.float().abs().clamp_min(1e-30).log2().floor() - 7)
            jump = (torch.rand_like(gap) < 0.02).float() * gap * torch.sign(torch.randn_like(gap))
            p.data.copy_(torch.where(p == before, before.float() + jump, p.float()))
"""


@pytest.mark.torch
def test_a_stochastic_rounding_is_not(checks):
    optimizer = "Adam(net.parameters(), lr=1e-4, eps=1e-4)"
    assert unchanged("net.to(torch.bfloat16)", optimizer, "torch", checks, ROUNDING)[1] == []
