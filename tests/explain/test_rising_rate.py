"""Learning rates that rise until the loss explodes, and rises that are no reason, as of a warm-up that ends."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(32, 4)
y = x @ torch.randn(4, 1) + 0.1 * torch.randn(32, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.OPTIMIZER
MADE
for step in range(STEPS):
    loss = LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
    EACH
"""
SGD = "SGD(net.parameters(), lr=0.01)"
SCHEDULE = "sched = torch.optim.lr_scheduler."


def program(made, each, optimizer=SGD, steps=80, loss="((net(x) - y) ** 2).mean()"):
    text = PROGRAM.replace("EACH", each.replace("\n", "\n    "))
    for word, value in (("OPTIMIZER", optimizer), ("MADE", made), ("STEPS", str(steps)), ("LOSS", loss)):
        text = text.replace(word, value)
    return text


SET = "for group in opt.param_groups:\n    group['lr'] = "
RISES = {
    "a gamma above 1": (
        program(f"{SCHEDULE}ExponentialLR(opt, gamma=1.3)  #!", "sched.step()"), "a gamma of at most 1"),
    "stairs that rise": (
        program(f"{SCHEDULE}StepLR(opt, 8, gamma=5.0)  #!", "sched.step()"), "a gamma of at most 1"),
    "a warm-up without an end": (
        program(f"{SCHEDULE}LambdaLR(opt, lambda step: (step + 1) / 2)  #!", "sched.step()", steps=500),
        "a factor with an upper bound"),
    "a rate that is multiplied in each step": (
        program("", "opt.param_groups[0]['lr'] *= 1.4  #!"), "has none"),
    "a rate that is multiplied by a function": (
        program("def adjust():\n    for group in opt.param_groups:\n        group['lr'] = group['lr'] * 1.4  #!",
                "adjust()", "Adam(net.parameters(), lr=0.01)", 250), "has none"),
    "a rate that is set to more and more": (program("", SET + "0.01 * 1.3 ** step  #!"), "an upper bound of the rate"),
    "an optimizer that is made again": (
        program("rate = 0.01", "rate *= 1.3\nopt = torch.optim.SGD(net.parameters(), lr=rate)  #!"),
        "an upper bound of the rate"),
    "a finite explosion": (
        program(f"{SCHEDULE}ExponentialLR(opt, gamma=1.3)  #!", "sched.step()", steps=25), "a gamma of at most 1"),
}  # fmt: skip
OTHERS = {
    "a warm-up that ends": program(
        f"{SCHEDULE}LambdaLR(opt, lambda step: min(1.0, (step + 1) / 10))", "sched.step()", SGD.replace("0.01", "0.1")),
    "a warm-up that ends, before a nan of another origin": program(
        f"{SCHEDULE}LambdaLR(opt, lambda step: min(1.0, (step + 1) / 10))", "sched.step()", SGD.replace("0.01", "0.1"),
        loss="((net(x) - y) ** 2).mean() + (0.0 if step < 30 else (net(x) * 0.0).mean().log())"),
    "a nan in a warm-up that is not its": program(
        f"{SCHEDULE}LambdaLR(opt, lambda step: (step + 1) / 100)", "sched.step()", SGD.replace("0.01", "0.1"),
        loss="((net(x) - y) ** 2).mean() + (0.0 if step < 30 else (net(x) * 0.0).mean().log())"),
    "a nan in a warm-up that has risen far and is not its": program(
        f"{SCHEDULE}LambdaLR(opt, lambda step: (step + 1) / 100)", "sched.step()", SGD.replace("0.01", "0.8"),
        loss="((net(x) - y) ** 2).mean() + (0.0 if step < 60 else (net(x) * 0.0).mean().log())"),
    "a rate that fell before it rose too far": program("", "opt.param_groups[0]['lr'] *= 0.5 if step == 8 else 1.3"),
    "a rate that falls": program(f"{SCHEDULE}ExponentialLR(opt, gamma=0.9)", "sched.step()"),
    "a rate that was too large from the start": program(
        f"{SCHEDULE}ExponentialLR(opt, gamma=1.01)", "sched.step()", SGD.replace("0.01", "9.0")),
    "a rise that does no harm": program(f"{SCHEDULE}ExponentialLR(opt, gamma=1.02)", "sched.step()"),
    "a search for a rate": program(
        "def find_lr():\n    opt.param_groups[0]['lr'] *= 1.3", "find_lr()"),
}  # fmt: skip


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return outcome.found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RISES)
def test_a_rising_rate_is_the_cause_of_all_that_explodes(name, engine, checks):
    text, fix = RISES[name]
    (one,) = found(text, engine, checks)
    assert (one.finding.kind, one.level) == ("rising-rate", "warning")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "the learning rate rises from 0.0" in said
    assert ("explodes" if "finite" in name else "loss = ") in said
    assert "falls to" in said
    assert fix in said
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OTHERS)
def test_a_rate_that_is_not_the_cause_is_left_out(name, engine, checks):
    assert "rising-rate" not in [one.finding.kind for one in found(OTHERS[name], engine, checks)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_that_keeps_the_rates_may_search_for_one(engine, checks):
    text = program("lrs = []", "lrs.append(opt.param_groups[0]['lr'])\nopt.param_groups[0]['lr'] *= 1.3")
    kinds = {one.finding.kind: one.level for one in found(text, engine, checks)}
    assert kinds["rising-rate"] == "note"
    assert "nan-born" in kinds
