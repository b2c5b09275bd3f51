"""A ratio to an old policy that is computed anew before each step, and ratios that are 1 in right programs."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 4))
critic = nn.Linear(3, 1)
opt = torch.optim.Adam(policy.parameters(), lr=0.05)
critic_opt = torch.optim.SGD(critic.parameters(), lr=0.01)

def log_prob(net, obs, act):
    return torch.log_softmax(net(obs), 1).gather(1, act.unsqueeze(1)).squeeze(1)

def sampled(obs):
    with torch.no_grad():
        act = torch.multinomial(torch.softmax(policy(obs), 1), 1).squeeze(1)
        return act, log_prob(policy, obs, act)

def objective(logp, logp_old, adv):
    ratio = torch.exp(logp - logp_old)
    return -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()

def step(loss, opt=opt):
    opt.zero_grad()
    loss.backward()
    opt.step()

fixed = torch.randn(32, 3)
buffer, logged = torch.zeros(32, 3), torch.randint(4, (32,))
older = copy.deepcopy(policy)
for k in range(3):
    obs = torch.randn(32, 3)
    act, kept = sampled(obs)
    adv = torch.randn(32)
    ROLLOUT
"""
OLD = "with torch.no_grad():\n    old = log_prob(policy, obs, act)  #!\n"
EPOCHS = "for epoch in range(4):\n"
MINIBATCH = "for rows in torch.randperm(32).split(8):\n"


def in_loop(head, text):
    return head + "".join(f"    {row}\n" for row in text.strip().split("\n"))


AGAIN = {
    "without autograd": in_loop(EPOCHS, OLD + "step(objective(log_prob(policy, obs, act), old, adv))"),
    "detached": in_loop(EPOCHS, "old = log_prob(policy, obs, act).detach()  #!\n"
                        "step(objective(log_prob(policy, obs, act), old, adv))"),
    "by a copy that follows": in_loop(
        EPOCHS, "older.load_state_dict(policy.state_dict())\nwith torch.no_grad():\n"
        "    old = log_prob(older, obs, act)  #!\nstep(objective(log_prob(policy, obs, act), old, adv))"),
    "a quotient": in_loop(
        EPOCHS, "with torch.no_grad():\n    old = log_prob(policy, obs, act).exp()  #!\n"
        "ratio = log_prob(policy, obs, act).exp() / old\nstep(-(ratio.clamp(0.8, 1.2) * adv).mean())"),
    "minibatches": in_loop(EPOCHS, in_loop(
        MINIBATCH, "o, a = obs[rows], act[rows]\nwith torch.no_grad():\n    old = log_prob(policy, o, a)  #!\n"
        "step(objective(log_prob(policy, o, a), old, adv[rows]))")),
    "indexed by each call": in_loop(EPOCHS, in_loop(
        MINIBATCH, "with torch.no_grad():\n    old = log_prob(policy, obs[rows], act[rows])  #!\n"
        "step(objective(log_prob(policy, obs[rows], act[rows]), old, adv[rows]))")),
    "with a critic": in_loop(
        EPOCHS, OLD + "value = critic(obs).squeeze(1)\n"
        "step(objective(log_prob(policy, obs, act), old, adv - value.detach()))\n"
        "step((value - adv).pow(2).mean(), critic_opt)"),
    "updated by hand": in_loop(
        EPOCHS, OLD + "policy.zero_grad()\nobjective(log_prob(policy, obs, act), old, adv).backward()\n"
        "with torch.no_grad():\n    for p in policy.parameters():\n        p -= 0.1 * p.grad"),
}  # fmt: skip
RIGHT = {
    "once before the epochs": OLD + in_loop(EPOCHS, "step(objective(log_prob(policy, obs, act), old, adv))"),
    "kept from the rollout": in_loop(EPOCHS, "step(objective(log_prob(policy, obs, act), kept, adv))"),
    "on purpose": in_loop(EPOCHS, "logp = log_prob(policy, obs, act)\nstep(objective(logp, logp.detach(), adv))"),
    "a copy that lags behind": in_loop(
        EPOCHS, "with torch.no_grad():\n    for p, q in zip(older.parameters(), policy.parameters()):\n"
        "        p.lerp_(q, 0.5)\n    old = log_prob(older, obs, act)\n"
        "step(objective(log_prob(policy, obs, act), old, adv))"),
    "one epoch": OLD + "step(objective(log_prob(policy, obs, act), old, adv))",
    "one epoch of minibatches": in_loop(
        MINIBATCH, "o, a = obs[rows], act[rows]\nwith torch.no_grad():\n    old = log_prob(policy, o, a)\n"
        "step(objective(log_prob(policy, o, a), old, adv[rows]))"),
    "new actions for the same states": in_loop(
        EPOCHS, "act, _ = sampled(fixed)\nwith torch.no_grad():\n    old = log_prob(policy, fixed, act)\n"
        "step(objective(log_prob(policy, fixed, act), old, adv))"),
    "new actions from numbers": in_loop(
        EPOCHS, "act = torch.tensor(sampled(fixed)[0].tolist())\nwith torch.no_grad():\n"
        "    old = log_prob(policy, fixed, act)\nstep(objective(log_prob(policy, fixed, act), old, adv))"),
    "a buffer that each rollout fills": (
        "buffer.copy_(obs)\nwith torch.no_grad():\n    old = log_prob(policy, buffer, logged)\n"
        "step(objective(log_prob(policy, buffer, logged), old, fixed[:, 1]))"),
    "weights of the new policy": in_loop(
        EPOCHS, "with torch.no_grad():\n    old = torch.log_softmax(policy(fixed), 1)\n"
        "    gain = fixed.sum(1, keepdim=True) - (old.exp() * old).sum(1, keepdim=True)\n"
        "step(objective(torch.log_softmax(policy(fixed), 1), old, gain))"),
    "a policy that waits": in_loop(
        EPOCHS, OLD + "value = critic(obs).squeeze(1)\n"
        "objective(log_prob(policy, obs, act), old, adv).backward()\n"
        "step((value - adv).pow(2).mean(), critic_opt)"),
    "a line search": OLD + (
        "step(objective(log_prob(policy, obs, act), old, adv))\nwith torch.no_grad():\n"
        "    objective(log_prob(policy, obs, act), old, adv)"),
    "a penalty": in_loop(
        EPOCHS, OLD + "d = old - log_prob(policy, obs, act)\n"
        "step(-(log_prob(policy, obs, act) * adv).mean() + (d.exp() - d - 1).mean())"),
    "a part of a network that both share": in_loop(
        EPOCHS, "h = policy[:2](obs)\nlogp = torch.log_softmax(policy[2](h), 1)\n"
        "old = torch.log_softmax(policy[2](h), 1).detach()\nstep(objective(logp, old, adv.unsqueeze(1)))"),
}  # fmt: skip


def outcome(rollout, engine, checks):
    text = PROGRAM.replace("ROLLOUT", rollout.replace("\n", "\n    "))
    checked = checks.of_text(text, engine)
    assert checked.errors == []
    return text, [one for one in checked.found if one.finding.kind == "constant-ratio"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", AGAIN)
def test_a_ratio_to_an_old_policy_that_is_never_older_is_found(name, engine, checks):
    text, (one,) = outcome(AGAIN[name], engine, checks)
    assert one.level == "warning"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert f"in all {48 if 'rows' in AGAIN[name] else 12} passes" in one.finding.text
    assert "before the loop over epochs" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_a_ratio_of_one_that_is_right_is_not_reported(name, engine, checks):
    assert [str(one) for one in outcome(RIGHT[name], engine, checks)[1]] == []
