"""How soon the command answers, and how soon the debugger has painted."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from compileall import compile_dir
from pathlib import Path
from tempfile import TemporaryDirectory

import gviz
from benchmarks.table import Row, duration
from benchmarks.terminal import opened

TURNS = 12
PAINTED = b"mul"
PACKAGE = Path(gviz.__file__).parent
PATIENCE = 20.0


def rows() -> Iterator[Row]:
    """``gviz --version`` against a bare interpreter, and ``gviz open`` to its first frame; compiled as pip does it."""
    compile_dir(PACKAGE, quiet=1)
    bare, version = float("inf"), float("inf")
    for _ in range(TURNS):
        bare = min(bare, _cpu_seconds([sys.executable, "-c", "pass"]))
        version = min(version, _cpu_seconds([sys.executable, "-m", "gviz", "--version"]))
    yield Row(
        "gviz --version, CPU time",
        duration(version),
        f"bare Python {duration(bare)}",
        f"+{(version - bare) * 1000:.0f} ms",
        "+80 ms",
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "small.gviz")
        _record(path)
        frames = [_first_frame(path) for _ in range(5)]
        yield Row("first frame of gviz open, wall time", duration(min(wall for wall, _ in frames)), goal="500 ms")
        yield Row("first frame of gviz open, CPU time", duration(min(cpu for _, cpu in frames)))


def _cpu_seconds(command: Sequence[str]) -> float:
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def _record(path: Path) -> None:
    import gviz.engine as torch
    from gviz.trace.recording.record import record

    with record(path):
        x = torch.tensor(3.0, requires_grad=True)
        for _ in range(10):
            y = x * x
            (y + x).backward()


def _first_frame(path: Path) -> tuple[float, float]:
    """Wall and CPU time from the start of the command to a frame in which the graph can be seen."""
    start = time.perf_counter()
    child, terminal = opened([sys.executable, "-m", "gviz", "open", "--at", "end", str(path)])
    seen = b""
    while PAINTED not in seen and select.select([terminal], [], [], PATIENCE)[0]:
        seen += os.read(terminal, 65536)
    seconds = time.perf_counter() - start
    os.kill(child, signal.SIGKILL)
    used = os.wait4(child, 0)[2]
    os.close(terminal)
    return seconds, used.ru_utime + used.ru_stime
