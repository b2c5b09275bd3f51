"""Terms of a loss that train nothing: by mistake, or to show them in the number of the loss."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
frozen = nn.Linear(4, 1)
opt = OPTIMIZER
for step in range(4):
    fit = F.mse_loss(net(x), y)
    TERM
    loss = fit + 0.1 * term
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SGD = "torch.optim.SGD(net.parameters(), lr=0.05)"
POINTS = "points = (x * 0.5).requires_grad_()\n"
GRADIENT = "g = torch.autograd.grad(net(points).sum(), points)[0]"
NORM = "term = ((g.norm(2, dim=1) - 1) ** 2).mean()"


def program(term, optimizer=SGD):
    return PROGRAM.replace("TERM", term.replace("\n", "\n    ")).replace("OPTIMIZER", optimizer)


MISTAKES = {
    "a sum over parameters": (
        program("term = 0.0\nfor p in net.parameters():\n    term = term + p.data.abs().sum()  #!"),
        "term + p.abs().sum()",
    ),
    "one weight": (program("term = (net[0].weight.data ** 2).sum()  #!"), "(net[0].weight ** 2).sum()"),
    "a generator": (
        program("term = sum(p.data.pow(2).sum() for p in net.parameters())  #!"), "sum(p.pow(2).sum() for p"),
    "a norm": (program("term = net[2].weight.data.norm()  #!"), "net[2].weight.norm()"),
    "with the decay that AdamW has": (
        program("term = net[0].weight.data.abs().sum()  #!", "torch.optim.AdamW(net.parameters(), lr=0.01)"),
        "net[0].weight.abs().sum()",
    ),
    "a gradient penalty": (program(f"{POINTS}{GRADIENT}  #!\n{NORM}"), "points, create_graph=True)[0]"),
    "a gradient of a graph that is kept": (
        program(f"{POINTS}{GRADIENT.replace('points)[', 'points, retain_graph=True)[')}  #!\n{NORM}"),
        "create_graph=True",
    ),
}  # fmt: skip
DELIBERATE = {
    "detach": "term = (net[0].weight.detach() ** 2).sum()",
    "detach of a result": "term = (net[0].weight ** 2).sum().detach()",
    "data of a result": "term = (net(x) ** 2).mean().data",
    "item": "term = (net[0].weight.data ** 2).sum().item()",
    "no_grad": "with torch.no_grad():\n    term = (net[0].weight ** 2).sum()",
    "data under no_grad": "with torch.no_grad():\n    term = (net[0].weight.data ** 2).sum()",
    "a gradient that is detached": f"{POINTS}{GRADIENT}\n{NORM}.detach()",
    "a gradient that is detached at once": f"{POINTS}{GRADIENT}.detach()\n{NORM}",
    "a gradient under no_grad": f"{POINTS}{GRADIENT}\nwith torch.no_grad():\n    {NORM}",
    "data of a frozen layer": "term = (frozen.weight.data ** 2).sum()",
    "a gradient of a frozen layer": f"{POINTS}{GRADIENT.replace('net(', 'frozen(')}\n{NORM}",
    "a gradient with a graph": f"{POINTS}{GRADIENT.replace('points)[', 'points, create_graph=True)[')}\n{NORM}",
    "a weight of a term": f"{POINTS}{GRADIENT}\nterm = g.norm() * (net(x) ** 2).mean()",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_term_that_is_cut_by_mistake_is_a_warning(name, engine, checks):
    text, mended = MISTAKES[name]
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = [each for each in outcome.found if each.level != "note"]
    assert (one.finding.kind, one.level) == ("cut-summand", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert mended in one.finding.edit.new
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert after.errors == []
    assert [str(each) for each in after.found if each.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DELIBERATE)
def test_a_term_that_is_cut_on_purpose_is_no_warning(name, engine, checks):
    outcome = checks.of_text(program(DELIBERATE[name]), engine)
    assert outcome.errors == []
    assert [str(one) for one in outcome.found if one.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_term_whose_gradient_the_optimizer_adds_is_no_warning(engine, checks):
    term = "term = 0.0\nfor p in net.parameters():\n    term = term + 0.5 * p.data.pow(2).sum()"
    decayed = "torch.optim.SGD(net.parameters(), lr=0.05, weight_decay=0.1)"
    outcome = checks.of_text(program(term, decayed), engine)
    assert [str(one) for one in outcome.found if one.level != "note"] == []
    assert "cut-summand" in {one.finding.kind for one in outcome.found}


REFERENCES = {
    "old log-probabilities in an estimate of a divergence": "with torch.no_grad():\n    old = F.logsigmoid(net(x))\n"
    "ratio = F.logsigmoid(net(x)) - old\nterm = (ratio.exp() - 1 - ratio).mean()",
    "the same in one line": "with torch.no_grad():\n    old = F.logsigmoid(net(x))\nnew = F.logsigmoid(net(x))\n"
    "term = ((new - old).exp() - 1 - (new - old)).mean()",
    "old values that are detached": "old = F.logsigmoid(net(x)).detach()\nnew = F.logsigmoid(net(x * 1.1))\n"
    "term = ((old - new).exp() - 1 - (old - new)).mean()",
    "an output and the one before": "with torch.no_grad():\n    old = net(x)\nterm = (net(x) - old).mean()",
    "a draw whose score function is a term": "p = torch.sigmoid(net(x))\nwith torch.no_grad():\n"
    "    z = torch.bernoulli(p)\nlogp = z * p.log() + (1 - z) * (1 - p).log()\n"
    "term = (logp * (z * 2 - y)).mean() + (z * 0.7).mean()",
    "a number with another gradient": "shown, y2 = net(x).abs().mean(), net(x).pow(2).mean()\n"
    "term = shown.detach() + (y2 - y2.detach())",
    "the gradient first": "shown, y2 = net(x).abs().mean(), net(x).pow(2).mean()\n"
    "term = (y2 - y2.detach()) + shown.detach()",
    "without brackets": "shown, y2 = net(x).abs().mean(), net(x).pow(2).mean()\n"
    "term = y2 + shown.detach() - y2.detach()",
    "subtracted first": "shown, y2 = net(x).abs().mean(), net(x).pow(2).mean()\n"
    "term = shown.detach() - y2.detach() + y2",
    "a multiple": "shown, y2 = net(x).abs().mean(), net(x).pow(2).mean()\n"
    "term = shown.detach() + 0.5 * (y2 - y2.detach())",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_and_a_number_with_another_gradient_are_left_out(name, engine, checks):
    outcome = checks.of_text(program(REFERENCES[name]), engine)
    assert outcome.errors == []
    assert [str(one) for one in outcome.found if one.finding.kind == "cut-summand"] == []


CUT = {
    "a term next to another": "term = net(x).pow(2).mean() + net(x).abs().mean().detach()",
    "a sum with its own part": "y2 = net(x).pow(2).mean()\nterm = y2 + net(x).abs().mean().detach() + y2.detach()",
    "a number that is subtracted": "with torch.no_grad():\n    base = net(x).abs().mean()\n"
    "term = net(x).pow(2).mean() - base",
    "two results that are added": "with torch.no_grad():\n    other = net(x * 2)\nterm = (net(x) + other).mean()",
}


DRAWN = "from torch.distributions import Bernoulli, Categorical, Normal\nmean = net(x)\nz = SAMPLE\n"
DRAWN += "term = mean.pow(2).mean() + (z * 0.7).float().mean()"


@pytest.mark.torch
@pytest.mark.parametrize(
    ("sample", "has_rsample"),
    [
        ("Bernoulli(logits=mean).sample()", False),
        ("Categorical(logits=mean.view(2, 8)).sample((3,))", False),
        ("Normal(mean, 0.5).sample()", True),
    ],
)
def test_rsample_is_offered_for_distributions_that_have_it(sample, has_rsample, checks):
    outcome = checks.of_text(program(DRAWN.replace("SAMPLE", sample)), "torch")
    assert outcome.errors == []
    for one in (each.finding for each in outcome.found if each.finding.kind == "cut-summand"):
        assert ("rsample() where" in one.fix, one.edit is not None) == (has_rsample, has_rsample)
        break
    else:
        pytest.fail("the draw is not reported")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CUT)
def test_other_terms_without_a_gradient_are_notes(name, engine, checks):
    outcome = checks.of_text(program(CUT[name]), engine)
    assert outcome.errors == []
    assert {one.level for one in outcome.found if one.finding.kind == "cut-summand"} == {"note"}


TWO_PARTS = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
gen = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(7, 8), nn.Linear(8, 1)
    def forward(self, x, z):
        return self.head(F.leaky_relu(self.body(torch.cat([x, z], 1)), 0.2))
critic = Critic()
og, oc = torch.optim.Adam(gen.parameters(), lr=0.01), torch.optim.Adam(critic.parameters(), lr=0.01)
bce, ones, zeros = nn.BCEWithLogitsLoss(), torch.ones(16, 1), torch.zeros(16, 1)
for i in range(4):
    z, real = torch.randn(16, 4), torch.randn(16, 3)
    STEP
"""
CRITIC = "loss = bce(critic(real, z), ones) + bce(critic(CUT, z), zeros)\noc.zero_grad()\nloss.backward()\noc.step()\n"
OWN = CRITIC.replace("CUT", "fake.detach()")
STEP_G = "og.zero_grad()\nloss.backward()\nog.step()\n"
FAKE = "fake = gen(z)\n"
IDLE = {
    "detach": (f"{FAKE}{OWN}loss = bce(critic(fake.detach(), z), ones) + F.l1_loss(fake, real)  #!\n{STEP_G}",
               "bce(critic(fake, z), ones)"),
    "one cut for both": (
        f"{FAKE}cut = fake.data\n{CRITIC}adv = -critic(cut, z).mean()  #!\nloss = 0.1 * adv + F.l1_loss(fake, real)\n"
        f"{STEP_G}".replace("CUT", "cut"), "use fake for this term"),
    "no_grad": (
        f"with torch.no_grad():\n    fake = gen(z)\n{CRITIC}adv = bce(critic(fake, z), ones)  #!\n"
        f"loss = F.l1_loss(gen(z), real) + adv\n{STEP_G}".replace("CUT", "fake"), "outside of the no_grad block"),
    "an action": (
        f"fake = real\n{OWN}action = gen(z)\nloss = F.mse_loss(action, real)\n"
        f"loss = loss - critic(action.detach(), z).mean()  #!\n{STEP_G}", "critic(action, z).mean()"),
}  # fmt: skip
USEFUL = {
    "the fake itself": f"{FAKE}{OWN}loss = bce(critic(fake, z), ones) + F.l1_loss(fake, real)\n{STEP_G}",
    "one sum for both": f"""
{FAKE}loss = bce(critic(real, z), ones) + bce(critic(fake.detach(), z), zeros) + F.l1_loss(fake, real)
og.zero_grad(); oc.zero_grad(); loss.backward(); og.step(); oc.step()""",
    "a part that steps now and then": f"""
{FAKE}loss = F.l1_loss(fake, real) + critic(fake.detach(), z).pow(2).mean()
og.zero_grad(); oc.zero_grad(); loss.backward(); og.step()
if i % 2:
    oc.step()""",
    "one sum for each": """
for opt in (og, oc):
    fake = gen(z)
    loss = F.l1_loss(fake, real) + critic(fake.detach(), z).pow(2).mean()
    og.zero_grad(); oc.zero_grad(); loss.backward(); opt.step()""",
    "a term of the critic": (
        f"{FAKE}loss = bce(critic(fake.detach(), z), zeros) + critic.head.weight.pow(2).sum()\n"
        f"oc.zero_grad(); loss.backward(); oc.step()\nloss = critic(fake, z).mean() + F.l1_loss(fake, real)\n{STEP_G}"
    ),
    "a target of the critic": (
        f"{FAKE}{OWN}with torch.no_grad():\n    target = critic(fake, z)\n"
        f"loss = F.mse_loss(fake.mean(1, keepdim=True), target) + critic(fake, z).mean()\n{STEP_G}"
    ),
}


