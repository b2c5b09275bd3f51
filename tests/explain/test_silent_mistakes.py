"""Mistakes that raise nothing, each with its line and fix, and programs that nearly have them."""

import pytest

from gviz.explain.finding import lines
from gviz.explain.findings.model.data_layout import permutation

HEAD = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]

MISTAKES = {
    "a step that is never reached": """
net, x, y = nn.Linear(3, 1), torch.randn(12, 3), torch.randn(12, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for i in range(4):
        loss = (net(x[3 * i : 3 * i + 3]) - y[3 * i : 3 * i + 3]).pow(2).mean() / 8
        loss.backward()
        if (i + 1) % 8 == 0:
            opt.step()
            opt.zero_grad()
""",
    "a sum with weights of the columns": """
net, x, y = nn.Linear(3, 3), torch.randn(32, 3), torch.randn(32, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.001)
weight = torch.tensor([0.5, 0.3, 0.2])
for i in range(3):
    loss = (weight * (net(x) - y).pow(2)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a baseline of a reward of sampled actions": """
actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=0.01)
for i in range(4):
    x = torch.randn(16, 4)
    log_probs = F.log_softmax(actor(x), dim=1)
    action = log_probs.detach().argmax(1)
    picked = log_probs.gather(1, action[:, None]).squeeze(1)
    reward = action.float() * x[:, 0]
    value = critic(x).squeeze(1)
    actor_loss = ((reward - value) * picked).mean()
    critic_loss = F.mse_loss(value, reward)
    opt.zero_grad()
    (actor_loss + critic_loss).backward()
    opt.step()
""",
    "an advantage in one mean with its error": """
actor, critic = nn.Linear(3, 2), nn.Linear(3, 1)
opt = torch.optim.SGD([*actor.parameters(), *critic.parameters()], lr=0.01)
for i in range(3):
    x, ret = torch.randn(6, 3), torch.randn(6)
    adv = ret - critic(x)[:, 0]
    log_prob = F.log_softmax(actor(x), 1)[:, 0]
    loss = (0.5 * adv.pow(2) - log_prob * adv).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a step under two conditions": """
net, train = nn.Linear(3, 1), False
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(6):
    loss = net(torch.randn(4, 3)).pow(2).mean()
    loss.backward()
    if train:
        if (i + 1) % 2 == 0:
            opt.step()
""",
    "a step that a switch turns off": """
net, dry = nn.Linear(3, 1), True
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(6):
    loss = net(torch.randn(4, 3)).pow(2).mean()
    loss.backward()
    if not dry:
        opt.step()
""",
    "a hinge that is to grow": """
gen, critic = nn.Linear(3, 2), nn.Linear(2, 1)
with torch.no_grad():
    critic.bias.fill_(-50.0)
critic.requires_grad_(False)
opt = torch.optim.SGD(gen.parameters(), lr=0.1)
for i in range(3):
    loss = -F.relu(critic(gen(torch.randn(5, 3)))).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a loss of arrays": """
import numpy as np
net, dec = nn.Linear(3, 4), nn.Linear(4, 3)
opt = torch.optim.SGD([*net.parameters(), *dec.parameters()], lr=0.1)
for i in range(3):
    x = torch.randn(6, 3)
    emb = net(x)
    arrays = emb.detach().numpy()
    one = torch.tensor(arrays[[0, 1, 2]])
    other = torch.tensor(arrays[[3, 4, 5]])
    close = F.mse_loss(one, other)
    loss = F.mse_loss(dec(emb), x) + close
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a flag that a target needs": """
net, gamma = nn.Linear(3, 2), 0.9
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def td_loss(batch):
    state, reward, following, done = batch
    with torch.no_grad():
        best = net(following).max(1).values
    return F.mse_loss(net(state)[:, 0], reward + gamma * best)
for i in range(3):
    batch = torch.randn(5, 3), torch.ones(5), torch.randn(5, 3), torch.zeros(5)
    loss = td_loss(batch)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "lengths that are not used": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)
        self.fc = nn.Linear(4, 2)
    def forward(self, x, lengths):
        return self.fc(self.lstm(x)[0].mean(1))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = F.cross_entropy(net(torch.randn(4, 5, 3), torch.tensor([5, 4, 3, 3])), torch.tensor([0, 1, 0, 1]))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "weights of a state dict in a functional call": """
from torch.func import functional_call
net, scale = nn.Linear(3, 2), nn.Parameter(torch.tensor(1.0))
opt = torch.optim.SGD([*net.parameters(), scale], lr=0.1)
for i in range(3):
    weights = net.state_dict()
    loss = (functional_call(net, weights, (torch.randn(4, 3),)) * scale).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "momentum that moves a frozen layer": """
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for i in range(6):
    if i == 2:
        net[0].requires_grad_(False)
    loss = (net(torch.randn(5, 3)) - 1).pow(2).mean()
    opt.zero_grad(set_to_none=False)
    loss.backward()
    opt.step()
""",
    "statistics of a frozen part": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
        self.body.requires_grad_(False)
        self.head = nn.Linear(4, 1)
    def forward(self, x):
        return self.head(self.body(x))
net = Net()
net.train()
opt = torch.optim.SGD(net.head.parameters(), lr=0.1)
for i in range(3):
    loss = (net(torch.randn(6, 3)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "dropout of an attention in evaluation": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(4, 4)
    def forward(self, x):
        h = self.lift(x)
        return F.scaled_dot_product_attention(h, h, h, dropout_p=0.5)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(2, 5, 4)
for i in range(2):
    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
with torch.no_grad():
    net(x)
""",
    "a reversal of the gradients of all heads": """
body, one, other = nn.Linear(8, 16), nn.Linear(16, 1), nn.Linear(16, 1)
opt = torch.optim.SGD([*body.parameters(), *one.parameters(), *other.parameters()], lr=0.1)
for i in range(2):
    h = torch.relu(body(torch.randn(40, 8)))
    h.register_hook(lambda grad: grad * -0.3)
    loss = (one(h) - 1).pow(2).mean() + (other(h) + 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
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
    "a softmax over the single score of each element": """
