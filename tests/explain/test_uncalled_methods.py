"""Lines that name a method of the training loop and do not call it, and lines that are right."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
sched = torch.optim.lr_scheduler.StepLR(opt, 10)
x, y = torch.randn(16, 4), torch.randn(16, 1)


def evaluate(net):
    net.eval()
    with torch.no_grad():
        return (net(x) - y).pow(2).mean().item()


def test(net, opt):
    try:
        opt.step
    except AttributeError:
        print("no optimizer")
    print(evaluate(net))


for epoch in range(4):
    net.train()
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    test(net, opt)
step = opt.step
"""
CALLS = {
    "opt.step()": "no parameter is updated",
    "opt.zero_grad()": "add up",
    "net.eval()": "dropout stays active",
    "net.train()": "eval mode",
    "sched.step()": "the learning rate stays as it is",
}


def without_parentheses(call):
    return PROGRAM.replace(f"    {call}\n", f"    {call[:-2]}\n", 1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("call", CALLS)
def test_a_line_without_parentheses_is_found_and_mended(call, engine, checks):
    text = without_parentheses(call)
    (one,) = checks.of_text(text, engine).found
    assert (one.finding.kind, one.level) == ("not-called", "warning")
    assert text.splitlines()[one.finding.at.line - 1].strip() == call[:-2]
    assert CALLS[call] in one.finding.parts[0].text
    assert one.finding.fix == call
    assert one.finding.edit.applied(text) == PROGRAM


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_without_gradients_names_the_line_that_does_not_call_backward(engine, checks):
    (one,) = checks.of_text(without_parentheses("loss.backward()"), engine).found
    assert one.finding.kind == "empty-step"
    assert "which names it and does not call it" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
def test_backward_that_is_not_called_is_found_without_a_step(engine, checks):
    text = without_parentheses("loss.backward()").replace("    opt.step()\n    sched.step()\n", "")
    (one,) = checks.of_text(text, engine).found
    assert (one.finding.kind, one.finding.fix) == ("not-called", "loss.backward()")
    assert "no gradient is computed" in one.finding.parts[0].text


@pytest.mark.parametrize("engine", ENGINES)
def test_methods_that_are_called_asked_for_or_kept_are_not_found(engine, checks):
    assert [str(one) for one in checks.of_text(PROGRAM, engine).found] == []
