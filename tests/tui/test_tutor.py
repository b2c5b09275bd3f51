"""The guided lesson waits for the right key, and for nothing else."""

import io
import subprocess
import sys

import pytest
from stories import demo
from textual.widgets import Static

from gviz.tui.app import ScreenApp
from gviz.tui.glyphs import UNICODE
from gviz.tui.plain import teach
from gviz.tui.screens.tutor import TutorScreen
from gviz.tui.title import Title
from gviz.tui.tutor import PAGES, Tutor


def pressed(key):
    return [*key.removesuffix(" (Enter)"), "enter"] if key.endswith("(Enter)") else [key]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_every_page_waits_for_its_key_on_the_screen(size):
    app = ScreenApp(TutorScreen(demo(), Title("demo.py"), 1, UNICODE), ascii=False, theme=None)
    async with app.run_test(size=size) as pilot:
        screen = app.screen
        for at, page in enumerate(PAGES, 1):
            said = str(screen.query_one("#tutor", Static).content)
            assert said.startswith(f"{at}/{len(PAGES)}")
            assert said.endswith(page.key)
            assert f"Press  {page.key}" in str(screen.query_one("#tutor").render()).splitlines()[-1]
            assert screen.query_one("#tutor").size.height == (3 if size[0] < 110 else 2), "no page moves the panels"
            await pilot.press("i")
            await pilot.pause()
            assert str(screen.query_one("#tutor", Static).content) == said
            await pilot.press(*pressed(page.key))
            await pilot.pause()
        assert "That is all" in str(screen.query_one("#tutor", Static).content)


def test_every_page_waits_for_its_line_in_line_mode():
    output = io.StringIO()
    text = "".join(f"output\n{page.typed}\n" for page in PAGES)
    teach(demo(), io.StringIO(text), output)
    said = output.getvalue()
    assert said.count("the lesson waits for:") == len(PAGES)
    assert [said.count(f"\n{at}/{len(PAGES)}  ") for at in range(1, len(PAGES) + 1)] == [1] * len(PAGES)
    assert "That is all" in said


def test_who_has_gone_too_far_is_led_back_before_the_lesson_goes_on():
    output = io.StringIO()
    two = [page.typed for page in PAGES[:2]]
    lost = ["goto end", "phase", "goto start", "phase", "phase", "tape", "graph", "goto end", "n", "goto start", "n"]
    lines = [*two, *lost, "phase", "n", "s", "b"]
    teach(demo(), io.StringIO("\n".join(lines)), output)
    said = output.getvalue()
    assert said.count("You are past what comes next. Back to the first event:  Type  goto start") == 2
    assert said.count("To where it begins:  Type  phase") == 1
    assert said.index("8/15") > said.rindex("To where it begins")


def test_a_lesson_that_is_over_waits_for_nothing():
    tutor = Tutor()
    tutor._at = len(PAGES)
    assert tutor.page is None
    assert tutor.wanted() == ""


def test_the_command_teaches_on_the_first_lesson():
    lines = "".join(f"{page.typed}\n" for page in PAGES)
    done = subprocess.run(
        [sys.executable, "-m", "gviz", "tutor", "--plain"], input=lines, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "That is all" in done.stdout
    assert "#1 x: .grad is 8" in done.stdout
    assert done.stdout.count("  += 4 from #3 Mul") == 2
