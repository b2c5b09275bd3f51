"""Draws the pictures of the README: the debugger by its own screenshot, the graph by its own export.

Run it as ``make media``. The result is the same on every machine, except for the letters' places in the graph, which
depend on the fonts Graphviz finds.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path

from gviz.cli import lessons
from gviz.cli.picture import write_picture
from gviz.cli.session import Program, record_program
from gviz.events import GradFlowed
from gviz.trace.reader import open_trace
from gviz.trace.timeline import Timeline
from gviz.tui.app import DebuggerApp

MEDIA = Path(__file__).parent / "media"
SIZE = (110, 36)
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def main() -> None:
    lesson = lessons.find(None)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "lesson.gviz"
        record_program(Program((str(lesson.path),), engine="builtin", output=trace))
        with open_trace(trace) as log:
            screen = asyncio.run(screenshot(Timeline(log), lesson.path.name))
        (MEDIA / "debugger.svg").write_text(screen, encoding="utf-8")
        write_picture(trace, MEDIA / "lesson.svg", force=True)


async def screenshot(timeline: Timeline, title: str) -> str:
    """The debugger where two shares of one gradient meet."""
    app = DebuggerApp(timeline, title=title, at=meeting(timeline), ascii=False, theme="gviz-dark")
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        return without_web_fonts(app.export_screenshot(title="gviz"))


def meeting(timeline: Timeline) -> int:
    """The first event at which a contribution is added to an earlier one."""
    for n in range(1, len(timeline) + 1):
        event = timeline.event(n)
        if isinstance(event, GradFlowed) and event.total is not None:
            return n
    return len(timeline)


def without_web_fonts(svg: str) -> str:
    """Textual's picture fetches a font from the web; take what the reader has instead."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return re.sub(
        r"font-family: ?Fira Code, ?monospace|font-family: ?\"?Fira Code\"?[^;]*", f"font-family: {FONT}", svg
    )


if __name__ == "__main__":
    main()
