"""Steps that also use what an attack has left in the parameters, and attacks that leave nothing there."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
def perturbed(x, y):
    delta = torch.zeros(x.shape)
    for turn in range(TURNS):
        delta.requires_grad_(True)
        ATTACK
        delta = (delta.detach() + 0.1 * gradient.sign()).clamp(-0.2, 0.2)
    AFTER
    return x + delta
for step in range(4):
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    opt.zero_grad()
    loss = F.cross_entropy(net(perturbed(x, y)), y)
    BEFORE
    loss.backward()
    opt.step()
"""
PASS = "attack = F.cross_entropy(net(x + delta), y)\n        attack.backward()  #!\n        gradient = delta.grad"


def program(attack=PASS, turns=3, after="pass", before="pass"):
    words = {"ATTACK": attack, "TURNS": turns, "AFTER": after, "BEFORE": before}
    text = PROGRAM
    for word, value in words.items():
        text = text.replace(word, str(value))
    return text


GRAD = "gradient = torch.autograd.grad(F.cross_entropy(net(x + delta), y), delta)[0]"
HARMLESS = {
    "autograd.grad": program(GRAD),
    "clearing after the attack": program(after="net.zero_grad()"),
    "clearing before the pass": program(before="opt.zero_grad()"),
    "a model of its own": program(PASS.replace("net(", "other(")).replace(
        "opt = ", "other = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))\nopt = "
    ),
    "a penalty on a gradient that nothing reads": program("gradient = torch.zeros(x.shape)").replace(
        "    loss.backward()",
        "    x.requires_grad_(True)\n    F.cross_entropy(net(x), y).backward()\n    loss.backward()",
    ),
}  # fmt: skip


def attacks(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "attack-gradient"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("turns", "level"), [(3, "warning"), (1, "note")])
def test_the_pass_of_an_attack_is_named_whose_gradients_a_step_uses(turns, level, engine, checks):
    text = program(turns=turns)
    (one,) = attacks(text, engine, checks)
    assert one.level == level
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert ("ran 3 times" in one.finding.parts[0].text) == (turns == 3)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_attack_between_the_pass_and_its_step_is_named_too(engine, checks):
    text = program(turns=2).replace("    opt.step()", "    perturbed(x, y)\n    opt.step()")
    text = text.replace("net(perturbed(x, y)), y)", "net(x), y)")
    assert [one.level for one in attacks(text, engine, checks)] == ["warning"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HARMLESS)
def test_an_attack_that_leaves_nothing_in_the_parameters_is_not_reported(name, engine, checks):
    assert [str(one) for one in attacks(HARMLESS[name], engine, checks)] == []
