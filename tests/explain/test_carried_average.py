"""Averages of models that go on from the last round, and sums of rounds that are right."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
clients = [(torch.randn(8 * (i + 1), 5), torch.randn(8 * (i + 1), 3)) for i in range(3)]
local, model = nn.Linear(5, 3), nn.Linear(5, 3)
count = sum(len(x) for x, _ in clients)

def train(x, y):
    local.load_state_dict(model.state_dict())
    opt = torch.optim.SGD(local.parameters(), lr=0.1)
    for step in range(2):
        loss = F.mse_loss(local(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return {name: value.clone() for name, value in local.state_dict().items()}

class Server:
    def __init__(self):
        self.total, self.rounds = None, 0
    def add(self, weights, share):
        part = {name: value * share for name, value in weights.items()}
        if self.total is None:
            self.total = part
        else:
            for name, value in part.items():
                self.total[name] = self.total[name] + value  #!!

server = Server()
zeros = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
for r in range(3):
    all_weights = [train(x, y) for x, y in clients]
    ROUND
"""


def program(text):
    return PROGRAM.replace("ROUND", text.replace("\n", "\n    "))


LOAD = "\nmodel.load_state_dict(server.total)"
CARRIED = {
    "an attribute": program(
        f"for (x, y), weights in zip(clients, all_weights):\n    server.add(weights, len(x) / count){LOAD}"
    ).replace("#!!", "#!"),
    "zeros before the rounds": program(
        "for weights in all_weights:\n    for name in zeros:\n"
        "        zeros[name] = zeros[name] + weights[name] / 3  #!\n"
        "model.load_state_dict(zeros)"),
    "in place": program(
        "for weights in all_weights:\n    for name in zeros:\n        zeros[name] += weights[name] / 3  #!\n"
        "model.load_state_dict(zeros)"),
    "the share first": program(
        "for weights in all_weights:\n    for name in zeros:\n"
        "        zeros[name] = weights[name] / 3 + zeros[name]  #!\nmodel.load_state_dict(zeros)"),
    "with alpha": program(
        "for (x, y), weights in zip(clients, all_weights):\n    for name in zeros:\n"
        "        zeros[name].add_(weights[name], alpha=len(x) / count)  #!\nmodel.load_state_dict(zeros)"),
}  # fmt: skip
RIGHT = {
    "begun anew": program(
        "server.total = None\nfor (x, y), weights in zip(clients, all_weights):\n"
        f"    server.add(weights, len(x) / count){LOAD}"),
    "set to zero": program(
        "for value in zeros.values():\n    value.zero_()\nfor weights in all_weights:\n    for name in zeros:\n"
        "        zeros[name] += weights[name] / 3\nmodel.load_state_dict(zeros)"),
    "new zeros": program(
        "total = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}\n"
        "for weights in all_weights:\n    for name in total:\n        total[name] += weights[name] / 3\n"
        "model.load_state_dict(total)"),
    "a running average": program(
        "for weights in all_weights:\n    for name in zeros:\n"
        "        zeros[name].mul_(0.9).add_(weights[name], alpha=0.1)\nmodel.load_state_dict(zeros)"),
    "an average over all rounds": program(
        "for weights in all_weights:\n    for name in zeros:\n        zeros[name] += weights[name] / 9\n"
        "model.load_state_dict(zeros)"),
    "loaded in the first round only": program(
        "for weights in all_weights:\n    for name in zeros:\n        zeros[name] += weights[name] / 3\n"
        "if r == 2:\n    model.load_state_dict(zeros)"),
    "one share in each round": program(
        "for name in zeros:\n    zeros[name] = zeros[name] + all_weights[r][name] / 1\n"
        "model.load_state_dict(zeros)"),
    "differences that are added to the model": program(
        "total = {name: value.clone() for name, value in model.state_dict().items()}\nfor weights in all_weights:\n"
        "    for name in total:\n        total[name] += (weights[name] - model.state_dict()[name]) / 3\n"
        "model.load_state_dict(total)"),
    "a sum that is only looked at": program(
        "for weights in all_weights:\n    for name in zeros:\n        zeros[name] += weights[name] / 3\n"
        "model.load_state_dict(all_weights[0])"),
}  # fmt: skip


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "carried-average"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CARRIED)
def test_an_average_that_goes_on_from_the_last_round_is_found(name, engine, checks):
    (one,) = found(CARRIED[name], engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "warning"
    assert "add up to 1 in each round, and to 3 after 3 rounds" in said
    assert CARRIED[name].splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_averages_that_begin_anew_are_not_reported(name, engine, checks):
    assert found(RIGHT[name], engine, checks) == []
