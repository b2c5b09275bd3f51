"""Data that a write in place changes again in each epoch, and tensors that are meant to change."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import numpy as np
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
data, target = torch.randn(6, 4), torch.randn(6, 1)
array = np.random.RandomState(0).randn(6, 4).astype("float32")
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
SETUP
for epoch in range(3):
    START
    for i in range(0, 6, 2):
        y = target[i:i + 2]
        READ
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def loop(read, setup="", start="pass"):
    text = HEAD.replace("READ", read.replace("\n", "\n        ")).replace("START", start.replace("\n", "\n    "))
    return text.replace("SETUP", setup)


SHARED = {
    "an array": (
        loop("x = torch.from_numpy(array[i:i + 2])  #!\n"
             "x *= torch.empty(1).uniform_(0.6, 1.3)\nx += 0.1 * torch.randn(2, 4)"),
        ["6 of 9", "has left", "torch.from_numpy(array[i:i + 2]).clone()"],
    ),
    "a view": (
        loop("x = data[i:i + 2]  #!\nx.mul_(0.9).add_(torch.randn_like(x), alpha=0.1)"),
        ["6 of 9", "x = data[i:i + 2].clone()"],
    ),
    "a list of tensors": (
        loop("x = samples[i // 2]  #!\nx.mul_(1.1)", "samples = [torch.randn(2, 4) for _ in range(3)]"),
        ["is written to again", "x = samples[i // 2].clone()"],
    ),
    "a variable of a loop": (
        loop("for x in (samples[i // 2],):\n    x.div_(2)  #!", "samples = [torch.randn(2, 4) for _ in range(3)]"),
        ["is written to again", "x = x.clone()"],
    ),
    "a function": (
        loop("x = augment(data[i:i + 2])",
             "def augment(img):\n    img *= 1 + 0.2 * torch.rand(1)  #!\n    return img\n"),
        ["has left", "img = img.clone()"],
    ),
    "a normalization in each epoch": (
        loop("x = data[i:i + 2]", "mean, std = data.mean(0), data.std(0)", "data.sub_(mean).div_(std + 1)  #!"),
        ["is written to again", "once before the loop"],
    ),
    "a whole data set": (
        loop("x = images[i:i + 2]", "images = torch.rand(6, 4) * 255", "images /= 255.0  #!"),
        ["is written to again", "once before the loop"],
    ),
    "a data set of the library": ("""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
