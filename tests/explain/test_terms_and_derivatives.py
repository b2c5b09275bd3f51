"""Sums with a term too many or too few, second derivatives, checkpoints, schedules; and programs that nearly have them.

The line to name ends with ``#!``.
"""

import runpy
from time import perf_counter

import pytest
from explain.programs import recorded_text

from gviz.explain.check import check
from gviz.explain.finding import lines
from gviz.explain.findings.errors.checkpoint import other_recomputation
from gviz.explain.recording_survey import Survey
from gviz.trace import load
from gviz.trace.recording.record import record

HEAD = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
F = nn.functional
torch.manual_seed(0)
"""
TORCH = pytest.mark.torch

LOOP = """
net, a, b = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 1)
opt = torch.optim.SGD([*net.parameters(), *a.parameters(), *b.parameters()], lr=0.1)
for i in range(3):
    h = net(torch.randn(16, 4)).tanh()
    first, second = a(h).pow(2).mean(), b(h).pow(2).mean()
    opt.zero_grad()
"""
SCATTER = """
lin = nn.Linear(4, 2)
opt = torch.optim.SGD(lin.parameters(), lr=0.1)
rows = torch.tensor([0, 1, 1, 2, 0])
for i in range(2):
    out, x = torch.zeros(4, 2), lin(torch.randn(5, 4))
"""
SCATTERED = """
    opt.zero_grad()
    out.pow(2).sum().backward()
    opt.step()
"""
FLOW = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Linear(2, 2)

    def forward(self, x):
        s = self.s(x).tanh()
        return x * s.exp(), s.sum(1)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x):
        BODY


flow = Flow()
opt = torch.optim.SGD(flow.parameters(), lr=0.1)
for i in range(2):
    z, total = flow(torch.randn(8, 2))
    loss = (0.5 * z.pow(2).sum(1) - total).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
POINTS = """
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1, bias=False))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    x = torch.rand(6, 2, requires_grad=True)
    u = net(x)
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
"""
SOLVED = """
    loss = (du[:, 1] - second).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BLOCKS = """
block, out = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 1)
opt = torch.optim.SGD([*block.parameters(), *out.parameters()], lr=0.1)
x = torch.randn(16, 4, requires_grad=True)
for i in range(2):
    h = CALL
    loss = out(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
INNER = """
from torch.func import functional_call
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    x, y = torch.randn(2, 8, 3), torch.randn(2, 8, 1)
    params = dict(net.named_parameters())
    loss = F.mse_loss(functional_call(net, params, (x[0],)), y[0])
"""
OUTER = """
    opt.zero_grad()
    outer.backward()
    opt.step()
"""
PLATEAU = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(32, 3)
y = x.sum(1, keepdim=True)
"""
EPOCHS = """
for epoch in range(8):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        val = F.mse_loss(net(x), y)
        right = ((net(x) > 0) == (y > 0)).float().mean()
"""
IMAGES = """
table = torch.linspace(0.1, 0.9, 50)
emb, conv = nn.Embedding(50, 4), nn.Conv2d(1, 1, 3, padding=1)
opt = torch.optim.SGD(conv.parameters(), lr=0.1)
for i in range(3):
    x, t = torch.randn(6, 1, 6, 6), torch.randint(0, 50, (6,))
"""
IMAGES_END = """
    loss = (conv(x) - noise).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
REVERSAL = """
class GradReverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return SENT, None  #!


class Scale(GradReverse):
    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale, None


net, head = nn.Linear(3, 4), nn.Linear(4, 2)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for i in range(3):
    loss = F.cross_entropy(head(CALL), torch.tensor([0, 1, 0, 1, 1]))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
