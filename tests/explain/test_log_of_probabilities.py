"""The logarithm of a softmax or sigmoid that has become 0: the edit computes the logarithm at once, and trains."""

import pytest

HEAD = """import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 2)
x = torch.tensor([[1.0, 2.0], [300.0, -900.0]])
t = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
with torch.no_grad():
    model.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
MENDED = {
    "two lines": ("p = torch.softmax(model(x), dim=1)\nloss = -(t * torch.log(p)).sum(dim=1).mean()\n",
                  "p = torch.log_softmax(model(x), dim=1)\nloss = -(t * p).sum(dim=1).mean()\n"),
    "one line": ("loss = -(t * torch.log(torch.softmax(model(x), dim=1))).sum()\n",
                 "loss = -(t * torch.log_softmax(model(x), dim=1)).sum()\n"),
    "methods": ("loss = -(t * model(x).softmax(1).log()).sum()\n", "loss = -(t * model(x).log_softmax(1)).sum()\n"),
    "a function": ("def nll(z):\n    p = F.softmax(z, 1)\n    return -(t * p.log()).sum()\n\n\nloss = nll(model(x))\n",
                   "def nll(z):\n    p = F.log_softmax(z, 1)\n    return -(t * p).sum()\n\n\nloss = nll(model(x))\n"),
    "a sigmoid": ("p = torch.sigmoid(model(x))\nloss = -torch.log(p).mean()\n",
                  "p = F.logsigmoid(model(x))\nloss = -p.mean()\n"),
}  # fmt: skip


def check(checks, text, engine):
    return next(one.finding for one in checks.of_text(text, engine).found if one.finding.kind == "nan-born")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MENDED)
def test_the_logarithm_is_computed_at_once(name, engine, checks):
    body, mended = MENDED[name]
    text = HEAD + body + "loss.backward()\n"
    one = check(checks, text, engine)
    assert "of the scores" in one.fix
    assert one.edit.applied(text) == HEAD + mended + "loss.backward()\n"
    assert [
        str(found) for found in checks.of_text(one.edit.applied(text), engine).found if found.level == "error"
    ] == []


DESCRIBED = {
    "probabilities that are used again": "p = torch.softmax(model(x), dim=1)\n"
    "loss = -(t * torch.log(p)).sum() + p.max()\n",
    "probabilities of a module": "p = nn.Softmax(1)(model(x))\nloss = -(t * torch.log(p)).sum()\n",
    "probabilities of another function": "def probabilities(z):\n    return torch.softmax(z, dim=1)\n\n\n"
    "loss = -(t * torch.log(probabilities(model(x)))).sum()\n",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DESCRIBED)
def test_the_logarithm_is_described_where_the_edit_would_change_more(name, engine, checks):
    one = check(checks, HEAD + DESCRIBED[name] + "loss.backward()\n", engine)
    assert "log_softmax of the scores" in one.fix
    assert one.edit is None


@pytest.mark.parametrize("engine", ENGINES)
def test_another_logarithm_is_clamped(engine, checks):
    text = HEAD + "loss = -torch.log(model(x).clamp(min=0)).mean()\nloss.backward()\n"
    assert ".clamp(min=1e-8)" in check(checks, text, engine).edit.new


@pytest.mark.parametrize("engine", ENGINES)
def test_a_branch_of_where_gets_a_safe_input_first(engine, checks):
    text = (
        HEAD + "p = torch.softmax(model(x), dim=1)\nloss = torch.where(p > 0, torch.log(p), p).sum()\nloss.backward()\n"
    )
    kinds = {one.finding.kind: one.finding for one in checks.of_text(text, engine).found}
    born = kinds.get("nan-born") or kinds["nan-born-backward"]
    assert born.fix.startswith("make the input safe before where()")


@pytest.mark.parametrize("engine", ENGINES)
def test_probabilities_that_are_taken_in_parts_are_described(engine, checks):
    body = "p = torch.softmax(model(x), dim=1)\nloss = -torch.log(p.reshape(-1)).sum() + p.max()\nloss.backward()\n"
    assert "log_softmax of the scores" in check(checks, HEAD + body, engine).fix


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sigmoid_without_the_name_f_is_described(engine, checks):
    text = HEAD.replace("import torch.nn.functional as F\n", "")
    one = check(checks, text + "loss = -torch.log(torch.sigmoid(model(x))).mean()\nloss.backward()\n", engine)
    assert one.fix.startswith("F.logsigmoid of the scores")
    assert one.edit is None
