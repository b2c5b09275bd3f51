"""Learning rates that a schedule sets to 0 long before the end, and rates that are 0 for a good reason."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(24, 4), torch.randn(24, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = OPTIMIZER
SCHEDULE
for epoch in range(12):
    for rows in range(0, 24, 8):
        loss = F.mse_loss(net(x[rows:rows + 8]), y[rows:rows + 8])
        opt.zero_grad()
        loss.backward()
        opt.step()
        BATCH
    EPOCH
"""
SGD = "torch.optim.SGD(net.parameters(), lr=0.1)"
ADAM = "torch.optim.Adam(net.parameters(), lr=1e-2)"
BY_EPOCH = "sched.step()"


def program(schedule, optimizer=SGD, epoch=BY_EPOCH, batch="pass"):
    words = {"OPTIMIZER": optimizer, "SCHEDULE": schedule, "BATCH": batch, "EPOCH": epoch}
    text = PROGRAM
    for word, value in words.items():
        text = text.replace(word, value)
    return text


OF_SCHEDULES = "torch.optim.lr_scheduler"
SET_TO_0 = {
    "a factor of 0": (
        program(f"sched = {OF_SCHEDULES}.StepLR(opt, step_size=3, gamma=0)  #!", ADAM), 27, "gamma=1.0"),
    "another factor of 0": (
        program(f"sched = {OF_SCHEDULES}.MultiStepLR(opt, milestones=[4, 8], gamma=0.0)  #!"), 24, "gamma=1.0"),
    "a factor of 0 without its name": (program(f"sched = {OF_SCHEDULES}.ExponentialLR(opt, 0)  #!"), 33, ""),
    "one of two schedules": (
        program(f"if False:\n    sched = {OF_SCHEDULES}.StepLR(opt, step_size=3, gamma=0.1)\nelse:\n"
                f"    sched = {OF_SCHEDULES}.StepLR(opt, step_size=3, gamma=0)  #!"), 27, "gamma=1.0"),
    "a line that ends too early": (
        program(f"sched = {OF_SCHEDULES}.LinearLR(opt, start_factor=1.0, end_factor=0.0, total_iters=4)  #!"),
        24, "total_iters=12"),
    "a polynomial of the epochs that is stepped for each batch": (
        program(f"sched = {OF_SCHEDULES}.PolynomialLR(opt, total_iters=12)  #!", epoch="pass", batch="sched.step()"),
        24, "total_iters=36"),
    "a function": (
        program(f"sched = {OF_SCHEDULES}.LambdaLR(opt, lambda n: max(0.0, 1 - n / 5))  #!"), 21, ""),
    "by hand": (
        program("def adjust(epoch):\n    for group in opt.param_groups:\n"
                "        group['lr'] = 0.1 * max(0.0, 1 - epoch / 4)  #!", epoch="adjust(epoch + 1)"), 24, ""),
}  # fmt: skip
ENDS_WELL = {
    "a warm-up from 0": program(f"sched = {OF_SCHEDULES}.LambdaLR(opt, lambda n: min(1.0, n / 6))"),
    "annealing to 0": program(
        f"sched = {OF_SCHEDULES}.CosineAnnealingLR(opt, T_max=36)", epoch="pass", batch="sched.step()"),
    "annealing that reaches 0 in the last epoch": program(f"sched = {OF_SCHEDULES}.CosineAnnealingLR(opt, T_max=11)"),
    "a line to 0": program(f"sched = {OF_SCHEDULES}.LambdaLR(opt, lambda n: max(0.0, 1 - n / 10))"),
    "one cycle": program(
        f"sched = {OF_SCHEDULES}.OneCycleLR(opt, max_lr=0.1, total_steps=36)", epoch="pass", batch="sched.step()"),
    "a group that is frozen": program(
        f"sched = {OF_SCHEDULES}.StepLR(opt, step_size=6, gamma=0.5)",
        "torch.optim.SGD([{'params': net[2].parameters()}, {'params': net[0].parameters(), 'lr': 0.0}], lr=0.1)"),
    "a group that is frozen later": program(
        "", "torch.optim.SGD([{'params': net[2].parameters()}, {'params': net[0].parameters()}], lr=0.1)",
        epoch="opt.param_groups[1]['lr'] = 0.1 if epoch < 3 else 0.0"),
    "a small rate at the end": program(f"sched = {OF_SCHEDULES}.ExponentialLR(opt, gamma=0.4)"),
    "restarts": program(f"sched = {OF_SCHEDULES}.LambdaLR(opt, lambda n: (0.0, 1.0, 0.5)[n % 3])"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SET_TO_0)
def test_a_rate_that_is_0_too_early_is_found_and_mended(name, engine, checks):
    text, idle, mended = SET_TO_0[name]
    (one,) = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    assert (one.finding.kind, one.level) == ("zero-rate", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert f"the learning rate is 0 in the last {idle} of 36 steps" in said
    assert f"before step {37 - idle}; the last gradient of" in said
    if not mended:
        assert one.finding.edit is None
        return
    assert mended in one.finding.edit.new
    assert [str(each) for each in checks.of_text(one.finding.edit.applied(text), engine).found] == []


NEARLY_0 = {
    "for each batch": program(
        f"sched = {OF_SCHEDULES}.ExponentialLR(opt, gamma=0.3)", epoch="pass", batch="sched.step()  #!"),
    "steps for each batch": program(
        f"sched = {OF_SCHEDULES}.StepLR(opt, step_size=2, gamma=0.1)", epoch="pass", batch="sched.step()  #!"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NEARLY_0)
def test_a_rate_that_a_schedule_multiplies_too_often_is_found(name, engine, checks):
    text = NEARLY_0[name]
    (one,) = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    assert (one.finding.kind, one.level) == ("zero-rate", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "the learning rate is nearly 0 in the last" in said
    assert "it fell from 0.1 to " in said
    assert "sched.step() once an epoch" in said


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rate_of_0_that_the_program_writes_is_a_note(engine, checks):
    text = program("", epoch="if epoch == 4:\n        opt.param_groups[0]['lr'] = 0.0  # a control")
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "zero-rate"]
    assert one.level == "note"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ENDS_WELL)
def test_a_rate_that_is_0_for_a_reason_is_not_reported(name, engine, checks):
    found = checks.of_text(ENDS_WELL[name], engine).found
    assert "zero-rate" not in {one.finding.kind for one in found}
    assert [str(one) for one in found if one.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_an_optimizer_that_stops_while_another_goes_on_is_a_note(engine, checks):
    text = program(
        f"other = torch.optim.SGD(net[2].parameters(), lr=0.1)\nsched = {OF_SCHEDULES}.StepLR(opt, 3, gamma=0)",
        "torch.optim.SGD(net[0].parameters(), lr=0.1)",
        batch="other.step()",
    ).replace("opt.zero_grad()", "net.zero_grad()")
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "zero-rate"]
    assert one.level == "note"
