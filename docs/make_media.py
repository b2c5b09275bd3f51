"""Makes the pictures of the README (the debugger's screenshot, gviz's exports) and the table of `docs/lessons.md`.

Run it as ``make media``. The result is the same on every machine, except for the letters, which depend on the fonts
that are found. The picture of the page needs Chromium with its driver, and stays as it is where they are missing.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from pathlib import Path

from gviz.cli import lessons
from gviz.cli.picture_files import write_picture
from gviz.cli.program_run import Program, record_program
from gviz.events import GradFlowed
from gviz.trace.file.reader import open_trace
from gviz.trace.timeline import Timeline
from gviz.tui.app import DebuggerApp
from gviz.tui.session_options import SessionOptions, Title

MEDIA = Path(__file__).parent / "media"
LESSONS = Path(__file__).parent / "lessons.md"
SIZE = (120, 46)
PAGE_SIZE = "1480,960"
FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"


def main() -> None:
    lesson = lessons.find(None)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "lesson.gviz"
        record_program(Program((str(lesson.path),), engine="builtin", output=trace))
        with open_trace(trace) as log:
            met = meeting(Timeline(log))
            screen = asyncio.run(screenshot(Timeline(log), lesson.path.name))
        (MEDIA / "debugger.svg").write_text(screen, encoding="utf-8")
        write_picture(trace, MEDIA / "graph.svg", figure="two-columns", force=True)
        write_picture(trace, MEDIA / "backward.gif", legend=False, force=True)
        write_picture(trace, Path(folder) / "lesson.html", at=met)
        if all(map(shutil.which, ("chromium", "chromedriver"))):
            photograph(Path(folder) / "lesson.html", MEDIA / "page.png")
        else:
            print("page.png stays as it is: it needs chromium and chromium-driver")
    LESSONS.write_text(with_lessons(LESSONS.read_text(encoding="utf-8")), encoding="utf-8")


async def screenshot(timeline: Timeline, title: str) -> str:
    """The debugger where two contributions to one gradient meet."""
    app = DebuggerApp(timeline, SessionOptions(Title(title), at=meeting(timeline)), ascii=False, theme="gviz-dark")
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        return without_web_fonts(app.export_screenshot(title="gviz"))


def photograph(page: Path, picture: Path) -> None:
    """The page in a browser, at the moment it opens at."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", f"--window-size={PAGE_SIZE}", "--hide-scrollbars"):
        options.add_argument(flag)
    with webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver"))) as browser:
        browser.implicitly_wait(20)
        browser.get(page.as_uri())
        browser.find_element("css selector", "body[data-ready]")
        browser.save_screenshot(str(picture))


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


def with_lessons(page: str) -> str:
    """The page with its table of lessons made anew."""
    rows = [f"| `{lesson.name}` | {lesson.title()} |" for lesson in lessons.lessons()]
    table = "\n".join(["| lesson | what it shows |", "|---|---|", *rows])
    return re.sub(
        r"(<!-- lessons -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}{table}\n{found[2]}",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    main()
