"""A terminal that is gone is noticed, also where no signal says so."""

import os
import pty
import select
import signal
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 120
PROGRAM = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as where another program takes it
from gviz.tui import debug
from gviz.tui.session_options import SessionOptions, Title
sys.path.insert(0, sys.argv[1])
from stories import demo
debug(demo(), SessionOptions(Title("demo.py")))
"""


def shown(terminal, text, deadline):
    """Whether the debugger has drawn a text before the deadline."""
    seen = b""
    while text not in seen:
        if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        seen += os.read(terminal, 65536)
    return True


@pytest.mark.skipif(os.name != "posix", reason="terminals that hang up are POSIX")
def test_the_debugger_ends_with_its_terminal():
    process, terminal = pty.fork()
    if not process:
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        os.execve(sys.executable, [sys.executable, "-c", PROGRAM, str(ROOT / "tests")], environment)
    deadline = time.monotonic() + PATIENCE
    assert shown(terminal, b"demo.py", deadline)
    os.close(terminal)
    while not (ended := os.waitpid(process, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            pytest.fail("it goes on without a terminal")
        time.sleep(0.05)
    assert os.waitstatus_to_exitcode(ended[1]) == -signal.SIGHUP
