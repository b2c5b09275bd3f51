"""Steps of a discriminator that use the gradient of the generator's loss, and losses that train a model together."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
D = nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=0.01)
opt_d = torch.optim.Adam(D.parameters(), lr=0.01)
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
bce = F.binary_cross_entropy_with_logits
def critic_loss(fake, real):
    return 0.5 * (F.relu(1 - D(real)).mean() + F.relu(1 + D(fake)).mean())
for it in range(6):
    real, z = 4 + torch.randn(32, 3), torch.randn(32, 4)
    fake = G(z)
    STEP
"""
CLEAR = "opt_g.zero_grad(); opt_d.zero_grad()\n"
STEPS = "\nopt_g.step()\nopt_d.step()"
G_LOSS = "g_loss = bce(D(fake), ones)\n"
D_LOSS = "d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)\n"
WRONG = {
    "two passes before both steps": (
        f"{CLEAR}{G_LOSS}g_loss.backward()\n{D_LOSS}d_loss.backward()  #!{STEPS}",
        "opt_d.zero_grad()",
    ),
    "a hinge loss in a function": (
        f"{CLEAR}g_loss = F.l1_loss(fake, real) - D(fake).mean()\ng_loss.backward()\n"
        f"d_loss = critic_loss(fake.detach(), real)\nd_loss.backward()  #!{STEPS}",
        "opt_d.zero_grad()",
    ),
    "the discriminator first": (
        f"{CLEAR}{D_LOSS}d_loss.backward()\n{G_LOSS}g_loss.backward()  #!{STEPS}",
        "",
    ),
    "micro-batches": (
        f"{G_LOSS}(g_loss / 2).backward()  #!\n{D_LOSS}(d_loss / 2).backward()\n"
        "if it % 2:\n    opt_g.step()\n    opt_d.step()\n    opt_g.zero_grad()\n    opt_d.zero_grad()",
        "",
    ),
    "a second forward under no_grad": (
        f"{CLEAR}(-D(fake).mean()).backward()\nwith torch.no_grad():\n    made = G(z)\n"
        f"(D(made).mean() - D(real).mean()).backward()  #!{STEPS}",
        "opt_d.zero_grad()",
    ),
}
RIGHT = {
    "a cleared discriminator": f"{CLEAR}{G_LOSS}g_loss.backward()\nopt_d.zero_grad()\n{D_LOSS}d_loss.backward(){STEPS}",
    "a discriminator with gradients of 0": f"{CLEAR}{G_LOSS}g_loss.backward()\nopt_d.zero_grad(set_to_none=False)\n"
    f"{D_LOSS}d_loss.backward(){STEPS}",
    "a discriminator without gradients": f"{CLEAR}D.requires_grad_(False)\n{G_LOSS}g_loss.backward()\n"
    f"D.requires_grad_(True)\n{D_LOSS}d_loss.backward(){STEPS}",
    "gradients of the generator only": f"{CLEAR}{G_LOSS}g_loss.backward(inputs=list(G.parameters()))\n"
    f"{D_LOSS}d_loss.backward(){STEPS}",
    "a step of the discriminator first": f"opt_d.zero_grad()\n{D_LOSS}d_loss.backward()\nopt_d.step()\n"
    f"opt_g.zero_grad()\n{G_LOSS}g_loss.backward()\nopt_g.step()",
    "two losses of one decoder": f"{CLEAR}(D(fake) - real[:, :1]).pow(2).mean().backward()\n"
    f"(D(fake.detach()) - real[:, :1]).abs().mean().backward(){STEPS}",
    "two losses of one decoder in other directions": f"{CLEAR}(D(fake) - z[:, :1]).pow(2).mean().backward()\n"
    f"(D(fake.detach()) + z[:, :1]).abs().mean().backward(){STEPS}",
    "a loss of one direction and one of both": f"{CLEAR}D(fake).mean().backward()\n"
    f"(D(fake.detach()) - z[:, :1]).pow(2).mean().backward(){STEPS}",
    "a loss of the other direction and one of both": f"{CLEAR}(-D(fake).mean()).backward()\n"
    f"(D(fake.detach()) - z[:, :1]).pow(2).mean().backward(){STEPS}",
    "losses that reach both": f"{CLEAR}(D(fake) - real[:, :1]).pow(2).mean().backward()\n"
    f"(0.1 * D(G(z)).pow(2).mean()).backward(){STEPS}",
}


def found_in(step, engine, checks):
    text = PROGRAM.replace("STEP", step.replace("\n", "\n    "))
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, outcome.found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_a_step_with_the_gradient_of_the_other_side_is_found(name, engine, checks):
    step, new = WRONG[name]
    text, found = found_in(step, engine, checks)
    (one,) = [each for each in found if each.finding.kind == "not-cleared"]
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "error"
    assert "pushes it" in said
    assert "uses the sum of both" in said
    assert "requires_grad_(False)" in one.finding.fix
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert (one.finding.edit is not None) == bool(new)
    if new:
        after = checks.of_text(one.finding.edit.applied(text), engine)
        assert [str(each) for each in after.found if each.finding.kind == "not-cleared"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_gradients_that_are_kept_apart_or_add_up_are_left_out(name, engine, checks):
    found = found_in(RIGHT[name], engine, checks)[1]
    assert [str(each) for each in found if each.finding.kind == "not-cleared"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_of_the_generator_between_is_found_once(engine, checks):
    step = f"{CLEAR}{G_LOSS}g_loss.backward()\nopt_g.step()\n{D_LOSS}d_loss.backward()\nopt_d.step()"
    (one,) = [each for each in found_in(step, engine, checks)[1] if each.finding.kind == "not-cleared"]
    assert "still held the gradient of" in one.finding.text
