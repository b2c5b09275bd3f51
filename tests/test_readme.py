"""What the README says exists."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from cli.programs import gviz_here

from gviz.cli import lessons
from gviz.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = {"README.md": README} | {path.name: path.read_text() for path in (ROOT / "docs").glob("*.md")}
CONSOLE = [
    line.partition("  #")[0].split() for page in PAGES.values() for line in re.findall(r"^\$ (gviz .*)", page, re.M)
]


def test_every_command_is_shown_and_every_shown_command_exists():
    shown = README + PAGES["command_line.md"]
    assert set(re.findall(r"^\$ gviz (\w+)", shown, re.MULTILINE)) == set(COMMANDS)
    assert {words[1] for words in CONSOLE} <= set(COMMANDS)


def test_options_shown_exist():
    for name in {words[1] for words in CONSOLE}:
        _, help_text, _ = gviz_here(name, "--help", cwd=ROOT)
        for words in (words for words in CONSOLE if words[1] == name):
            own = words if name not in ("run", "record") else words[: 2 + 2 * ("-o" in words)]
            assert not [word for word in own if word.startswith("-") and word not in help_text], words


def test_make_targets_exist():
    rules = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"(?:`|\$ )make (\w+)", README + PAGES["house.md"])) <= set(rules)


def test_pictures_exist():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert pictures
    assert not [picture for picture in pictures if not (ROOT / picture).is_file()]


def test_every_house_is_described():
    folders = {path.parent.name for path in (ROOT / "gviz").glob("*/__init__.py")}
    assert {folder for folder in folders if f"`gviz/{folder}/`" not in PAGES["house.md"]} == set()


def test_paths_exist():
    for page, text in PAGES.items():
        named = re.findall(r"`((?:gviz|samples|tests|benchmarks|\.ci)/[\w/.]*)`", text)
        assert not [path for path in named if not (ROOT / path).exists()], page


def test_links_lead_somewhere():
    for page, text in PAGES.items():
        folder = ROOT if page == "README.md" else ROOT / "docs"
        links = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", text)
        assert not [link for link in links if not (folder / link).exists()], page


def test_lessons_are_listed_in_order():
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGES["lessons.md"], re.MULTILINE)
    assert rows == [(lesson.name, lesson.title()) for lesson in lessons.lessons()]


def test_the_queries_answer(tmp_path):
    queries = re.findall(r'^\$ sqlite3 train.gviz "(.*)"', PAGES["recording.md"], re.MULTILINE)
    assert len(queries) == 3
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript((ROOT / "gviz/trace/file/schema.sql").read_text())
        for query in queries:
            assert connection.execute(query).description


def test_the_python_example_runs(tmp_path):
    [example] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "example.py").write_text(example)
    command = [sys.executable, "-c", f"import sys; sys.path.append({str(ROOT)!r}); exec(open('example.py').read())"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert re.fullmatch(r"\d+ events\n", done.stdout), done.stderr
