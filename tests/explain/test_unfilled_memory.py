"""Memory that is not filled yet, in which PyTorch may leave nan: filled before anything reads it, or read before."""

import pytest

PROGRAM = """import torch
from torch import nn
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)  # memory that is not filled is nan then
net = nn.Linear(3, 2)
held = [p.detach().clone().requires_grad_() for p in net.parameters()]
opt = torch.optim.SGD(held, lr=0.1)
for i in range(2):
    x = torch.randn(4, 3)
    BATCH
    loss = net(x).pow(2).mean()
    net.zero_grad()
    loss.backward()
    for m, p in zip(held, net.parameters()):
        GRAD
    with torch.no_grad():
        for m, p in zip(held, net.parameters()):
            p.copy_(m)
torch.use_deterministic_algorithms(False)
"""
FILLED = {
    "a gradient": ("", "m.grad = torch.empty_like(m)\nm.grad.copy_(p.grad)\nopt.step()"),
    "a gradient in parts": ("", "m.grad = torch.empty_like(m)\nm.grad[:] = p.grad\nopt.step()"),
    "a batch": ("moved = torch.empty_like(x)\nmoved.copy_(x)\nx = moved", "m.grad = p.grad\nopt.step()"),
    "a batch in parts": (
        "moved = torch.empty_like(x)\nmoved[:2] = x[:2]\nmoved[2:] = x[2:]\nx = moved",
        "m.grad = p.grad\nopt.step()",
    ),
    "a draw": ("x = torch.empty_like(x).exponential_()", "m.grad = p.grad\nopt.step()"),
    "a draw over a part": (
        "moved = torch.empty(4, 3)\nmoved[:, :1].fill_(1)\nmoved[:, 1:].uniform_()\nx = moved",
        "m.grad = p.grad\nopt.step()",
    ),
    "a distribution": ("x = torch.distributions.Exponential(2.5).sample((4, 3))", "m.grad = p.grad\nopt.step()"),
    "a result": (
        "z = net(x)\nmoved = torch.empty_like(z, requires_grad=False)\nwith torch.no_grad():\n    moved.copy_(z)\n"
        "x = torch.cat([moved, x[:, :1]], 1)",
        "m.grad = p.grad\nopt.step()",
    ),
}
READ = {
    "a gradient that a step uses": ("", "m.grad = torch.empty_like(m)\nopt.step()\nm.grad.copy_(p.grad)"),
    "a gradient that is added to": ("", "m.grad = torch.empty_like(m)\nm.grad.add_(p.grad)\nopt.step()"),
    "a draw that is added to": (
        "x = torch.empty_like(x).exponential_() + torch.empty_like(x)",
        "m.grad = p.grad\nopt.step()",
    ),
    "a batch that is added to": (
        "moved = torch.empty_like(x)\nmoved.add_(x)\nx = moved",
        "m.grad = p.grad\nopt.step()",
    ),
}


def of_nan(parts, checks):
    batch, grad = parts[0].replace("\n", "\n    "), parts[1].replace("\n", "\n        ")
    outcome = checks.of_text(PROGRAM.replace("BATCH", batch).replace("GRAD", grad), "torch")
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "nan-born"]


@pytest.mark.torch
@pytest.mark.parametrize("name", FILLED)
def test_memory_that_is_filled_before_anything_reads_it_is_no_nan(name, checks):
    assert of_nan(FILLED[name], checks) == []


@pytest.mark.torch
@pytest.mark.parametrize("name", READ)
def test_memory_that_is_read_before_it_is_filled_is_found(name, checks):
    assert of_nan(READ[name], checks)
