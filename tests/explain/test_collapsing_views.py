"""Losses that only pull two results of a model together, and losses that also keep samples apart."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
predictor, head, decoder = nn.Sequential(nn.Linear(4, 4)), nn.Linear(4, 3), nn.Linear(4, 6)
slow = copy.deepcopy(encoder).requires_grad_(False)
opt = torch.optim.SGD([p for m in (encoder, predictor, head, decoder) for p in m.parameters()], lr=0.1, momentum=0.9)
centers = torch.randn(5, 6) * 2

def negative_cosine(p, z):
    p, z = F.normalize(p, dim=1), F.normalize(z, dim=1)
    return -(p * z).sum(dim=1).mean()

for step in range(STEPS):
    labels = torch.randint(0, 5, (32,))
    x = centers[labels] + 0.5 * torch.randn(32, 6)
    a, b = x + 0.3 * torch.randn(32, 6), x + 0.3 * torch.randn(32, 6)
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BOTH = "z1, z2 = encoder(a), encoder(b)\np1, p2 = predictor(z1), predictor(z2)\n"
COLLAPSING = {
    "cosines by a function": BOTH + "loss = negative_cosine(p1, z2) / 2 + negative_cosine(p2, z1) / 2  #!",
    "a cosine of PyTorch": BOTH + "loss = 1 - F.cosine_similarity(p1, z2, dim=-1).mean()  #!",
    "a distance": BOTH + "loss = 10 * F.mse_loss(z1, z2)  #!",
    "squares": BOTH + "loss = (z1 - z2).pow(2).sum(1).mean()  #!",
    "a distance of unit vectors": BOTH
    + "loss = (2 - 2 * (F.normalize(p1, dim=1) * F.normalize(z2, dim=1)).sum(-1)).mean()  #!",
}
APART = {
    "a detached target": BOTH + "loss = negative_cosine(p1, z2.detach()) / 2 + negative_cosine(p2, z1.detach()) / 2",
    "a slow target": BOTH + "with torch.no_grad():\n    target = slow(b)\n"
    "    for s, p in zip(slow.parameters(), encoder.parameters()):\n        s.mul_(0.9).add_(p, alpha=0.1)\n"
    "loss = negative_cosine(p1, target)",
    "negative pairs": BOTH + "loss = F.mse_loss(z1, z2) + F.relu(1 - (z1 - z2.roll(1, 0)).pow(2).sum(1)).mean()",
    "a triplet": BOTH + "loss = F.relu((z1 - z2).pow(2).sum(1) - (z1 - z2.roll(1, 0)).pow(2).sum(1) + 1).mean()",
    "a softmax over pairs": BOTH + "logits = F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).t() / 0.2\n"
    "loss = F.cross_entropy(logits, torch.arange(32))",
    "a variance": BOTH + "loss = F.mse_loss(z1, z2) + F.relu(1 - z1.std(0)).mean() + F.relu(1 - z2.std(0)).mean()",
    "standardized results": BOTH + "z1, z2 = [(z - z.mean(0)) / z.std(0) for z in (z1, z2)]\nloss = F.mse_loss(z1, z2)",
    "a correlation": BOTH + "n1, n2 = [(z - z.mean(0)) / z.std(0) for z in (z1, z2)]\n"
    "loss = (n1.t() @ n2 / 32 - torch.eye(4)).pow(2).sum()",
    "labels as well": BOTH + "loss = F.mse_loss(z1, z2) + F.cross_entropy(head(z1), labels % 3)",
    "a reconstruction": BOTH + "loss = F.mse_loss(z1, z2) + F.mse_loss(decoder(z1), a)",
    "an autoencoder": "loss = F.mse_loss(decoder(encoder(a)), a)",
    "results that contain their input": BOTH + "loss = F.mse_loss(a + decoder(z1), b + decoder(z2))",
    "a separate loss of labels": BOTH + "F.cross_entropy(head(z1), labels % 3).backward()\n"
    "loss = F.mse_loss(encoder(a), encoder(b))",
    "a target with a reward": BOTH + "reward = a[:, :1]\nloss = F.mse_loss(z1[:, :1], reward + 0.9 * z2[:, :1])",
}


def found(loss, engine, checks, steps=60, rate="0.1"):
    text = (
        PROGRAM.replace("LOSS", loss.replace("\n", "\n    "))
        .replace("STEPS", str(steps))
        .replace("0.1, m", f"{rate}, m")
    )
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [one for one in outcome.found if one.finding.kind == "collapsing-views"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", COLLAPSING)
def test_results_that_are_only_pulled_together_are_found_where_they_meet(name, engine, checks):
    text, (one,) = found(COLLAPSING[name], engine, checks)
    assert one.level == "warning"
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "in 60 passes" in said
    assert "detach()" in said
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_edit_detaches_the_side_without_predictor(engine, checks):
    _, (one,) = found(COLLAPSING["a cosine of PyTorch"], engine, checks)
    assert one.finding.edit.new.strip() == "loss = 1 - F.cosine_similarity(p1, z2.detach(), dim=-1).mean()  #!"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", APART)
def test_losses_that_keep_samples_apart_are_right(name, engine, checks):
    assert found(APART[name], engine, checks)[1] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_results_that_have_not_come_together_are_not_reported(engine, checks):
    assert found(COLLAPSING["squares"], engine, checks, steps=3)[1] == []
    assert found(COLLAPSING["squares"], engine, checks, steps=19, rate="0.005")[1] == []
    assert found(COLLAPSING["cosines by a function"], engine, checks, steps=9, rate="0.01")[1] == []
    near = "b = a + 0.01 * torch.randn(32, 6)\nz1, z2 = encoder(a), encoder(b)\nloss = negative_cosine(z1, z2)"
    assert found(near, engine, checks)[1] == []  # they were near from the beginning
