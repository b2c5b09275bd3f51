"""A momentum or average that starts from zeros in each step, and those that are carried over or end with a sequence."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
x, y = torch.randn(8, 3), torch.randn(8, 1)
BEFORE
for step in range(5):
    net.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    with torch.no_grad():
        for p in net.parameters():
            STEP
"""
ANEW = {
    "momentum in place": ("", "v = torch.zeros_like(p)  #!\nv.mul_(0.9).add_(p.grad)\np.sub_(0.1 * v)"),
    "an average": ("", "v = torch.zeros(p.shape)  #!\nv = 0.9 * v + 0.1 * p.grad\np.sub_(0.1 * v)"),
    "an interpolation": ("", "v = torch.zeros_like(p)  #!\nv.lerp_(p.grad, 0.1)\np.sub_(0.1 * v)"),
    "in a dict": ("state = {}", "state[p] = torch.zeros_like(p)  #!\nstate[p].mul_(0.9).add_(p.grad)\n"
                  "p.sub_(0.1 * state[p])"),
}  # fmt: skip
CARRIED = {
    "momentum of a dict": ("state = {}", "v = state.setdefault(p, torch.zeros_like(p))\nv.mul_(0.9).add_(p.grad)\n"
                           "p.sub_(0.1 * v)"),
    "one state": ("vs = {p: torch.zeros_like(p) for p in net.parameters()}",
                  "vs[p] = 0.9 * vs[p] + p.grad\np.sub_(0.1 * vs[p])"),
    "a leaky sum over a sequence": ("", "v = torch.zeros_like(p)\nfor t in range(3):\n    v = 0.9 * v + p.grad\n"
                                    "p.sub_(0.1 * v)"),
    "a sum without decay": ("", "v = torch.zeros_like(p)\nv.add_(p.grad)\np.sub_(0.1 * v)"),
    "a mask": ("", "v = torch.zeros_like(p) * (p > 0)\np.sub_(0.1 * (v + p.grad))"),
    "zeros that stay": ("", "v = torch.zeros_like(p) * 0.5\np.sub_(0.1 * p.grad)"),
    "the first step only": ("", "if step == 0:\n    v = torch.zeros_like(p)\n    v.mul_(0.9).add_(p.grad)\n"
                            "p.sub_(0.1 * p.grad)"),
}  # fmt: skip


def outcome(case, engine, checks):
    before, step = case
    text = PROGRAM.replace("BEFORE", before).replace("STEP", step.replace("\n", "\n            "))
    checked = checks.of_text(text, engine)
    assert checked.errors == []
    return text, [one for one in checked.found if one.finding.kind == "state-made-anew"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ANEW)
def test_a_state_that_is_zero_in_each_step_is_found_where_it_is_made(name, engine, checks):
    text, (one,) = outcome(ANEW[name], engine, checks)
    assert one.level == "warning"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "nothing of the step before" in one.finding.parts[0].text
    assert ("first step" in one.finding.fix) == (name == "in a dict")


MEMBRANE = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 2)
for step in range(5):
    mem = torch.zeros(4, 2)
    for t in range(3):
        mem = 0.9 * mem + net(torch.randn(4, 3))
    net.zero_grad()
    mem.pow(2).mean().backward()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_potential_that_a_sequence_carries_is_no_finding_though_only_its_zeros_are_untracked(engine, checks):
    outcome = checks.of_text(MEMBRANE, engine)
    assert outcome.errors == []
    assert "state-made-anew" not in {one.finding.kind for one in outcome.found}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CARRIED)
def test_a_state_that_is_carried_over_or_summed_is_no_finding(name, engine, checks):
    assert outcome(CARRIED[name], engine, checks)[1] == []
