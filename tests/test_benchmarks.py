"""The benchmarks run: what they measure is there, and answers. How fast it is nobody asserts."""

import ast
import subprocess
import sys
from pathlib import Path

from benchmarks.house import cycles, entered, import_graph
from benchmarks.key_to_repaint import measured

ROOT = Path(__file__).parents[1]


def test_keys_that_step_are_answered_by_a_repaint():
    presses = measured(blocks=10, repeats=2)
    (_, first), (_, second) = presses["step"]
    (_, back), _ = presses["step back"]
    assert min(first, second, back) > 0


def test_a_table_has_a_row_for_each_case_with_its_ratio():
    command = [sys.executable, "-m", "benchmarks", "mlp"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    headings, row = done.stdout.splitlines()
    assert headings.split() == ["what", "gviz", "the", "alternative", "ratio", "goal"]
    assert row.startswith("MLP 2x256, batch 32, forward + backward ")
    assert row.endswith(" 1.3x")


def test_what_is_no_subject_is_refused_with_those_there_are():
    done = subprocess.run([sys.executable, "-m", "benchmarks", "chian"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("no subject chian; there are chain, ")


def test_modules_that_import_each_other_are_one_cycle_however_indirectly():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a", "f2"}, "f2": set()}
    assert sorted(cycles(graph)) == [["a", "b", "c"], ["d", "e"]]


def test_imports_count_at_the_head_in_functions_and_for_types():
    texts = {
        "one": "import gviz.two\nfrom gviz.room import thing",
        "two": "def late():\n    from gviz.room.file import name",
        "room/__init__": "if TYPE_CHECKING:\n    from gviz.one import x",
        "room/file": "import numpy",
    }
    trees = {ROOT / "gviz" / f"{path}.py": ast.parse(text) for path, text in texts.items()}
    expected = {"gviz.one": {"gviz.two", "gviz.room"}, "gviz.two": {"gviz.room.file"}, "gviz.room": {"gviz.one"}}
    assert import_graph(trees) == expected | {"gviz.room.file": set()}


def test_the_files_that_an_action_enters_are_counted_once_each():
    program = "from gviz.values import number_text\n"
    assert entered(program + "start(); stop()\n") == 0
    assert entered(program + "start(); number_text.number(1.5); number_text.number(2.5); stop()\n") == 1
