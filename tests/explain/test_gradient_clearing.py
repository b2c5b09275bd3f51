"""Sums of gradients over several passes: some are meant, and the others are not cleared."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
SHARPNESS = """import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(16, 4)
y = x[:, :1] * 2
for i in range(5):
    opt.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    moves = []
    with torch.no_grad():
        for p in net.parameters():
            moves.append(0.05 * p.grad / (p.grad.norm() + 1e-12))
            p.add_(moves[-1])
    nn.functional.mse_loss(net(x), y).backward()
    with torch.no_grad():
        for p, move in zip(net.parameters(), moves):
            p.sub_(move)
            AFTER
    opt.step()
"""
BY_HAND = """import torch
torch.manual_seed(0)
x = torch.randn(20, 3)
y = x @ torch.tensor([1.0, -2.0, 0.5])
w = torch.zeros(3, requires_grad=True)
for t in range(1, 9):
    ((x @ w - y) ** 2).mean().backward()
    with torch.no_grad():
        UPDATE
"""


def kinds(text, engine, checks):
    return {one.finding.kind for one in checks.of_text(text, engine).found}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text",
    [
        SHARPNESS.replace("AFTER", "p.grad.mul_(0.5)"),
        SHARPNESS.replace("AFTER", "p.grad /= 2"),
        BY_HAND.replace("UPDATE", "w.copy_(-w.grad / t**0.5)"),
        BY_HAND.replace("UPDATE", "w.data.copy_(-0.1 * w.grad)"),
        BY_HAND.replace("UPDATE", "w.copy_(start - w.grad / t**0.5)").replace("for t", "start = w.detach() * 1\nfor t"),
    ],
)
def test_a_mean_of_two_gradients_and_a_leaf_made_of_its_sum_are_meant(text, engine, checks):
    assert "not-cleared" not in kinds(text, engine, checks)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text",
    [
        SHARPNESS.replace("AFTER", "pass"),
        SHARPNESS.replace("AFTER", "p.grad.mul_(0.9)"),
        SHARPNESS.replace("p.sub_(move)", "p.mul_(0.9)").replace("AFTER", "p.grad.mul_(0.5)"),
        SHARPNESS.replace("p.sub_(move)", "p.sub_(0.5 * move)").replace("AFTER", "p.grad.mul_(0.5)"),
        SHARPNESS.replace("p.sub_(move)", "p.sub_(0.5 * move)")
        .replace("AFTER", "p.grad.mul_(0.5)")
        .replace("opt = ", "nn.init.constant_(net.weight, 1000.0)\nnn.init.constant_(net.bias, 1000.0)\nopt = "),
        BY_HAND.replace("UPDATE", "w.copy_(w - 0.1 * w.grad)"),
        BY_HAND.replace("UPDATE", "w.data.copy_(w.data - 0.1 * w.grad.data)"),
        BY_HAND.replace("UPDATE", "same.copy_(same - 0.1 * w.grad)").replace("for t", "same = w.detach()\nfor t"),
    ],
)
def test_a_sum_that_a_step_uses_is_not_meant(text, engine, checks):
    assert "not-cleared" in kinds(text, engine, checks)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "level"),
    [
        (SHARPNESS.replace("AFTER", "pass"), "note"),
        (
            SHARPNESS.replace("moves = []", "saved = [p.detach().clone() for p in net.parameters()]\n    moves = []")
            .replace("zip(net.parameters(), moves)", "zip(net.parameters(), saved)")
            .replace("p.sub_(move)", "p.copy_(move)")
            .replace("AFTER", "pass"),
            "note",
        ),
        (SHARPNESS.replace("p.sub_(move)", "p.mul_(0.9)").replace("AFTER", "pass"), "error"),
    ],
)
def test_a_sum_with_the_gradient_at_numbers_that_are_taken_back_may_be_meant(text, level, engine, checks):
    found = [one for one in checks.of_text(text, engine).found if one.finding.kind == "not-cleared"]
    assert {one.level for one in found} == {level}


TWO_POINTS = """
import torch
torch.manual_seed(0)
w = LEAF
opt = torch.optim.SGD([w], lr=0.02)
for step in range(4):
    e = 0.4 * torch.randn(2)
    opt.zero_grad()
    with torch.no_grad():
        w += e
    (0.5 * w.pow(2).sum()).backward()
    with torch.no_grad():
        w -= 2 * e
    (0.5 * w.pow(2).sum()).backward()
    with torch.no_grad():
        w += BACK
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_difference_of_gradients_on_both_sides_of_a_point_is_meant(engine, checks):
    text = """import torch
w, v = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([0.1, -0.1, 0.05])
w.data += v
(w ** 4).sum().backward()
w.data -= 2 * v
(-(w ** 4).sum()).backward()
w.data += BACK
print(w.grad)
"""
    assert "error" not in {one.level for one in checks.of_text(text.replace("BACK", "v"), engine).found}
    assert "error" in {one.level for one in checks.of_text(text.replace("BACK", "0.3 * v"), engine).found}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("leaf", ["torch.tensor([2.0, -1.5], requires_grad=True)", "torch.nn.Parameter(torch.ones(2))"])
@pytest.mark.parametrize(("back", "level"), [("e", "note"), ("0.2 * e", "error")])
def test_gradients_on_both_sides_of_a_point_may_be_meant(leaf, back, level, engine, checks):
    found = checks.of_text(TWO_POINTS.replace("BACK", back).replace("LEAF", leaf), engine).found
    assert {one.level for one in found if one.finding.kind == "not-cleared"} == {level}
