"""What the page on graph mode shows is what gviz prints."""

import re
from pathlib import Path

import pytest
from cli.programs import gviz

PAGE = (Path(__file__).parents[2] / "docs" / "graph_mode.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
SESSIONS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    for name, text in PROGRAMS.items():
        (folder / name).write_text(f"# {name}\n{text}")
    other = (folder / "product.py").read_text().replace("tensor(3.0", "tensor(3.5")
    (folder / "other.py").write_text(other)
    return folder


def test_there_are_programs_and_sessions():
    assert (len(PROGRAMS), len(SESSIONS)) == (2, 3)


@pytest.mark.parametrize("session", range(len(SESSIONS)))
def test_a_session_is_what_is_printed(folder, session):
    for step in re.split(r"^\$ gviz ", SESSIONS[session], flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', command)]
        code, out, err = gviz(*words, cwd=folder)
        assert code in (0, 1), err
        assert out == shown
