"""A model that no optimizer holds and that gets gradients: a teacher, or a part that was forgotten."""

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
