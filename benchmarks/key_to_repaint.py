"""From a key to the last byte of the repaint it causes, through a real pty. ``python benchmarks/key_to_repaint.py``

The graph canvas alone in an application, on a residual network of about 2,000 nodes, in a terminal of 150x50.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import termios
import time
from collections.abc import Sequence
from typing import ClassVar

COLUMNS, ROWS = 150, 50
QUIET = 0.06
REPEATS = 60
KEYS = {"step": b"s", "step back": b"S", "pan": b"\x1b[1;2B", "pan back": b"\x1b[1;2A"}


def viewer(blocks: int) -> None:
    """Show the graph of a residual network; s and S step."""
    from textual.app import App, ComposeResult

    import gviz.engine as torch
    from gviz import emit
    from gviz.events import Event
    from gviz.trace.log import MemoryLog
    from gviz.trace.timeline import Timeline
    from gviz.tui.glyphs import glyphs
    from gviz.tui.themes import THEMES, semantic_colours
    from gviz.tui.widgets.graph import GraphCanvas

    events: list[Event] = []
    with emit.listening(emit.Channel(events.append, limit=1024, read_source=lambda path: None)):
        hidden, kept = torch.tensor(1.0, requires_grad=True), []
        for _ in range(blocks):
            first, second = torch.tensor(1.01, requires_grad=True), torch.tensor(0.01, requires_grad=True)
            kept += [first, second]
            hidden = torch.sin(hidden * first) * second + hidden
        hidden.backward()
    timeline = Timeline(MemoryLog(events))

    class Viewer(App[None]):
        BINDINGS: ClassVar = [("s", "step(1)", "Step"), ("S", "step(-1)", "Step back"), ("q", "quit", "Quit")]

        def __init__(self) -> None:
            super().__init__()
            self.register_theme(THEMES[0])
            self.theme = THEMES[0].name
            self.position = len(timeline) // 3

        def get_theme_variable_defaults(self) -> dict[str, str]:
            return dict(semantic_colours(dark=True))

        def compose(self) -> ComposeResult:
            yield GraphCanvas(timeline, glyphs(ascii=False))

        def on_mount(self) -> None:
            self.query_one(GraphCanvas).focus()
            self.action_step(0)

        def action_step(self, events: int) -> None:
            self.position += events
            self.query_one(GraphCanvas).moment = timeline.at(self.position)

    Viewer().run()


def main() -> None:
    """Print the median and the 95th percentile for each kind of key."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), "--viewer"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    painted = _until_quiet(terminal, patience=20.0, quiet=1.0)
    print(f"started: {painted[1]:,} bytes")
    print(f"{'key':12}{'median ms':>10}{'p95 ms':>10}{'bytes':>10}")
    for name, key in KEYS.items():
        _report(name, [_press(terminal, key) for _ in range(REPEATS)])
    os.write(terminal, b"q")
    time.sleep(0.3)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _report(name: str, presses: Sequence[tuple[float, int]]) -> None:
    times = sorted(seconds * 1000 for seconds, size in presses if size)
    size = statistics.median([size for _, size in presses])
    p95 = times[int(len(times) * 0.95)]
    print(f"{name:12}{statistics.median(times):10.1f}{p95:10.1f}{size:10,.0f}")


def _press(terminal: int, key: bytes) -> tuple[float, int]:
    begin = time.perf_counter()
    os.write(terminal, key)
    last, size = _until_quiet(terminal, patience=1.0, quiet=QUIET)
    return last - begin, size


def _until_quiet(terminal: int, *, patience: float, quiet: float) -> tuple[float, int]:
    """When the last byte came before the terminal was quiet, and how many there were."""
    last, size, wait = time.perf_counter(), 0, patience
    while select.select([terminal], [], [], wait)[0]:
        size += len(os.read(terminal, 65536))
        last, wait = time.perf_counter(), quiet
    return last, size


if __name__ == "__main__":
    if "--viewer" in sys.argv:
        viewer(340)
    else:
        main()
