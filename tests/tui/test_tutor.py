"""The guided lesson waits for the right key, and for nothing else."""

import ast
import io
import subprocess
import sys
from pathlib import Path

import pytest
from driving import send, until
from samples.lessons import recording
from stories import demo
from textual.widgets import Static

import gviz.tui
from gviz.tui.app import ScreenApp
from gviz.tui.config import Config
from gviz.tui.glyphs import UNICODE
from gviz.tui.line_mode import teach
from gviz.tui.screens.tutor_screen import TutorScreen
from gviz.tui.session_options import SessionOptions, Title
from gviz.tui.tutorial import PAGES, Tutor
from gviz.tui.widgets.graph_canvas import GraphCanvas
from gviz.tui.widgets.prompt import Prompt

SOURCE = next(page for page in PAGES if page.key == "1")


def taught(timeline, config=None):
    options = SessionOptions(Title("demo.py"), at=1)
    return ScreenApp(TutorScreen(timeline, options, UNICODE, config=config), ascii=False, theme=None)


def painted(app):
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


def pressed(key):
    return [*key.removesuffix(" (Enter)"), "enter"] if key.endswith("(Enter)") else [key]


@pytest.mark.parametrize("size", [(60, 18), (80, 24), (120, 40), (200, 60)])
async def test_every_page_waits_for_its_key_on_the_screen(size):
    app = taught(demo())
    async with app.run_test(size=size) as pilot:
        screen, rows = app.screen, {60: 3, 80: 2, 120: 2, 200: 1}[size[0]]
        for at, page in enumerate(PAGES, 1):
            said = str(screen.query_one("#tutor", Static).content)
            assert said.startswith(f"{at}/{len(PAGES)}")
            assert said.endswith(page.key)
            assert f"Press  {page.key}" in str(screen.query_one("#tutor").render()).splitlines()[-1]
            assert screen.query_one("#tutor").size.height == rows, "no page moves the panels"
            await pilot.press("i")
            await pilot.pause()
            assert str(screen.query_one("#tutor", Static).content) == said
            await pilot.press(*pressed(page.key))
            await pilot.pause()
        assert "That is all" in str(screen.query_one("#tutor", Static).content)


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40)])
async def test_the_graph_of_the_lesson_is_seen_whole_on_every_page(size):
    app = taught(recording("01_product_and_sine"))
    async with app.run_test(size=size) as pilot:
        graph = app.screen.query_one(GraphCanvas)
        for before, page in zip((None, *PAGES), PAGES, strict=False):
            assert not graph.display or before is SOURCE or "more" not in str(graph.border_subtitle)
            assert graph.display or page.key == "0"
            await pilot.press(*pressed(page.key))
            await pilot.pause()


async def test_the_page_about_the_line_shows_it():
    app = taught(recording("01_product_and_sine"))
    async with app.run_test(size=(100, 30)) as pilot:
        for page in PAGES[: PAGES.index(SOURCE) + 1]:
            await pilot.press(*pressed(page.key))
            await pilot.pause()
        assert any("z = x * x + torch.sin(2 * y)" in row for row in painted(app))