def two_parts(step):
    return TWO_PARTS.replace("STEP", step.strip().replace("\n", "\n    "))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", IDLE)
def test_a_term_that_reaches_only_a_part_which_no_step_trains_with_it(name, engine, checks):
    step, fix = IDLE[name]
    text = two_parts(step)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = [each for each in outcome.found if each.finding.kind == "cut-summand"]
    assert one.level == "warning"
    assert "trains nothing" in one.finding.text
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert fix in (one.finding.edit.new if one.finding.edit is not None else one.finding.fix)
    if one.finding.edit is not None:
        after = checks.of_text(one.finding.edit.applied(text), engine)
        assert [str(each) for each in after.found if each.finding.kind == "cut-summand"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", USEFUL)
def test_a_term_that_trains_a_part_in_some_pass_is_not_idle(name, engine, checks):
    outcome = checks.of_text(two_parts(USEFUL[name]), engine)
    assert outcome.errors == []
    assert [str(one) for one in outcome.found if one.finding.kind == "cut-summand"] == []


NO_GRAD = "with torch.no_grad():\n    "
STUDENTS = {
    "an output in the block of the teacher": (
        f"{NO_GRAD}soft = frozen(x)\n    hard = net(x + 0.1)  #!\nterm = F.mse_loss(hard, soft)",
        "hard = net(x + 0.1)",
    ),
    "an output before that of the teacher": (
        f"{NO_GRAD}hard = net(x)  #!\n    soft = frozen(x)\nterm = (hard - soft).abs().mean()",
        "hard = net(x)",
    ),
    "both outputs in one statement": (
        f"{NO_GRAD}soft, hard = frozen(x), net(x)  #!\nterm = F.smooth_l1_loss(hard, soft)",
        "",
    ),
    "outputs by name": (
        f"{NO_GRAD}outs = dict()\n    outs['t'] = frozen(x)\n    outs['s'] = net(x)  #!\n"
        "term = (outs['s'] - outs['t']).pow(2).mean()",
        "outs['s'] = net(x)",
    ),
    "features in inference mode": (
        "with torch.inference_mode():\n    old = frozen(x)\n    now = net[2](net[1](net[0](x)))  #!\n"
        "term = (1 - F.cosine_similarity(now.view(1, -1), old.view(1, -1))).mean()",
        "now = net[2](net[1](net[0](x)))",
    ),
}
NUMBERS = {
    "a comparison in the block": f"{NO_GRAD}term = F.mse_loss(net(x), frozen(x))",
    "a number without another model": f"{NO_GRAD}pred = net(x)\nterm = (pred - y).abs().mean()",
    "another block for the teacher": f"{NO_GRAD}soft = frozen(x)\n{NO_GRAD}hard = net(x)\n"
    "term = F.mse_loss(hard, soft)",
}
COMPARED = {
    "a tracked student": f"{NO_GRAD}soft = frozen(x)\nterm = F.mse_loss(net(x), soft)",
    "a target of the model itself": f"{NO_GRAD}old = net(x)\n    soft = frozen(x)\n"
    "term = F.mse_loss(net(x), old + soft)",
    "an agreement that is printed": f"{NO_GRAD}gap = F.mse_loss(net(x), frozen(x))\nprint(gap)\n"
    "term = net(x).pow(2).mean()",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", STUDENTS)
def test_a_student_in_the_block_of_its_teacher_is_a_warning(name, engine, checks):
    term, new = STUDENTS[name]
    text = program(term)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = [each for each in outcome.found if each.finding.kind == "cut-summand"]
    assert one.level == "warning"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "which the optimizer trains" in one.finding.parts[0].text
    assert (one.finding.edit is not None) == bool(new)
    if one.finding.edit is not None:
        after = one.finding.edit.applied(text)
        assert f"\n    {new}" in after
        assert [str(each) for each in checks.of_text(after, engine).found if each.finding.kind == "cut-summand"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_of_a_model_without_gradients_is_no_warning(name, engine, checks):
    outcome = checks.of_text(program(NUMBERS[name]), engine)
    assert [one.level for one in outcome.found if one.finding.kind == "cut-summand"] == ["note"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", COMPARED)
def test_an_output_without_gradients_next_to_a_tracked_one_is_left_out(name, engine, checks):
    outcome = checks.of_text(program(COMPARED[name]), engine)
    assert [str(one) for one in outcome.found if one.finding.kind == "cut-summand"] == []


# Derivatives in residuals, as of a differential equation

EQUATION = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(4):
    t = torch.rand(32, 2, requires_grad=True)
    u = net(t)
    RESIDUAL
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def equation(*lines):
    return EQUATION.replace("RESIDUAL", "\n    ".join(lines))


DU = "du = torch.autograd.grad(u, t, torch.ones_like(u), retain_graph=True)[0]  #!"
RESIDUALS = {
    "a sum of squares": equation(DU, "loss = (du.sum(1, keepdim=True) + 2 * u).pow(2).mean()"),
    "a column": equation(DU, "loss = ((u - 3 * du[:, :1]) ** 2).mean() + 5 * net(torch.zeros(1, 2)).pow(2).sum()"),
    "a loss of two": equation(DU, "loss = torch.nn.functional.mse_loss(u, -du[:, 1:])"),
}
NO_RESIDUALS = {
    "a graph": equation(DU.replace("retain_graph", "create_graph"), "loss = (du[:, :1] + 2 * u).pow(2).mean()"),
    "a detached derivative": equation(DU, "loss = (u - du.detach()[:, :1]).pow(2).mean()"),
    "a step along it": equation(DU, "loss = net(t + 0.1 * du.sign()).pow(2).mean()"),
    "a step from its variable": equation(
        "h = net[0](t)", "u = net[2](net[1](h))", "du = torch.autograd.grad(u.sum(), h, retain_graph=True)[0]",
        "loss = (h - 0.1 * du).pow(2).mean()"),
    "another model's": equation(
        "prior = nn.Linear(2, 1)", "du = torch.autograd.grad(prior(t).pow(2).sum(), t)[0]",
        "loss = (u - du[:, :1]).pow(2).mean()"),
    "the residual of a result whose history is detached": equation(
        "f = u.detach().requires_grad_()", "du = torch.autograd.grad(f.exp().sum(), f)[0]",
        "loss = (net(t) + du).pow(2).mean()"),
    "a gradient of the parameters": equation(
        "g = torch.autograd.grad(u.sum(), net[2].bias, retain_graph=True)[0]", "loss = (u - g).pow(2).mean()"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RESIDUALS)
def test_a_derivative_in_a_residual_needs_a_graph(name, engine, checks):
    text = RESIDUALS[name]
    outcome = checks.of_text(text, engine)
    (one,) = [each for each in outcome.found if each.finding.kind == "cut-summand"]
    assert one.level == "warning"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert (after.errors, [str(each) for each in after.found if each.level != "note"]) == ([], [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NO_RESIDUALS)
def test_other_derivatives_are_no_terms_of_residuals(name, engine, checks):
    outcome = checks.of_text(NO_RESIDUALS[name], engine)
    assert [str(one) for one in outcome.found if one.finding.kind == "cut-summand"] == []
