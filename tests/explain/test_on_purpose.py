"""What an expert does on purpose, although it looks like a mistake, and the mistake itself."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x = torch.randn(16, 4)
"""
PAIRS = """
net = nn.Linear(4, 1)
for i in range(3):
    p, n = net(x), OTHER
    torch.relu(1 - (p - n)).mean().backward()
"""
WEIGHTED = """
net = nn.Linear(4, 3)
a = torch.arange(16) % 3
weight = torch.linspace(-1, 1, 16)[:, None]
for i in range(3):
    F.nll_loss(LOGARITHM * weight, a).backward()
"""
MADE_ANEW = """
net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
source = {key: value.clone() for key, value in net.state_dict().items()}
saved = [p.detach().clone() for p in net.parameters()]
for i in range(4):
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    with torch.no_grad():
        START
    loss = (net(x + i) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
MINIMIZED = """
w = torch.randn(4, requires_grad=True)
for i in range(4):
    opt = torch.optim.LBFGS([w], lr=0.1, max_iter=EVALUATIONS)
    def closure():
        opt.zero_grad()
        loss = ((x @ w - 1) ** 2).mean() + 10.0 ** i * w.sum() ** 2
        loss.backward()
        return loss
    opt.step(closure)
"""
PICKED = """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
mu, s = nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.zeros(3, 4))
opt = torch.optim.Adam([*net.parameters(), mu, s], lr=0.01)
y = torch.arange(16) % 3
for i in range(3):
    out = net(x)
    p = torch.softmax(out, 1)
    density = (-0.5 * ((x[:, None] - mu) / (s - 2.0).exp()) ** 2 - s + 9.0).sum(2)
    loss = LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        regret = F.nll_loss(x, y)
"""
COPIED = """
emb, out = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
COPY
opt = torch.optim.SGD([*emb.parameters(), *out.parameters()], lr=0.1)
i = torch.arange(10)
for step in range(3):
    opt.zero_grad()
    F.cross_entropy(out(emb(i)), i).backward()
    opt.step()
"""
GROUP = """
net = nn.Linear(4, 3)
for step in range(6):
    net.zero_grad()
    logs = net(x).log_softmax(1)[:, 0]
    reward = torch.arange(16.0) if step in STEPS else torch.ones(16)
    adv = reward - reward.mean()
    (-logs * adv).mean().backward()
"""
TOKENS = """
emb, head = nn.Embedding(7, 4), nn.Linear(4, 7)
mask = torch.ones(8, 8, dtype=torch.bool).triu()
for step in range(4):
    tokens = torch.randint(7, (6, 9))
    h = emb(tokens[:, INPUT])
    h = F.scaled_dot_product_attention(h, h, h, attn_mask=mask)
    F.cross_entropy(head(h).transpose(1, 2), tokens[:, LABELS]).backward()
"""
SCALED = """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scale = 2.0 ** 127
for step in range(12):
    opt.zero_grad()
    loss = F.mse_loss(net(x), 10 * x[:, :1])
    (loss * scale).backward()
    grads = [p.grad for p in net.parameters()]
    if CHECKED and not all(torch.isfinite(g).all() for g in grads):
        scale /= 16
        continue
    for g in grads:
        g.div_(scale)
    STEP
"""
BY_HAND = "with torch.no_grad():\n        for p in net.parameters():\n            p -= 0.01 * p.grad"
GATES = """
s = nn.Parameter(torch.tensor([-1.0, -0.5, 0.5, 1.0]))
for step in range(4):
    s.grad = None
    (F.linear(x, torch.tanh(SLOPE)) - x[:, 0]).pow(2).mean().backward()
    with torch.no_grad():
        s *= GROWTH
"""
RUNNING = """
from torch.utils.checkpoint import checkpoint
block = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 4))
head = nn.Linear(4, 1)
opt = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
for step in range(3):
    h = checkpoint(BLOCK, x, use_reentrant=False, preserve_rng_state=KEPT)
    opt.zero_grad()
    (head(h) - x[:, :1]).pow(2).mean().backward()
    opt.step()
"""
REFUSED = """
import contextlib
import unittest
w = torch.ones(4, requires_grad=True)
y = (w * x).pow(2).sum()
y.backward()
def train():
    y.backward()
SHOWN
"""
RUN_IN_BACKWARD = """
x = torch.randn(128, 3)
y = 1 + 0.5 * torch.tanh(x[:, :1])
def steps(x):
    part = (x[:, :1] < torch.linspace(-0.6, 0.6, 6)).float().mean(1, keepdim=True)
    return DRAW(2 * part) + torch.floor(20 * x[:, 1:]) / 20
