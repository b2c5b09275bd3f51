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


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CUT)
def test_other_terms_without_a_gradient_are_notes(name, engine, checks):
    outcome = checks.of_text(program(CUT[name]), engine)
    assert outcome.errors == []
    assert {one.level for one in outcome.found if one.finding.kind == "cut-summand"} == {"note"}
