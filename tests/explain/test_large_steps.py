"""Learning rates that are so large that numbers become inf, each with the line that sets it."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
"""
LOOP = """
x = torch.randn(32, 4)
y = x[:, :1] - x[:, 1:2]
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
OPTIMIZER
for step in range(STEPS):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    STEP
"""


def program(optimizer, steps=20, step="opt.step()"):
    return HEAD + LOOP.replace("OPTIMIZER", optimizer).replace("STEPS", str(steps)).replace("STEP", step)


def findings(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return {one.finding.kind: one for one in outcome.found}


def underlined(text, at):
    return text.splitlines()[at.line - 1].encode()[at.column : at.end_column].decode()


LARGE = {
    "with momentum": ("opt = torch.optim.SGD(net.parameters(), lr=1.5, momentum=0.9)", "lr=1.5", "SGD at lr 1.5"),
    "by position": ("opt = torch.optim.SGD(net.parameters(), 50.0)", "50.0", "SGD at lr 50"),
    "a constant": ("LR = 20\nopt = torch.optim.SGD(net.parameters(), lr=LR)", "lr=LR", "SGD at lr 20"),
    "a group": ('opt = torch.optim.SGD([{"params": net.parameters(), "lr": 9.0}])', "9.0", "SGD at lr 9"),
    "adaptive": ("opt = torch.optim.Adam(net.parameters(), lr=1e13)", "lr=1e13", "Adam at lr 1e+13"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LARGE)
def test_a_rate_that_makes_parameters_grow_to_inf_is_named_where_it_is_set(name, engine, checks):
    optimizer, rate, words = LARGE[name]
    text = program(optimizer)
    found = findings(text, engine, checks)
    assert [*found] == ["large-steps"]
    one = found["large-steps"]
    assert one.level == "error"
    assert underlined(text, one.finding.at) == rate
    assert one.finding.text == f"training diverges: the steps of {words} are too large"
    assert "rms of" in one.finding.parts[0].text
    assert " at program.py:" in one.finding.parts[0].text or "; the loss " in one.finding.parts[0].text


@pytest.mark.parametrize("engine", ENGINES)
def test_the_optimizer_whose_steps_are_too_large_is_named_among_several(engine, checks):
    text = program(
        "other = torch.optim.SGD(net[0].parameters(), lr=0.01)\nopt = torch.optim.SGD(net[2].parameters(), lr=1e7)",
        step="opt.step()\n    other.step()",
    ).replace("opt.zero_grad()", "net.zero_grad()")
    one = findings(text, engine, checks)["large-steps"]
    assert underlined(text, one.finding.at) == "lr=1e7"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_divergence_that_is_still_finite_names_the_rate_too(engine, checks):
    text = HEAD + LOOP.replace("OPTIMIZER", "opt = torch.optim.SGD(net.parameters(), lr=0.9)").replace("STEPS", "10")
    text = text.replace("STEP", "opt.step()").replace(", nn.ReLU()", "")
    found = findings(text, engine, checks)
    assert "large-steps" in found or underlined(text, found["diverging"].finding.at) == "lr=0.9"


OF_ANOTHER_REASON = {
    "a rate that works": program("opt = torch.optim.SGD(net.parameters(), lr=0.05)"),
    "large features": program("opt = torch.optim.SGD(net.parameters(), lr=0.1)\nx = 900 * x"),
    "an undefined logarithm": program("opt = torch.optim.SGD(net.parameters(), lr=0.05)").replace(
        "F.mse_loss(net(x), y)", "(net(x) - y).pow(2).mean() + (0 * net(x)).log().mean()"
    ),
    "gradients that add up": program("opt = torch.optim.SGD(net.parameters(), lr=1.5, momentum=0.9)").replace(
        "    opt.zero_grad()\n", ""
    ),
    "a rate that rises": program(
        "opt = torch.optim.SGD(net.parameters(), lr=0.01)",
        step="opt.step()\n    opt.param_groups[0]['lr'] *= 5",
    ),
    "an objective that is maximized": program("opt = torch.optim.SGD(net.parameters(), lr=1.5, maximize=True)"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OF_ANOTHER_REASON)
def test_other_reasons_of_a_nan_are_no_learning_rate(name, engine, checks):
    assert "large-steps" not in findings(OF_ANOTHER_REASON[name], engine, checks)
