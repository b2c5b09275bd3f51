"""Lists that a loop reverses each time that it adds to them, and those that are reversed once."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
rewards = [1.0, 0.0, 2.0, 0.5, 0.0, 1.0]
class Agent:
    def __init__(self):
        self.kept = []
    def returns_of(self, rewards, total=0.0):
        BODY
agent = Agent()
for i in range(2):
    weights = torch.tensor(agent.returns_of(rewards))
    loss = -(net(torch.randn(6, 3)).log_softmax(1)[:, 0] * weights).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
HEAD = "returns = []\nfor r in reversed(rewards):\n    total = r + 0.9 * total\n"
LIST = HEAD + "    returns.append(total)\n    {}  #!\nreturn {}"
AGAIN = {
    "in place": (LIST.format("returns.reverse()", "torch.tensor(returns).tolist()"), "warning"),
    "by a slice": (LIST.format("returns = returns[::-1]", "returns"), "note"),
    "by a copy": (LIST.format("returns = list(reversed(returns))", "returns"), "note"),
    "an attribute": (
        "self.kept = []\nfor r in rewards:\n    self.kept += [r]\n    self.kept.reverse()  #!\n"
        "return self.kept", "note"),
    "a tensor": (
        "out, k = torch.zeros(0), 0\nwhile k < 6:\n    out = torch.cat([out, torch.ones(1)])\n"
        "    out = torch.flip(out, [0])  #!\n    k += 1\nreturn (out + 1).tolist()", "warning"),
    "what is inserted at the beginning": (
        HEAD + "    returns.insert(0, total)\n    returns.reverse()  #!\nreturn returns", "note"),
    "what is put before the rest": (
        HEAD + "    returns = [total] + returns\n    returns = returns[::-1]  #!\nreturn returns", "note"),
    "what is put behind the rest": (
        HEAD + "    returns = returns + [total]\n    returns.reverse()  #!\nreturn returns", "note"),
    "a queue": (
        "from collections import deque\nqueue = deque()\nfor r in rewards:\n    queue.appendleft(r)\n"
        "    queue.reverse()  #!\nreturn list(queue)", "note"),
    "a tensor that is put before the rest": (
        "out = torch.zeros(0)\nfor r in rewards:\n    out = torch.cat([torch.ones(1), out])\n"
        "    out = out.flip(0)  #!\nreturn (out + 1).tolist()", "warning"),
}  # fmt: skip
ONCE = {
    "after the loop": HEAD + "    returns.append(total)\nreturns.reverse()\nreturn returns",
    "under a condition": HEAD
    + "    returns.append(total)\n    if len(returns) == 6:\n        returns.reverse()\nreturn returns",
    "before the loop ends": HEAD + "    returns.append(total)\n    returns.reverse()\n    break\nreturn returns * 6",
    "a list of each turn": HEAD + "    row = [r]\n    row.append(total)\n    row.reverse()\n    returns += row[:1]\n"
    "return returns",
    "after an inner loop": "returns = []\nfor k in range(2):\n    for r in rewards[:3]:\n        returns.append(r)\n"
    "    returns.reverse()\nreturn returns",
    "twice": HEAD + "    returns.reverse()\n    returns.append(total)\n    returns.reverse()\nreturn returns",
    "a list that is sorted": HEAD
    + "    returns.append(total)\n    returns.reverse()\n    returns.sort()\nreturn returns",
    "a list that is shortened": HEAD + "    returns.append(total)\n    returns.reverse()\n    if len(returns) > 3:\n"
    "        returns.pop()\nreturn returns * 2",
    "in the else of the loop": HEAD + "    returns.append(total)\nelse:\n    returns.reverse()\nreturn returns",
    "the lists that a loop goes through": "rows = [[r] for r in rewards]\nfor row in rows:\n    row.append(total)\n"
    "    row.reverse()\nreturn [row[1] for row in rows]",
    "another list": HEAD + "    returns.append(total)\n    returns = rewards[::-1]\nreturn returns",
    "every second element": HEAD + "    returns.append(total)\n    kept = returns\n    returns = returns[::-2]\n"
    "return rewards",
    "a list that is added to another": HEAD + "    returns.append(total)\n    rewards.reverse()\nreturn returns",
    "a reversed copy": HEAD + "    returns.append(total)\n    latest = returns[::-1]\nreturn latest",
    "another dimension": "out = torch.zeros(0, 1)\nfor r in rewards:\n    out = torch.cat([out, torch.ones(1, 1)])\n"
    "    out = out.flip(1)\nreturn out[:, 0].tolist()",
}


def program_of(body):
    return PROGRAM.replace("BODY", body.replace("\n", "\n        "))


def found(program, engine, checks):
    outcome = checks.of_text(program, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "reversed-in-loop"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", AGAIN)
def test_a_list_that_a_loop_reverses_again_is_found(name, engine, checks):
    body, level = AGAIN[name]
    program = program_of(body)
    (one,) = found(program, engine, checks)
    assert one.level == level
    assert program.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert found(one.finding.edit.applied(program), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ONCE)
def test_a_list_that_is_reversed_once_is_not(name, engine, checks):
    assert found(program_of(ONCE[name]), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "end",
    [
        "    returns.append(total); returns.reverse()\n",
        "    returns.append(total)\n    returns.reverse()\nelse:\n    pass\n",
    ],
)
def test_a_line_of_two_statements_and_a_loop_with_an_else_get_no_edit(end, engine, checks):
    (one,) = found(program_of(HEAD + end + "return returns"), engine, checks)
    assert one.finding.edit is None
