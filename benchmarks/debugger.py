"""From a key or a click to the last byte of the repaint in the whole debugger, through a real pty."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.key_to_repaint import NODES_A_BLOCK, press, residual, times, until_quiet
from benchmarks.million_events import EVENTS, training
from benchmarks.table import Row
from benchmarks.terminal import opened
from gviz.trace import load
from gviz.trace.file.writer import TraceWriter
from gviz.trace.recording.record import record

SIZES = (30, 300, 3_000)
REPEATS = 60
COLUMNS, ROWS = range(5, 70), range(5, 40)
"""Where the graph is, in a terminal of 150x50."""


def rows() -> Iterator[Row]:
    """The median and the 95th percentile of steps and clicks in graphs of these sizes, and in a million events."""
    with TemporaryDirectory() as folder:
        for nodes in SIZES:
            trace = Path(folder, f"{nodes}.gviz")
            with record(trace):
                residual(nodes // NODES_A_BLOCK)
            yield from repaints(f"{nodes:,} nodes", trace)
        trace = Path(folder, "million.gviz")
        writer = TraceWriter(trace, about={"gviz": "benchmark"}, on_error=print)
        training(writer.record, EVENTS)
        writer.close()
        yield from repaints("a million events", trace)


def repaints(words: str, trace: Path) -> Iterator[Row]:
    """Of one recording, opened in its middle; with the CPU time of the debugger, which another program cannot spoil."""
    middle = str(len(load(trace)) // 2)
    child, terminal = opened([sys.executable, "-m", "gviz", "open", "--at", middle, str(trace)])
    until_quiet(terminal, patience=30.0, quiet=2.0)
    draw = random.Random(1)
    deeds: dict[str, Callable[[], bytes]] = {"step": lambda: b"s", "click": lambda: click(draw)}
    for deed, keys in deeds.items():
        before = cpu_seconds(child)
        presses = [press(terminal, keys()) for _ in range(REPEATS)]
        used = (cpu_seconds(child) - before) / REPEATS * 1000
        median, late = times(presses, 0.5), times(presses, 0.95)
        yield Row(
            f"debugger, {words}, {deed} to repaint, wall: median, p95",
            f"{median:.1f}, {late:.1f} ms",
            f"CPU time {used:.1f} ms",
            goal="16, 33 ms",
        )
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(terminal)


def click(draw: random.Random) -> bytes:
    """Press and release the left button somewhere in the graph."""
    at = f"{draw.choice(COLUMNS)};{draw.choice(ROWS)}"
    return f"\x1b[<0;{at}M\x1b[<0;{at}m".encode()


def cpu_seconds(process: int) -> float:
    """The CPU time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
