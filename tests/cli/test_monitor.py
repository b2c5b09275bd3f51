"""``gviz monitor --on``: a program that pauses at an alarm, with a terminal and without one."""

import os
import subprocess
import sys
import time

import pytest
from cli.programs import ROOT, gviz
from tmux import PATIENCE, Tmux, needs_tmux

from gviz.api import debug as viewing
from gviz.tui import terminal

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROGRAM = """
import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(800):  # the sentinel may look at every 100th only
    optimizer.zero_grad()
    loss = net(torch.ones(2, 3)).pow(2).sum() * (float("nan") if step == 200 else 1)
    loss.backward()
    optimizer.step()
print("the end")
"""
START = f"PYTHONPATH={ROOT} TERM=tmux-256color LC_ALL=C.UTF-8 PS1='shell: '"
COMMAND = f"{sys.executable} -m gviz monitor --on nan -f -o a.gviz train.py"


@pytest.fixture
def shell(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    session = Tmux(f"-C {tmp_path} {START} bash --norc -i", columns=120)
    session.until("shell:")
    yield session
    session.close()


@needs_tmux
def test_the_debugger_opens_at_the_alarm_and_after_the_next_iteration(shell):
    shell.keys(COMMAND, "Enter")
    shell.until(
        "REPLAY",
        ": the loss is nan and the norm of the gradients is nan · e: why · c: resume the program",
        "train.py:10, after iteration ",
        " iteration 1/",
        "iteration 1 is the last recorded one",
    )
    shell.keys("e")
    shell.until("it was not recorded; the next iterations are", "gviz record --from-iteration ")
    shell.keys("c")
    shell.until("REPLAY", "of loss = nan", "the program marked this moment: iteration")
    shell.keys("q")
    shell.until("Waiting. c: run to next stop")
    shell.keys("c")
    shell.until("the end", "open it with: gviz open a.gviz")


@needs_tmux
def test_the_program_can_be_stopped_at_the_alarm(shell):
    shell.keys(f"{COMMAND}; echo code $?", "Enter")
    shell.until("REPLAY", "c: resume the program")
    shell.keys("q")
    shell.until("Waiting. c: run to next stop")
    shell.keys("s")
    assert "the end" not in shell.until("the program was stopped in the debugger", "code 1")


@needs_tmux
def test_a_program_in_the_background_does_not_pause(shell):
    shell.keys(f"{COMMAND} &", "Enter")
    shell.until("the program does not pause: it runs in the background; gviz open ", "the end")


@needs_tmux
def test_the_progress_line_does_not_write_over_the_debugger(shell):
    shell.keys(f"{COMMAND} > out", "Enter")
    shell.until("REPLAY", "c: resume the program")
    end = time.monotonic() + min(1.0, PATIENCE)
    while time.monotonic() < end:
        assert "recording:" not in shell.until("REPLAY")
        time.sleep(0.1)


def test_without_a_terminal_it_says_that_it_does_not_pause(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    done = subprocess.run(
        COMMAND.split(), cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True, check=True,
    )  # fmt: skip
    assert done.stdout == "the end\n"
    assert done.stderr.count("gviz: the program does not pause: it has no terminal; gviz open ") == 1
    assert "the loss is nan" in done.stderr


def test_other_words_are_refused(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    code, _, err = gviz("monitor", "--on", "loss", "train.py", cwd=tmp_path)
    assert code == 2
    assert "alarm" in err


def test_a_user_who_has_left_the_program_alone_is_not_asked_again(monkeypatch):
    monkeypatch.setattr(viewing, "_left_alone", True)
    monkeypatch.setattr(terminal, "keyboard", None)  # not called
    assert not viewing.pause_monitored(None)
