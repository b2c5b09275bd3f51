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


LOOKUPS = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Linear(6, 8)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(3):
    x, actions, adv = torch.randn(8, 6), torch.randint(0, 8, (8, 1)), torch.randn(8)
    logits = net(x)
    logp = F.log_softmax(logits, dim=1)
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OF_DISTRIBUTION = "dist = torch.distributions.Categorical(logits=logits)\n    "
EACH_FOR_EACH = {
    "by rows": "loss = -(logp[torch.arange(8), actions] * adv).mean()  #!",
    "by rows, without weights": "loss = -logp[torch.arange(8), actions].mean()  #!",
}
EACH_FOR_EACH_OF_DISTRIBUTION = {
    "a column of actions": "loss = -(dist.log_prob(actions) * adv).mean()  #!",
    "cloned actions": "loss = F.relu(-dist.log_prob(actions) * adv).mean() + 1\n"
    "    loss = -dist.log_prob(actions).mean()  #!",
    "a row of actions and a column of states": "dist = torch.distributions.Categorical(logits=logits[:, None])\n"
    "    loss = -dist.log_prob(actions[:, 0]).mean()  #!",
    "with the log-probabilities of an earlier policy": "with torch.no_grad():\n"
    "        old = dist.log_prob(actions) - 0.1\n"
    "    ratio = (dist.log_prob(actions) - old).exp()  #!\n"
    "    loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()",
}
ONE_FOR_EACH = {
    "an index for each row": "loss = -(logp[torch.arange(8), actions[:, 0]] * adv).mean()",
    "a gathered column": "loss = -(logp.gather(1, actions).squeeze(1) * adv).mean()",
    "a table of all pairs": "loss = -(logp[torch.arange(8)[:, None], torch.arange(8)] * torch.eye(8)).sum()",
    "rows and columns of a matrix": "loss = -logp[actions, torch.arange(8)].mean()",
    "a mixture": "loss = -logp[torch.arange(8), actions].logsumexp(1).mean()",
    "a number for each pair": "loss = -(logp[torch.arange(8), actions] * torch.rand(8, 8)).mean()",
}
ONE_FOR_EACH_OF_DISTRIBUTION = {
    "one action for each state": "loss = -(dist.log_prob(actions[:, 0]) * adv).mean()",
    "all actions of each state": "every = dist.log_prob(torch.arange(8)[:, None])\n"
    "    loss = (every.exp() * torch.rand(8, 8)).sum(0).mean()",
    "an expectation": "every = dist.log_prob(torch.arange(8)[:, None])\n    loss = (every.exp() * every).sum(0).mean()",
}


def of_lookups(loss, engine, checks):
    outcome = checks.of_text(LOOKUPS.replace("LOSS", loss), engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "broadcast"]


def assert_found(loss, engine, checks):
    (one,) = of_lookups(loss, engine, checks)
    assert one.level == "warning"
    assert "(8,) with (8,1) becomes (8,8)" in one.finding.text or "(8,1) with (8,) becomes (8,8)" in one.finding.text
    assert LOOKUPS.replace("LOSS", loss).splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", EACH_FOR_EACH)
def test_a_lookup_of_each_index_in_each_row_is_found(name, engine, checks):
    assert_found(EACH_FOR_EACH[name], engine, checks)


@pytest.mark.torch
@pytest.mark.parametrize("name", EACH_FOR_EACH_OF_DISTRIBUTION)
def test_a_log_probability_of_each_action_in_each_state_is_found(name, checks):
    assert_found(OF_DISTRIBUTION + EACH_FOR_EACH_OF_DISTRIBUTION[name], "torch", checks)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ONE_FOR_EACH)
def test_a_lookup_of_one_index_for_each_row_is_right(name, engine, checks):
    assert of_lookups(ONE_FOR_EACH[name], engine, checks) == []


@pytest.mark.torch
@pytest.mark.parametrize("name", ONE_FOR_EACH_OF_DISTRIBUTION)
def test_a_log_probability_that_is_meant_is_not_reported(name, checks):
    assert of_lookups(OF_DISTRIBUTION + ONE_FOR_EACH_OF_DISTRIBUTION[name], "torch", checks) == []
