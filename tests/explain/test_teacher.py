"""A model that no optimizer holds and that gets gradients: a teacher, a forgotten part, or one for an input only."""

import pytest

TEACHER = """import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
teacher, student = nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
opt = torch.optim.SGD(student.parameters(), lr=0.1)
x, target = torch.randn(8, 4), torch.randint(0, 3, (8,))
for i in range(TURNS):
    soft = teacher(x).softmax(1)
    out = student(x)
    loss = F.cross_entropy(out, target) - (soft * out.log_softmax(1)).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]


def unheld(checks, text, engine):
    return next(one for one in checks.of_text(text, engine).found if one.finding.kind == "never-stepped")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("turns", [1, 4])
def test_a_teacher_is_to_run_under_no_grad(turns, engine, checks):
    one = unheld(checks, TEACHER.replace("TURNS", str(turns)), engine)
    assert one.level == "note"
    assert one.finding.fix.startswith("call teacher under torch.no_grad()")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_forgotten_part_behind_a_trained_one_is_to_be_trained(engine, checks):
    text = TEACHER.replace("TURNS", "4").replace(
        "teacher(x).softmax(1)", "teacher(F.pad(student(x), (0, 1))).softmax(1)"
    )
    one = unheld(checks, text, engine)
    assert one.level == "warning"
    assert one.finding.fix.startswith("pass it to an optimizer, too")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_of_a_model_that_is_trained_is_to_be_trained(engine, checks):
    text = TEACHER.replace("TURNS", "1").replace("student.parameters()", "student[0].parameters()")
    text = text.replace("soft = teacher(x).softmax(1)", "soft = x[:, :3].softmax(1)")
    assert unheld(checks, text, engine).finding.fix.startswith("pass it to an optimizer, too")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_programs_own_optimizer_is_to_clear(engine, checks):
    text = TEACHER.replace("TURNS", "4").replace("    opt.zero_grad()\n", "").replace("teacher(x)", "x[:, :3]")
    one = next(one.finding for one in checks.of_text(text, engine).found if one.finding.kind == "not-cleared")
    assert one.fix == "opt.zero_grad() before each backward()"
    assert one.edit.diff() == ["+    opt.zero_grad()", "     loss.backward()"]


HEAD = """import copy
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
fixed, net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)), nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
y = torch.tensor([0, 1, 2])
for i in range(4):
    x = torch.randn(3, 4)
    STEP
"""
ATTACK = "moved = x.clone().requires_grad_()\nF.cross_entropy(fixed(moved), y).backward()\n"
TRAIN = "opt.zero_grad()\nF.cross_entropy(net((x + moved.grad.sign()).detach()), y).backward()\nopt.step()"
FOR_INPUTS = {
    "an attack on another model": ATTACK + TRAIN,
    "an attack on a copy": ATTACK.replace("fixed(", "copy.deepcopy(net)(") + TRAIN,
    "an attack in steps": "delta = torch.zeros_like(x, requires_grad=True)\nfor _ in range(4):\n"
    "    F.cross_entropy(fixed(x + delta), y).backward()\n    with torch.no_grad():\n"
    "        delta += 0.1 * delta.grad.sign()\n    delta.grad.zero_()",
    "a saliency that is printed": ATTACK + "print(moved.grad.abs().sum().item())",
    "a saliency in an array": ATTACK + "saliency = moved.grad.numpy()",
}
FORGOTTEN = {
    "an input whose gradient is not read": "moved = x.clone().requires_grad_()\nopt.zero_grad()\n"
    "F.cross_entropy(net(F.pad(fixed(moved), (0, 1))), y).backward()\nopt.step()",
    "a second pass without the input": ATTACK
    + TRAIN.replace("net((", "net(F.pad(fixed((").replace(".detach())", ".detach()), (0, 1)))"),
}


def of_step(checks, step, engine, head=HEAD):
    outcome = checks.of_text(head.replace("STEP", step.replace("\n", "\n    ")), engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "never-stepped"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FOR_INPUTS)
def test_a_model_may_serve_the_gradient_of_an_input(name, engine, checks):
    assert of_step(checks, FOR_INPUTS[name], engine) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FORGOTTEN)
def test_a_forgotten_part_behind_an_input_is_found(name, engine, checks):
    assert of_step(checks, FORGOTTEN[name], engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("picture", ["torch.randn(3, 4, requires_grad=True)", "nn.Parameter(torch.randn(3, 4))"])
def test_a_model_for_a_picture_that_is_trained_is_to_be_frozen(picture, engine, checks):
    head = HEAD.replace(
        "opt = torch.optim.SGD(net.parameters()", f"picture = {picture}\nopt = torch.optim.SGD([picture]"
    )
    step = "opt.zero_grad()\nF.cross_entropy(fixed(picture) + net(picture), y).backward()\nopt.step()"
    found = of_step(checks, step, engine, head)
    assert {one.level for one in found} == {"note"}
    assert all("requires_grad_(False), if only" in one.finding.fix for one in found)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_copy_may_return_a_short_gradient(engine, checks):
    head = HEAD.replace("net = nn", "one = nn").replace("opt =", "net = nn.Linear(4, 2)\nopt =", 1)
    step = "twin = copy.deepcopy(net)\nF.mse_loss(twin(x), x[:, :2]).backward()\n"
    step += "net.bias.grad = twin.bias.grad.clone()\nopt.step()"
    assert of_step(checks, step, engine, head) == []