class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return steps(x)
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        BACKWARD
net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(12):
    loss = (Function.apply(net(x)) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
AT_OTHER_INPUTS = """total = torch.zeros(128, 2)
        for _ in range(8):
            d = torch.randint(0, 2, (128, 2)).float() * 2 - 1
            change = (steps(x + 0.2 * d) - steps(x - 0.2 * d)) / 0.4
            total += (g * change).sum(1, keepdim=True) * d
        return total / 8"""
AT_THE_SAME_INPUTS = """with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = steps(x)
        return torch.autograd.grad(y, x, g)[0]"""
LAYERS = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.v = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        weights = self.q(x).softmax(1).detach()
        return x + weights * self.v(x)
blocks = nn.ModuleList(Block() for _ in range(3))
for step in range(3):
    h = x
    for block in BLOCKS:
        h = block(h)
    h.pow(2).mean().backward()
"""
CASES = {
    "all pairs of two scores": ("broadcast", PAIRS.replace("OTHER", "net(-x).squeeze(1)"), "note"),
    "a column against data": ("broadcast", PAIRS.replace("OTHER", "x[:, 0]"), "warning"),
    "weighted logarithms": ("no-log-probabilities", WEIGHTED.replace("LOGARITHM", "F.log_softmax(net(x), 1)"), ""),
    "weighted scores": ("no-log-probabilities", WEIGHTED.replace("LOGARITHM", "net(x)"), "warning"),
    "a model that is loaded again for each batch": (
        "new-optimizer", MADE_ANEW.replace("START", "net.load_state_dict(source)"), ""),
    "parameters that get their saved numbers": (
        "new-optimizer",
        MADE_ANEW.replace("START", "for p, one in zip(net.parameters(), saved):\n            p.copy_(one)"),
        ""),
    "parameters that are made smaller": (
        "new-optimizer",
        MADE_ANEW.replace("START", "for p in net.parameters():\n            p.copy_(0.9 * p)"),
        "warning"),
    "parameters that are clamped": (
        "new-optimizer",
        MADE_ANEW.replace("START", "for p in net.parameters():\n            p.data = p.data.clamp(-0.2, 0.2)"),
        "warning"),
    "an optimizer that is made anew": ("new-optimizer", MADE_ANEW.replace("START", "pass"), "warning"),
    "a minimization in each iteration": ("new-optimizer", MINIMIZED.replace("EVALUATIONS", "10"), ""),
    "one evaluation in each iteration": ("new-optimizer", MINIMIZED.replace("EVALUATIONS", "1"), "warning"),
    "scores of a model": ("no-log-probabilities", PICKED.replace("LOSS", "F.nll_loss(out / 0.1, y)"), "warning"),
    "scores behind an activation, with a penalty of weights": (
        "no-log-probabilities",
        PICKED.replace("LOSS", "F.nll_loss(F.relu(out), y) + 0.1 * mu.pow(2).sum()"),
        "warning"),
    "scores of a product with a parameter": (
        "no-log-probabilities", PICKED.replace("LOSS", "F.nll_loss(x @ mu.t() + s[:, 0], y)"), "warning"),
    "scores of two labels": (
        "no-log-probabilities",
        PICKED.replace("LOSS", "0.7 * F.nll_loss(out, y) + 0.3 * F.nll_loss(out, y.flip(0))"),
        "warning"),
    "probabilities of a model": ("no-log-probabilities", PICKED.replace("LOSS", "F.nll_loss(p, y)"), "warning"),
    "scores and their normalizer": (
        "no-log-probabilities", PICKED.replace("LOSS", "F.nll_loss(out, y) + out.logsumexp(1).mean()"), ""),
    "energies and their normalizer": (
        "no-log-probabilities", PICKED.replace("LOSS", "F.nll_loss(-out, y) + (-out).logsumexp(1).mean()"), ""),
    "log densities": ("no-log-probabilities", PICKED.replace("LOSS", "F.nll_loss(density, y)"), ""),
    "the logarithm of the probability that is picked": (
        "no-log-probabilities", PICKED.replace("LOSS", '-(-F.nll_loss(p, y, reduction="none")).log().mean()'), ""),
    "numbers that are picked for a report": (
        "no-log-probabilities", PICKED.replace("LOSS", "F.cross_entropy(out, y)"), ""),
    "a copy at the start": (
        "untied", COPIED.replace("COPY", "with torch.no_grad():\n    out.weight.copy_(emb.weight)"), "note"),
    "a copy through data": ("untied", COPIED.replace("COPY", "out.weight.data.copy_(emb.weight.data)"), "note"),
    "a tie that broke": (
        "untied", COPIED.replace("COPY", "out.load_state_dict({'weight': emb.weight.detach().clone()})"), "warning"),
    "a language model from right to left": (
        "inverted-mask", TOKENS.replace("INPUT", "1:").replace("LABELS", ":-1"), ""),
    "a mask of the wrong triangle": (
        "inverted-mask", TOKENS.replace("INPUT", ":-1").replace("LABELS", "1:"), "warning"),
    "labels that are no tokens of the input": (
        "inverted-mask",
        TOKENS.replace("INPUT", ":-1").replace("tokens[:, LABELS]", "tokens[:, :-1].flip(1).cumsum(1).flip(1) % 7"),
        "note"),
    "numbers to predict, and a mask of the wrong triangle": (
        "inverted-mask",
        TOKENS.replace("INPUT", ":-1")
        .replace("F.cross_entropy(head(h).transpose(1, 2), tokens[:, LABELS])",
                 "F.mse_loss(head(h)[..., 0], tokens[:, 1:].float())"),
        "warning"),
    "a detach in each layer": ("partly-detached", LAYERS.replace("BLOCKS", "blocks"), ""),
    "equal rewards at the end": ("masked", GROUP.replace("STEPS", "(0, 1, 2, 3)"), ""),
    "equal rewards mostly": ("masked", GROUP.replace("STEPS", "(0,)"), "note"),
    "equal rewards always": ("masked", GROUP.replace("STEPS", "()"), "warning"),
    "a scaled loss that overflows, and its pass is dropped": (
        "nan-born", SCALED.replace("CHECKED", "True").replace("STEP", "opt.step()"), ""),
    "gradients that overflow in a pass that is dropped": (
        "nan-born-backward", SCALED.replace("CHECKED", "True").replace("STEP", "opt.step()"), ""),
    "gradients that overflow, without an optimizer": (
        "nan-born-backward", SCALED.replace("CHECKED", "True").replace("STEP", BY_HAND), ""),
    "gradients that overflow and are used": (
        "nan-born-backward", SCALED.replace("CHECKED", "False").replace("STEP", "opt.step()"), "error"),
    "gradients that overflow and are used without an optimizer": (
        "nan-born-backward", SCALED.replace("CHECKED", "False").replace("STEP", BY_HAND), "error"),
    "running statistics in a checkpoint": (
        "other-recomputation", RUNNING.replace("BLOCK", "block").replace("KEPT", "True"), ""),
    "running statistics and dropout that is drawn again": (
        "other-recomputation", RUNNING.replace("BLOCK", "block").replace("KEPT", "False"), "warning"),
    "noise that is drawn again": (
        "other-recomputation",
        RUNNING.replace("BLOCK", "lambda x: block(x * (0.1 * torch.randn(16, 4)))").replace("KEPT", "False"),
        "warning"),
    "an error that a lesson shows": (
        "second-backward",
        REFUSED.replace("SHOWN", "try:\n    y.backward()\nexcept RuntimeError as error:\n    print(error)"),
        "note"),
    "an error that a test expects": (
        "second-backward",
        REFUSED.replace("SHOWN", "with unittest.TestCase().assertRaises(RuntimeError):\n    train()"),
        "note"),
    "an error that is suppressed": (
        "second-backward", REFUSED.replace("SHOWN", "with contextlib.suppress(RuntimeError):\n    train()"), "note"),
    "an error after which the program goes on": (
        "second-backward",
        REFUSED.replace("SHOWN", "try:\n    train()\nexcept Exception:\n    pass\n(w * x).sum().backward()"),
        "note"),
    "an error that ends the program with a message": (
        "second-backward",
        REFUSED.replace("SHOWN", "try:\n    train()\nexcept Exception as error:\n    print(error)"),
        "error"),
    "a function whose backward evaluates it at other inputs": (
        "other-recomputation", RUN_IN_BACKWARD.replace("DRAW", "1 * ").replace("BACKWARD", AT_OTHER_INPUTS), ""),
    "a checkpoint of the program that draws again": (
        "other-recomputation",
        RUN_IN_BACKWARD.replace("DRAW", "F.dropout").replace("BACKWARD", AT_THE_SAME_INPUTS),
        "warning"),
    "gates that become hard": (
        "saturated", GATES.replace("SLOPE", "4.0 ** step * s").replace("GROWTH", "1.0"), ""),
    "a temperature that falls": (
        "saturated", GATES.replace("SLOPE", "s / 0.25 ** step + 0.1").replace("GROWTH", "1.0"), ""),
    "gates that are hard from early on": (
        "saturated", GATES.replace("SLOPE", "9.0 ** step * s").replace("GROWTH", "1.0"), "note"),
    "weights that grow": (
        "saturated", GATES.replace("SLOPE", "1.0 * s").replace("GROWTH", "4.0"), "warning"),
    "weights that grow faster than the slope": (
        "saturated", GATES.replace("SLOPE", "1.5 ** step * s").replace("GROWTH", "4.0"), "warning"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_what_is_meant_is_silent_or_a_question(name, engine, checks):
    kind, text, level = CASES[name]
    outcome = checks.of_text(HEAD + text, engine)
    assert outcome.errors == []
    assert {one.level for one in outcome.found if one.finding.kind == kind} == ({level} if level else set())