score, head = nn.Linear(4, 1, bias=False), nn.Linear(4, 1)
opt = torch.optim.SGD([*score.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(6, 5, 4)
for i in range(2):
    weights = F.softmax(score(x) / 2, dim=-1)
    loss = (head((weights * x).sum(1)) - 1).pow(2).mean()
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
    "a write to the copy that an index makes": """
w = torch.randn(4, 3, requires_grad=True)
with torch.no_grad():
    w[[0, 1]].fill_(0.0)
(w * torch.randn(4, 3)).sum().backward()
""",
    "a hook that writes to its parameter": """
net = nn.Linear(3, 1)
def damp(p):
    p.mul_(0.1)
for p in net.parameters():
    p.register_post_accumulate_grad_hook(damp)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    opt.zero_grad()
    (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
    opt.step()
""",
    "targets of 0 and 1 for a loss of signs": """
net = nn.Linear(3, 4)
same = torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0])
F.cosine_embedding_loss(net(torch.randn(5, 3)), net(torch.randn(5, 3)), same).backward()
""",
    "targets of signs for a loss of shares": """
net = nn.Linear(3, 1)
y = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])
F.binary_cross_entropy_with_logits(net(torch.randn(4, 3)), y).backward()
""",
    "a target in the input": """
net = nn.Linear(4, 1)
series = torch.sin(torch.arange(40.0))
x = series.unfold(0, 4, 1)[:-1]
y = series[3:-1]
(net(x) - y[:, None]).pow(2).mean().backward()
""",
    "a final state that is viewed with its batch first": """
rnn, out = nn.GRU(3, 5, bidirectional=True, batch_first=True), nn.Linear(10, 1)
_, h = rnn(torch.randn(8, 4, 3))
out(h.view(8, -1)).pow(2).mean().backward()
""",
    "an initialization over the padding row": """
emb, out = nn.Embedding(7, 4, padding_idx=0), nn.Linear(4, 1)
nn.init.normal_(emb.weight)
ids = torch.tensor([[1, 2, 3], [4, 0, 0]])
out(emb(ids).sum(1)).pow(2).mean().backward()
""",
    "decay of what a hook freezes": """
w = nn.Parameter(torch.randn(4, 3))
keep = torch.tensor([[0.0], [1.0], [0.0], [1.0]])
w.register_hook(lambda g: g * keep)
opt = torch.optim.AdamW([w], lr=0.1)
for i in range(3):
    opt.zero_grad()
    (w * torch.randn(4, 3)).sum().backward()
    opt.step()
""",
    "replicas that begin apart": """
nets = [nn.Linear(3, 2) for _ in range(2)]
opts = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
for i in range(2):
    for net, opt in zip(nets, opts):
        opt.zero_grad()
        (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
    for pair in zip(*(net.parameters() for net in nets)):
        mean = (pair[0].grad + pair[1].grad) / 2
        for p in pair:
            p.grad.copy_(mean)
    for opt in opts:
        opt.step()
    print([(a - b).abs().max().item() for a, b in zip(*(net.parameters() for net in nets))])
""",
    "a copy without the statistics of its norm": """
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
follower = copy.deepcopy(net)
for p in follower.parameters():
    p.requires_grad_(False)
follower.eval()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    opt.zero_grad()
    (net(torch.randn(6, 3)) - 1).pow(2).mean().backward()
    opt.step()
    with torch.no_grad():
        for a, b in zip(follower.parameters(), net.parameters()):
            a.copy_(b)
with torch.no_grad():
    follower(torch.randn(6, 3))
""",
    "a state detached at every step": """
cell, out = nn.GRUCell(3, 4), nn.Linear(4, 1)
h = torch.zeros(5, 4)
for i in range(4):
    h = cell(torch.randn(5, 3), h.detach())
out(h).pow(2).mean().backward()
""",
    "the gradient of another loss": """
gen, critic = nn.Linear(2, 3), nn.Linear(3, 1)
opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
opt_c = torch.optim.SGD(critic.parameters(), lr=0.1)
for i in range(2):
    fake = gen(torch.randn(5, 2))
    opt_g.zero_grad()
    (-critic(fake).mean()).backward()
    opt_g.step()
    critic(fake.detach()).pow(2).mean().backward()
    opt_c.step()
    opt_c.zero_grad()
""",
    "clipping of a filter that is used up": """
net = nn.Linear(3, 1)
params = filter(lambda p: p.requires_grad, net.parameters())
opt = torch.optim.SGD(params, lr=0.1)
for i in range(2):
    opt.zero_grad()
    (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
""",
    "means of parts with different numbers of targets": """
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
y = torch.tensor([[0, 1, 2, 3], [1, -100, -100, -100]])
for i in range(2):
    opt.zero_grad()
    for target in y:
        loss = F.cross_entropy(net(torch.randn(4, 3)), target) / 2
        loss.backward()
    opt.step()
""",
    "a schedule of rates": """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 0.05 / (1 + step))
for i in range(3):
    opt.zero_grad()
    (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
    opt.step()
    sched.step()
""",
    "a mask that lets only padding through": """
net, out = nn.Linear(3, 4), nn.Linear(4, 1)
x = torch.randn(4, 6, 3)
valid = torch.arange(6)[None] < torch.tensor([2, 3, 4, 5])[:, None]
x = x * valid[..., None]
h = net(x)
ignored = torch.arange(6)[None] < torch.tensor([2, 3, 4, 5])[:, None]  # mask
out((h * (~ignored)[..., None]).sum(1)).pow(2).mean().backward()
""",
    "gradients that clipping leaves nothing of": """
w = nn.Parameter(torch.full((4,), 2.0))
opt = torch.optim.SGD([w], lr=0.05)
for i in range(4):
    opt.zero_grad()
    (w * 3).sum().backward()
    nn.utils.clip_grad_norm_([w], 1e-8)
    opt.step()
""",
    "gradients that a line of the program leaves nothing of": """
w = nn.Parameter(torch.full((4,), 2.0))
opt = torch.optim.SGD([w], lr=0.05)
for i in range(4):
    opt.zero_grad()
    (w * 3).sum().backward()
    w.grad *= 1e-9
    opt.step()
""",
    "a mean of an empty selection": """
w = torch.randn(4, 3, requires_grad=True)
y = torch.zeros(10, dtype=torch.long)
keep = y == 2
F.cross_entropy((torch.randn(10, 4) @ w)[keep], y[keep]).backward()
""",
    "a mean of no number": """
w = torch.randn(4, requires_grad=True)
(w * 2)[w > 100].mean().backward()
""",
    "training of a deepcopy": """
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
first = net.weight.detach().clone()
for i in range(2):
    opt.zero_grad()
    net.weight.sum()
    inner = copy.deepcopy(net)
    (inner(torch.randn(5, 3)) - 1).pow(2).mean().backward()
    opt.step()
""",
    "parameters in half whose steps round away": """
w = nn.Parameter(torch.full((4,), 2.0).half())
opt = torch.optim.SGD([w], lr=1e-5)
for i in range(3):
    opt.zero_grad()
    (w * 3).sum().backward()
    opt.step()
""",
    "a loss that does not fall": """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 3)
for i in range(30):
    y = (torch.arange(8.0) + i)[:, None] % 2
    loss = F.binary_cross_entropy_with_logits(net(x) / 20, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a loss that grows": """
w = torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([w], lr=1.05)
for i in range(30):
    loss = (w * w).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a write to a product that nothing uses": """
w = torch.randn(4, 3, requires_grad=True)
with torch.no_grad():
    (w * 2).fill_(0.0)
(w * torch.randn(4, 3)).sum().backward()
""",
    "the gradient of another loss, whose input is other data": """
gen, critic = nn.Linear(2, 3), nn.Linear(3, 1)
opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
opt_c = torch.optim.SGD(critic.parameters(), lr=0.1)
for i in range(2):
    opt_g.zero_grad()
    (-critic(gen(torch.randn(5, 2))).mean()).backward()
    opt_g.step()
    critic(torch.randn(5, 3)).pow(2).mean().backward()
    opt_c.step()
    opt_c.zero_grad()
""",
    "an attention mask that lets only padding through": """
net, out = nn.Linear(3, 8), nn.Linear(8, 1)
layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
valid = torch.arange(6)[None] < torch.tensor([2, 3, 4, 5])[:, None]
x = torch.randn(4, 6, 3) * valid[..., None]
h = net(x)
mask = torch.arange(6)[None] < torch.tensor([2, 3, 4, 5])[:, None]
h = layer(h, src_key_padding_mask=mask)
out((h * ~mask[..., None]).sum(1)).pow(2).mean().backward()
""",
    "a mask that lets only products with zeros through": """
w = torch.ones(3, requires_grad=True)
valid = torch.tensor([True, True, False, False])
x = torch.randn(4, 3) * valid[:, None]
h = w * x
ignored = torch.tensor([False, False, True, True])  # mask
(h * ignored[:, None]).sum().backward()
""",
    "a write to an element of a copy": """
w = torch.randn(4, 3, requires_grad=True)
with torch.no_grad():
    w[[0, 1]][0] = 0.0
(w * torch.randn(4, 3)).sum().backward()
""",
    "a mask over more elements than are stored": """
net, out = nn.Linear(30, 40), nn.Linear(40, 1)
valid = torch.arange(60)[None] < torch.arange(40)[:, None] + 10
x = torch.randn(40, 60, 30) * valid[..., None]
h = net(x)
ignored = torch.arange(60)[None] < torch.arange(40)[:, None] + 10  # mask
out((h * (~ignored)[..., None]).sum(1)).pow(2).mean().backward()
""",
    "Adam in half whose steps round away": """
w = nn.Parameter(torch.full((4,), 2.0).half())
opt = torch.optim.Adam([w], lr=1e-5)
for i in range(3):
    opt.zero_grad()
    (w * 200).sum().backward()
    opt.step()
""",
    "small gradients in half whose steps round away": """
w = nn.Parameter(torch.full((4,), 2.0).half())
opt = torch.optim.SGD([w], lr=0.1)
for i in range(3):
    opt.zero_grad()
    (w * 0.003).sum().backward()
    opt.step()
""",
    "RMSprop in half whose steps round away": """
w = nn.Parameter(torch.full((4,), 2.0).half())
opt = torch.optim.RMSprop([w], lr=1e-5)
for i in range(3):
    opt.zero_grad()
    (w * 200).sum().backward()
    opt.step()
""",
    "a filled padding row of a weight that is not stored": """
emb, out = nn.Embedding(5000, 8, padding_idx=0), nn.Linear(8, 1)
nn.init.normal_(emb.weight)
ids = torch.arange(9000).reshape(3, 3000) % 5000
out(emb(ids).sum(1)).pow(2).mean().backward()
""",
    "replicas of which only statistics are stored": """
ws = [nn.Parameter(torch.arange(20000.0) + i) for i in range(4)]
opt = torch.optim.SGD(ws, lr=0.1)
for i in range(2):
    opt.zero_grad()
    sum((w * torch.arange(1.0, 20001) * (n + 1)).sum() for n, w in enumerate(ws)).backward()
    for n, w in enumerate(ws):
        w.grad.div_(n + 1.0)
    opt.step()
""",
}
EXPECTED = {
    "a step that is never reached": (
        "warning",
        "never-stepped",
        ["opt.step() never ran: (i + 1) % 8 == 0 was not true in any of 12 passes"],
        "a step after the last batch",
        "if (i + 1) % 8",
    ),
    "a sum with weights of the columns": (
        "note",
        "summed-loss",
        ["adds up 32 rows", "every gradient is 32 times that of the mean"],
        "reduction='mean'",
        "loss = (weight",
    ),
    "a baseline of a reward of sampled actions": (
        "note",
        "reaches-other-part",
        ["which has its own loss"],
        "value.detach()",
        "actor_loss = ((reward",
    ),
    "an advantage in one mean with its error": (
        "note",
        "reaches-other-part",
        ["which has its own loss"],
        "adv.detach()",
        "loss = (0.5",
    ),
    "a step under two conditions": (
        "note",
        "never-stepped",
        ["got gradients in 6 passes, and nothing has updated it"],
        "optimizer.step() after backward()",
        "loss.backward()",
    ),
    "a step that a switch turns off": (
        "note",
        "never-stepped",
        ["opt.step() never ran: not dry was not true in any of 6 passes"],
        "a condition that comes true, if it is to learn",
        "if not dry",
    ),
    "a hinge that is to grow": (
        "warning",
        "dead-units",
        ["is to grow, and is flat below 0"],
        "-score.mean()",
        "loss = -F.relu",
    ),
    "a loss of arrays": (
        "warning",
        "cut-summand",
        ["is made of arrays: the numbers of emb, without its history"],
        "index the tensor itself",
        "one = torch.tensor",
    ),
    "a flag that a target needs": (
        "note",
        "unread",
        ["done is never read in td_loss", "where the episode has ended"],
        "(1 - done)",
        "= batch",
    ),
    "lengths that are not used": (
        "note",
        "unread",
        ["lengths is never read in Net.forward", "count like its own"],
        "pack_padded_sequence",
        "def forward(self, x, lengths)",
    ),
    "weights of a state dict in a functional call": (
        "warning",
        "unused",
        ["which is detached from it"],
        "state_dict(keep_vars=True)",
        "weights = net.state_dict()",
    ),
    "momentum that moves a frozen layer": (
        "warning",
        "frozen-moved",
        ["moves ", "in 4 steps, though frozen", "zeros", "momentum 0.9"],
        "set_to_none=True",
        "opt.zero_grad(set_to_none=False)",
    ),
    "statistics of a frozen part": (
        "note",
        "frozen-statistics",
        ["body.1 still change, though frozen", "3 batches"],
        "eval()",
        "net.train()",
    ),
    "dropout of an attention in evaluation": (
        "note",
        "dropout-in-evaluation",
        ["dropout is active at", "under no_grad"],
        "self.training",
        "F.scaled_dot_product_attention",
    ),
    "a reversal of the gradients of all heads": (
        "note",
        "changed-by-hook",
        ["turns round the gradient of", "all 2 uses"],
        "view_as",
        "h.register_hook",
    ),
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
    "a softmax over the single score of each element": (
        "warning",
        "one-element",
        ["its result is always 1", "(6,5,1)"],
        "dim=1, of size 5",
        "F.softmax(",
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
            "was created at program.py:9, and read to its end at program.py:10",
        ],
        "params = list(...)",
        "clip_grad_norm_(params",
    ),
    "optimizer of a generator that was read": (
        "error",
        "failed",
        [
            "params is a generator that was already consumed",
            "was created at program.py:9, and read to its end at program.py:10",
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
    "penalty without create_graph": ("warning", "cut-summand", ["is a part of"], "create_graph=True", "autograd.grad"),
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
    "element set through data": ("error", "changed-through-data", ["h = sigmoid"], "clone()", "h.data[0]"),
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
        ["into its target", "y = add"],
        "detach()",
        "y = r + 0.9",
    ),
    "temporal difference": ("note", "attached-target", ["into its target"], "detach()", "td = r"),
    "best action as target": ("note", "attached-target", ["target = add"], "detach()", "target = r"),
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
    "a write to the copy that an index makes": (
        "warning",
        "lost-write",
        ["fill_ writes to #", "a new tensor that nothing uses"],
        "index",
        "fill_(0.0)",
    ),
    "a hook that writes to its parameter": (
        "warning",
        "written-by-hook",
        ["the hook damp writes to", "itself"],
        ".grad in the hook",
        "p.mul_(0.1)",
    ),
    "targets of 0 and 1 for a loss of signs": (
        "warning",
        "wrong-targets",
        ["1 and -1, but gets 0 and 1", "2 of its 5 elements are 0"],
        "same * 2 - 1",
        "F.cosine_embedding_loss",
    ),
    "targets of signs for a loss of shares": (
        "warning",
        "wrong-targets",
        ["0 to 1, but gets -1 .. 1"],
        "y / 2 + 0.5",
        "F.binary_cross_entropy",
    ),
    "a target in the input": (
        "note",
        "target-in-input",
        ["[:, 3], in the same memory"],
        "one place later",
        "y = series[3:-1]",
    ),
    "a final state that is viewed with its batch first": (
        "note",
        "mixed-rows",
        ["(2,8,5) as (8,10)", "transpose(0, 1)"],
        "transpose(0, 1)",
        "h.view(8, -1)",
    ),
    "an initialization over the padding row": (
        "note",
        "padding-filled",
        ["row 0", "is never trained"],
        "emb.weight[0] = 0",
        "nn.init.normal_",
    ),
    "decay of what a hook freezes": (
        "note",
        "decayed",
        ["the hook <lambda> makes 6 of its gradients zero", "AdamW has weight_decay=0.01"],
        "weight_decay=0",
        "opt = torch.optim.AdamW",
    ),
    "replicas that begin apart": (
        "note",
        "replicas-apart",
        ["get the same gradient, but differ", "started with different values"],
        "load_state_dict",
        "nets = [",
    ),
    "a copy without the statistics of its norm": (
        "warning",
        "initial-statistics",
        ["running_mean is 0 as at the start", "a mean of 0 and a variance of 1"],
        "copy the buffers",
        "in zip(follower.parameters()",
    ),
    "a state detached at every step": (
        "note",
        "partly-detached",
        ["is detached at each of 3 steps before backward"],
        "detach it after backward()",
        "h.detach()",
    ),
    "the gradient of another loss": (
        "error",
        "not-cleared",
        ["still held the gradient of #", "for another optimizer"],
        "opt_c.zero_grad()",
        "critic(fake.detach())",
    ),
    "clipping of a filter that is used up": (
        "warning",
        "clipped-early",
        ["params is a generator that was already consumed"],
        "params = list(...)",
        "clip_grad_norm_",
    ),
    "means of parts with different numbers of targets": (
        "note",
        "uneven-means",
        ["means over 1 to 4 targets", "count 4, 1 targets"],
        "reduction='sum'",
        "/ 2",
    ),
    "a schedule of rates": (
        "warning",
        "squared-rate",
        ["reaches 0.0025, the square of 0.05"],
        "return a factor",
        "LambdaLR(",
    ),
    "a mask that lets only padding through": (
        "warning",
        "masked",
        ["it arrives only where", "nowhere are both nonzero", "is a mask"],
        "invert the mask",
        "# mask",
    ),
    "gradients that clipping leaves nothing of": (
        "warning",
        "unchanged",
        ["4 steps of the optimizer did not change", "|g| 6, and clip_grad_norm_ at", "left |g| 1e-08"],
        "clip at a larger norm",
        "clip_grad_norm_",
    ),
    "gradients that a line of the program leaves nothing of": (
        "warning",
        "unchanged",
        ["|g| 6, and a line of the program at", "left |g| 6e-09"],
        "keep more of the gradient",
        "w.grad *= 1e-9",
    ),
    "a mean of an empty selection": (
        "error",
        "nan-born",
        ["it is the mean of no element"],
        "if nothing is selected",
        "cross_entropy",
    ),
    "a mean of no number": ("error", "nan-born", ["it is the mean of no element"], "if nothing is selected", "mean()"),
    "training of a deepcopy": (
        "warning",
        "copied-model",
        ["found no gradient in 2 steps: it holds"],
        "copy the gradients of the copy",
        "copy.deepcopy",
    ),
    "parameters in half whose steps round away": (
        "warning",
        "unchanged",
        ["rounds away in float16", "are 0.001953 apart"],
        "float32",
        ".half()",
    ),
    "a loss that does not fall": (
        "note",
        "not-falling",
        ["does not fall in 30 passes", "2 of 2 parameters of the optimizer", "lr is 0.1"],
        "fit one batch first",
        "loss = F",
    ),
    "a loss that grows": (
        "note",
        "not-falling",
        ["loss = sum grows in 30 passes", "1 of 1 parameters"],
        "a smaller learning rate",
        "loss = (w",
    ),
    "a write to a product that nothing uses": (
        "warning",
        "lost-write",
        ["fill_ writes to #", "which stays as it was"],
        "write to what it is computed from",
        "(w * 2).fill_(0.0)",
    ),
    "the gradient of another loss, whose input is other data": (
        "note",
        "not-cleared",
        ["still held the gradient of #", "for another optimizer"],
        "opt_c.zero_grad()",
        "critic(torch.randn(5, 3))",
    ),
    "an attention mask that lets only padding through": (
        "warning",
        "masked",
        ["it arrives only where", "is a mask"],
        "invert the mask: in this attention True marks the elements that are left out",
        "mask = ",
    ),
    "a mask that lets only products with zeros through": (
        "warning",
        "masked",
        ["it arrives only where", "nowhere are both nonzero", "is a mask"],
        "invert the mask: it keeps",
        "# mask",
    ),
    "a write to an element of a copy": (
        "warning",
        "lost-write",
        ["a new tensor that nothing uses"],
        "an index of rows or a mask makes a copy",
        "w[[0, 1]][0] = 0.0",
    ),
    "a mask over more elements than are stored": (
        "note",
        "masked",
        ["it arrives only where", "is a mask"],
        "invert the mask: it keeps",
        "# mask",
    ),
    "Adam in half whose steps round away": ("warning", "unchanged", ["rounds away in float16"], "float32", ".half()"),
    "small gradients in half whose steps round away": (
        "warning",
        "unchanged",
        ["rounds away in float16"],
        "float32",
        ".half()",
    ),
    "RMSprop in half whose steps round away": (
        "warning",
        "unchanged",
        ["rounds away in float16"],
        "float32",
        ".half()",
    ),
    "a filled padding row of a weight that is not stored": (
        "note",
        "padding-filled",
        ["row 0", "is never trained"],
        "emb.weight[0] = 0",
        "nn.init.normal_",
    ),
    "replicas of which only statistics are stored": (
        "note",
        "replicas-apart",
        ["get the same gradient, but differ"],
        "load_state_dict",
        "ws = [",
    ),
}
ONLY_TORCH = {
    "clipped before unscale_",
    "a target that is longer than its input",
    "weights of a state dict in a functional call",
}
HEALTHY = {
    "a loss that leaves out a batch without a selected element": """
w = torch.randn(4, 3, requires_grad=True)
for label in (0, 2):
    keep = torch.zeros(10, dtype=torch.long) == label
    if keep.any():
        F.cross_entropy((torch.randn(10, 4) @ w)[keep], torch.zeros(10, dtype=torch.long)[keep]).backward()
""",
    "gradients that clipping makes small": """
w = nn.Parameter(torch.full((4,), 2.0))
opt = torch.optim.SGD([w], lr=0.5)
for i in range(4):
    opt.zero_grad()
    (w * 3000).sum().backward()
    nn.utils.clip_grad_norm_([w], 1e-2)
    opt.step()
""",
    "a penalty on weights with as many rows as the batch": """
net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(16, 3), torch.arange(16) % 2
old = [p.detach().clone() for p in net.parameters()]
scores = F.cross_entropy(net(x), y, reduction="none")
gradients = [torch.autograd.grad(score, list(net.parameters()), retain_graph=True) for score in scores]
worth = [sum(g.pow(2) for g in each) / 16 for each in zip(*gradients)]
for i in range(3):
    penalty = sum((w * (p - q).pow(2)).sum() for w, p, q in zip(worth, net.parameters(), old))
    loss = F.cross_entropy(net(x), y) + 10 * penalty
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a closure that is called once more for its loss": """
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
opt = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=2)
x, y = torch.randn(6, 3), torch.arange(6) % 2
def closure():
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    return loss
for i in range(3):
    opt.step(closure)
    print(closure().item())
""",
    "a gradient that is kept after a write in place": """
net, head = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for i in range(3):
    h = net(torch.randn(5, 3))
    F.relu(h, inplace=True)
    h.retain_grad()
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(h.grad.norm().item())
""",
    "losses with weights that are trained, too": """
net, scales = nn.Linear(3, 3), nn.Parameter(torch.zeros(2))
opt = torch.optim.Adam([*net.parameters(), scales], lr=0.01)
for i in range(3):
    out = net(torch.randn(8, 3))
    losses = torch.stack([F.mse_loss(out[:, 0], torch.randn(8)), F.cross_entropy(out[:, 1:], torch.arange(8) % 2)])
    loss = (torch.exp(-scales) * losses + 0.5 * scales).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "squares with weights that are trained, too": """
net, scales = nn.Linear(3, 2), nn.Parameter(torch.zeros(2))
opt = torch.optim.Adam([*net.parameters(), scales], lr=0.01)
for i in range(3):
    errors = (net(torch.randn(8, 3)) - torch.randn(8, 2)).pow(2).mean(0)
    loss = (torch.exp(-scales) * errors + 0.5 * scales).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "images whose gradients are to match, through new nets": """
images = torch.randn(4, 3, requires_grad=True)
opt = torch.optim.SGD([images], lr=0.1)
for i in range(3):
    net = nn.Linear(3, 2)
    weights, loss = [*net.parameters()], torch.tensor(0.0)
    for c in range(5):
        real = torch.autograd.grad(net(torch.randn(6, 3)).pow(2).mean(), weights)
        own = torch.autograd.grad(net(images[c % 4 :]).pow(2).mean(), weights, create_graph=True)
        loss = loss + sum((a - b).pow(2).sum() for a, b in zip(real, own))
    opt.zero_grad()
    loss.backward(inputs=[images])
    opt.step()
""",
    "a tensor that only makes targets, and one that is changed by hand": """
net = nn.Linear(4, 2)
for p in net.parameters():
    p.requires_grad_(False)
class Patch:
    def __init__(self, start):
        self.patch = torch.full((4,), start, requires_grad=True)
    def put(self, x):
        return x + self.patch.tanh()
trained, wanted = Patch(0.1), Patch(0.9)
x = torch.randn(8, 4)
with torch.no_grad():
    target = net(wanted.put(x))
for i in range(3):
    loss = F.mse_loss(net(trained.put(x)), target)
    loss.backward()
    with torch.no_grad():
        trained.patch -= 0.1 * trained.patch.grad
    trained.patch.grad = None
""",
    "a bandit without next states": """
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def loss_of(batch):
    state, reward, done = batch
    return F.mse_loss(net(state)[:, 0], reward)
for i in range(3):
    loss = loss_of((torch.randn(5, 3), torch.ones(5), torch.zeros(5)))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a record that is unpacked": """
from typing import NamedTuple
class Batch(NamedTuple):
    state: torch.Tensor
    done: torch.Tensor = torch.zeros(5)
net, gamma = nn.Linear(3, 2), 0.9
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    state, ended = Batch(torch.randn(5, 3))
    with torch.no_grad():
        target = 1.0 + gamma * net(state + 1).max(1).values * (1 - ended)
    loss = F.mse_loss(net(state)[:, 0], target)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a record with a flag": """
from typing import NamedTuple
class Batch(NamedTuple):
    state: torch.Tensor
    done: torch.Tensor
net, gamma = nn.Linear(3, 2), 0.9
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    b = Batch(torch.randn(5, 3), torch.zeros(5))
    with torch.no_grad():
        target = 1.0 + gamma * net(b.state + 1).max(1).values * (1 - b.done)
    loss = F.mse_loss(net(b.state)[:, 0], target)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a loss that grows because its target does": """
net = nn.Linear(2, 1)
goal = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(20, 2) + 2
for i in range(60):
    with torch.no_grad():
        target = 1.0 + i / 10 + 1.5 * goal(x + 1)
    loss = F.mse_loss(net(x), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 5 == 4:
        goal.load_state_dict(net.state_dict())
""",
    "a step that is reached": """
net, x, y = nn.Linear(3, 1), torch.randn(12, 3), torch.randn(12, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for i in range(4):
        loss = (net(x[3 * i : 3 * i + 3]) - y[3 * i : 3 * i + 3]).pow(2).mean() / 2
        loss.backward()
        if (i + 1) % 2 == 0:
            opt.step()
            opt.zero_grad()
""",
    "a metric of arrays next to the loss": """
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    x = torch.randn(6, 3)
    out = net(x)
    arrays = out.detach().numpy()
    close = F.mse_loss(torch.tensor(arrays[:3]), torch.tensor(arrays[3:]))
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "arrays of a frozen layer in a loss": """
net, dec = nn.Linear(3, 4), nn.Linear(4, 3)
net.requires_grad_(False)
opt = torch.optim.SGD(dec.parameters(), lr=0.1)
for i in range(3):
    x = torch.randn(6, 3)
    emb = net(x)
    arrays = emb.detach().numpy()
    one = torch.tensor(arrays[[0, 1, 2]])
    other = torch.tensor(arrays[[3, 4, 5]])
    close = F.mse_loss(one, other)
    loss = F.mse_loss(dec(emb), x) + close
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "lengths that another layer reads": """
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 3, batch_first=True)
    def forward(self, x, lengths):
        return self.lstm(x)[0]
class Pooled(nn.Module):
    def forward(self, x, lengths):
        mask = (torch.arange(5)[None] < lengths[:, None]).float()
        return (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
layers = nn.ModuleList([Plain(), Pooled()])
opt = torch.optim.SGD(layers.parameters(), lr=0.1)
for i in range(3):
    h, lengths = torch.randn(4, 5, 3), torch.tensor([5, 4, 3, 3])
    for layer in layers:
        h = layer(h, lengths)
    loss = F.cross_entropy(h, torch.tensor([0, 1, 0, 1]))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "lengths for other callers": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 2, batch_first=True)
    def forward(self, x, lengths=None):
        return self.lstm(x)[0][:, -1]
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = F.cross_entropy(net(torch.randn(4, 5, 3)), torch.tensor([0, 1, 0, 1]))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a frozen layer without gradients": """
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for i in range(6):
    if i == 2:
        net[0].requires_grad_(False)
    loss = (net(torch.randn(5, 3)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a batch norm whose critic is frozen for a step of the generator": """
G, D = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.LeakyReLU(0.2), nn.Linear(4, 1))
opt_g, opt_d = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
for i in range(3):
    fake = G(torch.randn(6, 3))
    real = F.softplus(-D(torch.randn(6, 4))).mean() + F.softplus(D(fake.detach())).mean()
    opt_d.zero_grad()
    real.backward()
    opt_d.step()
    D.requires_grad_(False)
    loss = F.softplus(-D(fake)).mean()
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()
    D.requires_grad_(True)
""",
    "a ranking loss, in which the bias cancels, with a gradient penalty": """
net = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(3):
    a, b = torch.randn(6, 4), torch.randn(6, 4)
    mid = ((a + b) / 2).requires_grad_(True)
    (slope,) = torch.autograd.grad(net(mid).sum(), mid, create_graph=True)
    loss = net(a).mean() - net(b).mean() + (slope.norm(dim=1) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "attention over a single key": """
q, k, v = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
opt = torch.optim.SGD([*q.parameters(), *k.parameters(), *v.parameters()], lr=0.1)
x = torch.randn(6, 5, 4)
for length in (1, 3):
    memory = torch.randn(6, length, 4)
    scores = torch.softmax(q(x) @ k(memory).transpose(1, 2), dim=-1)
    loss = (scores @ v(memory) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
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
    "writes in place that are used": """
w = torch.randn(4, 3, requires_grad=True)
x = torch.randn(4, 3)
with torch.no_grad():
    w[0].fill_(0.0)
    w[[1, 2]] = 1.0
y = x[[0, 1]].mul_(2)
print(x[[0, 1]].clamp_(max=1).sum())
(w[:2] * y).sum().backward()
""",
    "a hook that updates its parameter by its gradient": """
net = nn.Linear(3, 1)
def update(p):
    with torch.no_grad():
        p.sub_(p.grad, alpha=0.1)
    p.grad = None
for p in net.parameters():
    p.register_post_accumulate_grad_hook(update)
for i in range(3):
    (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
""",
    "targets of signs and of shares where they belong": """
net = nn.Linear(3, 4)
same = torch.tensor([-1.0, 1.0, 1.0, -1.0, 1.0])
flags = torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0])
loss = F.cosine_embedding_loss(net(torch.randn(5, 3)), net(torch.ones(5, 3)), same)
loss = loss + F.cosine_embedding_loss(net(torch.randn(5, 3)), flags[:, None].expand(5, 4), torch.ones(5))
(loss + F.binary_cross_entropy_with_logits(net(torch.randn(5, 3))[:, 0], flags)).backward()
""",
    "the next value of a series": """
net = nn.Linear(4, 1)
series = torch.sin(torch.arange(40.0))
x = series.unfold(0, 4, 1)[:-1]
y = series[4:]
(net(x) - y[:, None]).pow(2).mean().backward()
auto = nn.Linear(4, 4)
(auto(x) - x).pow(2).mean().backward()
""",
    "views that keep their rows": """
rnn, out = nn.GRU(3, 5, bidirectional=True, batch_first=True), nn.Linear(10, 1)
_, h = rnn(torch.randn(8, 4, 3))
loss = out(h.transpose(0, 1).reshape(8, -1)).pow(2).mean()
x = torch.randn(8, 4, 6, requires_grad=True)
(loss + x.view(32, 6).mean() + x.view(8, 2, 12).mean() + x.view(8, 24).mean()).backward()
""",
    "a padding row of zeros": """
emb, out = nn.Embedding(7, 4, padding_idx=0), nn.Linear(4, 1)
nn.init.normal_(emb.weight)
with torch.no_grad():
    emb.weight[0] = 0
other = nn.Embedding(7, 4, padding_idx=6)
nn.init.normal_(other.weight)
ids = torch.tensor([[1, 2, 3], [4, 0, 0]])
out(emb(ids).sum(1) + other(ids).sum(1)).pow(2).mean().backward()
""",
    "a hook that freezes rows without decay": """
w = nn.Parameter(torch.randn(4, 3))
keep = torch.tensor([[0.0], [1.0], [0.0], [1.0]])
w.register_hook(lambda g: g * keep)
v = nn.Parameter(torch.randn(4, 3))
v.register_hook(lambda g: g * 0.5)
opt = torch.optim.AdamW([{"params": [w], "weight_decay": 0.0}, {"params": [v]}], lr=0.1)
for i in range(3):
    opt.zero_grad()
    ((w + v) * torch.randn(4, 3)).sum().backward()
    opt.step()
""",
    "biases of cells that get one gradient": """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.w_x, self.w_h = nn.Parameter(torch.randn(5, 5)), nn.Parameter(torch.randn(5, 5))
        self.b_x, self.b_h = nn.Parameter(torch.randn(5)), nn.Parameter(torch.randn(5))
    def forward(self, x, h):
        return torch.tanh(x @ self.w_x + self.b_x + h @ self.w_h + self.b_h)
cells = nn.ModuleList([nn.RNNCell(5, 5), nn.RNNCell(5, 5), Cell(), Cell()])
opt = torch.optim.SGD(cells.parameters(), lr=0.1)
for i in range(3):
    h = [torch.zeros(4, 5)] * 4
    for x in torch.randn(2, 4, 5):
        for n, cell in enumerate(cells):
            h[n] = x = cell(x, h[n])
    opt.zero_grad()
    x.pow(2).mean().backward()
    for p in cells.parameters():
        p.grad.clamp_(-1.0, 1.0)
    opt.step()
""",
    "replicas that begin together": """
nets = [nn.Linear(3, 2) for _ in range(2)]
nets[1].load_state_dict(nets[0].state_dict())
opts = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
for i in range(2):
    for net, opt in zip(nets, opts):
        opt.zero_grad()
        (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
    for pair in zip(*(net.parameters() for net in nets)):
        mean = (pair[0].grad + pair[1].grad) / 2
        for p in pair:
            p.grad.copy_(mean)
    for opt in opts:
        opt.step()
""",
    "a copy with the statistics of its norm": """
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
follower = copy.deepcopy(net).requires_grad_(False)
follower.eval()
with torch.no_grad():
    follower(torch.randn(6, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    opt.zero_grad()
    (net(torch.randn(6, 3)) - 1).pow(2).mean().backward()
    opt.step()
    follower.load_state_dict(net.state_dict())
with torch.no_grad():
    follower(torch.randn(6, 3))
""",
    "a state detached after each pass": """
cell, out = nn.GRUCell(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
h = torch.zeros(5, 4)
for i in range(4):
    for t in range(2):
        h = cell(torch.randn(5, 3), h)
    opt.zero_grad()
    out(h).pow(2).mean().backward()
    opt.step()
    h = h.detach()
""",
    "two losses, each with its own optimizer": """
gen, critic = nn.Linear(2, 3), nn.Linear(3, 1)
opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
opt_c = torch.optim.SGD(critic.parameters(), lr=0.1)
for i in range(2):
    fake = gen(torch.randn(5, 2))
    opt_g.zero_grad()
    (-critic(fake).mean()).backward()
    opt_g.step()
    opt_c.zero_grad()
    critic(fake.detach()).pow(2).mean().backward()
    opt_c.step()
""",
    "two optimizers of one loss": """
a, b = nn.Linear(2, 3), nn.Linear(3, 1)
opt_a = torch.optim.SGD(a.parameters(), lr=0.1)
opt_b = torch.optim.SGD(b.parameters(), lr=0.1)
for i in range(4):
    (b(a(torch.randn(5, 2))).pow(2).mean() / 2).backward()
    opt_a.step(); opt_a.zero_grad()
    if i % 2:
        opt_b.step(); opt_b.zero_grad()
""",
    "clipping of a list": """
net = nn.Linear(3, 1)
params = list(filter(lambda p: p.requires_grad, net.parameters()))
opt = torch.optim.SGD(params, lr=0.1)
for i in range(2):
    opt.zero_grad()
    (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
""",
    "a schedule of factors": """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 1 / (1 + step))
for i in range(3):
    opt.zero_grad()
    (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
    opt.step()
    sched.step()
""",
    "a loss that falls slowly": """
w = torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.001)
for i in range(30):
    loss = (w * w).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "weights above 1, and scores of a validation": """
net, x, y = nn.Linear(3, 1), torch.randn(5, 3), torch.tensor([[0.0], [1.0], [1.0], [0.0], [1.0]])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
w = torch.full((5, 1), 3.0)
for i in range(2):
    with torch.no_grad():
        F.binary_cross_entropy_with_logits(net(x) * 9 + 5, y)
    loss = F.binary_cross_entropy_with_logits(net(x), y, pos_weight=torch.tensor([5.0]))
    loss = loss + F.binary_cross_entropy_with_logits(net(x), y, weight=w)
    loss = loss + (F.binary_cross_entropy_with_logits(net(x), y, reduction="none") * w).mean()
    loss = loss + nn.BCEWithLogitsLoss(pos_weight=torch.tensor([5.0]))(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a cosine schedule that ends at the square of the rate": """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for group in opt.param_groups:
    group["initial_lr"] = 0.1
    group["lr"] = 0.01
for i in range(3):
    opt.zero_grad()
    (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
    opt.step()
""",
    "writes to parameters between their hooks": """
net = nn.Linear(3, 1)
ran = []
def count(p):
    ran.append(1)
for p in net.parameters():
    p.register_post_accumulate_grad_hook(count)
    p.register_post_accumulate_grad_hook(lambda p: ran.append(2))
    with torch.no_grad():
        p.fill_(0.5)
for i in range(3):
    net.zero_grad()
    (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
""",
    "a lambda that updates its parameter by its gradient": """
net = nn.Linear(3, 1)
for p in net.parameters():
    p.register_post_accumulate_grad_hook(lambda p: (p.data.add_(p.grad, alpha=-0.1), None)[1])
for i in range(3):
    net.zero_grad()
    (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
""",
    "an encoder that two heads share": """
encoder, head_a, head_b = nn.Linear(2, 3), nn.Linear(3, 1), nn.Linear(3, 1)
opt_a = torch.optim.SGD(head_a.parameters(), lr=0.1)
opt_b = torch.optim.SGD([*encoder.parameters(), *head_b.parameters()], lr=0.1)
for i in range(3):
    h = encoder(torch.randn(5, 2))
    loss_a, loss_b = (head_a(h) - 1).pow(2).mean(), (head_b(h) + 1).pow(2).mean()
    loss_a.backward(retain_graph=True)
    opt_a.step()
    loss_b.backward()
    opt_b.step()
    opt_a.zero_grad(); opt_b.zero_grad()
""",
    "means of parts, each with its number of targets as a weight": """
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
y = [torch.tensor([0, 1, 2, 3]), torch.tensor([1])]
for i in range(2):
    opt.zero_grad()
    for target in y:
        (F.cross_entropy(net(torch.randn(len(target), 3)), target) * len(target) / 5).backward()
    opt.step()
    opt.zero_grad()
    for target in y:
        F.cross_entropy(net(torch.randn(len(target), 3)), target).backward(torch.tensor(len(target) / 5))
    opt.step()
""",
    "a norm whose statistics are a part of its weights": """
norm, head = nn.BatchNorm1d(3), nn.Linear(3, 1)
norm.requires_grad_(False)
norm.weight.copy_(torch.tensor([0.5, 1.0, 2.0]))
norm.eval()
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for i in range(3):
    opt.zero_grad()
    (head(norm(torch.randn(6, 3))) - 1).pow(2).mean().backward()
    opt.step()
""",
    "signs of gradients": """
ws = [nn.Parameter(torch.arange(3.0) + i) for i in range(4)]
opt = torch.optim.SGD(ws, lr=0.1)
for i in range(2):
    opt.zero_grad()
    sum((w * torch.tensor([1.0, 2.0, 3.0]) * (n + 1)).sum() for n, w in enumerate(ws)).backward()
    for w in ws:
        w.grad.sign_()
    opt.step()
""",
    "gradients that are equal in one step": """
ws = [nn.Parameter(torch.arange(3.0) + i) for i in range(4)]
opt = torch.optim.SGD(ws, lr=0.1)
for i in range(2):
    opt.zero_grad()
    sum((w * torch.tensor([1.0, 2.0, 3.0])).sum() for n, w in enumerate(ws)).backward()
    for n, w in enumerate(ws):
        w.grad.mul_(2.0 + i * n)
    opt.step()
""",
    "a loss that falls less than it differs from pass to pass": """
w = torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.0001)
for i in range(30):
    loss = (w * w).sum() * (1.0 + i * 7 % 5)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "padding rows of weights that are loaded, frozen or empty": """
ready = torch.arange(28.0).reshape(7, 4) + 1
frozen = nn.Embedding.from_pretrained(ready.clone(), padding_idx=0)
tuned = nn.Embedding.from_pretrained(ready.clone(), freeze=False, padding_idx=0)
still = nn.Embedding(7, 4, padding_idx=0).requires_grad_(False)
nn.init.ones_(still.weight)
out = nn.Linear(4, 1)
ids = torch.tensor([[1, 2, 3], [4, 0, 0]])
out((frozen(ids) + tuned(ids) + still(ids)).sum(1)).pow(2).mean().backward()
""",
    "two losses that balance each other": """
a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
opt_a, opt_b = torch.optim.SGD([a], lr=0.01), torch.optim.SGD([b], lr=0.01)
for i in range(30):
    opt_a.zero_grad(); opt_b.zero_grad()
    (a * b.detach()).pow(2).sum().backward()
    opt_a.step()
    (2 - a.detach() * b).pow(2).sum().backward()
    opt_b.step()
""",
    "writes to results that are kept, or used later": """
x = torch.randn(4, 3, requires_grad=True)
used, kept = [], []
with torch.no_grad():
    used.append(x * 2); used[0].fill_(2.0)
    kept.append(x * 3); kept[0].zero_()
    torch.empty(3).uniform_()
(used.pop() * x).sum().backward()
""",
    "hooks that write to other tensors, or get the gradient": """
net, count = nn.Linear(3, 1), torch.zeros(1)
def seen(p):
    count.add_(1)
def shrink(g):
    net.bias.data.mul_(0.9)
net.weight.register_post_accumulate_grad_hook(seen)
net.bias.register_hook(shrink)
(net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
""",
    "a loss below zero that grows": """
w = torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([w], lr=1.01)
for i in range(30):
    loss = (w * w).sum() - 10
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "two losses that grow, with one optimizer": """
w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([w, v], lr=1.01)
for i in range(30):
    opt.zero_grad()
    (w * w).sum().backward()
    (v * v).sum().backward()
    opt.step()
""",
    "a loss that grows, with two optimizers": """
w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
opt_w, opt_v = torch.optim.SGD([w], lr=1.01), torch.optim.SGD([v], lr=1.01)
for i in range(30):
    opt_w.zero_grad(); opt_v.zero_grad()
    ((w * w).sum() + (v * v).sum()).backward()
    opt_w.step()
    opt_v.step()
""",
    "targets that are detached, one after the other": """
net, total = nn.Linear(3, 1), 0.0
for i in range(3):
    total = total + (net(torch.randn(5, 3)) - net(torch.ones(5, 3)).detach()).pow(2).mean()
total.backward()
""",
    "a state that is detached after its own loss": """
cell, out, h, total = nn.GRUCell(3, 4), nn.Linear(4, 1), torch.zeros(5, 4), 0.0
for i in range(4):
    h = cell(torch.randn(5, 3), h.detach())
    total = total + out(h).pow(2).mean()
total.backward()
""",
    "a copy whose norm is in training mode": """
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
follower = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    opt.zero_grad()
    (net(torch.randn(6, 3)) - 1).pow(2).mean().backward()
    opt.step()
    with torch.no_grad():
        for a, b in zip(follower.parameters(), net.parameters()):
            a.copy_(b)
with torch.no_grad():
    follower(torch.randn(6, 3))
""",
    "a norm of a program that trains nothing": """
norm = nn.BatchNorm1d(3)
with torch.no_grad():
    norm.weight.copy_(torch.tensor([0.5, 1.0, 2.0]))
    norm.eval()(torch.randn(6, 3))
""",
    "windows whose target is in other memory, or is the whole of them": """
net = nn.Linear(4, 1)
series, other = torch.sin(torch.arange(40.0)), torch.cos(torch.arange(40.0))
x = series.unfold(0, 4, 1)[:-1]
(net(x) - other[3:-1, None]).pow(2).mean().backward()
one = nn.Linear(1, 1)
(one(series[1:, None])[:, 0] - series[1:]).pow(2).mean().backward()
""",
    "a target in the input of a loss without backward": """
net = nn.Linear(4, 1)
series = torch.sin(torch.arange(40.0))
x = series.unfold(0, 4, 1)[:-1]
(net(x) - series[3:-1, None]).pow(2).mean()
""",
    "views whose order of dimensions is not known": """
h = torch.randn(2, 8, 5, requires_grad=True) * 2
square = torch.randn(4, 4, 5, requires_grad=True) * 2
one = torch.randn(1, 8, 5, requires_grad=True) * 2
(h.view(2, 8, 5).mean() + square.view(4, 20).mean() + one.view(8, 5).mean()).backward()
""",
    "views of a layer, which orders its dimensions itself": """
x = torch.randn(2, 3, 8)
nn.MultiheadAttention(8, 2)(x, x, x)[0].pow(2).mean().backward()
""",
    "products with data, negated or at a loss": """
net, t = nn.Linear(3, 4), torch.randn(5, 4)
(net(torch.randn(5, 3)) * -t).mean().backward()
h, y = net(torch.randn(5, 3)), torch.ones(5, 4)
F.binary_cross_entropy_with_logits(t * h, y).backward()
""",
    "a schedule of factors for a rate of 1": """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=1.0)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 1 / (1 + step))
for i in range(3):
    opt.zero_grad()
    ((net(torch.randn(5, 3)) - 1) / 9).pow(2).mean().backward()
    opt.step()
    sched.step()
""",
    "parts whose sums, calls or numbers of targets are weighted right": """
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
y = torch.tensor([[0, 1, 2, 3], [1, -100, -100, -100]])
for i in range(2):
    opt.zero_grad()
    for target in y:
        (F.cross_entropy(net(torch.randn(4, 3)), target, reduction="sum") / 5).backward()
    opt.step()
    opt.zero_grad()
    for target in y[:1].repeat(2, 1):
        (F.cross_entropy(net(torch.randn(4, 3)), target) / 2).backward()
    opt.step()
    opt.zero_grad()
    F.cross_entropy(net(torch.randn(4, 3)), y[0]).backward()
    F.cross_entropy(net(torch.randn(4, 3)), y[1]).backward()
    opt.step()
""",
    "one pair of parameters with equal gradients": """
ws = [nn.Parameter(torch.arange(3.0) + i) for i in range(2)]
opt = torch.optim.SGD(ws, lr=0.1)
for i in range(2):
    opt.zero_grad()
    sum((w * torch.tensor([1.0, 2.0, 3.0])).sum() for w in ws).backward()
    for w in ws:
        w.grad.mul_(2.0)
    opt.step()
""",
    "pairs of tensors that no optimizer has": """
ws = [nn.Parameter(torch.arange(3.0) + i) for i in range(4)]
for i in range(2):
    for w in ws:
        w.grad = None
    sum((w * torch.tensor([1.0, 2.0, 3.0])).sum() for w in ws).backward()
    for w in ws:
        w.grad.mul_(2.0)
        w.data -= w.grad
""",
    "signs of gradients of which only statistics are stored": """
ws = [nn.Parameter(torch.arange(20000.0) + i) for i in range(4)]
opt = torch.optim.SGD(ws, lr=0.1)
for i in range(2):
    opt.zero_grad()
    sum((w * torch.arange(1.0, 20001) * (n + 1)).sum() for n, w in enumerate(ws)).backward()
    for w in ws:
        w.grad.sign_()
    opt.step()
""",
    "padding rows of weights that are not stored": """
emb, out = nn.Embedding(5000, 8, padding_idx=0), nn.Linear(8, 1)
nn.init.normal_(emb.weight)
with torch.no_grad():
    emb.weight[0] = 0
ids = torch.arange(9000).reshape(3, 3000) % 5000
unused = nn.Embedding(5000, 8, padding_idx=0)
nn.init.normal_(unused.weight)
out((emb(ids) + unused(ids % 4000 + 1)).sum(1)).pow(2).mean().backward()
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


TARGETS_OF_SIGNS = """
net, y = nn.Linear(3, 4), torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0])
o = net(torch.randn(5, 3))
{}.backward()
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "loss",
    [
        "F.cosine_embedding_loss(o, torch.randn(5, 4), y)",
        "nn.CosineEmbeddingLoss()(torch.randn(5, 4), o, y)",
        "F.cosine_embedding_loss(o, torch.randn(5, 4), y, reduction='none').mean()",
        "F.hinge_embedding_loss(o[:, 0], y)",
        "F.margin_ranking_loss(o[:, 0], o[:, 1], y)",
        "F.soft_margin_loss(o[:, 0], y)",
        "F.multilabel_soft_margin_loss(o, torch.full((5, 4), -1.0))",
        "nn.BCEWithLogitsLoss(weight=torch.full((5,), 3.0))(o[:, 0], y - 1)",
        "F.binary_cross_entropy_with_logits(o[:, 0], y * 2)",
    ],
)
def test_the_target_of_each_loss_is_known_by_its_place(engine, loss, checks):
    found = {
        one.finding.kind: one.finding for one in checks.of_text(HEAD + TARGETS_OF_SIGNS.format(loss), engine).found
    }
    assert "wrong-targets" in found


@pytest.mark.parametrize("engine", ENGINES)
def test_targets_that_are_no_signs_are_not_mapped_from_signs(engine, checks):
    program = HEAD + TARGETS_OF_SIGNS.format("F.binary_cross_entropy_with_logits(o[:, 0], y * 3 - 1)")
    (one,) = checks.of_text(program, engine).found
    assert (one.finding.kind, one.finding.edit) == ("wrong-targets", None)
    assert one.finding.fix == "targets from 0 to 1, or another loss"


HOOK_OF_AN_OBJECT = """
net = nn.Linear(3, 1)
class Damping:
    def halve(self, p):
        with torch.no_grad():
            p.mul_(0.5)
damping = Damping()
net.weight.register_post_accumulate_grad_hook(damping.halve)
(net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_the_edit_of_a_method_as_a_hook_changes_its_parameter(engine, checks):
    found = {one.finding.kind: one.finding for one in checks.of_text(HEAD + HOOK_OF_AN_OBJECT, engine).found}
    edit = found["written-by-hook"].edit
    assert edit is not None
    assert "p.grad.mul_(0.5)" in edit.new


FUNCTIONS_OF_A_MODULE = """
h = torch.randn(2, 8, 5, requires_grad=True) * 2
y = {}
y.pow(2).mean().backward()
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("call", "mended"),
    [
        ("torch.reshape(h, (8, 10))", "torch.reshape(h.transpose(0, 1), (8, 10))"),
        ("h.reshape(8, 10)", "h.transpose(0, 1).reshape(8, 10)"),
        ("torch.reshape(h * 1, (8, 10))", "torch.reshape((h * 1).transpose(0, 1), (8, 10))"),
        ("h.view(8, 5, 2)", "h.permute(1, 2, 0).reshape(8, 5, 2)"),
    ],
)
def test_the_edit_of_mixed_rows_keeps_functions_of_modules(engine, call, mended, checks):
    found = {
        one.finding.kind: one.finding for one in checks.of_text(HEAD + FUNCTIONS_OF_A_MODULE.format(call), engine).found
    }
    assert found["mixed-rows"].edit.new == f"y = {mended}\n"


def test_only_an_exchange_of_two_dimensions_is_a_transpose():
    assert permutation((0, 2, 1, 3)) == "transpose(1, 2)"
    assert permutation((1, 0, 2)) == "transpose(0, 1)"
    assert permutation((1, 0, 3, 2)) == "permute(1, 0, 3, 2)"


OF_HALF = """
w = nn.Parameter(torch.full((4,), {}).half())
opt = torch.optim.SGD([w], lr={})
for i in range(3):
    opt.zero_grad()
    (w * 3).sum().backward()
    opt.step()
    with torch.no_grad():
        w.copy_(torch.full((4,), {}).half())
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("size", "rate"), [("2.0", 0.1), ("float('nan')", 0.1)])
def test_a_step_that_is_larger_than_the_gap_does_not_round_away(engine, size, rate, checks):
    found = checks.of_text(HEAD + OF_HALF.format(size, rate, size), engine).found
    assert not any("rounds away" in one.finding.text for one in found)


OTHER_REASONS = {
    "a step that does nothing": (
        "rounds away",
        """
class Idle(torch.optim.SGD):
    def step(self, closure=None):
        pass
w = nn.Parameter(torch.full((4,), 2.0).half())
opt = Idle([w], lr=0.1)
for i in range(3):
    opt.zero_grad()
    (w * 3).sum().backward()
    opt.step()
""",
    ),
    "a step from zero that is too small for its type": (
        "rounds away",
        """
w = nn.Parameter(torch.zeros(4).half())
opt = torch.optim.SGD([w], lr=1e-9)
for i in range(3):
    opt.zero_grad()
    (w * 3).sum().backward()
    opt.step()
""",
    ),
    "a hook that freezes the whole parameter": (
        "weight decay",
        """
w = nn.Parameter(torch.randn(4, 3))
w.register_hook(lambda g: g * 0)
opt = torch.optim.AdamW([w], lr=0.1)
for i in range(3):
    opt.zero_grad()
    (w * torch.randn(4, 3)).sum().backward()
    opt.step()
""",
    ),
    "means that are 0": (
        "targets add up",
        """
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    opt.zero_grad()
    for target in torch.tensor([[0, 1, 2, 3], [1, -100, -100, -100]]):
        h = net(torch.randn(4, 3)) * 0 + F.one_hot(target.clamp(min=0), 4) * 1000
        F.cross_entropy(h, target).backward()
    opt.step()
""",
    ),
    "means of passes whose gradients are cleared": (
        "targets add up",
        """
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(2):
    for target in torch.tensor([[0, 1, 2, 3], [1, -100, -100, -100]]):
        opt.zero_grad()
        F.cross_entropy(net(torch.randn(4, 3)), target).backward()
    opt.step()
""",
    ),
    "a generator that is used up where gradients are counted": (
        "nothing to clip",
        """
net = nn.Linear(3, 1)
params = filter(lambda p: p.requires_grad, net.parameters())
opt = torch.optim.SGD(params, lr=0.1)
for i in range(2):
    opt.zero_grad()
    (net(torch.randn(5, 3)) - 1).pow(2).mean().backward()
    if i > 5:
        nn.utils.clip_grad_norm_(params, 1.0)
    count = len(list(params))
    opt.step()
""",
    ),
}
"""Programs with another mistake, and the words of the finding that they do not have."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OTHER_REASONS)
def test_a_mistake_is_not_found_for_another_reason(name, engine, checks):
    words, program = OTHER_REASONS[name]
    assert [one.heading for one in checks.of_text(HEAD + program, engine).found if words in one.finding.text] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_the_edit_of_a_short_type_names_the_module_that_has_the_type(engine, checks):
    program = OF_HALF.replace(".half()", ".to(torch.float16)").format("2.0", 1e-5, "2.0")
    found = {one.finding.kind: one.finding for one in checks.of_text(HEAD + program, engine).found}
    assert found["unchanged"].edit.new == "w = nn.Parameter(torch.full((4,), 2.0).to(torch.float32))\n"


CANCELLED_ROWS = """
net = nn.Linear(2, 2, bias=False)
h = net(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]))
(h[0, 0] - h[1, 0]).backward()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_cancel_each_other_are_no_mask(engine, checks):
    assert "masked" not in {one.finding.kind for one in checks.of_text(HEAD + CANCELLED_ROWS, engine).found}


FILLED_IN_A_LOOP = """
net = nn.ModuleDict({"emb": nn.Embedding(7, 4, padding_idx=0), "out": nn.Linear(4, 1)})
for p in net.parameters():
    nn.init.normal_(p)
ids = torch.tensor([[1, 2, 3], [4, 0, 0]])
net["out"](net["emb"](ids).sum(1)).pow(2).mean().backward()
"""

FILLED_BY_A_METHOD = """
class Net(nn.Module):
    def fill(self):
        nn.init.normal_(self.emb.weight)
    def __init__(self):
        super().__init__()
        self.emb, self.out = nn.Embedding(7, 4, padding_idx=0), nn.Linear(4, 1)
        self.fill()
    def forward(self, ids):
        return self.out(self.emb(ids).sum(1))
Net()(torch.tensor([[1, 2, 3], [4, 0, 0]])).pow(2).mean().backward()
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("program", "line", "fix", "new"),
    [
        (FILLED_IN_A_LOOP, "nn.init.normal_(p)", "emb.weight[0] = 0", None),
        (FILLED_BY_A_METHOD, "nn.init.normal_", "self.emb.weight[0] = 0", "self.emb.weight.data[0].zero_()"),
    ],
    ids=["loop", "method"],
)
def test_only_a_padding_row_is_set_to_zero_and_no_row_of_another_parameter(program, line, fix, new, engine, checks):
    text = HEAD + program
    (one,) = checks.of_text(text, engine).found
    assert one.finding.kind == "padding-filled"
    assert line in text.splitlines()[one.finding.at.line - 1]
    assert one.finding.fix.endswith(f": {fix}")
    assert (one.finding.edit and one.finding.edit.new.strip().splitlines()[-1].strip()) == new


EMPTY_WIDTH = """
emb = nn.Embedding(7, 0, padding_idx=0)
emb(torch.tensor([[1, 0]])).sum().backward()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_an_embedding_without_columns_is_checked(engine, checks):
    assert "padding-filled" not in {one.finding.kind for one in checks.of_text(HEAD + EMPTY_WIDTH, engine).found}


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


@pytest.mark.parametrize("engine", ENGINES)
def test_a_layer_that_is_never_called_is_unused(engine, checks):
    """PyTorch's recording meets such a layer in the step of the optimizer that has it."""
    (one,) = checks.of_text(HEAD + UNCALLED, engine).found
    assert one.finding.kind == "unused"
    assert one.more == 1


ATTENTION = """
q, v = nn.Linear(6, 6), nn.Linear(6, 6)
opt = torch.optim.SGD([*q.parameters(), *v.parameters()], lr=0.1)
x = torch.randn(2, 5, 6)
weights = WEIGHTS
out = PRODUCT
loss = out.pow(2).mean()
loss.backward()
opt.step()
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("weights", "product", "is_wrong"),
    [
        ("torch.softmax(q(x) @ x.transpose(1, 2), dim=1)", "weights @ v(x)", True),
        ("F.dropout(torch.softmax(q(x) @ x.transpose(1, 2), dim=-2), 0.1)", "torch.bmm(weights, v(x))", True),
        ("torch.softmax(q(x) @ x.transpose(1, 2), dim=-1)", "weights @ v(x)", False),
        ("torch.softmax(q(x) @ x.transpose(1, 2), dim=1)", "weights.transpose(1, 2) @ v(x)", False),
        ("torch.softmax(q(x) @ x.transpose(1, 2), dim=1)", "(weights / weights.sum(-1, keepdim=True)) @ v(x)", False),
        ("torch.softmax(q(x) @ x.transpose(1, 2), dim=1)", "weights @ v(x) - weights.sum(2, True) * x", False),
        ("torch.softmax(q(x) @ x.transpose(1, 2), dim=1)", "weights @ v(x) + 0 * weights.sum(1, True).mT", True),
        ("torch.softmax(q(x), dim=1)", "v(x) @ weights.transpose(1, 2)", False),
        ("torch.softmax(q(x), dim=1)", "weights * v(x)", False),
    ],
)
def test_weights_of_a_product_add_up_over_what_it_sums(engine, weights, product, is_wrong, checks):
    text = "import torch\nfrom torch import nn\nF = nn.functional\ntorch.manual_seed(0)\n"
    text += ATTENTION.replace("WEIGHTS", weights).replace("PRODUCT", product)
    kinds = {one.finding.kind: one.finding for one in checks.of_text(text, engine).found}
    assert ("softmax-dim" in kinds) is is_wrong
    if is_wrong:
        assert "dim=-1" in str(kinds["softmax-dim"].edit)
        mended = kinds["softmax-dim"].edit.applied(text)
        assert "softmax-dim" not in {one.finding.kind for one in checks.of_text(mended, engine).found}


TOKENS = """
emb, out = nn.Embedding(9, 6), nn.Linear(6, 9)
opt = torch.optim.SGD([*emb.parameters(), *out.parameters()], lr=0.1)
data = torch.randint(0, 9, (9000,))
for step in range(4):
    x = data[step * 50:step * 50 + SIZE].view(4, -1)
    y = TARGET
    loss = F.cross_entropy(out(emb(x)).flatten(0, 1), y.flatten())
    opt.zero_grad(); loss.backward(); opt.step()
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("target", "size", "is_copied"),
    [
        ("data[step * 50:step * 50 + SIZE].clone()", 20, True),
        ("data[step * 50 + 1:step * 50 + SIZE + 1]", 20, False),
        ("x.flip(1)", 20, False),
        ("x if step else x.flip(1)", 20, False),
        ("torch.zeros(SIZE, dtype=torch.int64)", 20, False),
        ("x\n    x = y = torch.full((4, 5), 3)", 20, False),
        ("torch.stack(list(x))", 8800, True),  # only its statistics are stored, which another order shares
        ("x = x.flip(1)", 8800, True),
        ("x.flip(1)", 8800, False),
        ("torch.roll(x, -1, 1)", 8800, False),
        ("torch.cat([x[:, 1:], x[:, :1]], 1)", 8800, False),
    ],
)
def test_labels_that_are_the_tokens_of_the_input_can_be_copied(engine, target, size, is_copied, checks):
    text = "import torch\nfrom torch import nn\nF = nn.functional\ntorch.manual_seed(0)\n"
    text += TOKENS.replace("TARGET", target).replace("SIZE", str(size))
    kinds = {one.finding.kind: one.finding for one in checks.of_text(text, engine).found}
    assert ("target-in-input" in kinds) is is_copied
    assert not is_copied or "in each of 4 passes" in str(kinds["target-in-input"])


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("scores", ["out(h)[:, 1:-1]", "out(h[:, 1:-1])"])
def test_scores_before_each_token_are_no_copy(engine, scores, checks):
    text = "import torch\nfrom torch import nn\nF = nn.functional\ntorch.manual_seed(0)\n"
    text += (
        TOKENS.replace("TARGET", "x")
        .replace("SIZE", "20")
        .replace(
            "out(emb(x)).flatten(0, 1)",
            f"{scores.replace('h', 'torch.cat([torch.ones(4, 2, 6), emb(x)], 1)')}.flatten(0, 1)",
        )
    )
    kinds = {one.finding.kind for one in checks.of_text(text, engine).found}
    assert "target-in-input" not in kinds


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("call", "is_found"), [("F.dropout(x, 0.5)", True), ("F.dropout(x, 0.5, training = True)", False)]
)
def test_dropout_that_is_switched_on_in_words_is_deliberate(engine, call, is_found, checks):
    text = f"""
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        x = self.fc(x)
        return {call.replace("F.", "nn.functional.")}


net = Net()
net(torch.ones(3, 4)).sum().backward()
net.eval()
with torch.no_grad():
    net(torch.ones(3, 4))
"""
    assert ("dropout-in-evaluation" in {one.finding.kind for one in checks.of_text(text, engine).found}) is is_found


SCHEDULE = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.SCHEDULER
for epoch in range(4):
    for batch in range(5):
        opt.zero_grad(); net(torch.ones(2, 3)).pow(2).mean().backward(); opt.step()
        BATCH
    EPOCH
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("scheduler", "in_batch", "in_epoch", "is_found"),
    [
        ("CosineAnnealingLR(opt, T_max=4)", "sched.step()", "", True),
        ("CosineAnnealingLR(opt, T_max=20)", "sched.step()", "", False),
        ("CosineAnnealingLR(opt, T_max=4)", "", "sched.step()", False),
        (
            "CosineAnnealingWarmRestarts(opt, 12) if opt else torch.optim.lr_scheduler.CosineAnnealingLR(opt, 12)",
            "sched.step()",
            "",
            False,
        ),
        ("StepLR(opt, 4)", "sched.step()", "", False),
    ],
)
def test_a_cosine_schedule_that_is_stepped_beyond_its_end(engine, scheduler, in_batch, in_epoch, is_found, checks):
    text = "import torch\nfrom torch import nn\nF = nn.functional\ntorch.manual_seed(0)\n"
    text += SCHEDULE.replace("SCHEDULER", scheduler).replace("BATCH", in_batch).replace("EPOCH", in_epoch or "pass")
    found = {one.finding.kind: one.finding for one in checks.of_text(text, engine).found}
    assert ("schedule-period" in found) is is_found
    if is_found:
        assert "ends after 4 steps" in found["schedule-period"].text
        assert found["schedule-period"].at.line == 8


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_nan_that_a_softmax_over_the_wrong_dimension_makes_of_a_mask_is_its_consequence(engine, checks):
    text = """import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
q, out = nn.Linear(6, 6), nn.Linear(6, 2)
opt = torch.optim.SGD([*q.parameters(), *out.parameters()], lr=0.1)
for i in range(2):
    x = torch.randn(3, 5, 6)
    hidden = torch.arange(5) >= torch.tensor([[5], [3], [2]])
    scores = (q(x) @ x.transpose(1, 2)).masked_fill(hidden[:, None], float("-inf"))
    weights = scores.softmax(dim=-2)
    loss = F.cross_entropy(out((weights @ x).mean(1)), torch.zeros(3, dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    found = checks.of_text(text, engine).found
    (one,) = (one for one in found if one.finding.kind == "softmax-dim")
    assert (one.level, one.finding.at.line) == ("warning", 11)
    assert {other.finding.kind for other in found}.isdisjoint({"nan-born", "nan-born-backward"})
    mended = one.finding.edit.applied(text)
    assert [str(other) for other in checks.of_text(mended, engine).found if other.level != "note"] == []


MULTIPLIER = """
p, lam = torch.zeros(2, requires_grad=True), torch.zeros((), requires_grad=True)
lam.register_hook(lambda g: -g)
opt = torch.optim.SGD([p, lam], lr=0.1)
for i in range(4):
    loss = (p - 2).pow(2).sum() + lam * (p.sum() - 1)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_the_uses_of_a_hooked_tensor_are_those_of_one_iteration(engine, checks):
    (one,) = [one.finding for one in checks.of_text(HEAD + MULTIPLIER, engine).found]
    assert one.kind == "changed-by-hook"
    assert "uses" not in "\n".join(row for _, row, _ in lines(one))
    assert "view_as" not in one.fix


HINGE = """
gen, critic = nn.Linear(3, 2), nn.Linear(2, 1)
critic.requires_grad_(False)
critic.bias.fill_(-50.0)
opt = torch.optim.SGD(gen.parameters(), lr=0.1)
factor = FACTOR
for i in range(3):
    CHANGE
    loss = -(F.relu(critic(gen(torch.randn(4, 3)))) * factor).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("factor", "change", "says", "has_edit"),
    [
        ("torch.ones(4, 1)", "pass", "is to grow, and is flat below 0", True),
        ("torch.ones(4, 1)", "critic.bias.fill_(50.0 - 60.0 * i)", "is to grow, and is flat below 0", False),
        ("torch.tensor([[1.0], [-1.0], [2.0], [-2.0]])", "pass", "is off everywhere", False),
    ],
    ids=["always off", "on at first", "of both signs"],
)
def test_a_hinge_is_left_out_only_if_it_is_always_off_and_to_grow(factor, change, says, has_edit, engine, checks):
    text = HEAD + HINGE.replace("FACTOR", factor).replace("CHANGE", change)
    found = [one.finding for one in checks.of_text(text, engine).found if one.finding.kind == "dead-units"]
    assert says in found[0].text
    assert (found[0].edit is not None) is has_edit


BY_HAND = """
encoder, head = nn.Linear(3, 4), nn.Linear(4, 1)
x = torch.randn(5, 3)
for i in range(2):
    with torch.no_grad():
        h = encoder(x)  #!
    loss = head(h).pow(2).mean()
    loss.backward()
    UPDATE
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("update", "is_found"),
    [
        ("pass", True),
        ("with torch.no_grad(): [p.sub_(0.1 * p.grad) for p in head.parameters()]", False),
        ("with torch.no_grad(): [p.mul_(0.9) for p in (*encoder.parameters(), *head.parameters())]", True),
    ],
    ids=["no update", "of the head", "of both"],
)
def test_a_part_without_tracking_is_left_out_if_only_the_other_is_updated_by_hand(update, is_found, engine, checks):
    found = [one.finding for one in checks.of_text(HEAD + BY_HAND.replace("UPDATE", update), engine).found]
    assert any(one.kind == "cut" and "encoder" in one.text for one in found) is is_found
