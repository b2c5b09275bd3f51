"""Running averages of the weights that run away from them, and averages, sums and buffers that are right."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2))
params, teacher = list(net.parameters()), copy.deepcopy(net)
opt = torch.optim.SGD(params, lr=0.05)
decay, count = 0.9, 0
shadow = {name: p.detach().clone() for name, p in net.named_parameters()}
copies = [p.detach().clone() for p in params]
zeros = [torch.zeros_like(p) for p in params]
for step in range(6):
    loss = F.mse_loss(net(torch.randn(8, 5)), torch.randn(8, 2))
    opt.zero_grad()
    loss.backward()
    opt.step()
    UPDATE
"""


def program(text):
    return PROGRAM.replace("UPDATE", text.replace("\n", "\n    "))


FOR = "with torch.no_grad():\n    for s, z, t, p in zip(copies, zeros, teacher.parameters(), params):\n        "
RUNNING_AWAY = {
    "the distance is added": ("subtracted", FOR + "gap = s - p\n        s.add_(gap * (1 - decay))  #!"),
    "a step away from the weights": ("subtracted", FOR + "s.sub_((p - s) * 0.1)  #!"),
    "the weights are subtracted": ("subtracted", FOR + "s.mul_(decay).sub_(p, alpha=1 - decay)  #!"),
    "a factor is missing in place": ("weights lack a factor", FOR + "t.data.mul_(decay).add_(p.data)  #!"),
    "a factor is missing in new memory": (
        "weights lack a factor",
        "for name, p in net.named_parameters():\n    shadow[name] = decay * shadow[name] + p.data  #!",
    ),
    "a factor is missing in other data": (
        "weights lack a factor",
        "for t, p in zip(teacher.parameters(), params):\n    t.data = t.data * decay + p.data  #!",
    ),
    "the copy lacks its factor": ("it held before lacks", FOR + "s.add_(p, alpha=0.49)  #!"),
}
HEALTHY = {
    "in place": FOR + "s.mul_(decay).add_(p, alpha=1 - decay)",
    "of a copied model": FOR + "t.data.mul_(decay).add_(p.data, alpha=1 - decay)",
    "by lerp": FOR + "s.lerp_(p, 1 - decay)",
    "the distance is subtracted": FOR + "gap = s - p\n        s.sub_(gap * (1 - decay))",
    "in new memory": "for name, p in net.named_parameters():\n"
    "    shadow[name] = decay * shadow[name] + (1 - decay) * p.detach()",
    "in other data": "for t, p in zip(teacher.parameters(), params):\n"
    "    t.data = t.data * decay + p.data * (1 - decay)",
    "with a decay that grows": FOR + "d = min(decay, (1 + step) / (10 + step))\n        s.mul_(d).add_(p, alpha=1 - d)",
    "a mean of all steps": FOR + "s.add_((p - s) / (step + 2))",
    "a sum that is divided at the end": FOR + "s.add_(p)\nif step == 5:\n    mean = [s / 7 for s in copies]",
    "a buffer that begins with zeros": FOR + "z.mul_(decay).add_(p)",
    "averages of gradients": FOR + "z.mul_(decay).add_(p.grad)",
    "slow weights": FOR + "if step % 2:\n            s.add_(p - s, alpha=0.5)\n            p.copy_(s)",
    "the distance from the start": FOR + "drift = s - p\n        far = (drift * 3).norm()",
    "a copy that is taken anew": FOR + "s.copy_(p)\n        s.mul_(decay).add_(p)",
    "weights that are stored and put back": FOR + "s.mul_(decay).add_(p, alpha=1 - decay)\n"
    "        kept = p.clone()\n        p.copy_(s)\n        p.copy_(kept)",
}


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "runaway-average"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RUNNING_AWAY)
def test_an_average_that_runs_away_is_found_at_its_update(name, engine, checks):
    words, update = RUNNING_AWAY[name]
    (one,) = found(program(update), engine, checks)
    assert one.level == "warning"
    assert words in "\n".join(row for _, row, _ in lines(one.finding))
    assert program(update).splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_averages_that_follow_and_other_buffers_are_not_reported(name, engine, checks):
    assert found(program(HEALTHY[name]), engine, checks) == []
