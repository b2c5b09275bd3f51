"""The iterations in one of which a nan appeared, of a run of which only some iterations are recorded whole."""

import json
import sqlite3

import pytest
from explain.programs import recorded_text

from gviz.adapters.monitor_budget import Budget
from gviz.explain.findings.gradient_values import nan_origin
from gviz.explain.findings.gradient_values.nan_origin import last_alarm
from gviz.trace.file.reader import open_trace
from gviz.trace.timeline import Timeline
from gviz.tui.line_mode import _waiting_lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import gviz
import torch
torch.manual_seed(0)
net, x = torch.nn.Linear(3, 1), torch.ones(2, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for number in NUMBERS:
    gviz.mark(f"iteration {number}")
    loss = net(x).pow(2).mean()
    if number == SPOILED:
        loss = loss + (loss * 0).log() * 0
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def monitored(tmp_path, engine, numbers, spoiled=0, what="the loss is nan"):
    """A recording of these iterations whose alarm is at 303, and whose last look before it was at 299."""
    recorded_text(PROGRAM.replace("NUMBERS", str(numbers)).replace("SPOILED", str(spoiled)), tmp_path, engine)
    path = next(tmp_path.glob("*.gviz"))
    whole = [(number, number) for number in numbers]
    data = {**Budget(0).as_data(), "iterations": 303, "whole": whole, "alarms": [(303, what)], "since": [299]}
    with sqlite3.connect(path) as file:
        file.execute("insert or replace into meta values ('monitored', ?)", (json.dumps(data),))
    return Timeline(open_trace(path))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("numbers", "spoiled", "what", "where"),
    [
        ((298, 303), 303, "the loss is nan", "iteration 303"),
        ((298, 299, 301, 304), 301, "the loss is nan and the norm of the gradients is nan", "iteration 301"),
        ((298, 301, 304), 0, "the norm of the gradients is inf", "iterations 302 to 303"),
        ((298, 299), 0, "the loss is nan", "iterations 300 to 303"),
        ((298, 303), 303, "the loss leapt to 9", "iterations 300 to 303"),
    ],
)
def test_iterations_that_are_recorded_whole_narrow_the_range_of_an_alarm(
    tmp_path, engine, numbers, spoiled, what, where
):
    timeline = monitored(tmp_path, engine, numbers, spoiled, what)
    assert last_alarm(timeline) == f"{where}: {what}"
    assert _waiting_lines(timeline)[0] == f"{where}: {what}."


@pytest.mark.parametrize("engine", ENGINES)
def test_a_nan_that_came_before_an_iteration_appeared_in_an_earlier_one(tmp_path, engine, monkeypatch):
    timeline = monitored(tmp_path, engine, (298, 300, 303), 303)
    monkeypatch.setattr(nan_origin, "resumed_at", lambda *_: 303)  # as of a value that is written where 303 begins
    assert last_alarm(timeline) == "iterations 301 to 302: the loss is nan"
