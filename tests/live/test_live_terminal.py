"""``gviz run`` in a real terminal."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from driving_live import PATIENCE, is_collected
from tmux import Tmux, needs_tmux

pytestmark = needs_tmux

ROOT = Path(__file__).parents[2]
PROGRAM = """\
import os
import gviz.engine as torch
with open(__file__ + ".pid", "w") as file:
    print(os.getpid(), file=file)
x = torch.tensor(2.0, requires_grad=True)
print("hello from the program")
while True:
    y = x * x
    y.backward()
"""


class Terminal(Tmux):
    """A terminal that runs a script under the debugger."""

    def __init__(self, folder):
        (folder / "program.py").write_text(PROGRAM)
        self.pid = folder / "program.py.pid"
        environment = f"PYTHONPATH={ROOT} XDG_CACHE_HOME={folder} TERM=tmux-256color LC_ALL=C.UTF-8"
        super().__init__(f"{environment} {sys.executable} -m gviz run {folder}/program.py", columns=120, rows=40)

    @property
    def program(self):
        """The process of the program."""
        return int(self.pid.read_text())


@pytest.fixture
def terminal(tmp_path):
    made = Terminal(tmp_path)
    yield made
    made.close()


def test_a_program_is_held_let_run_paused_and_stopped(terminal):
    terminal.until("LIVE FORWARD", "event 1", "#1 x")
    program = terminal.program
    terminal.keys("n")
    terminal.until("LIVE", "#2 y")
    terminal.keys("N")
    terminal.until("REPLAY", "back to 1")
    terminal.keys(">", "c")
    terminal.until("RUNNING", "events,", "/s")
    terminal.keys("C-c")
    terminal.until("LIVE", "paused")
    terminal.keys("q")
    terminal.until("s: stop it", "k: let it run without gviz")
    terminal.keys("s")
    terminal.until("exit=0", "trace: ")
    assert is_collected(program)


def test_a_killed_program_is_told_and_its_past_stays(terminal):
    terminal.until("LIVE FORWARD")
    program = terminal.program
    terminal.keys("n", "n")
    terminal.until("LIVE", "BACKWARD")
    os.kill(program, signal.SIGKILL)
    terminal.until("REPLAY", "the program was killed by SIGKILL")
    terminal.keys("N")
    terminal.until("back to ")
    terminal.keys("q")
    terminal.until(f"exit={128 + signal.SIGKILL}")


def test_a_program_that_is_kept_lives_on_and_its_debugger_leaves(terminal):
    terminal.until("LIVE FORWARD")
    program = terminal.program
    terminal.keys("q", "k")
    terminal.until("exit=0")
    assert not is_collected(program)
    os.kill(program, signal.SIGKILL)


def test_a_killed_debugger_leaves_a_terminal_in_order_and_no_program(terminal):
    terminal.until("LIVE FORWARD")
    program = terminal.program
    flags = "#{alternate_on}#{mouse_any_flag}#{cursor_flag}"
    assert terminal.tmux("display-message", "-p", flags).strip() in ("110", "100")
    debugger = int(Path(f"/proc/{program}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(debugger, signal.SIGKILL)
    end = time.monotonic() + PATIENCE
    while terminal.tmux("display-message", "-p", flags).strip() != "001" or not is_collected(program):
        assert time.monotonic() < end
        time.sleep(0.05)
    while "-echo " in modes(terminal):
        assert time.monotonic() < end
        time.sleep(0.05)


def modes(terminal):
    """How the terminal treats what is typed."""
    with open(terminal.tmux("display-message", "-p", "#{pane_tty}").strip()) as tty:
        return subprocess.run(["stty", "-a"], stdin=tty, capture_output=True, text=True, check=True).stdout


def test_what_the_program_printed_is_on_the_terminal_when_the_debugger_has_left(terminal):
    terminal.until("LIVE FORWARD")
    terminal.keys("n", "n")
    terminal.until("BACKWARD")
    terminal.keys("C-r")
    terminal.until("LIVE FORWARD", "event 1")
    terminal.keys("n")
    terminal.until("LIVE FORWARD", "#2 y")
    terminal.keys("q", "s")
    assert "hello from the program" in terminal.until("exit=0")
    terminal.until("starting", "again")
    traces = [path.name for path in terminal.pid.parent.rglob("*.gviz*")]
    assert len(traces) == 2
    assert all(name.endswith(".gviz") for name in traces), traces


def test_a_program_kept_and_what_becomes_of_its_output_are_said(terminal):
    terminal.until("LIVE FORWARD")
    terminal.keys("n")
    terminal.until("LIVE FORWARD", "#2 y")
    terminal.keys("q", "k")
    terminal.until("exit=0", f"process {terminal.program} keeps running without the debugger", "hello from the program")
    os.kill(terminal.program, signal.SIGKILL)
