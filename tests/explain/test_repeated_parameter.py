"""A parameter that an optimizer has more than once, and shared ones that it has once."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
emb, body, head = nn.Embedding(8, 4), nn.Linear(4, 4), nn.Linear(4, 8, bias=False)
head.weight = emb.weight
net = nn.Sequential(emb, body, nn.Tanh(), head)
ids = torch.randint(0, 8, (32,))
opt = torch.optim.SGD(PARAMETERS, lr=RATE)  #!
for step in range(STEPS):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(ids), (ids + 1) % 8)
    loss.backward()
    opt.step()
"""


def found_in(parameters, engine, checks, rate="0.1", steps="3"):
    text = PROGRAM.replace("PARAMETERS", parameters).replace("RATE", rate).replace("STEPS", steps)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, outcome.found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("parameters", "title"),
    [
        ("[*emb.parameters(), *body.parameters(), *head.parameters()]", "0.weight is in the optimizer twice"),
        ("[*net.parameters(), *net.parameters()]", " and 2 more is in the optimizer twice"),
    ],
)
def test_a_parameter_that_is_twice_in_an_optimizer_names_the_optimizer(parameters, title, engine, checks):
    text, found = found_in(parameters, engine, checks)
    (one,) = [one for one in found if one.finding.kind == "repeated-parameter"]
    assert (one.level, one.more) == ("warning", 0)
    assert title in one.finding.text
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
def test_it_leaves_out_what_the_large_steps_lead_to(engine, checks):
    _, found = found_in("[*net.parameters(), *net.parameters()]", engine, checks, rate="300.0", steps="30")
    assert {one.finding.kind for one in found if one.level != "note"} == {"repeated-parameter"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "parameters", ["net.parameters()", "{*emb.parameters(), *body.parameters(), *head.parameters()}"]
)
def test_a_shared_parameter_that_an_optimizer_has_once_is_no_finding(parameters, engine, checks):
    _, found = found_in(parameters, engine, checks)
    assert "repeated-parameter" not in {one.finding.kind for one in found}
