"""Gradients that a program divides itself, and parameters that it sets from those of another model."""

import pytest
from explain.programs import recorded_text

from gviz.explain.typed_question import answers

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
"""
SUMS = """
x, y = torch.randn(176, 4), torch.randint(0, 3, (176,))
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
weight = torch.full((176,), 0.3)
for epoch in range(3):
    opt.zero_grad()
    seen, total = 0, 0.0
    for i, rows in enumerate(torch.arange(176).split(16)):
        loss = F.cross_entropy(net(x[rows]), y[rows], reduction="sum")
        loss.backward()
        seen += len(rows)
        total += weight[rows].sum().item()
        if i % 4 == 3 or i == 10:
            CHANGE
            opt.step()
            opt.zero_grad()
            seen, total = 0, 0.0
"""


def sums(change):
    return HEAD + SUMS.replace("CHANGE", change.replace("\n", "\n            "))


DIVIDED = {
    "in place": sums("for p in net.parameters():\n    p.grad.div_(seen)"),
    "in place, and clipped then": sums(
        "for p in net.parameters():\n    p.grad.div_(seen)\nnn.utils.clip_grad_norm_(net.parameters(), 0.1)"),
    "by an operator": sums("for p in net.parameters():\n    p.grad /= seen"),
    "by another tensor": sums("for p in net.parameters():\n    p.grad = p.grad / seen"),
    "by a product": sums("for p in net.parameters():\n    p.grad.mul_(1 / 64)"),
    "by a constant that is no whole number": sums("for p in net.parameters():\n    p.grad.mul_(0.03)"),
}  # fmt: skip
NOT_DIVIDED = {
    "nothing": sums("pass"),
    "clipped": sums("nn.utils.clip_grad_norm_(net.parameters(), 0.1)"),
    "clipped by hand": sums(
        "size = sum(p.grad.norm() ** 2 for p in net.parameters()) ** 0.5\n"
        "for p in net.parameters():\n    p.grad.mul_(0.01 / size)"),
    "changed in one of them": sums("net.bias.grad.mul_(0.37)"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DIVIDED)
def test_a_sum_that_the_program_divides_is_not_reported(name, engine, checks):
    assert [str(one) for one in checks.of_text(DIVIDED[name], engine).found] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NOT_DIVIDED)
def test_a_sum_that_is_used_as_it_is_is_reported(name, engine, checks):
    found = checks.of_text(NOT_DIVIDED[name], engine).found
    assert "summed-loss" in {one.finding.kind for one in found}


@pytest.mark.parametrize("engine", ENGINES)
def test_means_that_the_program_divides_by_their_number_are_not_reported(engine, checks):
    text = (
        HEAD
        + """
x, y = torch.randn(16, 4), torch.randn(16, 1)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    opt.zero_grad()
    for rows in range(0, 16, 4):
        F.mse_loss(net(x[rows:rows + 4]), y[rows:rows + 4]).backward()
    for p in net.parameters():
        p.grad.div_(4)
    opt.step()
"""
    )
    assert [str(one) for one in checks.of_text(text, engine).found] == []
    plain = checks.of_text(text.replace("p.grad.div_(4)", "pass"), engine).found
    assert [one.finding.kind for one in plain] == ["summed-passes"]


META = """
net = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))


def adapt(fast):
    opt = torch.optim.SGD(fast.parameters(), lr=0.05)
    x = torch.randn(8, 1)
    for _ in range(2):
        loss = F.mse_loss(fast(x), torch.sin(x))
        opt.zero_grad()
        loss.backward()
        opt.step()


for it in range(3):
    fast = copy.deepcopy(net)
    adapt(fast)
    UPDATE
"""


def meta(update):
    return HEAD + META.replace("UPDATE", update.replace("\n", "\n    "))


SET_FROM_OTHERS = {
    "by .data": meta(
        "with torch.no_grad():\n    for p, q in zip(net.parameters(), fast.parameters()):\n"
        "        p.data = p.data + 0.5 * (q.data - p.data)"),
    "in place": meta(
        "with torch.no_grad():\n    for p, q in zip(net.parameters(), fast.parameters()):\n"
        "        p.mul_(0.5).add_(0.5 * q)"),
    "by lerp_": meta(
        "with torch.no_grad():\n    for p, q in zip(net.parameters(), fast.parameters()):\n        p.lerp_(q, 0.5)"),
    "through .data in place": meta(
        "for p, q in zip(net.parameters(), fast.parameters()):\n    p.data.add_(q.data - p.data, alpha=0.5)"),
    "by a copy": meta(
        "for p, q in zip(net.parameters(), fast.parameters()):\n    p.data.copy_((p.data + q.data) / 2)"),
    "by a state": meta(
        "old, new = net.state_dict(), fast.state_dict()\n"
        "net.load_state_dict({k: old[k] + 0.5 * (new[k] - old[k]) for k in old})"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SET_FROM_OTHERS)
def test_parameters_that_follow_others_need_no_gradient(name, engine, checks):
    assert [str(one) for one in checks.of_text(SET_FROM_OTHERS[name], engine).found] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_question_about_such_a_parameter_is_answered(engine, tmp_path):
    timeline = recorded_text(SET_FROM_OTHERS["by .data"], tmp_path, engine)
    (finding,) = answers(timeline, "net.0.weight.grad")
    assert "got no gradient" in finding.text


@pytest.mark.parametrize("engine", ENGINES)
def test_a_parameter_that_is_only_limited_is_reported(engine, checks):
    text = meta("for p in net.parameters():\n    p.data.clamp_(-0.1, 0.1)")
    assert [one.finding.kind for one in checks.of_text(text, engine).found] == ["not-reached"]
