"""From a key to the last byte of the repaint it causes, through a real pty.

``python -m benchmarks.key_to_repaint`` shows the bytes and the slowest repaints too. The graph canvas alone in an
application, on a residual network of about 2,000 nodes, in a terminal of 150x50.
"""

from __future__ import annotations

import os
import select
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

from benchmarks.table import Row
from benchmarks.terminal import opened

QUIET = 0.06
REPEATS = 60
NODES_A_BLOCK = 6
BLOCKS = 2_000 // NODES_A_BLOCK
KEYS = {"step": b"s", "step back": b"S", "pan": b"\x1b[1;2B", "pan back": b"\x1b[1;2A"}


def residual(blocks: int) -> None:
    """A residual network of `NODES_A_BLOCK` nodes a block, forward and backward."""
    import gviz.engine as torch

    hidden, kept = torch.tensor(1.0, requires_grad=True), []
    for _ in range(blocks):
        first, second = torch.tensor(1.01, requires_grad=True), torch.tensor(0.01, requires_grad=True)
        kept += [first, second]
        hidden = torch.sin(hidden * first) * second + hidden
    hidden.backward()


def viewer(blocks: int) -> None:
    """Show the graph of a residual network; s and S step."""
    from textual.app import App, ComposeResult

    from gviz import emit
    from gviz.events import Event
    from gviz.trace.event_log import MemoryLog
    from gviz.trace.timeline import Timeline
    from gviz.tui.app import ScreenApp
    from gviz.tui.glyphs import glyphs
    from gviz.tui.themes import THEMES, semantic_colours
    from gviz.tui.widgets.graph_canvas import GraphCanvas

    events: list[Event] = []
    with emit.listening(emit.Channel(events.append, limit=1024, read_source=lambda path: None)):
        residual(blocks)
    timeline = Timeline(MemoryLog(events))

    class Viewer(App[None]):
        COMPONENT_CLASSES = ScreenApp.COMPONENT_CLASSES
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


def rows() -> Iterator[Row]:
    """The median for each kind of key."""
    for name, presses in measured().items():
        yield Row(f"key to repaint on 2,000 nodes, {name}, wall", f"{times(presses, 0.5):.1f} ms", goal="16 ms")


def measured(blocks: int = BLOCKS, repeats: int = REPEATS) -> dict[str, list[tuple[float, int]]]:
    """Seconds and bytes of the repaint after each press, by kind of key."""
    child, terminal = opened([sys.executable, "-m", "benchmarks.key_to_repaint", "--viewer", str(blocks)])
    until_quiet(terminal, patience=20.0, quiet=1.0)
    presses = {name: [press(terminal, key) for _ in range(repeats)] for name, key in KEYS.items()}
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(terminal)
    return presses


def main() -> None:
    """Print the median and the 95th percentile for each kind of key."""
    print(f"{'key':12}{'median ms':>10}{'p95 ms':>10}{'bytes':>10}")
    for name, presses in measured().items():
        size = statistics.median(size for _, size in presses)
        print(f"{name:12}{times(presses, 0.5):10.1f}{times(presses, 0.95):10.1f}{size:10,.0f}")


def times(presses: Sequence[tuple[float, int]], share: float) -> float:
    """The time in milliseconds that this share of the presses did not exceed; those without a repaint do not count."""
    times = sorted(seconds * 1000 for seconds, size in presses if size)
    return times[int(len(times) * share)] if times else float("nan")


def press(terminal: int, key: bytes) -> tuple[float, int]:
    """Seconds from a key to the last byte of what it causes, and how many bytes."""
    begin = time.perf_counter()
    os.write(terminal, key)
    last, size = until_quiet(terminal, patience=1.0, quiet=QUIET)
    return last - begin, size


def until_quiet(terminal: int, *, patience: float, quiet: float) -> tuple[float, int]:
    """When the last byte came before the terminal was quiet, and how many there were."""
    last, size, wait = time.perf_counter(), 0, patience
    while select.select([terminal], [], [], wait)[0]:
        size += len(os.read(terminal, 65536))
        last, wait = time.perf_counter(), quiet
    return last, size


if __name__ == "__main__":
    if "--viewer" in sys.argv:
        viewer(int(sys.argv[-1]))
    else:
        main()
