"""Makes the pictures of the README anew (the debugger's own screenshot, its own export), and the table of lessons.

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
README = Path(__file__).parents[1] / "README.md"
SIZE = (120, 46)
FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"


def main() -> None:
    lesson = lessons.find(None)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "lesson.gviz"
        record_program(Program((str(lesson.path),), engine="builtin", output=trace))
        with open_trace(trace) as log:
            screen = asyncio.run(screenshot(Timeline(log), lesson.path.name))
        (MEDIA / "debugger.svg").write_text(screen, encoding="utf-8")
        write_picture(trace, MEDIA / "lesson.svg", force=True)
    README.write_text(with_lessons(README.read_text(encoding="utf-8")), encoding="utf-8")


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


def with_lessons(readme: str) -> str:
    """The README with its table of lessons made anew."""
    rows = [f"| `{lesson.name}` | {lesson.title()} |" for lesson in lessons.lessons()]
    table = "\n".join(["| lesson | what it shows |", "|---|---|", *rows])
    return re.sub(
        r"(<!-- lessons -->\n).*?(\n<!-- end -->)",
        lambda found: f"{found[1]}{table}{found[2]}",
        readme,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    main()
