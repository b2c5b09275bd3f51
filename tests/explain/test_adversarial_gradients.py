"""Steps of a discriminator with the gradient of the generator's loss, and losses that oppose each other or do not."""

import pytest
from explain.programs import recorded_text

from gviz.events import GradSet
from gviz.explain.finding import lines
from gviz.explain.findings.training_loop.adversarial_gradients import opposed_losses, reached_generators
from gviz.explain.recording_survey import Survey

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


ATTACHED = "d_loss = bce(D(real), ones) + bce(D(fake), zeros)  #!\n"
NEW_LOSS = "g_loss = bce(D(G(torch.randn(32, 4))), ones)\n"
OF_BOTH = f"opt_d.zero_grad()\n{ATTACHED}d_loss.backward()\nopt_d.step()\n"
STEP_OF_G = "g_loss.backward()\nopt_g.step()\nopt_g.zero_grad()"
LEAST_SQUARES = "d_loss = F.mse_loss(D(real), ones) + F.mse_loss(D(fake), zeros)  #!\n"
REACHED = {
    "cleared after its own step": (f"{OF_BOTH}{NEW_LOSS}{STEP_OF_G}", True),
    "two steps at the end": (
        f"{CLEAR}{ATTACHED}d_loss.backward(retain_graph=True)\n{G_LOSS}g_loss.backward(){STEPS}",
        True,
    ),
    "a loss of a critic": (
        f"opt_d.zero_grad()\nd_loss = critic_loss(fake, real)  #!\nd_loss.backward()\nopt_d.step()\n"
        f"g_loss = -D(G(torch.randn(32, 4))).mean()\n{STEP_OF_G}",
        True,
    ),
    "least squares": (
        f"opt_d.zero_grad()\n{LEAST_SQUARES}d_loss.backward()\nopt_d.step()\n"
        f"g_loss = F.mse_loss(D(G(torch.randn(32, 4))), ones)\n{STEP_OF_G}",
        True,
    ),
    "without a variable": (
        f"opt_d.zero_grad()\nd_loss = D(G(torch.randn(32, 4))).mean() - D(real).mean()  #!\n"
        f"d_loss.backward()\nopt_d.step()\ng_loss = -D(G(torch.randn(32, 4))).mean()\n{STEP_OF_G}",
        False,
    ),
}
APART = {
    "cleared before its own pass": f"{OF_BOTH}opt_g.zero_grad()\n{NEW_LOSS}g_loss.backward()\nopt_g.step()",
    "set to None": f"{OF_BOTH}for p in G.parameters():\n    p.grad = None\n{NEW_LOSS}g_loss.backward()\nopt_g.step()",
    "detached": f"{OF_BOTH.replace('D(fake)', 'D(fake.detach())')}{NEW_LOSS}{STEP_OF_G}",
    "made without a graph": f"with torch.no_grad():\n    fake = G(z)\n{OF_BOTH}{NEW_LOSS}{STEP_OF_G}",
    "a generator without gradients": f"G.requires_grad_(False)\nfake = G(z)\n{OF_BOTH}G.requires_grad_(True)\n"
    f"{NEW_LOSS}{STEP_OF_G}",
    "gradients of the discriminator only": OF_BOTH.replace("backward()", "backward(inputs=list(D.parameters()))")
    + f"{NEW_LOSS}{STEP_OF_G}",
    "losses of one decoder": "opt_d.zero_grad()\n(D(fake) - real[:, :1]).pow(2).mean().backward()\nopt_d.step()\n"
    "(D(G(z)) - real[:, :1]).abs().mean().backward()\nopt_g.step()\nopt_g.zero_grad()",
    "losses of one decoder with different targets": "opt_d.zero_grad()\nF.mse_loss(D(fake), z[:, :1]).backward()\n"
    "opt_d.step()\nF.mse_loss(D(G(z)), z[:, 1:2]).backward()\nopt_g.step()\nopt_g.zero_grad()",
    "a loss that both share": "opt_g.zero_grad(); opt_d.zero_grad()\n(D(fake) - 3).pow(2).mean().backward()\n"
    "opt_g.step()\nopt_d.step()",
}
REVERSAL = """
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return -g
"""
REVERSED = f"{CLEAR}{ATTACHED.replace('D(fake)', 'D(Reverse.apply(fake))')}d_loss.backward(){STEPS}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", REACHED)
def test_a_generator_whose_step_uses_the_loss_of_the_discriminator_is_found(name, engine, checks):
    step, has_edit = REACHED[name]
    text, found = found_in(step, engine, checks)
    (one,) = [each for each in found if each.finding.kind == "reaches-other-part"]
    assert one.level == "note"
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "pushes" in said
    assert "uses the sum of both" in said
    assert "detach()" in one.finding.fix
    assert "opt_g.zero_grad()" in one.finding.fix
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert (one.finding.edit is not None) == has_edit
    if has_edit:
        assert "fake.detach()" in one.finding.edit.applied(text)
        after = checks.of_text(one.finding.edit.applied(text), engine)
        assert [str(each) for each in after.found if each.finding.kind == "reaches-other-part"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*APART, *RIGHT])
