"""A layer that replaces one of a model after the optimizer was made: one finding, at one level for all of it."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(6, 8), nn.Linear(8, 5)
    def forward(self, x):
        return self.fc(torch.relu(self.body(x)))
net = Net()
FIRST
net.fc = nn.Linear(8, 3)
START
LAST
for i in range(4):
    x, y = torch.randn(SHAPE6), torch.randint(0, 3, (16,))
    loss = nn.functional.cross_entropy(net(x).view(16, 3), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OPTIMIZER = "opt = torch.optim.SGD(net.parameters(), lr=0.1)"
STARTS = {
    "as it is": "pass",
    "by a function": "nn.init.xavier_uniform_(net.fc.weight)",
    "through data": "net.fc.weight.data.normal_(0, 0.01)",
    "without a graph": "with torch.no_grad():\n    net.fc.weight.mul_(0.1)\n    net.fc.bias.zero_()",
    "read first": "print(sum(p.norm() for p in net.parameters()))",
}


def found(engine, checks, first, last, start="pass", shape="16, "):
    text = PROGRAM
    for word, value in (("FIRST", first), ("LAST", last), ("START", start), ("SHAPE", shape)):
        text = text.replace(word, value)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "never-stepped"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", ["16, ", "4, 4, "])
@pytest.mark.parametrize("start", STARTS)
def test_all_of_a_new_head_is_one_warning(start, shape, engine, checks):
    (one,) = found(engine, checks, OPTIMIZER, "pass", STARTS[start], shape)
    assert (one.level, one.more) == ("warning", 1)
    assert "make the optimizer of all parameters() after this line" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("start", STARTS)
def test_a_new_head_of_an_optimizer_that_is_made_after_it_is_no_finding(start, engine, checks):
    assert found(engine, checks, "pass", OPTIMIZER, STARTS[start]) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_body_in_front_of_a_trained_head_stays_a_note(engine, checks):
    only_head = "opt = torch.optim.SGD(net.fc.parameters(), lr=0.1)"
    found_ones = found(engine, checks, "pass", only_head, "nn.init.xavier_uniform_(net.body.weight)")
    assert [one.level for one in found_ones] == ["note"]


FORGOTTEN = """
import torch
from torch import nn
torch.manual_seed(0)
net, x, y = nn.Linear(4, 1), torch.randn(16, 4), torch.randn(16, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(6):
    optimizer.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    REST
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("rest", "level"),
    [
        ("print(loss.item())", "warning"),
        ("print(net.weight.grad.norm())", "note"),
        ("if loss.item() < 0: optimizer.step()", "note"),
        ("if epoch == 0: net.weight.register_hook(lambda g: print(g.norm()))", "note"),
    ],
)
def test_a_step_that_no_line_takes_is_sure_if_nothing_looks_at_the_gradients(rest, level, engine, checks):
    found = checks.of_text(FORGOTTEN.replace("REST", rest), engine).found
    assert {one.level for one in found if one.finding.kind == "never-stepped"} == {level}


@pytest.mark.parametrize("engine", ENGINES)
def test_an_optimizer_that_does_nothing_at_all_may_be_meant(engine, checks):
    text = FORGOTTEN.replace("    optimizer.zero_grad()\n", "").replace("REST", "pass")
    found = checks.of_text(text, engine).found
    assert {one.level for one in found if one.finding.kind == "never-stepped"} == {"note"}
