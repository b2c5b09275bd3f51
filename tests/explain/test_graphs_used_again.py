"""Graphs that backward goes through again: results made outside of a closure or loop, and states with their graph.

The line to name ends with ``#!``.
"""

import pytest

from gviz.explain.finding import lines

HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(8, 3), torch.randn(8, 1)
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 1)
    def forward(self, x):
        h = torch.tanh(self.first(x))
        out = self.last(h)
        return out
net = Net()
"""
OF_LSTM = """
lstm, fc = nn.LSTM(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*lstm.parameters(), *fc.parameters()], lr=0.1)
state = None
for i in range(3):
    out, state = lstm(torch.randn(5, 2, 3), state)
    loss = fc(out).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

CLOSURES = {
    "a model called outside of the closure": (
        NET
        + """
opt = torch.optim.LBFGS(net.parameters())
for epoch in range(2):
    pred = net(x)  #!
    def closure():
        opt.zero_grad()
        loss = F.mse_loss(pred, y)
        loss.backward()
        return loss
    opt.step(closure)
""",
        "make pred anew in each call of closure()",
        True,
    ),
    "a loss made outside of the closure of a method": (
        NET
        + """
class Fit:
    def __init__(self):
        self.opt = torch.optim.LBFGS(net.parameters())
    def run(self):
        loss = F.mse_loss(net(x), y)  #!
        def evaluate():
            self.opt.zero_grad()
            loss.backward()
            return loss
        return self.opt.step(evaluate)
Fit().run()
""",
        "compute loss anew in each call of evaluate()",
        True,
    ),
    "features that are read after the closure, too": (
        """
body, head = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 1)
opt = torch.optim.LBFGS([*body.parameters(), *head.parameters()])
h = body(x)  #!
def closure():
    opt.zero_grad()
    loss = F.mse_loss(head(h), y)
    loss.backward()
    return loss
for epoch in range(2):
    opt.step(closure)
print(h.mean().item())
""",
        "make h anew in each call of closure()",
        False,
    ),
    "a model called before the loop": (
        NET
        + """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
pred = net(x)  #!
for i in range(3):
    opt.zero_grad()
    loss = F.mse_loss(pred, y)
    loss.backward()
    opt.step()
""",
        "make pred anew in each step, inside the loop",
        True,
    ),
    "a loss made before the loop": (
        NET
        + """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss = F.mse_loss(net(x), y)  #!
for i in range(3):
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "compute loss anew in each step, inside the loop",
        True,
    ),
    "a result that two calls of a function train": (
        NET
        + """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train(out):
    opt.zero_grad()
    F.mse_loss(out, y).backward()
    opt.step()
out = net(x)
train(out)  #!
train(out)
""",
        "make out anew for the second backward()",
        False,
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CLOSURES)
def test_the_line_that_makes_it_once_is_named_and_moved_only_to_where_it_is_right(name, engine, checks):
    program, fix, is_edited = CLOSURES[name]
    text = HEAD + program
    one = next(one.finding for one in checks.of_text(text, engine).found if one.level == "error")
    assert one.kind == "second-backward"
    assert text.splitlines()[one.at.line - 1].endswith("#!")
    assert fix in one.fix
    assert (one.edit is not None) is is_edited
    if one.edit is not None:
        assert [str(other) for other in checks.of_text(one.edit.applied(text), engine).found] == []


PASSED = """
def detached(h):
    if isinstance(h, torch.Tensor):  #!
        return h.detach()
    return h
"""
STATES = {
    "a function that returns a tuple as it is": (
        PASSED + OF_LSTM + "    state = detached(state)\n",
        "detached() at program.py:22 returned state as it was, with its graph: isinstance(h, torch.Tensor) did not",
        "state = tuple(h.detach() for h in state)",
    ),
    "a method that returns the state of a module as it is": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc, self.state = nn.LSTM(3, 4), nn.Linear(4, 1), None
    def forward(self, x):
        out, self.state = self.lstm(x, self.state)
        return self.fc(out)
    def repackage(self, state):
        if torch.is_tensor(state):  #!
            state = state.detach()
        return state
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = net(torch.randn(5, 2, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    net.state = net.repackage(net.state)
""",
        "torch.is_tensor(state) did not hold",
        "state = tuple(h.detach() for h in state)",
    ),
    "a loop that detaches its own variable": (
        OF_LSTM + "    for h in state:\n        h = h.detach()  #!\n",
        "a detached copy that nothing uses",
        "assign what detach() returns: state = tuple(h.detach() for h in state)",
    ),
    "a tuple that nothing detaches": (
        OF_LSTM.replace(", state)\n", ", state)  #!\n"),
        "the edge that crosses",
        "state = tuple(h.detach() for h in state) before it is used",
    ),
    "data that a function detaches": (
        PASSED.replace("  #!", "").replace("if", "if h is None and")
        + OF_LSTM.replace("torch.randn(5, 2, 3), state)\n", "data, state)  #!\n").replace(
            "    out,", "    data = torch.randn(5, 2, 3)\n    data = detached(data)\n    out,"
        ),
        "the edge that crosses",
        "state = tuple(h.detach() for h in state) before it is used",
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", STATES)
def test_the_line_that_was_to_detach_a_state_is_named(name, engine, checks):
    program, says, fix = STATES[name]
    text = HEAD + program
    (one,) = [one.finding for one in checks.of_text(text, engine).found if one.level == "error"]
    assert one.kind == "carried-state"
    assert text.splitlines()[one.at.line - 1].endswith("#!")
    assert says in "\n".join(row for _, row, _ in lines(one))
    assert fix in one.fix


@pytest.mark.parametrize("engine", ENGINES)
def test_a_detach_whose_result_is_dropped_is_assigned(engine, checks):
    text = HEAD + OF_LSTM.replace("LSTM", "GRU") + "    state.detach()\n"
    (one,) = [one.finding for one in checks.of_text(text, engine).found if one.level == "error"]
    assert one.edit.diff() == ["-    state.detach()", "+    state = state.detach()"]
    assert [other for other in checks.of_text(one.edit.applied(text), engine).found if other.level != "note"] == []


TRAINED = """
opt = torch.optim.SGD([w, *net.parameters()], lr=0.1)
for i in range(3):
    loss = net(torch.randn(5, 4) * USED).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LEARNED = "w, net = nn.Parameter(torch.randn(4)), nn.Linear(4, 1)\n"
KEPT = {
    "an attribute": (
        """
class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.cached = None
    def forward(self, n):
        if self.cached is not None and n <= self.cached.shape[0]:
            return self.cached[:n]
        freqs = torch.outer(torch.arange(n).float(), w).cos()
        self.cached = freqs  #!
        return freqs
rotary = Rotary()
""",
        "rotary(5)",
        "store freqs.detach()",
    ),
    "an element of a dict": (
        """
class Table:
    def __init__(self):
        self.cache = {}
    def build(self, n):
        return torch.outer(torch.arange(n).float(), w).cos()
    def get(self, n):
        if n not in self.cache:
            self.cache[n] = self.build(n)  #!
        return self.cache[n]
table = Table()
""",
        "table.get(5)",
        "detach() what is stored",
    ),
    "one of two attributes": (
        """
class Rotary(nn.Module):
    size = 0
    def forward(self, n):
        if n > self.size:
            self.size, f = n, torch.outer(torch.arange(n).float(), w)
            self.cos, self.sin = f.cos(), f.sin()  #!
        return self.cos[:n] + self.sin[:n]
rotary = Rotary()
""",
        "rotary(5)",
        "detach() what is stored",
    ),
    "the cache of a function": (
        """
from functools import lru_cache
@lru_cache(maxsize=None)  #!
def table(n):
    return torch.outer(torch.arange(n).float(), w).cos()
""",
        "table(5)",
        "return a detached tensor",
    ),
    "a global dict": (
        """
CACHE = {}
def table(n):
    if n not in CACHE:
        out = torch.outer(torch.arange(n).float(), w)
        CACHE[n] = out  #!
    return CACHE[n]
""",
        "table(5)",
        "store out.detach()",
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KEPT)
def test_the_line_that_keeps_a_graph_for_later_steps_is_named(name, engine, checks):
    program, used, fix = KEPT[name]
    text = HEAD + LEARNED + program + TRAINED.replace("USED", used)
    (one,) = [one.finding for one in checks.of_text(text, engine).found if one.level == "error"]
    assert (one.kind, one.edit) == ("second-backward", None)
    assert text.splitlines()[one.at.line - 1].endswith("#!")
    assert ", kept by " in one.text
    assert fix in one.fix


@pytest.mark.parametrize("engine", ENGINES)
def test_an_attribute_that_each_step_sets_again_is_carried_over(engine, checks):
    program = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.fc, self.h = nn.GRUCell(3, 4), nn.Linear(4, 1), torch.zeros(8, 4)
    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.fc(self.h)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    (one,) = [one.finding for one in checks.of_text(HEAD + program, engine).found if one.level == "error"]
    assert one.kind == "carried-state"


SHARED = {
    "scaled afterwards": """
    loss_a, loss_b = h.pow(2).mean(), F.mse_loss(head(h), y)
    opt.zero_grad()
    (0.5 * loss_a).backward()  #!
    (2.0 * loss_b).backward()
""",
    "reduced afterwards": """
    loss_a, each = h.pow(2).mean(), (head(h) - y).abs()
    opt.zero_grad()
    loss_a.backward()  #!
    each.mean().backward()
""",
    "in a function": """
    loss_a, loss_b = h.pow(2).mean(), F.mse_loss(head(h), y)
    opt.zero_grad()
    apply(loss_a, 0.5)
    apply(loss_b, 2.0)
""",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SHARED)
def test_a_loss_of_the_same_iteration_is_not_an_earlier_graph(name, engine, checks):
    text = f"""{HEAD}
enc, head = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
def apply(loss, weight):
    (weight * loss).backward()
for i in range(3):
    h = torch.tanh(enc(x)){SHARED[name]}    opt.step()
"""
    (one,) = [each for each in checks.of_text(text, engine).found if each.level == "error"]
    rows = list(enumerate(text.splitlines(), 1))
    at = [at for at, row in rows if row.endswith("#!")] or [at for at, row in rows if "(weight * loss)" in row]
    assert one.finding.kind == "second-backward"
    assert "the backward() of" in one.finding.text
    assert "releases the graph that" in one.finding.text
    assert one.finding.at.line == at[0]
    assert "one backward() of the sum of both losses" in "\n".join(row for _, row, _ in lines(one.finding))
    mended = checks.of_text(one.finding.edit.applied(text), engine)
    assert mended.errors == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_that_only_the_next_loss_uses_is_carried_over(engine, checks):
    text = f"""{HEAD}
enc, head = nn.Linear(3, 4), nn.Linear(8, 1)
opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
before = torch.zeros(8, 4)
for i in range(3):
    h = torch.tanh(enc(x))
    state = h.pow(2)
    loss = F.mse_loss(head(torch.cat([h, before], 1)), y)
    before = state
    loss.backward()
"""
    (one,) = [each for each in checks.of_text(text, engine).found if each.level == "error"]
    assert "carried over" in one.finding.text


CARRIED_THROUGH_A_MODEL = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(2, 3), nn.Linear(3, 1)
    def forward(self, x, state):
        state = self.cell(x, state)
        return self.head(state), state
net = Net()
def train(steps):
    state = torch.zeros(4, 3)
    for step in range(steps):
        out, state = net(torch.ones(4, 2), state)
        out.mean().backward()
train(3)
"""


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_state_is_detached_in_the_loop_that_carries_it_and_not_in_the_model(engine, checks):
    text = CARRIED_THROUGH_A_MODEL
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "carried-state"]
    line = text.splitlines()[one.finding.at.line - 1]
    assert line.strip() == "out, state = net(torch.ones(4, 2), state)"
    mended = one.finding.edit.applied(text)
    assert "        state = state.detach()\n        out, state = net" in mended
    assert checks.of_text(mended, engine).errors == []


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
def test_so_is_a_state_of_several_tensors(engine, checks):
    text = CARRIED_THROUGH_A_MODEL.replace("GRUCell", "LSTMCell").replace("torch.zeros(4, 3)", "None")
    text = text.replace("return self.head(state)", "return self.head(state[0])")
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "carried-state"]
    assert text.splitlines()[one.finding.at.line - 1].strip() == "out, state = net(torch.ones(4, 2), state)"
    assert "state = tuple(h.detach() for h in state)" in one.finding.fix


