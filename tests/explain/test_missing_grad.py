"""Errors because a ``.grad`` is None, where the line reads it of a loop variable, an item or an argument."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
START = """
import torch
from torch import nn
torch.manual_seed(0)
X = torch.randn(16, 4)
"""
SCALED = "W = torch.randn(4, 4, requires_grad=True) * 0.1  #!\nb = torch.zeros(4, requires_grad=True)\n"
LOSS = "loss = torch.tanh(X @ W + b).pow(2).mean()\nloss.backward()\n"
SICK = {
    "a list of parameters": (
        f"{SCALED}parameters = [b, W]\n{LOSS}"
        "with torch.no_grad():\n    for p in parameters:\n        p -= 0.1 * p.grad\n",
        "not a leaf",
    ),
    "with another leaf that no loss uses": (
        f"{SCALED}other = torch.ones(2, requires_grad=True)\n{LOSS}"
        "for p in (b, W):\n    p.data.sub_(p.grad, alpha=0.1)\n",
        "not a leaf",
    ),
    "a dict": (
        "params = {\n    'b': torch.zeros(4, requires_grad=True),\n"
        "    'W': torch.randn(4, 4, requires_grad=True).mul(0.1),  #!\n}\n"
        "loss = (X @ params['W'] + params['b']).pow(2).mean()\nloss.backward()\n"
        "for name, p in params.items():\n    p.data -= 0.1 * p.grad\n",
        "not a leaf",
    ),
    "an argument": (
        "def sgd(params, lr):\n    for p in params:\n        step = p.grad\n        p.data -= lr * step\n"
        f"{SCALED}{LOSS}sgd([b, W], 0.1)\n",
        "not a leaf",
    ),
    "items of a list": (
        "Ws = [torch.randn(4, 4, requires_grad=True) * 0.1 for _ in range(2)]  #!\n"
        "h = X\nfor w in Ws:\n    h = torch.tanh(h @ w)\nh.pow(2).mean().backward()\nprint(Ws[0].grad.norm())\n",
        "not a leaf",
    ),
    "norms of a frozen layer": (
        "net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))\n"
        "for p in net[0].parameters():\n    p.requires_grad = False  #!\n"
        "net(X).pow(2).mean().backward()\n"
        "total = sum(p.grad.norm() ** 2 for p in net.parameters())\n",
        "requires_grad was set to False",
    ),
}
RIGHT = {
    "scaled first": SICK["a list of parameters"][0].replace("requires_grad=True) * 0.1  #!", "requires_grad=False)")
    .replace("b = torch", "W = (W * 0.1).requires_grad_()\nb = torch"),
    "only gradients that are there": SICK["norms of a frozen layer"][0].replace(
        "net.parameters())", "net.parameters() if p.grad is not None)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SICK)
def test_the_reason_of_the_missing_gradient_is_named(name, engine, checks):
    text, reason = START + SICK[name][0], SICK[name][1]
    (one,) = [each for each in checks.of_text(text, engine).found if each.level == "error"]
    assert one.finding.kind == "failed"
    assert ".grad is None" in one.finding.text
    words = "\n".join(row for _, row, _ in lines(one.finding))
    assert reason in words
    cause = next(number for number, row in enumerate(text.splitlines(), 1) if row.endswith("#!"))
    assert f"program.py:{cause}" in words
    if reason == "not a leaf":
        edit = next(each.edit for each in (one.finding, *one.finding.parts) if each.edit is not None)
        mended = checks.of_text(edit.applied(text), engine)
        assert (mended.errors, [each for each in mended.found if each.level == "error"]) == ([], [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_updates_with_all_gradients_have_no_finding(name, engine, checks):
    right = checks.of_text(START + RIGHT[name], engine)
    assert (right.errors, [each for each in right.found if each.level == "error"]) == ([], [])
