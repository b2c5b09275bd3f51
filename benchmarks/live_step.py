"""One live step: from the key to the last byte of the repaint, the program's own step between the two."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.key_to_repaint import press, times, until_quiet
from benchmarks.table import Row
from benchmarks.terminal import opened

STEPS = 60
PROGRAM = """\
import gviz.engine as torch
x = torch.tensor(1.0, requires_grad=True)
while True:
    y = x
    for _ in range(10):
        y = y * 1.01
    y.backward()
"""


def rows() -> Iterator[Row]:
    """The median over the first steps of a program with a small graph."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(PROGRAM)
        child, terminal = opened([sys.executable, "-m", "gviz", "run", "-o", f"{folder}/t.gviz", str(program)])
        until_quiet(terminal, patience=20.0, quiet=2.0)
        presses = [press(terminal, b"s") for _ in range(STEPS)]
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    yield Row("one live step, key to program to screen, wall", f"{times(presses, 0.5):.1f} ms", goal="20 ms")
