"""Copies of a model that no optimizer holds: their gradients stay unused, or they need none."""

import pytest

HEAD = """import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
average, twin = copy.deepcopy(net), nn.Linear(3, 2)
temperature = torch.ones(1, requires_grad=True)
for i in range(4):
    x, y = torch.randn(5, 3), torch.randn(5, 2)
    STEP
"""
TRAIN = "opt.zero_grad()\nF.mse_loss(net(x), y).backward()\nopt.step()\n"
ON_COPY = "moved = x.clone().requires_grad_()\nF.mse_loss(average(moved), y).backward()\n" + TRAIN
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
QUIET = {
    "an average in place": ON_COPY
    + "with torch.no_grad():\n    for p, q in zip(net.parameters(), average.parameters()):\n"
    "        q.mul_(0.9).add_(p, alpha=0.1)",
    "an average through data": ON_COPY + "for p, q in zip(net.parameters(), average.parameters()):\n"
    "    q.data.copy_(0.9 * q.data + 0.1 * p.data)",
    "a state that is loaded": ON_COPY + "average.load_state_dict(net.state_dict())",
    "an earlier state that is loaded": ON_COPY
    + "pool.append(copy.deepcopy(net.state_dict()))\naverage.load_state_dict(pool[i // 2])",
    "an average of states that is loaded": ON_COPY + "new = net.state_dict()\n"
    "average.load_state_dict({k: 0.9 * v + 0.1 * new[k] for k, v in average.state_dict().items()})",
    "an average of states in place that is loaded": ON_COPY + "for k, v in net.state_dict().items():\n"
    "    state[k].mul_(0.9).add_(v, alpha=0.1)\naverage.load_state_dict(state)",
    "an average that is assigned": ON_COPY + "for p, q in zip(net.parameters(), average.parameters()):\n"
    "    q.data = 0.9 * q.data + 0.1 * p.data",
    "a gradient that is replaced": "slope = torch.autograd.grad(F.mse_loss(net(x) * temperature, y), temperature)[0]\n"
    "temperature.grad = slope\nto.step()\nopt.zero_grad()\nF.mse_loss(net(x) * temperature, y).backward()\nopt.step()",
}
SICK = {
    "updates by a constant gradient": "net(x).sum().backward()\nwith torch.no_grad():\n"
    "    net.bias.sub_(0.1 * net.bias.grad)",
    "updates by hand": "F.mse_loss(net(x), y).backward()\nwith torch.no_grad():\n    for p in net.parameters():\n"
    "        p.sub_(0.1 * p.grad)",
    "momentum by hand": "F.mse_loss(net(x), y).backward()\nwith torch.no_grad():\n"
    "    for p, v in zip(net.parameters(), speeds):\n        v.mul_(0.9).add_(p.grad)\n        p.sub_(v, alpha=0.1)",
    "updates that are assigned": "F.mse_loss(net(x), y).backward()\nfor p in net.parameters():\n"
    "    p.data = p.data - 0.1 * p.grad",
    "updates that are loaded": "F.mse_loss(net(x), y).backward()\n"
    "net.load_state_dict({k: p.detach() - 0.1 * p.grad for k, p in net.named_parameters()})",
    "momentum that is loaded": "F.mse_loss(net(x), y).backward()\nfor p, v in zip(net.parameters(), speeds):\n"
    "    v.mul_(0.9).add_(p.grad)\n"
    "net.load_state_dict({k: p.detach() - 0.1 * v for (k, p), v in zip(net.named_parameters(), speeds)})",
    "a gradient that is halved": "F.mse_loss(net(x), y).backward()\nfor p in net.parameters():\n"
    "    p.grad = p.grad / 2\nopt.step()",
}


def kinds(step, engine, checks):
    text = HEAD.replace("STEP", step.replace("\n", "\n    "))
    text = text.replace("for i in", "to = torch.optim.SGD([temperature], lr=0.1)\nfor i in", 1)
    text = text.replace("for i in", "pool, state = [], copy.deepcopy(net.state_dict())\nfor i in", 1)
    text = text.replace("for i in", "speeds = [torch.zeros_like(p) for p in net.parameters()]\nfor i in", 1)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return {one.finding.kind for one in outcome.found}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", QUIET)
def test_a_gradient_that_no_step_uses_may_stay(name, engine, checks):
    assert "not-cleared" not in kinds(QUIET[name], engine, checks)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SICK)
def test_a_gradient_that_a_step_uses_again_is_found(name, engine, checks):
    assert "not-cleared" in kinds(SICK[name], engine, checks)


VALIDATE = "print(F.mse_loss(checked(x), y).item())"
FOR_EVALUATION = {
    "a copy": TRAIN + "checked = copy.deepcopy(net).eval()\n" + VALIDATE,
    "a copy without gradients": TRAIN + f"checked = copy.deepcopy(net)\nwith torch.no_grad():\n    {VALIDATE}",
    "snapshots": TRAIN + "pool.append(copy.deepcopy(net))\nprint(sum(one(x) for one in pool).sum().item())",
    "a state that is loaded": TRAIN + f"average.load_state_dict(net.state_dict())\nchecked = average\n{VALIDATE}",
    "another model without gradients": TRAIN + f"checked = twin\nwith torch.no_grad():\n    {VALIDATE}",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FOR_EVALUATION)
def test_a_copy_for_the_evaluation_needs_no_gradient(name, engine, checks):
    assert "not-reached" not in kinds(FOR_EVALUATION[name], engine, checks)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_that_is_no_copy_needs_one(engine, checks):
    assert "not-reached" in kinds(f"checked = twin\n{VALIDATE}\n" + TRAIN, engine, checks)