WINDOWS = """
class Stream(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head, self.kept = nn.GRUCell(3, 4), nn.Linear(4, 1), {}
        self.h = torch.zeros(8, 4)
    def forward(self, x):
        FORWARD
net = Stream()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(4):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward(KEEP)
    opt.step()
"""
LOOP = """
        for t in range(3):
            h = self.cell(x + t, h)
        {}
        return self.head(h)"""
STORES = {
    "an attribute": (f"h = self.h{LOOP.format('self.h = h  #!')}", "self.h = h.detach()"),
    "an element": (f"h = self.kept.get('h', self.h){LOOP.format('''self.kept['h'] = h  #!''')}", "h.detach()"),
    "an attribute that the loop sets": (
        """
        for t in range(3):
            self.h = self.cell(x + t, self.h)  #!
        return self.head(self.h)""",
        "self.h = self.h.detach() at the start of forward()",
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("keep", ["", "retain_graph=True"])
@pytest.mark.parametrize("name", STORES)
def test_a_state_that_a_model_keeps_is_named_with_the_line_that_keeps_it(name, keep, engine, checks):
    forward, fix = STORES[name]
    text = HEAD + WINDOWS.replace("FORWARD", forward.strip()).replace("KEEP", keep)
    (one,) = [each.finding for each in checks.of_text(text, engine).found if each.level == "error"]
    assert one.kind == "carried-state"
    assert text.splitlines()[one.at.line - 1].endswith("#!")
    assert fix in one.fix
    assert one.fix.endswith("; then without retain_graph=True") is bool(keep)
    if one.edit is not None:
        mended = checks.of_text(one.edit.applied(text), engine)
        assert mended.errors == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_in_the_loop_that_a_step_has_passed_is_detached_there(engine, checks):
    text = CARRIED_THROUGH_A_MODEL.replace(
        "mean().backward()", "mean().backward(retain_graph=True)\n        opt.step()"
    )
    text = text.replace("        out.mean()", "        opt.zero_grad()\n        out.mean()").replace(
        "net = Net()", "net = Net()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)"
    )
    (one,) = [each.finding for each in checks.of_text(text, engine).found if each.level == "error"]
    assert one.kind == "carried-state"
    assert text.splitlines()[one.at.line - 1].strip() == "out, state = net(torch.ones(4, 2), state)"
    assert "was updated by the step" in "\n".join(row for _, row, _ in lines(one))
    assert checks.of_text(one.edit.applied(text), engine).errors == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("update", ["total = total + loss", "total += loss"])
def test_a_running_sum_of_losses_that_steps_have_passed(update, engine, checks):
    text = f"""{HEAD}
net, total = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), 0.0
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(4):
    loss = F.mse_loss(net(x), y)
    {update}  #!
    opt.zero_grad()
    total.backward(retain_graph=True)
    opt.step()
"""
    (one,) = [each.finding for each in checks.of_text(text, engine).found if each.level == "error"]
    assert one.kind == "carried-state"
    assert text.splitlines()[one.at.line - 1].endswith("#!")
    assert "total += loss.item()" in one.fix


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_between_two_losses_of_one_iteration_carries_nothing(engine, checks):
    text = f"""{HEAD}
net, other = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    score = net(other(x))
    opt.zero_grad()
    score.mean().backward(retain_graph=True)
    opt.step()
    loss = (-score).mean()
    loss.backward()
"""
    (one,) = [each.finding for each in checks.of_text(text, engine).found if each.level == "error"]
    assert one.kind == "changed-in-place"