def test_a_generator_that_is_kept_apart_or_trained_together_is_left_out(name, engine, checks):
    found = found_in((APART | RIGHT)[name], engine, checks)[1]
    assert [str(each) for each in found if each.finding.kind == "reaches-other-part"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_reversed_gradient_is_no_mistake(engine, checks):
    text = PROGRAM.replace("STEP", REVERSED.replace("\n", "\n    ")).replace("for it in", REVERSAL + "for it in")
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    assert [str(each) for each in outcome.found if each.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_both_kinds_read_the_steps_of_a_recording_once(engine, tmp_path, monkeypatch):
    step = next(iter(REACHED.values()))[0].replace("\n", "\n    ")
    survey = Survey(recorded_text(PROGRAM.replace("STEP", step), tmp_path, engine))
    readings, select = [], survey.select
    monkeypatch.setattr(survey, "select", lambda *kinds: readings.append(kinds) or select(*kinds))
    assert [one for one in opposed_losses(survey) if one is not None] == []
    assert [one.kind for one in reached_generators(survey) if one is not None] == ["reaches-other-part"]
    assert len([kinds for kinds in readings if GradSet in kinds]) == 1


TURNS = "opt_d.zero_grad()\nD_PASS\nopt_d.step()\nopt_g.zero_grad()\nG_PASS\nopt_g.step()"
CRITIC, TO_DATA = "D(real).mean() - D(fake.detach()).mean()", "D(fake.detach()).mean() - D(real).mean()"
RAISED = "g_loss = -D(G(z)).mean()\ng_loss.backward()"


def turns(d_pass, g_pass=RAISED):
    return TURNS.replace("D_PASS", d_pass).replace("G_PASS", g_pass)


LABELS = "d_loss = LOSS(D(real), REAL) + LOSS(D(fake.detach()), FAKE)  #!\nd_loss.backward()"
PENALTY = """mixed = (0.5 * real + 0.5 * fake.detach()).requires_grad_()
slope, = torch.autograd.grad(D(mixed).sum(), mixed, create_graph=True)
penalty = (slope.norm(dim=1) - 1).pow(2).mean()
"""


def labels(loss, real, fake):
    return LABELS.replace("LOSS", loss).replace("REAL", real).replace("FAKE", fake)


AGREEING = {
    "a critic with the other sign": (turns(f"d_loss = {CRITIC}  #!\nd_loss.backward()"), True),
    "a critic with a gradient penalty": (
        turns(f"{PENALTY}d_loss = {CRITIC} + 10 * penalty  #!\nd_loss.backward()"), True),
    "a generator with the other sign": (
        turns(f"d_loss = {TO_DATA}\nd_loss.backward()", "g_loss = D(G(z)).mean()  #!\ng_loss.backward()"), True),
    "swapped labels": (
        turns(labels("bce", "zeros", "ones"), "g_loss = bce(D(G(z)), ones)\ng_loss.backward()"), False),
    "swapped labels of least squares": (
        turns(labels("F.mse_loss", "zeros", "ones"), "F.mse_loss(D(G(z)), ones).backward()"), False),
    "a generator with the label of the fakes": (
        turns(labels("bce", "ones", "zeros").replace("  #!", ""), "bce(D(G(z)), zeros).backward()  #!"), False),
    "a hinge": (
        turns("d_loss = critic_loss(real, fake.detach())\nd_loss.backward()"), False),
    "two passes of the critic": (
        turns("bce(D(real), zeros).backward()\nbce(D(fake.detach()), ones).backward()  #!",
              "bce(D(G(z)), ones).backward()"), False),
    "an optimizer that maximizes": (turns(f"d_loss = {TO_DATA}  #!\nd_loss.backward()"), True),
}  # fmt: skip
OPPOSED = {
    "a critic": turns(f"d_loss = {TO_DATA}\nd_loss.backward()"),
    "a critic with a gradient penalty": turns(f"{PENALTY}d_loss = {TO_DATA} + 10 * penalty\nd_loss.backward()"),
    "labels": turns(labels("bce", "ones", "zeros"), "bce(D(G(z)), ones).backward()"),
    "smooth labels": turns(labels("bce", "0.9 * ones", "zeros"), "bce(D(G(z)), ones).backward()"),
    "a loss that saturates": turns(labels("bce", "ones", "zeros"), "(-bce(D(G(z)), zeros)).backward()"),
    "labels that are swapped in both": turns(labels("bce", "zeros", "ones"), "bce(D(G(z)), zeros).backward()"),
    "least squares": turns(labels("F.mse_loss", "ones", "zeros"), "F.mse_loss(D(G(z)), ones).backward()"),
    "least squares around 0": turns(labels("F.mse_loss", "ones", "-ones"), "F.mse_loss(D(G(z)), zeros).backward()"),
    "a hinge": turns("critic_loss(fake.detach(), real).backward()"),
    "scores that are compared": turns(
        "F.softplus(D(fake.detach()) - D(real)).mean().backward()", "F.softplus(D(real) - D(G(z))).mean().backward()"),
    "features": turns(
        labels("bce", "ones", "zeros"), "F.mse_loss(D[0](G(z)).mean(0), D[0](real).mean(0).detach()).backward()"),
    "values of actions": turns("F.mse_loss(D(fake.detach()), real[:, :1]).backward()"),
    "values of recorded and new actions": turns(
        "(F.mse_loss(D(real), real[:, :1]) + F.mse_loss(D(fake.detach()), z[:, :1])).backward()"),
    "an estimate of mutual information": turns(
        "(D(fake[::2].detach()).mean() - D(fake.detach().flip(0)).mean()).backward()"),
    "a decoder of both": turns("F.mse_loss(D(torch.cat([real, fake.detach()])), torch.cat([ones, ones])).backward()"),
    "a reversed gradient": turns(
        f"d_loss = {CRITIC}\nd_loss.backward()", "(-D(Reverse.apply(G(z))).mean()).backward()"),
    "an optimizer that maximizes": turns(f"d_loss = {CRITIC}\nd_loss.backward()"),
}  # fmt: skip


def found_in_turns(name, step, engine, checks):
    text = PROGRAM.replace("STEP", step.replace("\n", "\n    ")).replace("for it in", REVERSAL + "for it in")
    if name == "a hinge":
        text = text.replace("F.relu(1 + D(fake)).mean())", "F.relu(1 + D(fake)).mean())  #!")
    if "maximizes" in name:
        text = text.replace("Adam(D.parameters(), lr=0.01)", "Adam(D.parameters(), lr=0.01, maximize=True)")
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [one for one in outcome.found if one.finding.kind == "agreeing-adversaries"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", AGREEING)
def test_a_critic_that_wants_what_the_generator_wants_is_found(name, engine, checks):
    step, has_edit = AGREEING[name]
    text, (one,) = found_in_turns(name, step, engine, checks)
    assert one.level == "warning"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "the critic pushes" in one.finding.parts[0].text
    assert one.finding.parts[1].at is not None
    assert (one.finding.edit is not None) == has_edit
    if has_edit:
        after = checks.of_text(one.finding.edit.applied(text), engine).found
        assert [str(each) for each in after if each.finding.kind == "agreeing-adversaries"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OPPOSED)
def test_adversaries_and_parts_that_learn_together_are_left_out(name, engine, checks):
    assert [str(one) for one in found_in_turns(name, OPPOSED[name], engine, checks)[1]] == []
