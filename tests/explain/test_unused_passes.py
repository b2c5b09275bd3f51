"""Passes whose gradients are cleared before a step can use them, and programs that clear them on purpose."""

import pytest
from explain.programs import recorded_text

from gviz.explain.check import check
from gviz.explain.finding import lines

on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])

HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
m = nn.Linear(3, 1)
opt = torch.optim.SGD(m.parameters(), 0.05)
x = torch.randn(16, 3)
y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
"""

UNUSED = {
    "every micro-batch": """
for i in range(8):
    opt.zero_grad()
    loss = (m(x[i:i+4]) - 1).pow(2).mean() / 4
    loss.backward()
    if (i + 1) % 4 == 0: opt.step()
""",
    "between two losses": """
for i in range(5):
    a = ((m(x) - y) ** 2).mean()
    opt.zero_grad(); a.backward()
    b = 0.01 * m.weight.pow(2).sum()
    opt.zero_grad(); b.backward()
    opt.step()
""",
    "by the model": """
for i in range(5):
    a = ((m(x) - y) ** 2).mean(); b = 0.01 * m.weight.pow(2).sum()
    a.backward()
    m.zero_grad()
    b.backward()
    opt.step(); opt.zero_grad()
""",
    "by hand": """
for epoch in range(2):
    for i in range(4):
        loss = ((m(x[i*4:i*4+4]) - y[i*4:i*4+4]) ** 2).mean()
        loss.backward()
        for p in m.parameters(): p.grad = None
        loss2 = m.weight.abs().sum(); loss2.backward()
        with torch.no_grad():
            for p in m.parameters():
                if p.grad is not None: p -= 0.1 * p.grad
""",
    "once": """
a = ((m(x) - y) ** 2).mean(); a.backward()
opt.zero_grad()
b = m.weight.pow(2).sum(); b.backward()
opt.step()
""",
}

USED = {
    "ac": """
c = nn.Linear(3, 1); oc = torch.optim.Adam(c.parameters(), 0.01)
for i in range(4):
    opt.zero_grad(); (-c(x * m(x))).mean().backward(); opt.step()
    oc.zero_grad(); (c(x * m(x).detach()) - y).pow(2).mean().backward(); oc.step()
""",
    "accum": """
opt.zero_grad()
for i in range(8):
    (((m(x[i:i+4]) - 1).pow(2).mean()) / 4).backward()
    if (i + 1) % 4 == 0: opt.step(); opt.zero_grad()
""",
    "fgsm": """
for i in range(3):
    xa = x.clone().requires_grad_()
    ((m(xa) - y) ** 2).mean().backward()
    adv = (xa + 0.1 * xa.grad.sign()).detach()
    opt.zero_grad(); ((m(adv) - y) ** 2).mean().backward(); opt.step()
""",
    "fisher": """
for e in range(3):
    fisher = torch.zeros(1, 3)
    for i in range(3):
        m.zero_grad(); ((m(x[i:i+1]) - y[i:i+1]) ** 2).mean().backward()
        fisher += m.weight.grad ** 2
    for i in range(2):
        opt.zero_grad(); ((m(x) - y) ** 2).mean().backward(); opt.step()
""",
    "gan": """
g = nn.Linear(2, 3); og = torch.optim.Adam(g.parameters(), 0.01); od = opt
for i in range(4):
    fake = g(torch.randn(8, 2))
    ld = F.softplus(m(fake.detach())).mean() + F.softplus(-m(torch.randn(8, 3))).mean()
    od.zero_grad(); ld.backward(); od.step()
    lg = F.softplus(-m(fake)).mean()
    og.zero_grad(); lg.backward(); og.step()
""",
    "lbfgs": """
lb = torch.optim.LBFGS(m.parameters(), lr=0.5, max_iter=5)
def closure():
    lb.zero_grad(); l = ((m(x) - y) ** 2).mean(); l.backward(); return l
for i in range(3): lb.step(closure)
""",
    "pcgrad": """
for i in range(4):
    gs = []
    for l in (((m(x) - y) ** 2).mean(), m.weight.pow(2).sum()):
        opt.zero_grad(); l.backward(retain_graph=True); gs.append(m.weight.grad.clone())
    opt.zero_grad(); m.weight.grad = gs[0] + gs[1]; opt.step()
""",
    "skip": """
for i in range(12):
    opt.zero_grad()
    l = ((m(x) - y) ** 2).mean(); l.backward()
    n = nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    if i % 6 != 3: opt.step()
""",
    "skipsome": """
for i in range(12):
    opt.zero_grad()
    l = ((m(x) - y) ** 2).mean(); l.backward()
    if i % 6 != 3: opt.step()
""",
    "val": """
for i in range(5):
    opt.zero_grad(); l = ((m(x) - y) ** 2).mean(); l.backward(); opt.step()
    opt.zero_grad(); l = ((m(x[:4]) - y[:4]) ** 2).mean(); l.backward(); print(m.weight.grad.norm())
""",
    "warmup": """
for i in range(3):
    m(x).sum().backward(); opt.zero_grad()
for i in range(4):
    opt.zero_grad(); ((m(x) - y) ** 2).mean().backward(); opt.step()
