"""Losses that grow by orders of magnitude, the data that makes them do so, and losses that only rise."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
area = 600 + 2400 * torch.rand(40)
rooms = torch.randint(1, 7, (40,)).float()
x = torch.stack([area, rooms], dim=1)
y = 0.1 * area[:, None] + 5 * rooms[:, None]
CHANGE
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=RATE)
for step in range(STEPS):
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOSS = "loss = F.mse_loss(net(x), y)  #!"


def program(rate, steps, change="", loss=LOSS):
    words = {"RATE": rate, "STEPS": steps, "CHANGE": change, "LOSS": loss}
    text = PROGRAM
    for word, value in words.items():
        text = text.replace(word, str(value))
    return text


STANDARDIZED = "x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()"


def kinds(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return {one.finding.kind: one for one in outcome.found}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loss_that_diverges_is_found_before_it_is_inf_with_the_data_that_is_too_large(engine, checks):
    text = program(1e-5, 8)
    one = kinds(text, engine, checks)["diverging"]
    assert one.level == "warning"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "diverges in 8 passes" in said
    assert "goes into" in said
    assert "; its columns have " in said
    assert "standardize the data" in said


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rate_that_is_too_large_for_standardized_data_is_the_reason(engine, checks):
    one = kinds(program(4.0, 8, STANDARDIZED), engine, checks)["diverging"]
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "a smaller learning rate" in said
    assert "standardize" not in said


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loss_that_grows_while_the_parameters_do_not_is_a_note(engine, checks):
    text = program(1e-6, 8, STANDARDIZED, "loss = F.mse_loss(net(x), y) * 5.0 ** step")
    assert kinds(text, engine, checks)["diverging"].level == "note"


@pytest.mark.parametrize("engine", ENGINES)
def test_an_inf_after_a_divergence_names_the_data_that_is_too_large_and_nothing_else(engine, checks):
    found = kinds(program(0.01, 12), engine, checks)
    assert [*found] == ["nan-born"]
    said = "\n".join(row for _, row, _ in lines(found["nan-born"].finding))
    assert "goes into" in said
    assert "; its columns have " in said
    assert "standardize the data" in said


TRAINED = {
    "standardized": program(0.1, 8, STANDARDIZED),
    "a search for a rate": program(1e-9, 8, STANDARDIZED, "opt.param_groups[0]['lr'] *= 30\n    " + LOSS),
    "a loss that jumps": program(
        1e-9, 8, STANDARDIZED, "loss = F.mse_loss(net(x), y) * (1.0, 1.0, 1e5, 1.0, 1e6, 1.0, 1e6, 1e5)[step]"
    ),
    "a loss that is multiplied": program(0.01, 8, STANDARDIZED, "loss = F.mse_loss(net(x), y) * 2.0 ** step"),
    "an objective that is maximized": program(0.5, 12, STANDARDIZED).replace("lr=0.5", "lr=0.5, maximize=True"),
    "a few steps": program(1e-5, 4),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TRAINED)
def test_a_loss_that_does_not_grow_without_end_is_no_finding(name, engine, checks):
    assert "diverging" not in kinds(TRAINED[name], engine, checks)
