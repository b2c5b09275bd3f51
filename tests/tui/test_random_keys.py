"""Random keys in a real terminal: the debugger answers, shows something, and ends only where it is asked to.

``make keys N=10000`` presses so many at each size, for a trace, for a running program and for the lesson; another
GVIZ_SEED presses others.
"""

import os
import subprocess
import sys

import pytest
from random_keys import PROGRAM, ROOT, SIZES, Session
from tmux import needs_tmux

pytestmark = needs_tmux

KEYS = int(os.environ.get("GVIZ_KEYS", "40"))
SEED = int(os.environ.get("GVIZ_SEED", "1"))
GVIZ = [sys.executable, "-m", "gviz"]


def replayed(folder):
    """The debugger on a trace."""
    program = folder / "program.py"
    program.write_text(PROGRAM.replace("ITERATIONS", "3"))
    trace = folder / "program.gviz"
    order = [*GVIZ, "record", "-o", str(trace), str(program)]
    subprocess.run(order, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    return [*GVIZ, "open", str(trace)]


def live(folder):
    """The debugger on a program that runs."""
    program = folder / "program.py"
    program.write_text(PROGRAM.replace("ITERATIONS", "300"))
    return [*GVIZ, "run", str(program)]


def tutor(folder):
    """The lesson."""
    return [*GVIZ, "tutor"]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "{}x{}".format(*size))
@pytest.mark.parametrize("opened", [replayed, live, tutor], ids=lambda opened: opened.__name__)
def test_no_key_ends_or_stops_the_debugger(tmp_path, opened, size):
    session = Session(tmp_path, opened(tmp_path), size=size, seed=SEED)
    try:
        session.press(KEYS)
    finally:
        session.close()
    print(f"{session.pressed} keys, {session.restarts} times left, {session.suspended} times suspended")