POLICY = """
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3), nn.LogSoftmax(-1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    x, gain = torch.randn(16, 4), torch.randn(16)
"""
POLICY_END = """
    opt.zero_grad()
    (-ratio * gain).mean().backward()
    opt.step()
"""
TOKEN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 1)
        TOKEN

    def forward(self, x):
        return self.lin(x + self.token)


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = net(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

BOTH = ("builtin", "torch")
MISTAKES = {
    "a gradient by an argument that is not used": (
        "w, scale = torch.randn(3), torch.randn(3)\n\n\ndef loss(w, x):\n    return (scale * x).sum()\n\n\n"
        "print(torch.func.grad(loss)(w, torch.ones(3)))  #!\n",
        ("torch",), "note", "unused", ["does not use its argument", "fills its gradient with zeros"], "argnums=",
    ),
    "a Jacobian by an argument that is not used": (
        "kept = torch.randn(2)\n\n\ndef model(x):\n    return kept * 2\n\n\n"
        "jacobian = torch.func.jacrev(model)(torch.ones(3))  #!\n",
        ("torch",), "note", "unused", ["does not use its argument"], "argnums=",
    ),
    "a term with a pass of its own": (
        LOOP + "    first.backward(retain_graph=True)  #!\n    (first + second).backward()\n    opt.step()\n",
        BOTH, "warning", "counted-again", ["counts twice", "has both gradients"], "zero_grad() before the second",
    ),
    "a weighted term with a pass of its own": (
        LOOP + "    second.backward(retain_graph=True)  #!\n    total = first + 0.1 * second\n"
        "    total.backward()\n    opt.step()\n",
        BOTH, "warning", "counted-again", ["counts twice"], "autograd.grad()",
    ),
    "a term with a pass of its own after the sum": (
        LOOP + "    (first + second).backward(retain_graph=True)\n    first.backward()  #!\n    opt.step()\n",
        BOTH, "warning", "counted-again", ["counts twice: alone, and as a term", "both gradients"],
        "leave out this backward()",
    ),
    "a weighted sum before its term": (
        LOOP + "    total = (first + 0.5 * second) / 2\n    total.backward(retain_graph=True)\n"
        "    second.backward()  #!\n    opt.step()\n",
        BOTH, "warning", "counted-again", ["counts twice", "has both gradients"],
        "leave out this backward()",
    ),
    "a list of losses before one of them": (
        LOOP + "    losses = torch.stack([first, second])\n    losses.sum().backward(retain_graph=True)\n"
        "    first.backward()  #!\n    opt.step()\n",
        BOTH, "warning", "counted-again", ["counts twice"], "leave out this backward()",
    ),
    "an addition at equal indices": (
        SCATTER + "    out[rows] += x  #!" + SCATTERED,
        BOTH, "warning", "duplicate-index", ["loses terms", "2 terms are lost: of"], "index_add_",
    ),
    "a subtraction at more indices than rows": (
        SCATTER.replace("torch.tensor([0, 1, 1, 2, 0])", "torch.arange(2000) % 4").replace("(5, 4)", "(2000, 4)")
        + "    out[rows] -= x  #!" + SCATTERED,
        BOTH, "warning", "duplicate-index", ["1996 terms are lost"], "index_add_",
    ),
    "a sum that each turn replaces": (
        FLOW.replace("BODY", "total = x.new_zeros(len(x))\n        for layer in self.layers:\n"
                             "            x, total = layer(x)  #!\n        return x, total"),
        BOTH, "note", "last-term", ["only the last total", "starts with zeros"], "total = total + ...",
    ),
    "a sum of numbers that each turn replaces": (
        FLOW.replace("BODY", "total = 0.0\n        for layer in self.layers:\n            x, term = layer(x)\n"
                             "            total = term * 1.0  #!\n        return x, total"),
        BOTH, "note", "last-term", ["only the last total"], "if it is a sum",
    ),
    "a second derivative of all columns": (
        POINTS + "    second = torch.autograd.grad(du.sum(), x, create_graph=True)[0][:, 0]  #!" + SOLVED,
        ("torch",), "note", "cross-derivatives", ["mixes 2 columns"], "one column at a time",
    ),
    "a second derivative of all columns with ones": (
        POINTS + "    ones = torch.ones_like(du)\n"
        "    second = torch.autograd.grad(du, x, ones, create_graph=True)[0][:, 0]  #!" + SOLVED,
        ("torch",), "note", "cross-derivatives", ["mixes 2 columns", "grad_outputs= of ones adds up"],
        "one column at a time",
    ),
    "a sum over the columns of such a second derivative": (
        POINTS + "    second = torch.autograd.grad(du.sum(), x, create_graph=True)[0].sum(1)  #!" + SOLVED,
        ("torch",), "note", "cross-derivatives", ["mixes 2 columns"], "one column at a time",
    ),
    "a second derivative of all columns, which the function uses twice": (
        POINTS.replace("u = net(x)", "u = x[:, :1] * net(x)")
        + "    second = torch.autograd.grad(du.sum(), x, create_graph=True)[0][:, 0]  #!" + SOLVED,
        ("torch",), "note", "cross-derivatives", ["mixes 2 columns"], "one column at a time",
    ),
    "dropout that is drawn again": (
        BLOCKS.replace("CALL", "checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)  #!"),
        ("torch",), "warning", "other-recomputation", ["gives other numbers", "another forward"], "preserve_rng_state",
    ),
    "dropout that a reentrant checkpoint draws again": (
        BLOCKS.replace("CALL", "checkpoint(block, x, use_reentrant=True, preserve_rng_state=False)  #!"),
        ("torch",), "warning", "other-recomputation", ["gives other numbers"], "preserve_rng_state",
    ),
    "noise that is made anew in a checkpoint": (
        BLOCKS.replace("CALL", "checkpoint(lambda x: block(x + torch.randn(16, 4)), x, "
                               "use_reentrant=False, preserve_rng_state=False)  #!"),
        ("torch",), "warning", "other-recomputation", ["gives other numbers", "made on the same line"],
        "preserve_rng_state",
    ),
    "dropout in a checkpoint of a sequence": (
        BLOCKS.replace("CALL", "checkpoint_sequential([*block, *block[:3], nn.Tanh()], 2, x, use_reentrant=False, "
                               "preserve_rng_state=False)  #!")
        .replace("8), nn.Tanh", "4), nn.Tanh").replace("8, 1", "4, 1"),
        ("torch",), "warning", "other-recomputation", ["gives other numbers", "another forward"], "preserve_rng_state",
    ),
    "adapted weights that no loss uses": (
        INNER + "    grads = torch.autograd.grad(loss, params.values(), create_graph=True)  #!\n"
        "    fast = {k: p - 0.1 * g for (k, p), g in zip(params.items(), grads)}\n"
        "    outer = F.mse_loss(net(x[1]), y[1])" + OUTER,
        ("torch",), "note", "idle-graph", ["no loss depends", "does not use it"], "functional_call(model, adapted",
    ),
    "a plateau of a loss for a maximum": (
        PLATEAU + "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode='max', patience=1)  #!"
        + EPOCHS + "    sched.step(val)\n",
        BOTH, "warning", "plateau-mode", ["a schedule for a maximum gets the loss", "it fell from"], 'mode="min"',
    ),
    "a plateau of an accuracy for a minimum": (
        PLATEAU + "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)  #!"
        + EPOCHS + "    val_acc = 1 - val.item()\n    sched.step(val_acc)\n",
        BOTH, "warning", "plateau-mode", ["a schedule for a minimum gets val_acc"], 'mode="max"',
    ),
    "a plateau of a loss that is given by name": (
        PLATEAU + "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode='max', patience=1)  #!"
        + EPOCHS + "    sched.step(metrics=val.item())\n",
        BOTH, "warning", "plateau-mode", ["a schedule for a maximum gets the loss"], 'mode="min"',
    ),
    "a checkpoint next to a plain call": (
        BLOCKS.replace("CALL", "(checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)  #!\n"
                               "         + block(x))"),
        ("torch",), "warning", "other-recomputation", ["gives other numbers"], "preserve_rng_state",
    ),
    "a number for each sample that meets the columns": (
        IMAGES + "    noise = torch.randn_like(x)\n    a = table[t]\n    x = a.sqrt() * x  #!" + IMAGES_END,
        BOTH, "note", "broadcast", ["meets the columns", "(6,1,6,6)"], ".view(-1, 1, 1, 1)",
    ),
    "a reversal that reverses nothing": (
        REVERSAL.replace("SENT", "g * ctx.scale").replace("CALL", "GradReverse.apply(net(torch.randn(5, 3)), 0.5)"),
        BOTH, "note", "wrong-rule", ["keeps the sign of the gradient", "sent 0.5 times"], "-ctx.scale * grad",
    ),
    "a reversal that is turned round twice": (
        REVERSAL.replace("SENT", "g.neg() * ctx.scale").replace("GradReverse", "GRL")
        .replace("CALL", "GRL.apply(net(torch.randn(5, 3)), -0.5)"),
        BOTH, "note", "wrong-rule", ["keeps the sign of the gradient", "sent 0.5 times"], "turn it round once",
    ),
    "old log-probabilities with a graph": (
        POLICY + "    old = net(x)[:, 0]\n    ratio = torch.exp(net(x)[:, 0] - old)  #!" + POLICY_END,
        BOTH, "note", "cancelled", ["are equal, and both depend on it"], "detach() the term",
    ),
    "a view of a parameter": (
        TOKEN.replace("TOKEN", "self.token = nn.Parameter(torch.randn(2, 2)).view(4)  #!"),
        BOTH, "warning", "never-stepped", ["is no parameter: it is computed from one", "holds 2 other"],
        "Parameter last",
    ),
    "a multiple of a parameter": (
        TOKEN.replace("TOKEN", "self.token = nn.Parameter(torch.randn(4)) * 0.02  #!"),
        BOTH, "error", "second-backward", ["made only once"], "Parameter last",
    ),
    "parameters in a dictionary that an update replaces": (
        """
params = {"w": torch.randn(3) * 0.1, "b": torch.zeros(())}
for p in params.values():
    p.requires_grad_(True)
for i in range(2):
    loss = (torch.randn(8, 3) @ params["w"] + params["b"]).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for name in params:
            params[name] = params[name] - 0.1 * params[name].grad  #!
""",
        BOTH, "error", "untracked-loss", ["inside no_grad"], "params[name] -= 0.1 * params[name].grad, in place",
    ),
    "one module of several layers in a list": (
        """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x):
        return self.b(self.a(x).tanh())


net = nn.Sequential(*[Block()] * 3)  #!
net(torch.randn(5, 4)).pow(2).mean().backward()
""",
        BOTH, "note", "shared", ["and 3 more belong to one module that a list contains 3 times"], "create each module",
    ),
    "one module of one layer in a list": (
        """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return self.a(x).tanh()


net = nn.Sequential(*[Block()] * 3)  #!
net(torch.randn(5, 4)).pow(2).mean().backward()
""",
        BOTH, "note", "shared", ["and 1 more belong to one module"], "create each module separately",
    ),
    "sparse gradients for Adam": (
        """
emb = nn.Embedding(9, 4, sparse=True)
opt = torch.optim.Adam(emb.parameters(), lr=0.1)
emb(torch.tensor([1, 2])).pow(2).mean().backward()
opt.step()  #!
""",
        ("torch",), "error", "failed", ["Adam does not support sparse gradients", "gets it"], "SparseAdam",
    ),
    "dropout within vmap": (
        """
from torch.func import functional_call, grad, vmap
net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
params = {k: p.detach() for k, p in net.named_parameters()}
each = vmap(grad(lambda p, x: functional_call(net, p, (x,)).sum()), in_dims=(None, 0))  #!
each(params, torch.randn(5, 3))
""",
        ("torch",), "error", "failed", ["should differ between samples"], 'randomness="different"',
    ),
    "a cache around several steps": (
        """
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import orthogonal
net = orthogonal(nn.Linear(4, 4, bias=False))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
with parametrize.cached():  #!
    for i in range(2):
        loss = net(torch.randn(8, 4)).pow(2).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        ("torch",), "error", "second-backward", ["it is kept by the block"], "enter cached() in each step",
    ),
    "a result that is made once in a block of the program's own cached()": (
        """
from contextlib import contextmanager
@contextmanager
def cached():
    yield
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
with cached():
    mean = net(torch.randn(8, 4)).mean()  #!
    for i in range(2):
        loss = (net(torch.randn(8, 4)) - mean).pow(2).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        BOTH, "error", "second-backward", ["made only once"], "anew in each step",
    ),
    "equal labels next to each other in a target without room": (
        """
net = nn.Linear(4, 3)
scores = net(torch.randn(3, 1, 4)).log_softmax(2)
F.ctc_loss(scores, torch.tensor([[1, 1, 2]]), (3,), (3,)).backward()  #!
""",
        ("torch",), "error", "nan-born", ["equal ones in a row need a step between"], "zero_infinity",
    ),
}  # fmt: skip

HEALTHY = {
    "a second derivative of one column with ones, and its product with a vector": (
        POINTS + "    first = du[:, :1]\n    ones = torch.ones_like(first)\n"
        "    mixed = torch.autograd.grad(du, x, torch.tensor([[1.0, 2.0]] * 6), create_graph=True)[0][:, 1]\n"
        "    second = torch.autograd.grad(first, x, ones, create_graph=True)[0][:, 0] + mixed" + SOLVED,
        ("torch",)),
    "dropout of ones, in a forward and of a gradient": (
        "net = nn.Linear(8, 8)\nh = net(F.dropout(torch.ones(4, 8)))\n"
        "h.register_hook(lambda g: F.dropout(g))\nh.sum().backward()\n", BOTH),
    "a gradient by an argument that is used": (
        "w = torch.randn(3)\nprint(torch.func.grad(lambda w, x: (w * x).sum())(w, torch.ones(3)))\n", ("torch",)),
    "a second derivative of a linear function": (
        "w = torch.randn(3)\nprint(torch.func.grad(lambda w: torch.func.grad(lambda v: (v * 3).sum())(w).sum())(w))\n",
        ("torch",)),
    "gradients by all arguments": (
        "w, b = torch.randn(3), torch.randn(2)\n"
        "print(torch.func.grad(lambda w, b: (w * 2).sum(), argnums=(0, 1))(w, b))\n", ("torch",)),
    "two losses that share a part": (
        LOOP + "    first.backward(retain_graph=True)\n    second.backward()\n    opt.step()\n", BOTH),
    "a gradient that is cleared before the sum": (
        LOOP + "    first.backward(retain_graph=True)\n    size = net.weight.grad.norm().item()\n    opt.zero_grad()\n"
        "    (first + second).backward()\n    opt.step()\n", BOTH),
    "a gradient that is only looked at": (
        LOOP + "    g = torch.autograd.grad(first, net.weight, retain_graph=True)[0].norm()\n"
        "    (first + second).backward()\n    opt.step()\n", BOTH),
    "a gradient that is cleared after the sum": (
        LOOP + "    (first + second).backward(retain_graph=True)\n    size = net.weight.grad.norm().item()\n"
        "    opt.zero_grad()\n    first.backward()\n    opt.step()\n", BOTH),
    "a term whose gradient is only looked at after the sum": (
        LOOP + "    (first + second).backward(retain_graph=True)\n"
        "    g = torch.autograd.grad(second, b.bias)[0].norm()\n    opt.step()\n", BOTH),
    "a sum and another loss": (
        LOOP + "    (first + second).backward(retain_graph=True)\n    a(net(torch.ones(2, 4))).mean().backward()\n"
        "    opt.step()\n", BOTH),
    "a step between a loss and the sum": (
        LOOP + "    first.backward(retain_graph=True)\n    opt.step()\n    opt.zero_grad()\n"
        "    total = 2 * b(net(torch.randn(3, 4))).mean()\n"
        "    total.backward()\n    opt.step()\n", BOTH),
    "an addition at distinct indices": (SCATTER.replace("[0, 1, 1, 2, 0]", "[0, 1, 3, 2]").replace("(5, 4)", "(4, 4)")
                                        + "    out[rows] += x" + SCATTERED, BOTH),
    "an addition that accumulates": (SCATTER + "    out.index_add_(0, rows, x)" + SCATTERED, BOTH),
    "an addition to rows that accumulates": (
        SCATTER + "    out = out.index_put((rows,), out[rows] + x, accumulate=True)" + SCATTERED, BOTH),
    "an addition at a mask": (
        SCATTER.replace("torch.tensor([0, 1, 1, 2, 0])", "torch.tensor([True, True, False, True])")
                              .replace("(5, 4)", "(3, 4)") + "    out[rows] += x" + SCATTERED, BOTH),
    "an addition to a slice": (SCATTER + "    out[1:3] += x[:2]" + SCATTERED, BOTH),
    "an addition to columns in another order": (
        SCATTER.replace("torch.tensor([0, 1, 1, 2, 0])", "torch.randperm(300)").replace("(5, 4)", "(2, 4)")
        .replace("nn.Linear(4, 2)", "nn.Linear(4, 300)").replace("zeros(4, 2)", "zeros(2, 300)")
        + "    out[:, rows] += x" + SCATTERED, BOTH),
    "rows that are read several times": (SCATTER + "    out = out[:2] + x[rows][:2]" + SCATTERED, BOTH),
    "a sum over layers": (
        FLOW.replace("BODY", "total = x.new_zeros(len(x))\n        for layer in self.layers:\n"
                             "            x, term = layer(x)\n            total = total + term\n"
                             "        return x, total"), BOTH),
    "a sum in place over layers": (
        FLOW.replace("BODY", "total = 0.0\n        for layer in self.layers:\n"
                             "            x, term = layer(x)\n            total += term\n        return x, total"),
                             BOTH),
    "the last result of a recurrent layer": (
        """
cell, out = nn.GRUCell(3, 4), nn.Linear(4, 2)
opt = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
for i in range(2):
    x, h = torch.randn(5, 8, 3), torch.zeros(8, 4)
    for step in x:
        h = cell(step, h)
        y = out(h)
    loss = y.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""", BOTH),
    "a loss that starts with zero and is used in each turn": (
        """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss = torch.tensor(0.0)
for i in range(3):
    loss = net(torch.randn(8, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss)
""", BOTH),
    "a second derivative of one column": (
        POINTS + "    second = torch.autograd.grad(du[:, 0].sum(), x, create_graph=True)[0][:, 0]" + SOLVED,
        ("torch",)),
    "a second derivative by one coordinate": (
        POINTS.replace("x = torch.rand(6, 2, requires_grad=True)\n    u = net(x)",
                       "x, t = torch.rand(2, 6, 1, requires_grad=True).unbind()\n    u = net(torch.cat([x, t], 1))")
        + "    second = torch.autograd.grad(du.sum(), x, create_graph=True)[0][:, 0]\n    du = torch.cat([du, du], 1)"
        + SOLVED, ("torch",)),
    "a second derivative of a function of each element": (
        POINTS.replace("u = net(x)", "u = net(torch.stack([x, x], -1)).squeeze(-1)")
        + "    second = torch.autograd.grad(du.sum(), x, create_graph=True)[0][:, 0]" + SOLVED, ("torch",)),
    "a second derivative of a function of each column": (
        POINTS.replace("u = net(x)", "u = (net(torch.ones(1, 2)) * x**3).sum(1)")
        + "    second = torch.autograd.grad(du.sum(), x, create_graph=True)[0][:, 0]" + SOLVED, ("torch",)),
    "a second derivative of a function of each element with a dimension of one": (
        POINTS.replace("u = net(x)", "u = net(torch.stack([x, x], -1))")
        + "    second = torch.autograd.grad(du.sum(), x, create_graph=True)[0][:, 0]" + SOLVED, ("torch",)),
    "a product of the second derivatives and a vector": (
        POINTS + "    v = torch.randn(2)\n"
        "    second = torch.autograd.grad((du * v).sum(), x, create_graph=True)[0][:, 0]" + SOLVED, ("torch",)),
    "a penalty of the size of a gradient": (
        POINTS + "    second = (du.norm(dim=1) - 1)" + SOLVED, ("torch",)),
    "dropout in a checkpoint": (BLOCKS.replace("CALL", "checkpoint(block, x, use_reentrant=False)"), ("torch",)),
    "dropout in a reentrant checkpoint": (BLOCKS.replace("CALL", "checkpoint(block, x, use_reentrant=True)"),
    ("torch",)),
    "a checkpoint without a draw": (
        BLOCKS.replace("nn.Dropout(0.5)", "nn.Tanh()")
        .replace("CALL", "checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)"), ("torch",)),
    "dropout twice without a checkpoint": (BLOCKS.replace("CALL", "block(x) + block(x)"), BOTH),
    "adapted weights that a loss uses": (
        INNER + "    grads = torch.autograd.grad(loss, params.values(), create_graph=True)\n"
        "    fast = {k: p - 0.1 * g for (k, p), g in zip(params.items(), grads)}\n"
        "    outer = F.mse_loss(functional_call(net, fast, (x[1],)), y[1])" + OUTER, ("torch",)),
    "a norm of gradients that is only printed": (
        INNER + "    grads = torch.autograd.grad(loss, params.values(), create_graph=True)\n"
        "    print(sum(g.detach().norm() for g in grads))\n"
        "    outer = F.mse_loss(net(x[1]), y[1])" + OUTER, ("torch",)),
    "a curvature that is only printed": (
        INNER + "    g = torch.autograd.grad(loss, net.weight, create_graph=True)[0]\n"
        "    h = torch.autograd.grad((g * g.detach()).sum(), net.weight)[0]\n"
        "    print(h.norm())\n"
        "    outer = F.mse_loss(net(x[1]), y[1])" + OUTER, ("torch",)),
    "a gradient in the loss": (
        INNER + "    g = torch.autograd.grad(loss, net.weight, create_graph=True)[0]\n"
        "    outer = F.mse_loss(net(x[1]), y[1]) + 0.1 * g.pow(2).sum()" + OUTER, ("torch",)),
    "a plateau of a loss": (
        PLATEAU + "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)"
        + EPOCHS + "    sched.step(val)\n",
        BOTH),
    "a plateau of an accuracy that is a distance": (
        PLATEAU + "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0)" + EPOCHS
        + "    accuracy_mm = 0.5\n    sched.step(accuracy_mm)\n", BOTH),
    "a plateau of a share of right answers": (
        PLATEAU + "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode='max', patience=0)" + EPOCHS
        + "    sched.step(right)\n", BOTH),
    "a plateau of a loss for a maximum, and another rate": (
        PLATEAU + "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode='max', patience=1)\n"
        "other = torch.optim.lr_scheduler.StepLR(opt, 2)" + EPOCHS + "    other.step()\n", BOTH),
    "a plateau of the negative of a loss": (
        PLATEAU + "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode='max', patience=0)" + EPOCHS
        + "    sched.step(-val)\n", BOTH),
    "a plateau of a score that is computed from a loss": (
        PLATEAU + "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode='max', patience=0)"
        + EPOCHS.replace("val = F.mse_loss(net(x), y)", "val = 9 - 1e-6 * F.mse_loss(net(x), y)")
        + "    sched.step(val)\n", BOTH),
    "a plateau of a loss that changes its sign first": (
        PLATEAU + "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode='max', patience=0)" + EPOCHS
        + "    val = -val\n    sched.step(val)\n", BOTH),
    "a plateau of a share with the name of a loss elsewhere": (
        PLATEAU + "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode='max', patience=0)\n"
        "def train():\n    score = F.mse_loss(net(x), y)\n    opt.zero_grad()\n    score.backward()\n    opt.step()\n"
        "def right():\n    return ((net(x) > 0) == (y > 0)).float().mean()\n"
        "for epoch in range(8):\n    train()\n    score = right()\n    sched.step(score)\n", BOTH),
    "a number for each sample with its dimensions": (
        IMAGES + "    noise = torch.randn_like(x)\n    x = table[t].view(-1, 1, 1, 1).sqrt() * x" + IMAGES_END, BOTH),
    "groups of columns with a number each": (
        IMAGES.replace("for i in", "groups = torch.tensor([0, 0, 1, 1, 2, 2])\nfor i in")
        + "    noise = torch.randn_like(x)\n    x = table[groups] * x" + IMAGES_END, BOTH),
    "a number for each column in another order": (
        IMAGES + "    noise = torch.randn_like(x)\n    x = table[torch.randperm(6)] * x" + IMAGES_END, BOTH),
    "a number for each column": (
        IMAGES + "    noise = torch.randn_like(x)\n    x = table[torch.arange(6)] * x" + IMAGES_END, BOTH),
    "a number for each sample and another width": (
        IMAGES.replace("6, 1, 6, 6", "6, 6, 5, 7") .replace("nn.Conv2d(1, 1", "nn.Conv2d(6, 6")
        + "    noise = torch.randn_like(x)\n    x = table[t][:, None, None, None] * x" + IMAGES_END, BOTH),
    "a mask of columns that is drawn": (
        IMAGES + "    noise = torch.randn_like(x)\n    x = (torch.rand(6) > 0.3).float() * x" + IMAGES_END, BOTH),
    "a reversal": (
        REVERSAL.replace("SENT", "-g * ctx.scale").replace("CALL", "GradReverse.apply(net(torch.randn(5, 3)), 0.5)"),
        BOTH),
    "a reversal by another name": (
        REVERSAL.replace("SENT", "-ctx.scale * g").replace("GradReverse", "DannGRL")
        .replace("CALL", "DannGRL.apply(net(torch.randn(5, 3)), 0.5)"), BOTH),
    "a flip of the gradient": (
        REVERSAL.replace("SENT", "-g").replace("GradReverse", "FlipGradient").replace("x.view_as(x)", "x * 1")
        .replace("CALL", "FlipGradient.apply(net(torch.randn(5, 3)), 0.5)"), BOTH),
    "a copy whose gradient is turned round": (
        REVERSAL.replace("SENT", "g.neg() * ctx.scale").replace("GradReverse", "Adversary")
        .replace("x.view_as(x)", "x.clone()").replace("CALL", "Adversary.apply(net(torch.randn(5, 3)), 0.5)"), BOTH),
    "a reversal of two tensors": (
        REVERSAL.replace("SENT, None", "-g, -h").replace("GradReverse", "FlipBoth").replace("ctx, g)", "ctx, g, h)", 1)
        .replace("x.view_as(x)", "x.view_as(x), scale.view_as(scale)")
        .replace("ctx.scale = scale", "pass")
        .replace("CALL", "sum(FlipBoth.apply(net(torch.randn(5, 3)), net(torch.randn(5, 3))))"), BOTH),
    "a reversal by a negative number": (
        REVERSAL.replace("SENT", "g * ctx.scale").replace("CALL", "GradReverse.apply(net(torch.randn(5, 3)), -0.5)"),
        BOTH),
    "a reversible function": (
        REVERSAL.replace("SENT", "g").replace("GradReverse", "ReversibleGrad")
        .replace("CALL", "ReversibleGrad.apply(net(torch.randn(5, 3)), 0.5)"), BOTH),
    "a layer whose name has the letters of a reversal": (
        REVERSAL.replace("SENT", "g").replace("GradReverse", "AggrLayer")
        .replace("CALL", "AggrLayer.apply(net(torch.randn(5, 3)), 0.5)"), BOTH),
    "a scaling with another name": (
        REVERSAL.replace("SENT", "-g").replace("CALL", "Scale.apply(net(torch.randn(5, 3)), 0.5)"), BOTH),
    "a reversal that begins with zero": (
        REVERSAL.replace("SENT", "-g * ctx.scale")
        .replace("CALL", "GradReverse.apply(net(torch.randn(5, 3)), 0.5 * i)"), BOTH),
    "old log-probabilities without a graph": (
        POLICY + "    old = net(x)[:, 0].detach()\n    ratio = torch.exp(net(x)[:, 0] - old)" + POLICY_END, BOTH),
    "a difference of two inputs": (
        POLICY + "    ratio = torch.exp(net(x)[:, 0] - net(x + 1)[:, 0])" + POLICY_END, BOTH),
    "a difference of two columns": (
        POLICY + "    ratio = net(x)[:, 0] - net(x)[:, 1]" + POLICY_END, BOTH),
    "a parameter made of a view": (
        TOKEN.replace("TOKEN", "self.token = nn.Parameter(torch.randn(2, 2).view(4) * 0.02)"), BOTH),
    "a view of a parameter that is kept": (
        TOKEN.replace("TOKEN", "self.token_ = nn.Parameter(torch.randn(2, 2))").replace(
            "self.token)", "self.token_.view(4))"), BOTH),
    "a parameter on another type": (
        TOKEN.replace("TOKEN", "self.token = nn.Parameter(torch.randn(4, dtype=torch.float64).float())"), BOTH),
    "modules of a list that are made anew": (
        "\nnet = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3)])\n"
        "net(torch.randn(5, 4)).pow(2).mean().backward()\n", BOTH),
}  # fmt: skip


def rows(table):
    """Each program of a table with each engine that it is for."""
    for name, (_, engines, *_rest) in table.items():
        for engine in engines:
            yield pytest.param(name, engine, id=f"{name}-{engine}", marks=[TORCH] if engine == "torch" else [])


@pytest.mark.parametrize(("name", "engine"), rows(MISTAKES))
def test_a_mistake_is_found_with_its_line_and_fix(name, engine, checks):
    program, _, level, kind, words, fix = MISTAKES[name]
    text = HEAD + program
    one = {one.finding.kind: one for one in checks.of_text(text, engine).found}[kind]
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == level
    assert [word for word in words if word not in said] == []
    assert fix in one.finding.fix
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize(("name", "engine"), rows(HEALTHY))
def test_what_nearly_is_such_a_mistake_is_not_found(name, engine, checks):
    assert [str(one) for one in checks.of_text(HEAD + HEALTHY[name][0], engine).found] == []


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=TORCH)])
def test_a_difference_of_equal_results_that_is_squared_is_no_ratio(engine, checks):
    text = HEAD + POLICY + "    ratio = (net(x)[:, 0] - net(x)[:, 0]).pow(2) + net(x)[:, 1]" + POLICY_END
    assert [one.finding.kind for one in checks.of_text(text, engine).found] == ["self-comparison"]


