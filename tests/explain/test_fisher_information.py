"""A Fisher information as the square of a mean gradient, and squares of gradients that are something else."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
x, y = torch.randn(24, 4), torch.randint(0, 3, (24,))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
params = list(net.parameters())
"""
PENALTY = """
old = [p.detach().clone() for p in params]
for i in range(2):
    loss = F.cross_entropy(net(x), y)
    for f, p, o in zip(fisher, params, old):
        loss = loss + 50 * (f * (p - o) ** 2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
FLAT = """
old = flat().detach()
for i in range(2):
    d = flat() - old
    loss = F.cross_entropy(net(x), y) + (fisher * d * d).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OF_BATCHES = """
fisher = [torch.zeros_like(p) for p in params]
for xb, yb in zip(x.split(8), y.split(8)):
    net.zero_grad()
    LOSS.backward()
    for f, p in zip(fisher, params):
        f += p.grad.data.clone().pow(2) / 3  #!
"""
ONE = "fisher = [torch.zeros_like(p) for p in params]\nfor k in range(4):\n"

MISTAKES = {
    "a mean of log-likelihoods": (
        OF_BATCHES.replace("LOSS", "F.log_softmax(net(xb), 1).gather(1, yb[:, None]).squeeze(1).mean()") + PENALTY,
        "mean of 8 samples"),
    "a loss of a library": (OF_BATCHES.replace("LOSS", "F.cross_entropy(net(xb), yb)") + PENALTY, "mean of 8 samples"),
    "a sum": (
        "F.cross_entropy(net(x), y, reduction='sum').backward()\n"
        "fisher = [p.grad * p.grad for p in params]  #!\n" + PENALTY,
        "sum of 24 samples"),
    "gradients that autograd.grad returns": (
        "scores = [F.log_softmax(net(xb), 1)[:, 0] for xb in x.split(8)]\nscore = torch.cat(scores).mean()\n"
        "fisher = [g.data.clone() ** 2 for g in torch.autograd.grad(score, params)]  #!\n" + PENALTY,
        "mean of 24 samples"),
    "parameters in one vector": (
        "def flat():\n    return torch.cat([p.view(-1) for p in params])\nF.cross_entropy(net(x), y).backward()\n"
        "fisher = torch.cat([p.grad.view(-1) for p in params]).square()  #!\n" + FLAT, "mean of 24 samples"),
}  # fmt: skip
HEALTHY = {
    "a batch of one sample": (
        f"{ONE}    net.zero_grad()\n    F.cross_entropy(net(x[k : k + 1]), y[k : k + 1]).backward()\n"
        "    for f, p in zip(fisher, params):\n        f += p.grad ** 2 / 4\n" + PENALTY),
    "the tokens of one sample": (
        f"{ONE}    net.zero_grad()\n    rows = slice(6 * k, 6 * k + 6)\n"
        "    F.cross_entropy(net(x[None, rows]).view(-1, 3), y[rows]).backward()\n"
        "    for f, p in zip(fisher, params):\n        f += p.grad ** 2 / 4\n" + PENALTY),
    "an error of the features of one sample": (
        f"{ONE}    net.zero_grad()\n    F.mse_loss(net(x[k]), x[k, :3]).backward()\n"
        "    for f, p in zip(fisher, params):\n        f += p.grad ** 2 / 4\n" + PENALTY),
    "the samples of one graph": (
        "scores = F.log_softmax(net(x), 1).gather(1, y[:, None])[:, 0]\n"
        "fisher = [torch.zeros_like(p) for p in params]\n"
        "for score in scores:\n    for f, g in zip(fisher, torch.autograd.grad(score, params, retain_graph=True)):\n"
        "        f += g ** 2 / 24\n" + PENALTY),
    "absolute gradients": (
        "net(x).pow(2).sum(1).mean().backward()\nfisher = [p.grad.abs() for p in params]\n" + PENALTY),
    "averages of an optimizer": """
seen, old = [torch.zeros_like(p) for p in params], [p.detach().clone() for p in params]
for i in range(3):
    loss = F.cross_entropy(net(x), y) + 0.1 * sum((p - o).pow(2).sum() for p, o in zip(params, old))
    net.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p, s in zip(params, seen):
            s.mul_(0.9).add_(0.1 * p.grad ** 2)
            p -= 0.01 * p.grad / (s.sqrt() + 1e-8)
""",
    "a norm of gradients": """
for i in range(3):
    loss = F.cross_entropy(net(x), y) + sum((p ** 2).sum() for p in params)
    opt.zero_grad()
    loss.backward()
    print(sum((p.grad ** 2).sum() for p in params).sqrt())
    opt.step()
""",
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MISTAKES)
def test_the_square_of_a_mean_gradient_is_found_where_it_is_squared(name, engine, checks):
    program, says = MISTAKES[name]
    text = HEAD + program
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = [each for each in outcome.found if each.finding.kind == "squared-mean"]
    assert one.level == "note"
    assert says in one.finding.text
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    root, use = one.finding.parts
    assert "cancel each other before the square" in root.text
    assert "(p - old)²" in use.text
    assert "square the gradient of each sample" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_squares_of_the_gradients_of_samples_and_other_squares_are_right(name, engine, checks):
    outcome = checks.of_text(HEAD + HEALTHY[name], engine)
    assert outcome.errors == []
    assert "squared-mean" not in {one.finding.kind for one in outcome.found}
