"""Losses that select elements without a gradient, and programs that write untracked numbers elsewhere."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)
    @torch.no_grad()  #m
    def margin(self, value):
        return value - 0.35
    def forward(self, x, y):
        cos = torch.tanh(self.fc(x))
        return 8 * cos.scatter(1, y.view(-1, 1), self.margin(cos.gather(1, y.view(-1, 1))))
net, head = nn.Linear(6, 4), Head()
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for i in range(3):
    x, y, rows = torch.randn(12, 6), torch.randint(0, 4, (12,)), torch.arange(12)
    cos = torch.tanh(net(x))
    BODY
    opt.zero_grad()
    (loss + 0.1 * net(x).pow(2).mean() + 0.1 * head.fc(x).pow(2).mean()).backward()
    opt.step()
"""
BLOCK = "with torch.no_grad():\n    "
WRONG = {
    "a margin that is written in place": (
        "warning",
        BLOCK + "hard = torch.cos(torch.acos(cos[rows, y].clamp(-0.9, 0.9)) + 0.5)  #!\n"
        "out = cos.clone()\nout[rows, y] = hard\nloss = F.cross_entropy(out * 8, y)",
    ),
    "a margin of some rows": (
        "warning",
        "some = torch.where(y != 3)[0]\ntarget = cos[some, y[some].view(-1)]\n"
        + BLOCK
        + "target = target - 0.3  #!\n"
        + "out = cos.index_put((some, y[some].view(-1)), target)\nloss = F.cross_entropy(out * 8, y)",
    ),
    "a module with a decorated function": ("warning", "loss = nn.CrossEntropyLoss()(head(x, y), y)"),
    "a choice between two logits": (
        "warning",
        BLOCK
        + "phi = cos - 0.3  #!\nout = torch.where(F.one_hot(y, 4).bool(), phi, cos)\nloss = F.cross_entropy(out, y)",
    ),
    "a mixture by a one-hot tensor": (
        "warning",
        "one_hot = torch.zeros(cos.size())\none_hot.scatter_(1, y.view(-1, 1).long(), 1)\n"
        + BLOCK
        + "phi = cos - 0.3  #!\n"
        + "out = (one_hot * phi) + ((1.0 - one_hot) * cos)\nloss = F.nll_loss(F.log_softmax(out * 8, 1), y)",
    ),
    "the value of an action": (
        "warning",
        BLOCK + "chosen = cos.gather(1, y[:, None]).clamp(-0.5, 0.5)  #!\nq = cos.scatter(1, y[:, None], chosen)\n"
        "loss = (q.gather(1, y[:, None]) - x[:, :1]).pow(2).mean()",
    ),
    "a selection by the loss itself": (
        "warning",
        BLOCK + "hard = cos[rows, y] - 0.3  #!\n"
        "out = cos.clone()\nout[rows, y] = hard\nloss = -F.log_softmax(out, 1)[rows, y].mean()",
    ),
    "a mask by a comparison": (
        "warning",
        BLOCK
        + "phi = cos - 0.3  #!\nout = torch.where(y[:, None] == torch.arange(4), phi, cos)\n"
        + "loss = F.cross_entropy(out, y)",
    ),
    "a detached margin": (
        "note",
        "mask = torch.zeros_like(cos, dtype=torch.bool).scatter_(1, y[:, None], True)\n"
        "hard = cos[mask].detach() - 0.3  #!\nloss = F.cross_entropy(cos.masked_scatter(mask, hard), y)",
    ),
}
RIGHT = {
    "a tracked margin": "out = cos.clone()\nout[rows, y] = cos[rows, y] - 0.3\nloss = F.cross_entropy(out * 8, y)",
    "a margin that depends on the logits": BLOCK
    + "size = cos[rows, y].abs()\nloss = F.cross_entropy(cos - 0.3 * F.one_hot(y, 4) * size[:, None], y)",
    "the other classes": BLOCK
    + "phi = cos + 0.3\nloss = F.cross_entropy(torch.where(F.one_hot(y, 4).bool(), cos, phi), y)",
    "the hardest other class": BLOCK
    + "other = cos - 9 * F.one_hot(y, 4)\n    place = other.argmax(1, keepdim=True)\n    top = cos.gather(1, place)\n"
    "loss = F.cross_entropy(cos.scatter(1, place, top), y)",
    "constants for the true classes": "out = cos.clone()\nout[rows, y] = -1.0\nloss = torch.logsumexp(out, 1).mean()",
    "targets of one action": BLOCK
    + "target = cos.clone()\n    target[rows, y] = x[:, 0]\nloss = F.mse_loss(cos, target)",
    "numbers that are added": BLOCK
    + "more = cos[rows, y] - 0.3\nout = cos.index_put((rows, y), more, accumulate=True)\n"
    + "loss = F.cross_entropy(out, y)",
    "numbers that are added by a one-hot tensor": BLOCK
    + "phi = cos - 0.3\nloss = F.cross_entropy(F.one_hot(y, 4).float() * phi + torch.ones(12, 4) * cos, y)",
    "logits that nothing trains": "other = torch.tanh(nn.Linear(6, 4)(x))\n"
    + BLOCK
    + "hard = other[rows, y] - 0.3\nloss = F.cross_entropy(other.index_put((rows, y), hard), y)",
    "a selection of other places": BLOCK + "old = cos[rows, y]\nout = cos.index_put((rows, y), old)\n"
    "loss = -F.log_softmax(out, 1)[rows, (y + 1) % 4].mean()",
    "old numbers of finished rows": "done = x > 0\n"
    + BLOCK
    + "old = net(x) * 1.0\nloss = F.cross_entropy(torch.where(done[:, :1], old, cos), y)",
}


def found_in(body, engine, checks):
    text = PROGRAM.replace("BODY", body.replace("\n", "\n    "))
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, {one.finding.kind: one for one in outcome.found}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_a_selection_without_a_gradient_is_found(name, engine, checks):
    level, body = WRONG[name]
    text, found = found_in(body, engine, checks)
    one = found["cut-selection"]
    assert one.level == level
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "selects have no gradient" in said
    assert "and was cut at" in said
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!" if "#!" in text else "#m")
    assert one.finding.edit is not None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_untracked_numbers_at_other_places_are_left_out(name, engine, checks):
    assert "cut-selection" not in found_in(RIGHT[name], engine, checks)[1]