""",
}

EXPECTED = {
    "every micro-batch": ("error", 12, "in 6 of 8 passes", "are cleared before a step uses them", 15),
    "between two losses": ("error", 15, "in 5 of 5 passes", "are cleared before a step uses them", 16),
    "by the model": ("error", 14, "in 5 of 5 passes", "are cleared before a step uses them", 16),
    "by hand": ("error", 15, "in 8 of 8 passes", "are cleared before a step uses them", 0),
    "once": ("note", 12, "in 1 of 1 pass", "are cleared before a step uses them", 14),
}


@on_both_engines
@pytest.mark.parametrize("name", UNUSED)
def test_a_pass_of_which_steps_get_nothing_is_found(name, engine, tmp_path):
    level, line, count, words, step = EXPECTED[name]
    found = check(recorded_text(HEAD + UNUSED[name], tmp_path, engine))
    (one,) = [one for one in found if one.finding.kind == "cleared-early"]
    assert (one.level, one.finding.at.line) == (level, line)
    assert count in one.finding.text
    assert words in one.finding.text
    said = "\n".join(text for _, text, _ in lines(one.finding))
    assert not step or f"the step at program.py:{step} used only what came after" in said
    assert "once for each step" in one.finding.fix


@on_both_engines
@pytest.mark.parametrize("name", USED)
def test_a_program_that_clears_on_purpose_is_healthy(name, engine, tmp_path):
    found = check(recorded_text(HEAD + USED[name], tmp_path, engine))
    assert [one.finding.kind for one in found if one.finding.kind not in ("summed-loss",)] == []


ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
STORED = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
params = list(net.parameters())
opt = torch.optim.SGD(params, lr=0.1)
class Engine:
    def clip(self, losses):
        for loss in losses:
            grads = torch.autograd.grad(loss, params, retain_graph=True)
            size = sum(g.pow(2).sum() for g in grads).sqrt()
            for p, g in zip(params, grads):
                g = g / size.clamp(min=1.0) / 8
                p.grad = g if p.grad is None else p.grad + g
    def step(self):
        opt.step()
engine = Engine()
def losses_of(n=4):
    return (net(torch.randn(n, 4)) - 1).pow(2).squeeze(1)
for i in range(9):
    BODY
"""
LOST = {
    "a clearing for each part of a batch": "opt.zero_grad()  #!\nengine.clip(losses_of())\n"
    "if i % 3 == 2:\n    engine.step()",
    "zeros for each part of a batch": "opt.zero_grad(set_to_none=False)  #!\nengine.clip(losses_of())\n"
    "if i % 2:\n    opt.step()",
    "a clearing at the end of the iteration": "engine.clip(losses_of())\n"
    "if i % 3 == 2:\n    engine.step()\nnet.zero_grad()  #!",
    "None for each part of a batch": "for p in params: p.grad = None  #!\n"
    "grads = torch.autograd.grad(losses_of().mean(), params)\nfor p, g in zip(params, grads): p.grad = g / 3\n"
    "if i % 3 == 2: opt.step()",
}
KEPT = {
    "a clearing after the step": "engine.clip(losses_of())\nif i % 3 == 2:\n    engine.step()\n    opt.zero_grad()",
    "a step for each part": "opt.zero_grad()\nengine.clip(losses_of())\nengine.step()",
    "sums that are kept elsewhere": "opt.zero_grad()\nengine.clip(losses_of())\n"
    "for p in params: p.total = getattr(p, 'total', 0) + p.grad\nif i % 3 == 2:\n"
    "    for p in params: p.grad = p.total; p.total = 0\n    engine.step()",
    "a batch that is left out": "opt.zero_grad()\nengine.clip(losses_of())\nif i != 4:\n    engine.step()",
    "zeros that are stored": "for p in params: p.grad = torch.zeros_like(p)\nopt.zero_grad()\n"
    "engine.clip(losses_of())\nengine.step()\nopt.zero_grad()",
    "an update by hand": "for p in params: p.grad = None\nengine.clip(losses_of())\nwith torch.no_grad():\n"
    "    for p in params: p -= 0.1 * p.grad\nif i % 4 == 3: opt.step()",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LOST)
def test_stored_gradients_that_are_cleared_before_a_step_are_found(name, engine, checks):
    text = STORED.replace("BODY", LOST[name].replace("\n", "\n    "))
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = [each for each in outcome.found if each.finding.kind == "cleared-early"]
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "cleared before a step uses them" in one.finding.text
    if one.finding.edit is not None:
        after = checks.of_text(one.finding.edit.applied(text), engine)
        assert [str(each) for each in after.found if each.finding.kind == "cleared-early"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KEPT)
def test_stored_gradients_that_a_step_uses_or_that_are_read_are_left_out(name, engine, checks):
    outcome = checks.of_text(STORED.replace("BODY", KEPT[name].replace("\n", "\n    ")), engine)
    assert outcome.errors == []
    assert [str(each) for each in outcome.found if each.finding.kind == "cleared-early"] == []


SUMMED = """import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(6):
    sums = [torch.zeros_like(p) for p in net.parameters()]
    for k in range(4):
        net.zero_grad(set_to_none=False)
        (net(torch.randn(8, 4)) - 1).pow(2).mean().backward()
        for total, p in zip(sums, net.parameters()):
            total.add_(p.grad, alpha=0.25)
    for total, p in zip(sums, net.parameters()):
        p.grad = total
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_that_the_program_keeps_and_assigns_are_used(engine, checks):
    outcome = checks.of_text(SUMMED, engine)
    assert outcome.errors == []
    assert "cleared-early" not in {each.finding.kind for each in outcome.found}
