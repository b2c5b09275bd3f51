"""Differences of all pairs of a column and a row: distances between samples have them, and a loss with wrong shapes."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
def distance(column, row):
    return (column - row).abs().mean()
def kernel(column, row):
    return torch.exp(-(column - row) ** 2).mean()
for step in range(4):
    noise, real = torch.randn(12, 2), torch.randn(12)
    fake = net(noise)
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
MEANT = {
    "an energy distance": "loss = 2 * (fake - real).abs().mean() - (fake - fake.T).abs().sum() / 132",
    "by a function": "loss = distance(fake, real) - 0.5 * distance(fake, fake.squeeze(1)) "
    "- 0.5 * distance(real[:, None], real)",
    "with a term of the data only": "loss = distance(fake, real) - 0.5 * distance(real.unsqueeze(1), real)",
    "squares of a kernel": "loss = kernel(fake, fake.view(1, -1)) + kernel(real[:, None], real) "
    "- 2 * kernel(fake, real)",
    "distances of a library": "loss = 2 * (fake - real).abs().mean() - torch.cdist(fake, fake).mean()",
    "both dimensions inserted": "loss = (fake[:, 0][:, None] - real[None, :]).abs().mean()",
}
WRONG = {
    "a mean of the errors": "loss = (fake - real).abs().mean()",
    "a mean of squares": "loss = ((fake - real) ** 2).mean()",
    "a kernel of the errors": "loss = -kernel(fake, real)",
    "the target with an inserted dimension": "loss = ((fake.squeeze(1) - real[:, None]) ** 2).mean()",
    "targets that are compared with each other": "same = (real[:, None] > real).float().mean()\n"
    "    loss = distance(fake, real) + 0 * same",
    "a penalty of the predictions": "loss = distance(fake, real) + (fake * fake).mean() + fake.std()",
}  # fmt: skip


def broadcasts(loss, engine, checks):
    outcome = checks.of_text(PROGRAM.replace("LOSS", loss), engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "broadcast"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MEANT)
def test_distances_of_samples_are_meant_to_have_all_pairs(name, engine, checks):
    assert [str(one) for one in broadcasts(MEANT[name], engine, checks)] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_errors_of_all_pairs_are_found(name, engine, checks):
    (one,) = broadcasts(WRONG[name], engine, checks)
    assert one.level == "warning"
    assert "becomes (12,12)" in one.finding.text