@pytest.mark.torch
def test_a_long_chain_that_is_differentiated_twice_is_compared_with_its_forward_in_linear_time(tmp_path, checks):
    chain = "w = torch.randn(4, requires_grad=True)\nx = w * 1\nfor i in range(3000):\n    x = -x.sin()\n"
    twice = "g, = torch.autograd.grad(x.sum(), w, create_graph=True)\ng.pow(2).sum().backward()\n"
    timeline = recorded_text(HEAD + chain + twice, tmp_path, "torch")
    survey = Survey(timeline)
    survey.nodes  # noqa: B018  # read before the clock starts
    began = perf_counter()
    assert [one for one in other_recomputation(survey) if one is not None] == []
    assert perf_counter() - began < 5


@pytest.mark.parametrize(("index", "write", "is_lost"), [
    ("torch.randperm(600) // 2", "out[rows] += x", True),
    ("torch.randperm(600)", "out = torch.zeros(2, 600); out[:, rows] += x.T", False),
])  # fmt: skip
def test_an_index_without_its_numbers_repeats_only_if_it_is_longer_than_every_dimension(
    tmp_path, index, write, is_lost
):
    path = tmp_path / "program.py"
    path.write_text(f"""
import gviz.engine as torch
x = torch.ones(600, 2, requires_grad=True)
rows = {index}
out = torch.zeros(int(rows.max()) + 1, 2)
{write}
out.sum().backward()
""")
    with record(tmp_path / "trace.gviz"):
        runpy.run_path(str(path))
    found = {one.finding.kind for one in check(load(tmp_path / "trace.gviz"))}
    assert ("duplicate-index" in found) is is_lost


@pytest.mark.parametrize(("write", "edited"), [
    ("out[rows] += x", "out.index_add_(0, rows, x)"),
    ("out[rows] += 1.0 * x[:, :1]", ""),
    ("pairs = torch.tensor([[0, 1], [1, 2]]); out[pairs] += x[pairs]", ""),
])  # fmt: skip
def test_index_add_is_offered_only_for_a_vector_of_rows(write, edited, checks):
    found = checks.of_text(HEAD + SCATTER + f"    {write}" + SCATTERED, "builtin").found
    (finding,) = (one.finding for one in found if one.finding.kind == "duplicate-index")
    assert (finding.edit.new.strip() if finding.edit else "") == edited
