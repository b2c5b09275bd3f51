"""Penalties whose gradient does not depend on the model that they compare with, and penalties that do."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
policy, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 5)), torch.randn(16, 4)
ref = copy.deepcopy(policy)
ref.requires_grad_(False)
with torch.no_grad():
    for p in policy.parameters():
        p.add_(0.1 * torch.randn_like(p))
old = copy.deepcopy(policy)
opt = torch.optim.Adam(policy.parameters(), lr=0.01)

def log_probs(model, x, actions):
    return F.log_softmax(model(x), -1).gather(-1, actions[:, None])[:, 0]

for i in range(3):
    with torch.no_grad():
        actions = torch.multinomial(policy(x).softmax(-1), 1)[:, 0]
        before, reference = log_probs(policy, x, actions), log_probs(ref, x, actions)
    advantage = torch.randn(16)
    new = log_probs(policy, x, actions)
    ratio = torch.exp(new - before)
    policy_loss = -(advantage * ratio).mean()
    STEP
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def program(step):
    return PROGRAM.replace("STEP", step.replace("\n", "\n    "))


IGNORED = {
    "a mean": program("kl = (new - reference).mean()  #!\nloss = policy_loss + 0.2 * kl"),
    "in one mean": program("d = new - reference  #!\nloss = (-advantage * ratio + 0.1 * d).mean()"),
    "a masked sum": program(
        "mask = (torch.arange(16) < 12).float()\nd = new - reference  #!\n"
        "loss = policy_loss + 0.1 * (d * mask).sum() / mask.sum()"),
    "with a number that is only shown": program(
        "d = new - reference  #!\nshown = d.detach().exp().mean()\nloss = policy_loss + 0.1 * d.reshape(4, 4).mean()"),
    "normalized by hand": program(
        "z, w = policy(x), ref(x)\nlogp = (z - z.logsumexp(-1, keepdim=True)).gather(-1, actions[:, None])\n"
        "logq = (w - w.logsumexp(-1, keepdim=True)).gather(-1, actions[:, None])\n"
        "loss = policy_loss + 0.1 * (logp - logq).mean()  #!"),
    "without a function": program(
        "logp = policy(x).log_softmax(dim=1)[torch.arange(16), actions]\n"
        "logq = ref(x).log_softmax(dim=1)[torch.arange(16), actions]\n"
        "loss = policy_loss - 0.1 * -(logp - logq).mean()  #!"),
}  # fmt: skip
USED = {
    "a better estimate": program(
        "d = new - reference\nloss = policy_loss + 0.2 * (torch.expm1(-d) + d).mean()"),
    "a better estimate of two differences": program(
        "loss = policy_loss + 0.2 * (torch.exp(reference - new) - (reference - new) - 1).mean()"),
    "a better estimate with its own difference": program(
        "loss = policy_loss + 0.2 * (torch.exp(reference - new) - 1 + (new - reference)).mean()"),
    "a difference that is also squared": program(
        "d = new - reference\nloss = policy_loss + 0.1 * d.mean() + 0.1 * (new - reference).pow(2).mean()"),
    "the same model before the step": program("loss = policy_loss + 0.1 * (new - before).mean()"),
    "losses, which have the other sign": program(
        "one = F.cross_entropy(policy(x), actions, reduction='none')\n"
        "other = F.cross_entropy(ref(x), actions, reduction='none')\nloss = (one - other).mean()"),
    "scores below zero that are no log-probabilities": program(
        "loss = policy_loss + 0.1 * (-policy(x).pow(2).sum(-1) - -ref(x).pow(2).sum(-1)).mean()"),
    "all actions, without a choice": program(
        "loss = policy_loss + 0.1 * (F.log_softmax(policy(x), -1) - F.log_softmax(ref(x), -1)).mean()"),
    "weights of both signs": program("loss = policy_loss + (advantage * (new - reference)).mean()"),
    "a weight that learns": program(
        "loss = policy_loss + (policy[0].bias.mean().exp() * (new - reference)).mean()"),
    "subtracted from the loss": program("d = new - reference\nloss = policy_loss - 0.1 * d.mean()"),
    "a square": program("loss = policy_loss + 0.1 * (new - reference).pow(2).mean()"),
    "the ratio of a preference": program("loss = -F.logsigmoid(0.1 * (new - reference)).mean()"),
    "the likelihood": program("loss = -(new - reference).mean()"),
    "in the reward": program("loss = (new * (new - reference).detach()).mean()"),
    "all actions": program(
        "logp, logq = F.log_softmax(policy(x), -1), F.log_softmax(ref(x), -1)\n"
        "loss = policy_loss + 0.1 * (logp.exp() * (logp - logq)).sum(-1).mean()"),
    "printed only": program("kl = (new - reference).mean()\nloss = policy_loss"),
}  # fmt: skip


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "constant-reference"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", IGNORED)
def test_a_reference_that_is_only_subtracted_is_found(name, engine, checks):
    (one,) = found(IGNORED[name], engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "note"
    assert "the loss only adds it up" in said
    assert IGNORED[name].splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", USED)
def test_a_reference_that_the_gradient_depends_on_is_not_reported(name, engine, checks):
    assert found(USED[name], engine, checks) == []
