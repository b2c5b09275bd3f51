"""Models that are copied onto themselves in every iteration, and copies that change something."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
target = copy.deepcopy(net)
"""
LOOP = """
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(4):
    with torch.no_grad():
        goal = y + 0.5 * target(x)
    loss = F.mse_loss(net(x), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def program(sync, before="", every="    "):
    return HEAD + before + LOOP + "".join(f"{every}{row}\n" for row in sync.splitlines())


FUNCTION = """
def hard_update(one, other):
    for p, q in zip(one.parameters(), other.parameters()):
        p.data.copy_(q.data)

"""
AGENT = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 1)


class Agent:
    def __init__(self):
        self.online = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.frozen = copy.deepcopy(self.online)
        self.opt = torch.optim.SGD(self.online.parameters(), lr=1e-2)

    def learn(self):
        with torch.no_grad():
            goal = y + 0.5 * self.frozen(x)
        loss = F.mse_loss(self.online(x), goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.frozen.load_state_dict(self.frozen.state_dict())  #!


agent = Agent()
for epoch in range(3):
    agent.learn()
"""
TEACHER = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 1)


class MeanTeacher:
    def __init__(self, student, teacher=None):
        FIELDS
        self.opt = torch.optim.SGD(student.parameters(), lr=1e-2)

    @torch.no_grad()
    def update(self, other):
        UPDATE

    def learn(self):
        with torch.no_grad():
            goal = self.teacher(x + 0.1 * torch.randn_like(x))
        out = self.student(x)
        loss = F.mse_loss(out, y) + F.mse_loss(out, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.update(self.student)


def build():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


net = build()
CREATE
for epoch in range(3):
    trainer.learn()
"""
AVERAGE = """for t, s in zip(self.teacher.parameters(), self.student.parameters()):
    t.mul_(0.9).add_(s, alpha=0.1)"""


def teacher(fields, update=AVERAGE, create="trainer = MeanTeacher(net)"):
    indented = [part.replace("\n", "\n        ") for part in (fields, update)]
    return TEACHER.replace("FIELDS", indented[0]).replace("UPDATE", indented[1]).replace("CREATE", create)


ONE_OBJECT = {
    "a constructor with one model": (
        teacher("self.student = student\nself.teacher = student  #!"), "self.teacher = copy.deepcopy(student)"),
    "the source second": (
        teacher("self.teacher = student  #!\nself.student = student",
                "for s, t in zip(self.student.parameters(), self.teacher.parameters()):\n"
                "    t.data.mul_(0.9).add_(s.data, alpha=0.1)"), "self.teacher = copy.deepcopy(student)"),
    "one assignment of two": (
        teacher("self.student, self.teacher = student, student  #!"), "= student, copy.deepcopy(student)"),
    "a copy that shares the parameters": (
        teacher("self.student = student\nself.teacher = copy.copy(student)  #!"),
        "self.teacher = copy.deepcopy(student)"),
    "one model for two parameters": (
        teacher("self.student = student\nself.teacher = teacher", create="trainer = MeanTeacher(net, net)  #!"),
        "MeanTeacher(net, copy.deepcopy(net))"),
    "a model that the average gets": (
        teacher("self.student = student\nself.teacher = student  #!",
                "for t, s in zip(self.teacher.parameters(), other.parameters()):\n    t.lerp_(s, 0.1)"),
        "self.teacher = copy.deepcopy(student)"),
    "states": (
        teacher("self.student = student\nself.teacher = student  #!",
                "for key, value in self.teacher.state_dict().items():\n"
                "    value.copy_(0.9 * value + 0.1 * self.student.state_dict()[key])"),
        "self.teacher = copy.deepcopy(student)"),
}  # fmt: skip
TWO_OBJECTS = {
    "a deep copy": teacher("self.student = student\nself.teacher = copy.deepcopy(student)"),
    "a second model": teacher(
        "self.student = student\nself.teacher = teacher", create="trainer = MeanTeacher(net, build())"),
    "two of one line": teacher(
        "self.student = student\nself.teacher = teacher", create="one, other = net, build()\n"
        "trainer = MeanTeacher(one, other)"),
}  # fmt: skip
ONTO_ITSELF = {
    "a state": (program("target.load_state_dict(target.state_dict())  #!"), "net.state_dict()"),
    "a state every other iteration": (
        program("if epoch % 2:\n    target.load_state_dict(target.state_dict())  #!"), "net.state_dict()"),
    "a part of a state": (
        program("target.load_state_dict({k: v for k, v in target.state_dict().items()})  #!"), "net.state_dict()"),
    "a loop over .data": (
        program("for t, s in zip(target.parameters(), target.parameters()):  #!\n    t.data.copy_(s.data)"),
        "zip(target.parameters(), net.parameters())"),
    "a loop under no_grad": (
        program("with torch.no_grad():\n    for t, s in zip(target.parameters(), target.parameters()):  #!\n"
                "        t.copy_(s)"), "zip(target.parameters(), net.parameters())"),
    "a function": (program("hard_update(target, target)  #!", FUNCTION), "hard_update(target, net)"),
    "an object": (AGENT, "self.online.state_dict()"),
    "two names of one model": (
        program("target.load_state_dict(net.state_dict())", "target = net  #!\n"), "target = copy.deepcopy(net)"),
    "two names, and copies": (
        program("target.load_state_dict(copy.deepcopy(net.state_dict()))", "target = net  #!\n"),
        "target = copy.deepcopy(net)"),
    "two names, and copies of some iterations": (
        program("if epoch % 2:\n    kept = {k: v.clone() for k, v in net.state_dict().items()}\n"
                "    target.load_state_dict(copy.deepcopy(net.state_dict()))", "target = net  #!\n"),
        "target = copy.deepcopy(net)"),
    "two names, and an average": (
        program("for t, s in zip(target.parameters(), net.parameters()):\n"
                "    t.data.copy_(0.01 * s.data + 0.99 * t.data)", "target = net  #!\n"),
        "target = copy.deepcopy(net)"),
    "two names, and an average in place": (
        program("with torch.no_grad():\n    for t, s in zip(target.parameters(), net.parameters()):\n"
                "        t.lerp_(s, 0.01)", "target = net  #!\n"), "target = copy.deepcopy(net)"),
    "two names, and an average in two writes": (
        program("for t, s in zip(target.parameters(), net.parameters()):\n"
                "    t.data.mul_(0.99).add_(0.01 * s.data)", "target = net  #!\n"), "target = copy.deepcopy(net)"),
    "two names, and a factor for the second write": (
        program("for t, s in zip(target.parameters(), net.parameters()):\n"
                "    t.data.mul_(0.99).add_(s.data, alpha=0.01)", "target = net  #!\n"),
        "target = copy.deepcopy(net)"),
    "two names, and a function": (
        program("soft_update(target, net)",
                "def soft_update(one, other):\n    for p, q in zip(one.parameters(), other.parameters()):\n"
                "        p.data.copy_(p.data * 0.9 + q.data * 0.1)\n\ntarget = net  #!\n"),
        "target = copy.deepcopy(net)"),
    "a function with an average": (
        program("soft_update(target, target)  #!",
                "def soft_update(one, other):\n    for p, q in zip(one.parameters(), other.parameters()):\n"
                "        p.data.copy_(p.data * 0.9 + q.data * 0.1)\n\n"), "soft_update(target, net)"),
}  # fmt: skip
IN_EARNEST = {
    "another model": program("target.load_state_dict(net.state_dict())"),
    "a single load": program("if epoch == 1:\n    target.load_state_dict(target.state_dict())"),
    "a function for another model": program("hard_update(target, net)", FUNCTION),
    "a state with a new entry": program(
        'state = target.state_dict()\nstate.update({"0.bias": net[0].bias.detach()})\ntarget.load_state_dict(state)'),
    "a state that is averaged in place": program(
        "state = target.state_dict()\nfor k, v in net.state_dict().items():\n"
        "    state[k].mul_(0.9).add_(0.1 * v)\ntarget.load_state_dict(state)"),
    "the state that the last step has left": program(
        "best = copy.deepcopy(net.state_dict())\nnet.load_state_dict(best)"),
    "weights that are made symmetric": program(
        "with torch.no_grad():\n    w = net[0].weight[:4]\n    w.copy_(0.5 * (w + w.t()))\n"
        "    w.copy_((w + w.t()) / 2)"),
    "a rounding": program("with torch.no_grad():\n    for p in net.parameters():\n        p.copy_(p.half())"),
    "a scale that is 1": program("with torch.no_grad():\n    for p in net.parameters():\n        p.copy_(p * 1.0)"),
    "an average over one worker": program(
        "with torch.no_grad():\n    for p in net.parameters():\n        p.copy_(sum([p.clone()]) / 1)"),
    "a recursion": program(
        "r = torch.ones(4)\np, total = r.clone(), torch.zeros(4)\nfor k in range(12):\n    total = total + 0.5 * p\n"
        "    r = r - 0.5 * p\n    p = r + 0.5 * p\nwith torch.no_grad():\n    net[0].weight[0].add_(0 * total)"),
    "a load of what was saved": program("kept = copy.deepcopy(net.state_dict())\nnet.load_state_dict(kept)\n"
        "target.load_state_dict(net.state_dict())"),
    "decay by hand": program(
        "with torch.no_grad():\n    for p in net.parameters():\n        p.mul_(0.99)\n        p.add_(p, alpha=-0.01)\n"
        "target.load_state_dict(net.state_dict())"),
    "an average in two writes": program(
        "for t, s in zip(target.parameters(), net.parameters()):\n    t.data.mul_(0.9).add_(0.1 * s.data)"),
    "an average": program(
        "with torch.no_grad():\n    for t, s in zip(target.parameters(), net.parameters()):\n"
        "        t.copy_(0.9 * t + 0.1 * s)"),
    "copies that are swapped in and out": program(
        "kept = {k: v.clone() for k, v in net.state_dict().items()}\nnet.load_state_dict(target.state_dict())\n"
        "net.load_state_dict(kept)"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ONTO_ITSELF)
def test_a_model_that_is_copied_onto_itself_is_found_and_mended(name, engine, checks):
    text, mended = ONTO_ITSELF[name]
    (one,) = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    assert (one.finding.kind, one.level) == ("copied-onto-itself", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "and 3 more are" in said
    assert ("source and destination are the same memory" in said) != ("each load leaves the numbers" in said)
    assert ("target and net are one model" in said) == name.startswith("two names")
    assert mended in one.finding.edit.new
    assert [str(each) for each in checks.of_text(one.finding.edit.applied(text), engine).found] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", IN_EARNEST)
def test_a_copy_that_changes_something_is_not_reported(name, engine, checks):
    assert [str(one) for one in checks.of_text(IN_EARNEST[name], engine).found] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ONE_OBJECT)
def test_a_teacher_that_is_the_student_itself_is_found_and_mended(name, engine, checks):
    text, mended = ONE_OBJECT[name]
    (one,) = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    assert (one.finding.kind, one.level) == ("copied-onto-itself", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "are one model" in one.finding.fix
    assert mended in one.finding.edit.new
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert after.errors == []
    assert [str(each) for each in after.found if each.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TWO_OBJECTS)
def test_a_teacher_of_its_own_is_not_reported(name, engine, checks):
    assert [str(one) for one in checks.of_text(TWO_OBJECTS[name], engine).found if one.level != "note"] == []
