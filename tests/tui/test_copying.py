"""What `copy` puts on the clipboard, and what `report` writes."""

import ast
from pathlib import Path

import pytest
from driving import app_of, transcript
from recording import timeline_of
from stories import demo

from gviz import engine as torch


def matrix():
    def program():
        w = torch.tensor([[0.1, 2.0], [float("nan"), -3.5]], requires_grad=True)
        (w * w).sum().backward()

    return timeline_of(program)


def said_to(timeline, *commands, at=None):
    """What line mode says to the last of some commands."""
    return transcript(timeline, *commands, at=at).rpartition(f"(gviz) {commands[-1]}\n")[2].rstrip("\n")


@pytest.mark.parametrize(
    ("words", "copied"),
    [("copy", "3.0"), ("copy grad", "-14.0"), ("copy x.grad * 2", "-28.0"), ("y norm(x.grad)", "14.0")],
)
def test_numbers_are_copied_as_python_writes_them(words, copied):
    assert said_to(demo(), "goto end", "select x", words) == copied


def test_an_array_is_copied_with_all_its_digits():
    text = said_to(matrix(), "select w", "copy value")
    assert ast.literal_eval(text.replace("nan", "0")) == [[0.1, 2.0], [0, -3.5]]


def test_a_node_is_copied_as_a_line_with_place_value_and_gradient():
    assert said_to(demo(), "goto end", "select x", "copy node").startswith("#1 x at ")
    assert said_to(demo(), "goto end", "select x", "copy node").endswith(": value 3, grad -14")


@pytest.mark.parametrize(
    ("words", "says"), [("copy grad", "has no grad at event 1"), ("copy nosuch", "there is no nosuch here")]
)
def test_what_cannot_be_copied_says_so(words, says):
    assert says in said_to(demo(), words, at=1)


async def test_the_key_and_the_menu_copy_to_the_clipboard():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("y")
        assert app.clipboard == "3.0"
        assert app.screen.remark == "sent to the terminal's clipboard: 3.0"


def test_a_report_says_where_it_is_and_has_no_values_or_names(tmp_path, monkeypatch):
    monkeypatch.setattr("gviz.system.crash.reports", lambda: tmp_path / "log")
    said = said_to(demo(), "goto end", "report")
    (path,) = (tmp_path / "log").iterdir()
    assert str(path) in said
    text = Path(path).read_text()
    assert f"recording of {len(demo())} events" in text
    assert "loss" not in text
    assert "-14" not in text


def test_a_report_that_cannot_be_written_says_why(tmp_path, monkeypatch):
    (tmp_path / "log").write_text("in the way")
    monkeypatch.setattr("gviz.system.crash.reports", lambda: tmp_path / "log")
    assert "no report could be written" in said_to(demo(), "report")


async def test_the_key_for_a_script_says_where_it_went_and_names_the_way_to_a_file():
    app = app_of(matrix(), at=len(matrix()))
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.press("G", "Y")
        lines = app.clipboard.count("\n")
        said = f"sent to the terminal's clipboard: {lines} lines; copy script FILE writes a file"
        assert app.screen.remark == said


def test_a_script_goes_to_a_file_that_does_not_exist_yet(tmp_path):
    path = tmp_path / "again.py"
    words = f"copy script {path}"
    assert str(path) in said_to(matrix(), "goto end", "select #2", words)
    assert path.read_text() == said_to(matrix(), "goto end", "select #2", "copy script") + "\n"
    path.write_text("mine")
    assert "already exists" in said_to(matrix(), "goto end", "select #2", words)
    assert path.read_text() == "mine"