F = nn.functional
torch.manual_seed(0)
class Rows(Dataset):
    def __init__(self):
        self.rows = np.random.RandomState(0).randn(6, 4).astype("float32")
    def __len__(self):
        return 6
    def __getitem__(self, i):
        row = torch.from_numpy(self.rows[i])  #!
        row.mul_(0.9 + 0.2 * torch.rand(1))
        return row, row.sum()
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
loader = DataLoader(Rows(), batch_size=3, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        loss = F.mse_loss(net(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""", ["12 of 18", "torch.from_numpy(self.rows[i]).clone()"]),
}  # fmt: skip
HAND_MADE = """
import torch
gen = torch.Generator().manual_seed(5)
def init(*shape):
    return (torch.randn(*shape, generator=gen) / shape[0] ** 0.5).requires_grad_()
params = {"w1": init(4, 8), "b1": torch.zeros(8, requires_grad=True), "w2": init(8, 1)}
speed = {name: torch.zeros_like(w) for name, w in params.items()}
for i in range(6):
    x = torch.rand(16, 4, generator=gen)
    loss = (torch.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] - x[:, :1]).pow(2).mean()
    grads = torch.autograd.grad(loss, list(params.values()))
    with torch.no_grad():
        for (name, w), g in zip(params.items(), grads):
            speed[name].mul_(0.9).add_(g)
            w.sub_(0.05 * speed[name])
            if name.startswith("w"):
                w.mul_(1 - 0.001)
"""
HEALTHY = {
    "a parameter that is made and trained by hand": HAND_MADE,
    "a copy": loop("x = data[i:i + 2].clone()\nx *= 1.1\nx += 0.1 * torch.randn(2, 4)"),
    "a copy of an array": loop("x = torch.from_numpy(array[i:i + 2]).clone()\nx.mul_(torch.rand(1))"),
    "a write to a result": loop("x = data[i:i + 2] * 1.1\nx.add_(torch.randn_like(x)).clamp_(-1, 1)"),
    "an index of rows": loop("x = data[torch.tensor([i, i + 1])]\nx *= 0.9"),
    "data that stays within its limits": loop("x = data[i:i + 2]\nx.clamp_(-9, 9)"),
    "a normalization before the loop": loop("x = data[i:i + 2]", "data.sub_(data.mean(0)).div_(data.std(0))"),
    "a normalization that changes nothing again": loop(
        "x = data[i:i + 2]", start="data.sub_(data.mean(0)).div_(data.std(0))"),
    "running statistics": loop(
        "b = data[i:i + 2]\nmean.mul_(0.9).add_(0.1 * b.mean(0))\nx = b - mean", "mean = torch.zeros(4)"),
    "statistics of each part": loop(
        "m = means[i // 2]\nm *= 0.9\nm += 0.1 * data[i:i + 2].mean(0)\nx = data[i:i + 2] - m",
        "means = torch.randn(3, 4)"),
    "an adversarial example": loop(
        "x = data[i:i + 2].clone()\nfor step in range(3):\n    d = x.clone().requires_grad_()\n"
        "    (g,) = torch.autograd.grad(F.mse_loss(net(d), y), d)\n    x.add_(0.01 * g.sign())"),
    "a perturbation that is refined": loop(
        "delta = torch.zeros(2, 4, requires_grad=True)\nfor step in range(3):\n"
        "    (g,) = torch.autograd.grad(F.mse_loss(net(data[i:i + 2] + delta), y), delta)\n"
        "    delta.data.add_(0.01 * g.sign()).clamp_(-0.1, 0.1)\nx = data[i:i + 2] + delta.detach()"),
    "a universal perturbation": loop(
        "d = delta.clone().requires_grad_()\n(g,) = torch.autograd.grad(F.mse_loss(net(data[i:i + 2] + d), y), d)\n"
        "delta.add_(0.01 * g.sign()).clamp_(-0.1, 0.1)\nx = data[i:i + 2] + delta", "delta = torch.zeros(4)"),
    "a latent": loop(
        "x = data[i:i + 2] + z\nz.data.mul_(0.99)",
        "z = torch.zeros(4, requires_grad=True)\nopt.add_param_group({'params': [z]})"),
    "a hidden state": loop(
        "h.mul_(0.5).add_(data[i:i + 2])\nx = torch.tanh(h)", "h = torch.zeros(2, 4)"),
    "a state of the model": loop(
        "x = data[i:i + 2] + h\nwith torch.no_grad():\n    h.mul_(0.5).add_(net(x))", "h = torch.zeros(2, 4)"),
    "a replay buffer": loop(
        "buffer[i:i + 2] = data[i:i + 2] * 2\nbuffer[i + 1] *= 0.5\nx = buffer[i:i + 2]", "buffer = torch.zeros(6, 4)"),
    "counters": loop(
        "count += 1\nseen[i:i + 2] += 1\nx = data[i:i + 2] + 0.01 * torch.sin(time)\ntime += 0.1",
        "count, seen, time = torch.zeros(()), torch.zeros(6), torch.arange(4.0)"),
    "an average of the weights": loop(
        "x = data[i:i + 2]\nwith torch.no_grad():\n"
        "    for e, p in zip(average, net.parameters()):\n        e.mul_(0.9).add_(p, alpha=0.1)\n"
        "x = x - 0 * F.linear(x, average[0])",
        "average = [p.detach().clone() for p in net.parameters()]"),
    "momentum by hand": loop(
        "x = data[i:i + 2]\nfor v, p in zip(momenta, net.parameters()):\n    v.mul_(0.9)\n"
        "    if p.grad is not None:\n        v.add_(p.grad)",
        "momenta = [torch.randn_like(p) for p in net.parameters()]"),
    "noise that is drawn again": loop(
        "noise.normal_()\nnoise.mul_(0.1)\nx = data[i:i + 2] + noise", "noise = torch.zeros(2, 4)"),
    "weights of a loss": loop(
        "x = data[i:i + 2]\ny = y * weights[:, None]\nweights *= 0.99", "weights = torch.tensor([1.0, 2.0])"),
    "the averages of an optimizer": loop("x = data[i:i + 2]", "opt = torch.optim.Adadelta(net.parameters())"),
    "new tensors of a line": loop("x = torch.zeros(2, 4)\nx += data[i:i + 2]\nx *= 1.1"),
    "memory that is used again": loop("x = torch.empty(2, 4).normal_()\nx.mul_(2)\nx = x + data[i:i + 2]"),
}  # fmt: skip


def changed(text, engine, checks):
    return [one for one in checks.of_text(text, engine).found if one.finding.kind == "changed-data"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SHARED)
def test_data_that_is_changed_again_is_found_and_copied(name, engine, checks):
    text, words = SHARED[name]
    text = text if text.startswith("\nimport") else HEAD + text
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = changed(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    said += one.finding.edit.new if one.finding.edit is not None else ""
    assert one.level == "note"
    assert [word for word in words if word not in said] == []
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    if one.finding.edit is not None:
        found = checks.of_text(one.finding.edit.applied(text), engine).found
        assert [str(other) for other in found if other.level != "note" or other.finding.kind == "changed-data"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_tensor_that_is_meant_to_change_is_not_reported(name, engine, checks):
    outcome = checks.of_text(HEALTHY[name], engine)
    assert outcome.errors == []
    assert [str(one) for one in changed(HEALTHY[name], engine, checks)] == []
