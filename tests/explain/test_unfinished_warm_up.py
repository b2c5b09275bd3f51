"""Warm-ups in steps of an optimizer whose scheduler is stepped once an epoch, and warm-ups that end or are short."""

import pytest
from explain.programs import recorded_text

from gviz.explain.findings.training_loop.schedulers import unfinished_warm_up
from gviz.explain.recording_survey import Survey
from gviz.trace.timeline import Timeline

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
from torch.optim.lr_scheduler import *
torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
epochs, batches = 6, 4
steps = epochs * batches
sched = MADE
for epoch in range(epochs):
    for at in range(batches):
        opt.zero_grad()
        loss = ((net(x[at::batches]) - y[at::batches]) ** 2).mean()
        loss.backward()
        opt.step()
        BATCH
    EPOCH
"""
EPOCH = "sched.step()  #!"


def program(made, epoch=EPOCH, batch="pass"):
    return PROGRAM.replace("MADE", made).replace("EPOCH", epoch).replace("BATCH", batch)


RAMP = "LambdaLR(opt, lambda n: min(1.0, (n + 1) / WIDTH))"
IN_STEPS = {
    "one cycle": (program("OneCycleLR(opt, max_lr=0.1, total_steps=4 * steps)"), "warning"),
    "a line": (program("LinearLR(opt, start_factor=0.01, total_iters=steps)"), "warning"),
    "a function": (program(RAMP.replace("WIDTH", "(0.8 * steps)")), "warning"),
    "a warm-up and a decay": (
        program("SequentialLR(opt, [LinearLR(opt, 0.01, total_iters=16), CosineAnnealingLR(opt, 8)], milestones=[16])"),
        "note",
    ),
    "an epoch in a function": (
        program("LinearLR(opt, start_factor=0.01, total_iters=steps)").replace(
            "        opt.step()", "        def update():\n            opt.step()\n        update()"
        ),
        "warning",
    ),
}
ENDED = {
    "a step for each batch": program(RAMP.replace("WIDTH", "(0.8 * steps)"), "pass", "sched.step()"),
    "a step for each batch of a short run": program(RAMP.replace("WIDTH", "(20 * steps)"), "pass", "sched.step()"),
    "a warm-up of epochs": program(RAMP.replace("WIDTH", "4")),
    "a warm-up of epochs that has nearly ended": program(RAMP.replace("WIDTH", "8")),
    "one cycle": program("OneCycleLR(opt, max_lr=0.1, total_steps=steps)", "pass", "sched.step()"),
    "a warm-up and a decay of epochs": program("LambdaLR(opt, lambda n: min(1.0, (n + 1) / 3) * 0.4**n)"),
    "a run of three epochs": program(RAMP.replace("WIDTH", "16")).replace(
        "epochs, batches = 6, 4", "epochs, batches = 3, 4"
    ),
    "epochs of one batch": program(RAMP.replace("WIDTH", "60")).replace(
        "epochs, batches = 6, 4", "epochs, batches = 24, 1"
    ),
    "a decay": program("StepLR(opt, 2, 0.5)"),
    "a cycle": program("CyclicLR(opt, 0.001, 0.1, step_size_up=2)"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", IN_STEPS)
def test_a_warm_up_that_is_stepped_once_an_epoch_is_found(name, engine, checks):
    text, level = IN_STEPS[name]
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = [each for each in outcome.found if each.finding.kind == "unfinished-warm-up"]
    assert one.level == level
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "sched.step() after each opt.step()" in one.finding.fix
    if name != "an epoch in a function":
        after = checks.of_text(one.finding.edit.applied(text), engine).found
        assert "unfinished-warm-up" not in {each.finding.kind for each in after}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ENDED)
def test_a_warm_up_that_ends_or_is_stepped_with_the_optimizer_is_left_out(name, engine, checks):
    outcome = checks.of_text(ENDED[name], engine)
    assert outcome.errors == []
    assert "unfinished-warm-up" not in {one.finding.kind for one in outcome.found}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_of_a_training_does_not_show_whether_its_warm_up_ends(engine, tmp_path, monkeypatch):
    text = IN_STEPS["a line"][0]
    whole = recorded_text(text, tmp_path, engine)
    assert [one.kind for one in unfinished_warm_up(Survey(whole)) if one is not None] == ["unfinished-warm-up"]
    for name, value in (("growing", True), ("cut_off", True), ("recorded_iterations", range(3))):
        part = recorded_text(text, tmp_path, engine)
        with monkeypatch.context() as patch:
            patch.setattr(Timeline, name, value)
            assert [one for one in unfinished_warm_up(Survey(part)) if one is not None] == []
