"""Labels of tokens that the data shifts and the loss shifts again, and labels that are shifted once."""

import numpy as np
import pytest

from gviz.explain.finding import lines
from gviz.explain.findings.loss.shifted_labels import _arranged, _index

HEAD = """import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
text = torch.randint(0, 20, (400,))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.head = nn.Embedding(21, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 21)

    def forward(self, x):
        return self.head(self.rnn(self.emb(x))[0])


def shift_right(labels):
    shifted = labels.new_zeros(labels.shape)
    shifted[:, 1:] = labels[:, :-1].clone()
    shifted[:, 0] = 20
    return shifted


def causal_loss(logits, labels):
    return F.cross_entropy(logits[..., :-1, :].reshape(-1, 21), labels[..., 1:].reshape(-1))


def padded_loss(logits, labels):
    labels = F.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()
    return F.cross_entropy(logits.view(-1, 21), labels.view(-1))


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(4):
    starts = torch.randint(0, 380, (6,)).tolist()
    tokens = torch.stack([text[s : s + 12] for s in starts])
    bos = torch.full((6, 1), 20)
    BODY
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]


def found(body, checks, engine):
    text = HEAD.replace("BODY", body.replace("\n", "\n    "))
    return text, [one for one in checks.of_text(text, engine).found if one.finding.kind == "shifted-twice"]


PAIR = "x, y = tokens[:, :-1], tokens[:, 1:]\n"
SICK = {
    "a decoder": "loss = causal_loss(net(shift_right(tokens)), tokens)",
    "a pair of the data": PAIR + "loss = causal_loss(net(x), y)",
    "windows": "x = torch.stack([text[s : s + 11] for s in starts])\n"
    "y = torch.stack([text[s + 1 : s + 12] for s in starts])\nloss = causal_loss(net(x), y)",
    "joined": "loss = causal_loss(net(torch.cat([bos, tokens[:, :-1]], 1)), tokens)",
    "rolled": "x = tokens.roll(1, 1)\nx[:, 0] = 20\nloss = causal_loss(net(x), tokens)",
    "padded": "loss = padded_loss(net(shift_right(tokens)), tokens)",
    "places of a list": "y = tokens.clone()\ny[:, [0, 1]] = bos\nloss = causal_loss(net(shift_right(tokens)), y)",
    "a number of the text in front": "y = tokens.clone()\ny[:, 0] = text[3]\n"
    "loss = causal_loss(net(shift_right(tokens)), y)",
    "classes in the middle": PAIR + "loss = F.cross_entropy(net(x)[:, :-1].transpose(1, 2), y[:, 1:])",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SICK)
def test_labels_that_are_shifted_twice(name, engine, checks):
    text, (one,) = found(SICK[name], checks, engine)
    assert one.level == "warning"
    assert len(one.finding.text) <= 80
    assert "1:]" in text.splitlines()[one.finding.at.line - 1] or name == "padded"
    assert "one token after" in str(one.finding)


ONCE = {
    "by the data": PAIR + "loss = F.cross_entropy(net(x).reshape(-1, 21), y.reshape(-1))",
    "by the loss": "loss = causal_loss(net(tokens), tokens)",
    "by the padded loss": "loss = padded_loss(net(tokens), tokens)",
    "by a decoder": "loss = F.cross_entropy(net(shift_right(tokens)).view(-1, 21), tokens.view(-1))",
    "with an ignored start": "y = tokens.clone()\ny[:, :3] = -100\nloss = causal_loss(net(tokens), y)",
    "with a token in front": "logits = net(torch.cat([bos, tokens], 1))[:, 1:-1]\n"
    "loss = F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:])",
    "and further ahead": PAIR + "logits = net(x)\nloss = causal_loss(logits, y)\n"
    "loss = loss + F.cross_entropy(logits.transpose(1, 2), y)",
    "periodic": "tokens = torch.arange(12).remainder(2).repeat(6, 1)\n" + PAIR
    + "loss = F.cross_entropy(net(x).transpose(1, 2), y)",
    "other tokens": "loss = causal_loss(net(shift_right(tokens)), tokens.flip(1))",
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ONCE)
def test_labels_that_are_shifted_once_are_right(name, engine, checks):
    _, ones = found(ONCE[name], checks, engine)
    assert [str(one.finding) for one in ones] == []


BY_TWO = {
    "by a slice": "loss = F.cross_entropy(net(tokens[:, :-2]).transpose(1, 2), tokens[:, 2:])  #!",
    "by a slice of the logits": "logits = net(tokens)[:, :-2]\ntarget = tokens[:, 2:]  #!\n"
    "loss = F.cross_entropy(logits.reshape(-1, 21), target.reshape(-1))",
    "by narrow": "target = tokens.narrow(1, 2, 10)  #!\n"
    "loss = F.cross_entropy(net(tokens)[:, :-2].transpose(1, 2), target)",
    "after rows were chosen": "some = tokens[1:, :-1]\ntarget = some[1:, 2:]  #!\n"
    "loss = F.cross_entropy(net(some[1:])[:, :-2].transpose(1, 2), target)",
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", BY_TWO)
def test_labels_that_one_shift_moves_by_two_may_be_meant(name, engine, checks):
    text, (one,) = found(BY_TWO[name], checks, engine)
    assert (one.level, "twice" in str(one.finding)) == ("note", False)
    assert "by two in one place" in "\n".join(row for _, row, _ in lines(one.finding))
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


WINDOWS = (
    "y = torch.stack([text[s + 2 : s + 14] for s in starts])\nloss = F.cross_entropy(net(tokens).transpose(1, 2), y)"
)
UNKNOWN = {
    "windows": WINDOWS,
    "a loss by hand, too": PAIR + "logits = net(x)\nlogps = logits.log_softmax(-1)\n"
    "main = -logps.gather(-1, y[:, :, None]).mean()\nloss = main + causal_loss(logits, y)",
    "a loss of chosen places, too": PAIR + "logits = net(x)\nplaces = y > 3\n"
    "loss = F.cross_entropy(logits[places], y[places]) + causal_loss(logits, y)",
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", UNKNOWN)
def test_labels_two_tokens_ahead_may_be_meant(name, engine, checks):
    _, (one,) = found(UNKNOWN[name], checks, engine)
    assert (one.level, "twice" in one.finding.text) == ("note", name != "windows")


LOADED = """import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
rows = torch.randint(0, 20, (12, 9)).tolist()
emb, head = nn.Embedding(20, 8), nn.Linear(8, 20)
opt = torch.optim.SGD([*emb.parameters(), *head.parameters()], lr=0.1)
for i in range(0, 12, 4):
    x, y = (torch.tensor([row[at : at + 8] for row in rows[i : i + 4]]) for at in (0, 1))
    logits = head(emb(x))
    loss = F.cross_entropy(logits[:, :-1].reshape(-1, 20), y[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_labels_without_a_common_memory_are_compared_by_their_elements(engine, checks):
    found = [one for one in checks.of_text(LOADED, engine).found if one.finding.kind == "shifted-twice"]
    assert [(one.level, one.finding.at.line) for one in found] == [("warning", 11)]
    once = LOADED.replace("logits[:, :-1]", "logits").replace("y[:, 1:]", "y")
    assert "shifted-twice" not in {one.finding.kind for one in checks.of_text(once, engine).found}


def test_how_operations_arrange_elements():
    row = np.arange(6).reshape(2, 3)
    assert _arranged("pad", [row], {"pad": [1, -1]}).tolist() == [[-1, 0, 1], [-1, 3, 4]]
    assert _arranged("roll", [row], {"shifts": 1, "dims": []}).tolist() == [[5, 0, 1], [2, 3, 4]]
    assert _arranged("cat", [row, row + 6], {"dim": -1}).shape == (2, 6)
    assert _arranged("stack", [row, row + 6], {"dim": 1}).shape == (2, 2, 3)
    assert _arranged("flip", [row], {}) is None
    assert _index([["slice", None, None, None], 0]) == (slice(None), 0)
    assert _index([["tensor"]]) is None
