"""Mistakes that raise nothing, each with its line and fix, and programs that nearly have them."""

import pytest

from gviz.explain.finding import lines

HEAD = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]

MISTAKES = {
    "an array that is written before the use of its result": """
x = torch.randn(3, requires_grad=True)
h = x * 2
h.detach().numpy()[0] = 7
(h * 3).sum().backward()
""",
    "a softmax of one column": """
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    loss = (torch.softmax(net(torch.randn(6, 4)), -1) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a layer norm of one feature": """
net, norm = nn.Linear(4, 1), nn.LayerNorm(1)
opt = torch.optim.SGD([*net.parameters(), *norm.parameters()], lr=0.1)
for i in range(2):
    loss = F.mse_loss(norm(net(torch.randn(6, 4))), torch.randn(6, 1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an optimizer of each iteration": """
net = nn.Linear(3, 1)
for i in range(3):
    # averages
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    loss = (net(torch.randn(5, 3)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the last gradients without a step": """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(5):
    ((net(torch.randn(5, 3)) - 1).pow(2).mean() / 2).backward()
    if i % 2:
        opt.step(); opt.zero_grad()
""",
    "backward of a running sum": """
net = nn.Linear(3, 1)
total = 0.0
for i in range(6):
    total = total + (net(torch.randn(5, 3)) - 1).pow(2).mean()
    total.backward(retain_graph=True)
""",
    "a misspelled attribute": """
net = nn.Linear(3, 1)
x = torch.randn(5, 3)
x.requires_gradient = True
net(x).pow(2).mean().backward()
print(x.grad)
""",
    "swapped input and target": """
net = nn.Linear(4, 3)
x, y = torch.randn(6, 4), F.one_hot(torch.arange(6) % 3, 3).float()
loss = F.cross_entropy(y, net(x).softmax(1))
loss.backward()
""",
    "swapped probabilities": """
net = nn.Linear(4, 3)
x, y = torch.randn(6, 4), torch.full((6, 3), 0.5)
loss = F.binary_cross_entropy(y, net(x).sigmoid())
loss.backward()
""",
    "a target that is longer than its input": """
net = nn.Linear(4, 3)
scores = net(torch.randn(2, 1, 4)).log_softmax(2)
F.ctc_loss(scores, torch.tensor([[1, 2, 1]]), (2,), (3,)).backward()
""",
    "labels that are all ignored": """
net = nn.Linear(4, 3)
loss = F.cross_entropy(net(torch.randn(2, 4)), torch.tensor([-100, -100]))
loss.backward()
""",
    "dropout of everything": """
net = nn.Linear(4, 8)
loss = F.dropout(net(torch.randn(6, 4)), 1.0).sum()
loss.backward()
""",
    "Adam in half precision": """
net = nn.Linear(4, 2).half()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x = torch.randn(3, 4).half()
x[:, 2] = 0
for i in range(2):
    loss = net(x).float().pow(2).mean() * 1e-3
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "clipping of a generator that was read": """
net = nn.Linear(3, 1)
params = (p for p in net.parameters())
opt = torch.optim.SGD(params, lr=0.1)
for i in range(2):
    loss = (net(torch.randn(5, 3)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 0.1)
    opt.step()
""",
    "optimizer of a generator that was read": """
net = nn.Linear(3, 1)
params = net.parameters()
first = torch.optim.SGD(params, lr=0.1)
second = torch.optim.Adam(params, lr=0.1)
""",
    "two steps with one gradient": """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    loss = (net(torch.randn(5, 3)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss); opt.step()
""",
    "a codebook without a way back": """
enc, dec = nn.Linear(3, 2), nn.Linear(2, 3)
book = nn.Embedding(4, 2)
x = torch.randn(6, 3)
z = enc(x)
code = (z.unsqueeze(1) - book.weight).pow(2).sum(-1).argmin(1)
q = book(code)
loss = (dec(q) - x).pow(2).mean()
loss.backward()
""",
    "checkpoint of data": """
from torch.utils.checkpoint import checkpoint

class Net(nn.Module):

    def __init__(s):
        super().__init__()
        s.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        s.head = nn.Linear(8, 1)

    def forward(s, x):
        return s.head(checkpoint(s.body, x, use_reentrant=True))
m = Net()
opt = torch.optim.SGD(m.parameters(), 0.1)
for i in range(3):
    loss = (m(torch.randn(3, 4)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "checkpoint of a model that is made anew": """
from torch.utils.checkpoint import checkpoint
class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        s.head = nn.Linear(8, 1)
    def forward(s, x, r):
        return s.head(checkpoint(s.body, x, use_reentrant=r))
for r in (True, False):
    m = Net()
    m(torch.randn(3, 4), r).sum().backward()
""",
    "checkpoints of a sequence": """
from torch.utils.checkpoint import checkpoint_sequential
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
h = nn.Linear(8, 1)
opt = torch.optim.SGD([*m.parameters(), *h.parameters()], 0.1)
for i in range(3):
    loss = (h(checkpoint_sequential(m, 2, torch.randn(3, 4), use_reentrant=True)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "clipped before unscale_": """
m = nn.Linear(4, 1)
opt = torch.optim.SGD(m.parameters(), 0.1)
sc = torch.amp.GradScaler('cpu', init_scale=2.0 ** 16)
x = torch.randn(32, 4)
t = x.sum(1, keepdim=True)
for i in range(20):
    opt.zero_grad()
    loss = (m(x) - t).pow(2).mean()
    sc.scale(loss).backward()
    nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    sc.step(opt)
    sc.update()
print(loss.item())
""",
    "clipped before a division": """
m = nn.Linear(4, 1)
opt = torch.optim.SGD(m.parameters(), 0.1)
x = torch.randn(32, 4)
t = x.sum(1, keepdim=True)
for i in range(3):
    opt.zero_grad()
    loss = (m(x) - t).pow(2).mean()
    (loss * 1024).backward()
    nn.utils.clip_grad_value_(m.parameters(), 1.0)
    for p in m.parameters():
        p.grad /= 1024
    opt.step()
""",
    "result zeroed through data": """
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * x
z = y * 3
y.register_hook(lambda g: g.mul_(0))
z.sum().backward()
print(x.grad)
a = torch.tensor([2.0], requires_grad=True)
b = a ** 2
c = b.exp()
c.data.zero_()
c.sum().backward()
print(a.grad)
""",
    "input scaled through data": """
w = torch.ones(3, requires_grad=True)
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (w * x).sum()
x.data.mul_(10)
y.backward()
""",
    "element set through data": """
w = torch.ones(3, requires_grad=True)
h = torch.sigmoid(w)
h.data[0] = 0.0
h.sum().backward()
""",
    "dropout by a function": """
class M(nn.Module):

    def __init__(s):
        super().__init__()
        s.l = nn.Linear(4, 4)
        s.o = nn.Linear(4, 1)

    def forward(s, x):
        return s.o(F.dropout(F.relu(s.l(x)), 0.5))
m = M()
opt = torch.optim.SGD(m.parameters(), 0.1)
for i in range(3):
    l = (m(torch.randn(8, 4)) - 1).pow(2).mean()
    opt.zero_grad()
    l.backward()
    opt.step()
m.eval()
with torch.no_grad():
    print(m(torch.randn(4, 4)))
""",
    "mask times softmax": """
q = nn.Linear(4, 4)
k = nn.Linear(4, 4)
v = nn.Linear(4, 4)
x = torch.randn(2, 5, 4)
mask = torch.tril(torch.ones(5, 5))
a = torch.softmax(q(x) @ k(x).transpose(1, 2) / 2, dim=-1) * mask
(a @ v(x)).pow(2).mean().backward()
""",
    "softmax filled with zeros": """
q = nn.Linear(4, 4)
k = nn.Linear(4, 4)
v = nn.Linear(4, 4)
x = torch.randn(2, 5, 4)
mask = torch.tril(torch.ones(5, 5)).bool()
a = torch.softmax(q(x) @ k(x).transpose(1, 2) / 2, dim=-1).masked_fill(~mask, 0.0)
(a @ v(x)).pow(2).mean().backward()
""",
    "value as its own target": """
q = nn.Linear(3, 1)
opt = torch.optim.SGD(q.parameters(), 0.1)
s = torch.randn(8, 3)
s2 = torch.randn(8, 3)
r = torch.randn(8, 1)
for i in range(3):
    y = r + 0.9 * q(s2)
    loss = ((q(s) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "temporal difference": """
v = nn.Linear(3, 1)
opt = torch.optim.Adam(v.parameters(), 0.01)
s = torch.randn(8, 3)
s2 = torch.randn(8, 3)
r = torch.randn(8)
d = torch.zeros(8)
for i in range(3):
    td = r + 0.9 * (1 - d) * v(s2).squeeze(-1) - v(s).squeeze(-1)
    loss = td.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "best action as target": """
q = nn.Linear(3, 2)
opt = torch.optim.Adam(q.parameters(), 0.01)
s = torch.randn(8, 3)
s2 = torch.randn(8, 3)
r = torch.randn(8)
a = torch.randint(0, 2, (8, 1))
for i in range(3):
    target = r + 0.9 * q(s2).max(1).values
    loss = (q(s).gather(1, a).squeeze(1) - target).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "untied by assign": """
class M(nn.Module):

    def __init__(s):
        super().__init__()
        s.emb = nn.Embedding(6, 4)
        s.out = nn.Linear(4, 6, bias=False)
        s.out.weight = s.emb.weight

    def forward(s, i):
        return s.out(s.emb(i))
m = M()
sd = copy.deepcopy({k: v.clone() for k, v in m.state_dict().items()})
m.load_state_dict(sd, assign=True)
opt = torch.optim.SGD(m.parameters(), 0.1)
for i in range(3):
    l = F.cross_entropy(m(torch.randint(0, 6, (8,))), torch.randint(0, 6, (8,)))
    opt.zero_grad()
    l.backward()
    opt.step()
""",
    "untied by deepcopy": """
emb = nn.Embedding(6, 4)
out = nn.Linear(4, 6, bias=False)
out.weight = emb.weight
out = copy.deepcopy(out)
opt = torch.optim.SGD([*emb.parameters(), *out.parameters()], 0.1)
for i in range(3):
    l = F.cross_entropy(out(emb(torch.randint(0, 6, (8,)))), torch.randint(0, 6, (8,)))
    opt.zero_grad()
    l.backward()
    opt.step()
""",
    "loss of a list": """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(16, 3)
y = torch.randn(16, 1)
for step in range(4):
    pred = net(x)
    losses = [(p - t) ** 2 for p, t in zip(pred[:, 0].tolist(), y[:, 0].tolist())]
    loss = torch.tensor(sum(losses) / 16, requires_grad=True)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
""",
    "loss of a number": """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(8, 3)
for i in range(3):
    loss = torch.tensor(F.mse_loss(net(x), torch.ones(8, 1)).item(), requires_grad=True)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "head made after the optimizer": """
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 10))
opt = torch.optim.SGD(m.parameters(), 0.1)
m[2] = nn.Linear(8, 2)
for i in range(4):
    loss = F.cross_entropy(m(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "cut between batch norms": """
a = torch.nn.BatchNorm1d(4)
b = torch.nn.BatchNorm1d(4)
h = a(torch.randn(8, 4))
h = torch.tensor(h.tolist())
b(h).sum().backward()
""",
    "penalty without create_graph": """
D = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(D.parameters(), 0.1)
for i in range(3):
    x = torch.randn(4, 2, requires_grad=True)
    out = D(x)
    g = torch.autograd.grad(out.sum(), x, retain_graph=True)[0]
    loss = out.mean() + 10 * ((g.norm(2, dim=1) - 1) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
EXPECTED = {
    "an array that is written before the use of its result": (
        "error",
        "changed-through-data",
        ["used other numbers than recorded"],
        "",
        "h.detach().numpy()[0] = 7",
    ),
    "a softmax of one column": (
        "warning",
        "one-element",
        ["its result is always 1", "(6,1)"],
        "sigmoid",
        "torch.softmax(",
    ),
    "a layer norm of one feature": (
        "warning",
        "one-element",
        ["its result is always its bias"],
        "leave the normalization out",
        "norm(net(",
    ),
    "an optimizer of each iteration": (
        "warning",
        "new-optimizer",
        ["a new SGD before each of 3 steps", "without the running averages"],
        "before the loop",
        "opt = ",
    ),
    "the last gradients without a step": (
        "note",
        "left-over",
        ["the last 1 backward pass", "came after 2 passes"],
        "once more after the loop",
        "opt.step(); opt",
    ),
    "backward of a running sum": (
        "warning",
        "counted-again",
        ["5 of 6 passes", "whose gradient backward pass 1 has added"],
        "total += loss.item()",
        "total.backward(",
    ),
    "a misspelled attribute": (
        "warning",
        "misspelled",
        [".requires_gradient is no attribute"],
        "requires_grad = True",
        "x.requires_gradient = ",
    ),
    "swapped input and target": (
        "warning",
        "swapped",
        ["they are swapped", "the input #"],
        "the prediction first",
        "F.cross_entropy(y",
    ),
    "swapped probabilities": (
        "warning",
        "swapped",
        ["they are swapped"],
        "the prediction first",
        "F.binary_cross_entropy(y",
    ),
    "a target that is longer than its input": (
        "error",
        "nan-born",
        ["a target has 3 labels, and its input 2 steps"],
        "zero_infinity=True skips such a pair",
        "F.ctc_loss(",
    ),
    "labels that are all ignored": (
        "error",
        "nan-born",
        ["all 2 labels are -100, which is ignore_index"],
        "skip a batch without labels",
        "F.cross_entropy(",
    ),
    "dropout of everything": ("warning", "masked", ["drops every element"], "", "F.dropout("),
    "Adam in half precision": ("error", "nan-born", ["Adam"], "a larger eps", "opt.step()"),
    "clipping of a generator that was read": (
        "warning",
        "clipped-early",
        [
            "params is a generator that was already consumed",
            "was made at program.py:9, and read to its end at program.py:10",
        ],
        "params = list(...)",
        "clip_grad_norm_(params",
    ),
    "optimizer of a generator that was read": (
        "error",
        "failed",
        [
            "params is a generator that was already consumed",
            "was made at program.py:9, and read to its end at program.py:10",
        ],
        "params = list(...)",
        "second = ",
    ),
    "two steps with one gradient": (
        "warning",
        "repeated-step",
        ["2 times", "no backward has run since the step at program.py:14"],
        "one step() after each backward()",
        "print(loss); opt.step()",
    ),
    "a codebook without a way back": (
        "warning",
        "cut",
        ["its dtype cannot have a gradient", "q = z + (q - z).detach()"],
        "",
        "q = book(code)",
    ),
    "checkpoint of a model that is made anew": (
        "warning",
        "cut",
        ["runs without a graph"],
        "use_reentrant=False",
        "checkpoint(s.body",
    ),
    "cut between batch norms": (
        "warning",
        "not-reached",
        ["is a new tensor with no autograd history"],
        "tensors throughout",
        "h.tolist()",
    ),
    "penalty without create_graph": ("note", "cut-summand", ["is a part of"], "create_graph=True", "autograd.grad"),
    "head made after the optimizer": (
        "warning",
        "never-stepped",
        ["no optimizer has updated it"],
        "make the optimizer of all",
        "m[2] = ",
    ),
    "checkpoint of data": ("warning", "cut", ["runs without a graph"], "use_reentrant=False", "checkpoint(s.body"),
    "checkpoints of a sequence": (
        "warning",
        "cut",
        ["runs without a graph"],
        "use_reentrant=False",
        "checkpoint_sequential",
    ),
    "clipped before unscale_": (
        "warning",
        "clipped-early",
        ["clipped while multiplied by the loss scale, 65536", "divided by 65536"],
        "unscale_",
        "clip_grad_norm_",
    ),
    "clipped before a division": (
        "warning",
        "clipped-early",
        ["clipped while multiplied by the loss scale, 1024"],
        "unscale_",
        "clip_grad_value_",
    ),
    "result zeroed through data": (
        "error",
        "changed-through-data",
        ["saved for backward was changed through .data"],
        "clone()",
        "c.data.zero_()",
    ),
    "input scaled through data": (
        "error",
        "changed-through-data",
        ["saved for backward was changed"],
        "clone()",
        "x.data.mul_",
    ),
    "element set through data": ("error", "changed-through-data", ["h = Sigmoid"], "clone()", "h.data[0]"),
    "dropout by a function": (
        "note",
        "dropout-in-evaluation",
        ["dropout is active"],
        "training=self.training",
        "F.dropout",
    ),
    "mask times softmax": (
        "warning",
        "masked-after-softmax",
        ["after the softmax", "8 of 10 rows add up to"],
        "before it",
        "* mask",
    ),
    "softmax filled with zeros": (
        "warning",
        "masked-after-softmax",
        ["8 of 10 rows add up to"],
        "before it",
        "masked_fill(~mask, 0.0)",
    ),
    "value as its own target": (
        "note",
        "attached-target",
        ["into its target", "y = Add"],
        "detach()",
        "y = r + 0.9",
    ),
    "temporal difference": ("note", "attached-target", ["into its target"], "detach()", "td = r"),
    "best action as target": ("note", "attached-target", ["target = Add"], "detach()", "target = r"),
    "untied by assign": ("warning", "untied", ["out.weight begins as a copy of", "emb.weight"], "tie them again", ""),
    "untied by deepcopy": ("warning", "untied", ["out.weight begins as a copy of", "emb.weight"], "tie them again", ""),
    "loss of a list": (
        "warning",
        "not-reached",
        ["requires_grad does not give it one"],
        "tensors throughout",
        "loss = torch.tensor",
    ),
    "loss of a number": (
        "warning",
        "not-reached",
        ["requires_grad does not give it one"],
        "tensors throughout",
        "loss = torch.tensor",
    ),
}
ONLY_TORCH = {"clipped before unscale_", "a target that is longer than its input"}
HEALTHY = {
    "a reverse divergence from a teacher": """
net = nn.Linear(4, 3)
teacher = torch.randn(6, 3).log_softmax(1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = F.kl_div(teacher, net(torch.randn(6, 4)).softmax(1), reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an array of a result that is only read": """
x = torch.randn(3, requires_grad=True)
h = x.sigmoid()
top = h.detach().numpy().max()
(h * 2).sum().backward()
""",
    "an array of a result that is written after its use": """
x = torch.randn(3, requires_grad=True)
h = x * 2
loss = (h * 3).sum()
h.detach().numpy()[0] = 7
loss.backward()
""",
    "an array of a leaf that is written before its use": """
w = torch.ones(3, requires_grad=True)
w.detach().numpy()[0] = 5.0
(w * 2).sum().backward()
""",
    "attention to one key": """
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    h = net(torch.randn(2, 1, 4))
    loss = (torch.softmax(h @ h.transpose(1, 2), -1) @ h - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a softmax of rows, one of them alone": """
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for size in (1, 3):
    loss = F.cross_entropy(net(torch.randn(6, 4))[:, :size], torch.zeros(6, dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an optimizer of each stage": """
net = nn.Linear(3, 1)
for rate in (0.1, 0.05):
    opt = torch.optim.Adam(net.parameters(), lr=rate)
    for i in range(3):
        loss = (net(torch.randn(5, 3)) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "an optimizer now and then": """
net = nn.Linear(3, 1)
for i in range(4):
    if i % 2 == 0:
        opt = torch.optim.Adam(net.parameters(), lr=0.1)
    loss = (net(torch.randn(5, 3)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a plain optimizer of each iteration": """
net = nn.Linear(3, 1)
for i in range(4):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = (net(torch.randn(5, 3)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the last gradients with a step": """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(5):
    ((net(torch.randn(5, 3)) - 1).pow(2).mean() / 2).backward()
    if i % 2 or i == 4:
        opt.step(); opt.zero_grad()
""",
    "the gradient of a running sum": """
net = nn.Linear(3, 1)
total = 0.0
for i in range(2):
    total = total + (net(torch.randn(5, 3)) - 1).pow(2).mean()
    net.zero_grad()
    total.backward(retain_graph=True)
""",
    "an attribute of its own": """
net = nn.Linear(3, 1)
x = torch.randn(5, 3)
x.origin = "data"
net(x).pow(2).mean().backward()
print(x.grad)
""",
    "some ignored labels": """
net = nn.Linear(4, 3)
loss = F.cross_entropy(net(torch.randn(2, 4)), torch.tensor([-100, 1]))
loss.backward()
""",
    "a step of an optimizer that wraps another": """
class Slow(torch.optim.Optimizer):
    def __init__(self, params, inner):
        super().__init__(params, {})
        self.inner = inner
    def step(self, closure=None):
        self.inner.step()
net = nn.Linear(3, 1)
opt = Slow(net.parameters(), torch.optim.SGD(net.parameters(), lr=0.1))
for i in range(2):
    loss = (net(torch.randn(5, 3)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "two steps, each with a gradient of its own": """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    loss = (net(torch.randn(5, 3)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    for p in net.parameters():
        p.grad = torch.randn_like(p) * 0.01
    opt.step()
""",
    "10b": """
from torch.utils.checkpoint import checkpoint

class Net(nn.Module):

    def __init__(s):
        super().__init__()
        s.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        s.head = nn.Linear(8, 1)

    def forward(s, x):
        return s.head(checkpoint(s.body, x, use_reentrant=False))
m = Net()
opt = torch.optim.SGD(m.parameters(), 0.1)
for i in range(3):
    loss = (m(torch.randn(3, 4)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "clipunscaled": """
m = nn.Linear(4, 1)
opt = torch.optim.SGD(m.parameters(), 0.1)
x = torch.randn(32, 4)
t = x.sum(1, keepdim=True)
for i in range(3):
    opt.zero_grad()
    loss = (m(x) - t).pow(2).mean()
    (loss * 1024).backward()
    for p in m.parameters():
        p.grad /= 1024
    nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    opt.step()
""",
    "weighted": """
m = nn.Linear(4, 1)
opt = torch.optim.SGD(m.parameters(), 0.1)
x = torch.randn(32, 4)
t = x.sum(1, keepdim=True)
for i in range(3):
    opt.zero_grad()
    loss = (m(x) - t).pow(2).mean()
    (loss * 100).backward()
    nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    opt.step()
""",
    "consistency": """
e = nn.Linear(3, 2)
h = nn.Linear(2, 1)
opt = torch.optim.SGD([*e.parameters(), *h.parameters()], 0.1)
x = torch.randn(8, 3)
y = torch.randn(8, 1)
for i in range(3):
    a, b = (e(x + 0.1 * torch.randn(8, 3)), e(x + 0.1 * torch.randn(8, 3)))
    loss = F.mse_loss(h(a), y) + ((a - b) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "drop_attn": """
q = nn.Linear(4, 4)
k = nn.Linear(4, 4)
v = nn.Linear(4, 4)
x = torch.randn(2, 5, 4)
a = F.dropout(torch.softmax(q(x) @ k(x).transpose(1, 2) / 2, dim=-1), 0.3)
(a @ v(x)).pow(2).mean().backward()
""",
    "dropeval": """
class M(nn.Module):

    def __init__(s):
        super().__init__()
        s.l = nn.Linear(4, 4)
        s.o = nn.Linear(4, 1)

    def forward(s, x):
        return s.o(F.dropout(F.relu(s.l(x)), 0.5, training=s.training))
m = M()
opt = torch.optim.SGD(m.parameters(), 0.1)
for i in range(3):
    l = (m(torch.randn(8, 4)) - 1).pow(2).mean()
    opt.zero_grad()
    l.backward()
    opt.step()
m.eval()
with torch.no_grad():
    print(m(torch.randn(4, 4)))
""",
    "init_same": """
a = nn.Linear(4, 4, bias=False)
b = nn.Linear(4, 4, bias=False)
nn.init.eye_(a.weight)
nn.init.eye_(b.weight)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], 0.1)
for i in range(3):
    l = (b(torch.tanh(a(torch.randn(8, 4)))) - 1).pow(2).mean()
    opt.zero_grad()
    l.backward()
    opt.step()
""",
    "mask": """
q = nn.Linear(4, 4)
k = nn.Linear(4, 4)
v = nn.Linear(4, 4)
x = torch.randn(2, 5, 4)
mask = torch.tril(torch.ones(5, 5)).bool()
s = (q(x) @ k(x).transpose(1, 2) / 2).masked_fill(~mask, float('-inf'))
a = torch.softmax(s, dim=-1).masked_fill(~mask, 0.0)
(a @ v(x)).pow(2).mean().backward()
""",
    "mask2": """
q = nn.Linear(4, 4)
k = nn.Linear(4, 4)
v = nn.Linear(4, 4)
x = torch.randn(2, 5, 4)
mask = torch.tril(torch.ones(5, 5))
a = torch.softmax(q(x) @ k(x).transpose(1, 2) / 2, dim=-1) * mask
a = a / a.sum(-1, keepdim=True)
(a @ v(x)).pow(2).mean().backward()
""",
    "moe": """
g = nn.Linear(4, 3)
x = torch.randn(5, 4)
p = torch.softmax(g(x), -1)
y = F.one_hot(torch.tensor([0, 1, 2, 0, 1]), 3).float()
loss = -(y * torch.log(p)).sum(1).mean() - 0.1 * (p * y).sum(1).mean()
loss.backward()
""",
    "pinn": """
f = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(f.parameters(), 0.01)
for i in range(3):
    x = torch.rand(8, 1, requires_grad=True)
    u = f(x)
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    loss = (du - (x.detach() + u)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "residual": """
f = nn.Linear(3, 3)
opt = torch.optim.Adam(f.parameters(), 0.01)
x = torch.randn(8, 3)
y = torch.randn(8, 3)
for i in range(3):
    h = x + f(x)
    loss = (h - y).pow(2).mean() + 0.1 * (f(h) - h.detach()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "smooth": """
f = nn.Linear(3, 1)
opt = torch.optim.Adam(f.parameters(), 0.01)
x = torch.randn(8, 3)
for i in range(3):
    p = f(x)
    loss = (p[1:] - p[:-1]).pow(2).mean() + (p - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "target": """
q = nn.Linear(3, 1)
opt = torch.optim.SGD(q.parameters(), 0.1)
s = torch.randn(8, 3)
s2 = torch.randn(8, 3)
r = torch.randn(8, 1)
for i in range(3):
    y = (r + 0.9 * q(s2)).detach()
    loss = ((q(s) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "data1": """
m = nn.Linear(3, 1)
m.weight.data.fill_(0.1)
for i in range(3):
    m.zero_grad()
    (m(torch.randn(4, 3)) - 1).pow(2).mean().backward()
    for p in m.parameters():
        p.data -= 0.1 * p.grad.data
    m.weight.data.clamp_(-1, 1)
""",
    "data2": """
w = torch.ones(3, requires_grad=True)
h = w + 1
h.data.mul_(2)
h.sum().backward()
""",
    "tied": """
class M(nn.Module):

    def __init__(s):
        super().__init__()
        s.emb = nn.Embedding(6, 4)
        s.out = nn.Linear(4, 6, bias=False)
        s.out.weight = s.emb.weight

    def forward(s, i):
        return s.out(s.emb(i))
m = M()
opt = torch.optim.SGD(m.parameters(), 0.1)
for i in range(3):
    l = F.cross_entropy(m(torch.randint(0, 6, (8,))), torch.randint(0, 6, (8,)))
    opt.zero_grad()
    l.backward()
    opt.step()
""",
    "encoder": """
emb = nn.Embedding(6, 4)
l0 = nn.Linear(4, 4)
ls = nn.ModuleList([copy.deepcopy(l0) for _ in range(3)])
out = nn.Linear(4, 6)
opt = torch.optim.SGD([*emb.parameters(), *ls.parameters(), *out.parameters()], 0.1)
for i in range(3):
    h = emb(torch.randint(0, 6, (8,)))
    for l in ls:
        h = torch.tanh(l(h))
    l = F.cross_entropy(out(h), torch.randint(0, 6, (8,)))
    opt.zero_grad()
    l.backward()
    opt.step()
""",
}


def pairs():
    for name in MISTAKES:
        if name not in ONLY_TORCH:
            yield pytest.param(name, "builtin", id=f"{name}-builtin")
        yield pytest.param(name, "torch", id=f"{name}-torch", marks=pytest.mark.torch)


@pytest.mark.parametrize(("name", "engine"), pairs())
def test_a_silent_mistake_is_found_with_its_line_and_fix(name, engine, checks):
    level, kind, words, fix, line = EXPECTED[name]
    text = HEAD + MISTAKES[name]
    found = {one.finding.kind: one for one in checks.of_text(text, engine).found}
    one = found[kind]
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == level
    assert [word for word in words if word not in said] == []
    assert fix in one.finding.fix
    assert line in text.splitlines()[one.finding.at.line - 1]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_what_nearly_is_such_a_mistake_is_not_found(name, engine, checks):
    assert [str(one) for one in checks.of_text(HEAD + HEALTHY[name], engine).found] == []


IDLE_OPTIMIZER = """
w, v = (torch.ones(2, requires_grad=True) for _ in range(2))
opt = torch.optim.SGD([v], lr=0.1)
for i in range(5):
    (w * i).sum().backward()
    if i % 2:
        opt.step()
"""

UNCALLED = """
net = nn.Linear(2, 2)
head = nn.Linear(2, 2)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], 0.1)
for i in range(3):
    opt.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_left_over_passes_of_an_optimizer_without_gradients_are_found(engine, checks):
    assert "left-over" in {one.finding.kind for one in checks.of_text(HEAD + IDLE_OPTIMIZER, engine).found}


def test_a_layer_that_is_never_called_is_unused_unless_another_one_replaced_it(checks):
    """PyTorch's recording does not know a layer that is never called."""
    (one,) = checks.of_text(HEAD + UNCALLED, "builtin").found
    assert one.finding.kind == "unused"
    assert one.more == 1
