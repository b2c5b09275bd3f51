"""Functions at the end of a model that keep its predictions away from their targets, and those that fit."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(32, 5)
y = x[:, :1] * 2
share = torch.rand(32, 1)
label = (share > 0.5).float()
for step in range(2):
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
UNREACHED = {
    "a relu": ("loss = F.mse_loss(torch.relu(net(x)), y)  #!", ["at least 0", "F.mse_loss(net(x), y)"]),
    "a sigmoid": ("p = torch.sigmoid(net(x))  #!\nloss = F.mse_loss(p, y * 20 + 40)", ["0 to 1", "100%"]),
    "a tanh by hand": ("p = torch.tanh(net(x)).squeeze(1)  #!\nloss = (p - 9 * y[:, 0]).pow(2).mean()", ["-1 to 1"]),
    "a target first": ("loss = (y - F.softplus(net(x))).abs().mean()  #!", ["at least 0"]),
    "a library loss": ("loss = nn.SmoothL1Loss()(torch.sigmoid(net(x)), 5 * y)  #!", ["0 to 1"]),
}  # fmt: skip
REACHED = {
    "a linear layer": "loss = F.mse_loss(net(x), y)",
    "shares": "loss = F.mse_loss(torch.sigmoid(net(x)), share)",
    "noisy shares": "loss = F.mse_loss(torch.sigmoid(net(x)), share + 0.02 * torch.randn(32, 1))",
    "a scaled tanh": "loss = F.mse_loss(10 * torch.tanh(net(x)), y)",
    "positive targets": "loss = F.mse_loss(torch.relu(net(x)), y.abs())",
    "few negative ones": "loss = F.mse_loss(torch.relu(net(x)), share * 9 - 0.5)",
    "a noisy curve": "loss = F.mse_loss(torch.sin(net(x)), torch.sin(y) + 0.3 * torch.randn(32, 1))",
    "a noisy decay": "loss = F.mse_loss(torch.exp(net(x)), torch.exp(-9 * share) + 0.1 * torch.randn(32, 1))",
    "a part of a sum": "rest = y - torch.sin(net(x))\nloss = ((rest - 2) ** 2).mean() + rest.abs().mean()",
    "no rows": "loss = F.mse_loss(torch.sigmoid(net(x[:0])), y[:0]) * 0 + net(x).pow(2).mean()",
    "a clamp": "loss = F.mse_loss(net(x).clamp(0, 1), y)",
    "a hinge": "loss = torch.relu(1 - y.sign() * net(x)).mean()",
    "a norm": "loss = ((net(x).abs() - 1) ** 2).mean()",
    "a relu inside": "loss = F.mse_loss(net(torch.relu(x)), y)",
}
SCORES = {
    "of one class": ("warning", "loss = F.binary_cross_entropy_with_logits(torch.relu(net(x)), label)  #!"),
    "of two classes": (
        "note",
        "both = torch.cat([net(x), -net(x)], 1)\nloss = F.cross_entropy(F.relu(both), label[:, 0].long())  #!",
    ),
}
FREE = {
    "of one class": "loss = F.binary_cross_entropy_with_logits(net(x), label)",
    "of two classes": "loss = F.cross_entropy(torch.cat([net(x), -net(x)], 1), label[:, 0].long())",
    "attention": "loss = (F.log_softmax(torch.relu(net(x)).T, 1).exp() @ y).mean()",
}


def text_of(loss):
    return PROGRAM.replace("LOSS", loss.replace("\n", "\n    "))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", UNREACHED)
def test_targets_that_the_last_function_cannot_give_are_found(name, engine, checks):
    loss, words = UNREACHED[name]
    text = text_of(loss)
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "unreachable-target"]
    assert one.level == "warning"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding)) + one.finding.edit.new
    assert [word for word in words if word not in said] == []
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert (after.errors, [str(each) for each in after.found if each.level != "note"]) == ([], [])


@pytest.mark.parametrize("engine", ENGINES)
def test_the_edit_keeps_the_parentheses_of_a_sum(engine, checks):
    text = text_of("loss = (y * 9 - torch.sin(net(x) + 1)).pow(2).mean()")
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "unreachable-target"]
    assert "(y * 9 - (net(x) + 1)).pow(2)" in one.finding.edit.new


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", REACHED)
def test_targets_within_reach_are_no_finding(name, engine, checks):
    outcome = checks.of_text(text_of(REACHED[name]), engine)
    assert outcome.errors == []
    assert "unreachable-target" not in [one.finding.kind for one in outcome.found]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SCORES)
def test_scores_after_a_relu_are_found(name, engine, checks):
    level, loss = SCORES[name]
    text = text_of(loss)
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "rectified-scores"]
    assert one.level == level
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert "rectified-scores" not in [each.finding.kind for each in after.found]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FREE)
def test_scores_of_any_sign_are_no_finding(name, engine, checks):
    outcome = checks.of_text(text_of(FREE[name]), engine)
    assert outcome.errors == []
    assert "rectified-scores" not in [one.finding.kind for one in outcome.found]