@pytest.mark.parametrize(
    ("key", "verb"), [("x", "leave"), ("slash", "leave"), ("colon", "leave"), ("enter", "close"), ("P", "close")]
)
async def test_a_key_that_leads_elsewhere_is_said_with_the_way_back(key, verb):
    app = taught(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        lesson = app.screen.query_one("#tutor", Static)
        before = str(lesson.content)
        await pilot.press(key, "n")
        await pilot.pause()
        assert f"n too. To {verb} it:" in str(lesson.content)
        assert str(lesson.content).endswith("Press  Esc")
        await pilot.press("escape")
        await pilot.pause()
        assert str(lesson.content) == before


async def test_no_text_lies_over_the_lesson():
    app = taught(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        lesson = painted(app)[:2]
        await pilot.press("question_mark")
        await pilot.pause()
        assert [row.strip() for row in painted(app)[:2]] == [row.strip() for row in lesson]


async def test_the_lesson_goes_on_with_its_keys_whatever_the_user_has_made_of_them():
    own = Config(keymap="vscode", keys={"time.next": "x"})
    app = taught(demo(), config=own)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("n", "N", "f10")
        assert app.screen.cursor.position == 3
        assert str(app.screen.query_one("#tutor", Static).content).startswith("3/")


async def test_a_lesson_typed_in_one_go_is_over():
    app = taught(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        for page in PAGES:
            for key in pressed(page.key):
                send(app, key)
        await until(pilot, lambda: "That is all" in str(app._start.query_one("#tutor", Static).content))


@pytest.mark.parametrize(
    "keys", [pressed(":watch x.grad (Enter)"), ["M", "escape"], ["ctrl+p", "escape"], ["p", "escape"]]
)
async def test_a_lesson_asks_for_esc_only_where_something_is_open(keys):
    app = taught(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        for key in [key for page in PAGES[:11] for key in pressed(page.key)]:
            send(app, key)
        lesson = app._start.query_one("#tutor", Static)
        await until(pilot, lambda: str(lesson.content).startswith("12/"))
        for key in keys:
            send(app, key)
        await until(pilot, lambda: app.screen is app._start and not app._start.query_one(Prompt).display)
        await until(pilot, lambda: not app.typed_ahead)
        assert "To leave it" not in str(lesson.content)


async def test_a_remark_and_the_prompt_are_seen_where_the_lesson_has_the_row_of_keys():
    app = taught(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("b")
        assert "breakpoint 1" in painted(app)[-1]
        body = app.screen.query_one("#body").size
        await pilot.press("colon", *"watch")
        assert painted(app)[-1].startswith(" :watch")
        assert app.screen.query_one("#body").size == body
        await pilot.press("escape", "n")
        assert "#2 w" in painted(app)[-1]


def test_every_page_waits_for_its_line_in_line_mode():
    output = io.StringIO()
    text = "".join(f"output\n{page.typed}\n" for page in PAGES)
    teach(recording("01_product_and_sine"), io.StringIO(text), output)
    said = output.getvalue()
    assert said.count("the lesson waits for:") == len(PAGES)
    assert [said.count(f"\n{at}/{len(PAGES)}  ") for at in range(1, len(PAGES) + 1)] == [1] * len(PAGES)
    assert "That is all" in said


def test_who_has_gone_too_far_is_led_back_before_the_lesson_goes_on():
    output = io.StringIO()
    two = [page.typed for page in PAGES[:2]]
    lost = [
        "goto end",
        "phase",
        "goto start",
        "phase",
        "phase",
        "list",
        "tape",
        "graph",
        "goto end",
        "n",
        "goto start",
        "n",
    ]
    lines = [*two, *lost, "phase", "n", "s", "b"]
    teach(demo(), io.StringIO("\n".join(lines)), output)
    said = output.getvalue()
    assert said.count("You are past what comes next. Back to the first event:  Type  goto start") == 1
    assert said.count("Back to where the backward pass begins:  Type  reverse-phase") == 1
    assert said.count("To where it begins:  Type  phase") == 1
    assert said.index(f"9/{len(PAGES)}") > said.rindex("To where it begins")


def test_a_lesson_that_is_over_waits_for_nothing():
    tutor = Tutor()
    tutor._at = len(PAGES)
    assert tutor.page is None
    assert tutor.expected() == ""


def test_the_command_teaches_on_the_first_lesson():
    lines = "".join(f"{page.typed}\n" for page in PAGES)
    done = subprocess.run(
        [sys.executable, "-m", "gviz", "tutor", "--plain"], input=lines, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "That is all" in done.stdout
    assert "#1 x: .grad is 8" in done.stdout
    assert done.stdout.count("  += 4 from #3 mul") == 2


async def test_a_typed_command_runs_once():
    app = taught(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("colon", *"help words", "enter")
        await pilot.pause()
        assert len(app.screen_stack) == 2
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen_stack) == 1
        await pilot.press("greater_than_sign", "colon", *"last x.grad", "enter")
        await pilot.pause()
        await until(pilot, lambda: not app.screen.busy)
        rows = "\n".join(painted(app))
    assert "did not change" not in rows
    assert "x: .grad" in rows


def test_no_handler_of_the_terminal_runs_twice():
    """Textual calls the handlers of all base classes, unless one prevents it: ``super().on_key()`` runs one again."""
    for path in sorted(Path(gviz.tui.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("on_"):
                text = ast.unparse(node)
                if f"super().{node.name}(" in text and node.name != "on_event":
                    assert "prevent_default()" in text, f"{path}:{node.lineno}"


async def test_from_the_end_one_key_leads_back_to_the_page_of_the_backward_pass():
    app = taught(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        for page in PAGES[:6]:
            await pilot.press(*pressed(page.key))
            await pilot.pause()
        await pilot.press("greater_than_sign")
        await pilot.pause()
        assert str(app.screen.query_one("#tutor", Static).content).endswith("{")
        await pilot.press("left_curly_bracket")
        await pilot.pause()
        assert str(app.screen.query_one("#tutor", Static).content).startswith("7/17  Now gradients flow")
