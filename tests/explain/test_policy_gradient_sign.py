"""Policy gradients with the wrong sign, and those whose sign is turned somewhere on the way to the loss."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(1)
payoff = torch.randn(6, 4)
policy = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
baseline = 0.0
for step in range(STEPS):
    context = torch.randn(64, 6)
    logp = F.log_softmax(policy(context), dim=1)
    action = torch.multinomial(logp.detach().exp(), 1)
    log_prob = logp.gather(1, action).squeeze(1)
    reward = (context @ payoff).gather(1, action).squeeze(1)
    advantage = reward - baseline
    LOSS
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    baseline = 0.9 * baseline + 0.1 * float(reward.mean())
"""


def program(*lines, steps=40):
    return PROGRAM.replace("LOSS", "\n    ".join(lines)).replace("STEPS", str(steps))


WRONG = {
    "a mean": program("loss = (log_prob * advantage).mean()  #!"),
    "a sum with an entropy": program(
        "entropy = -(logp.exp() * logp).sum(1)", "loss = (log_prob * reward).sum() / 64 - 0.01 * entropy.mean()  #!"
    ),
    "two signs": program("loss = -(-log_prob * advantage).mean()  #!"),
    "a baseline less the reward": program("advantage = baseline - reward", "loss = -(log_prob * advantage).mean()  #!"),
    "a ratio": program(
        "ratio = (log_prob - log_prob.detach()).exp()",
        "loss = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()  #!",
    ),
    "a cross-entropy": program(
        "log_prob = F.cross_entropy(policy(context), action.squeeze(1), reduction='none')",
        "loss = -(log_prob * advantage).mean()  #!",
    ),
}
RIGHT = {
    "a minus": program("loss = -(log_prob * advantage).mean()"),
    "a minus within": program("loss = (-log_prob * advantage).mean()"),
    "a cross-entropy": program(
        "log_prob = F.cross_entropy(policy(context), action.squeeze(1), reduction='none')",
        "loss = (log_prob * advantage).mean()",
    ),
    "a ratio": program(
        "ratio = (log_prob - log_prob.detach()).exp()",
        "loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()",
    ),
    "a reward that is the negative of a cost": program(
        "cost = -reward", "reward = -cost", "loss = -(log_prob * reward).mean()"
    ),
    "an entropy bonus in its line": program(
        "entropy = -(logp.exp() * logp).sum(1)", "loss = -(log_prob * advantage).mean() - 0.01 * entropy.mean()"
    ),
    "the negative of an entropy in its line": program(
        "neg_entropy = (logp.exp() * logp).sum(1)",
        "loss = -(log_prob * advantage).mean() + 0.01 * neg_entropy.mean()",
    ),
    "an action of two": program(
        "log_prob = -F.binary_cross_entropy_with_logits(logp[:, 0], (action[:, 0] > 1).float(), reduction='none')",
        "loss = -(log_prob * advantage).mean()",
    ),
    "a cost": program("cost = -reward", "loss = (log_prob * cost).mean()"),
    "a baseline less the reward": program("advantage = baseline - reward", "loss = (log_prob * advantage).mean()"),
    "an optimizer that maximizes": program("loss = (log_prob * advantage).mean()").replace(
        "lr=0.02", "lr=0.02, maximize=True"
    ),
    "a step along the gradient": program("loss = (log_prob * advantage).mean()").replace(
        "optimizer.step()",
        "with torch.no_grad():\n        for p in policy.parameters():\n            p += 0.1 * p.grad",
    ),
    "weights of samples": program("weight = torch.rand(64)", "loss = -(log_prob * weight).mean()"),
}


OPPONENTS = """
import torch
from torch import nn
torch.manual_seed(1)
agent, other = nn.Linear(6, 4), nn.Linear(6, 4)
payoff = torch.randn(4, 4)
optimizers = [torch.optim.Adam(one.parameters(), lr=0.02) for one in (agent, other)]
for step in range(20):
    context = torch.randn(64, 6)
    logps = [torch.log_softmax(one(context), dim=1) for one in (agent, other)]
    actions = [torch.multinomial(logp.detach().exp(), 1) for logp in logps]
    log_prob, other_log_prob = (logp.gather(1, action).squeeze(1) for logp, action in zip(logps, actions))
    reward = payoff[actions[0], actions[1]].squeeze(1)
    loss = -(log_prob * (reward - reward.mean())).mean()
    other_loss = (OTHER * (reward - reward.mean())).mean()
    for optimizer, each in zip(optimizers, (loss, other_loss)):
        optimizer.zero_grad()
        each.backward(retain_graph=True)
        optimizer.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_an_opponent_of_another_policy_lowers_its_reward(engine, checks):
    opponents = OPPONENTS.replace("OTHER", "other_log_prob")
    assert signs(opponents, engine, checks) == []
    (one,) = signs(opponents.replace("loss = -(", "loss = (", 1), engine, checks)[:1]
    assert "wrong sign" in one.finding.text


@pytest.mark.parametrize("engine", ENGINES)
def test_a_second_loss_of_one_policy_is_no_opponent(engine, checks):
    text = (
        OPPONENTS.replace("OTHER", "log_prob").replace("(other_loss", "(loss").replace("(loss, other_loss)", "(loss,)")
    )
    text = text.replace(
        "each.backward(retain_graph=True)", "each.backward(retain_graph=True)\n        other_loss.backward()"
    )
    assert len(signs(text, engine, checks)) == 1


def signs(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "policy-sign"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_a_policy_gradient_with_the_wrong_sign_names_its_product(name, engine, checks):
    text = WRONG[name]
    (one,) = signs(text, engine, checks)
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert one.level == "warning"
    assert any("its mean falls from" in part.text for part in one.finding.parts)


@pytest.mark.parametrize("engine", ENGINES)
def test_without_rewards_that_fall_it_is_a_note(engine, checks):
    (one,) = signs(program("loss = (log_prob * advantage).mean()", steps=3), engine, checks)
    assert one.level == "note"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_a_policy_gradient_with_the_right_sign_is_not_reported(name, engine, checks):
    assert [str(one) for one in signs(RIGHT[name], engine, checks)] == []
