"""The table of kinds: closed, complete, and what the page says."""

import ast
import re
from pathlib import Path

import gviz
import gviz.explain
from docs.make_findings import PATH, text
from gviz.explain.finding_kinds import BY_NAME, KINDS, findable

FILES = sorted((Path(gviz.explain.__file__).parent / "findings").rglob("*.py"))
RANKS = Path(gviz.__file__).parent / "render" / "ranks_text.py"
QUESTIONS = [Path(gviz.explain.__file__).parent / name for name in ("why.py", "typed_question.py")]


def test_every_kind_is_in_the_table_once():
    assert len(BY_NAME) == len(KINDS)


def test_every_kind_has_a_function_or_is_made_by_that_of_another():
    texts = "".join(path.read_text() for path in (*FILES, RANKS, *QUESTIONS))
    alone = [kind for kind in KINDS if not (kind.answer or kind.explain or kind.find)]
    assert [kind.name for kind in alone if f'"{kind.name}"' not in texts] == []


def test_every_kind_that_a_check_reports_is_asked_for_by_a_test():
    asked = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [kind.name for kind in findable() if f'"{kind.name}"' not in asked] == []


def test_names_are_words_for_programs():
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.name) for kind in KINDS)


def test_what_a_file_finds_is_of_a_kind_it_declares():
    parts = {"write", "freed", "crossing", "saved", "leaf", "root", "at", "used", "sum", "operand", "first", "nearest",
             "elsewhere", "copied", "share", "spread", "alive", "since", "factor", "beside", "zeros",
             "graph", "more", "healed", "accumulated", "frozen", "earlier", "made-number", "before",
             "dropped", "tried", "overflow", "held", "mask", "padding",
             "became-nan", "became-inf", "carried", "grew", "later", "losses", "used-up", "idle", "leapt", "recomputed",
             "falls", "made", "sign", "term", "unrecorded", "example",
             "earlier-nan", "layer", "no-pass", "older-pass",
             "begins", "draw", "drawn", "terms", "scale",
             "other-loss", "pushes", "recurrence", "uncalled",
             "hook", "message", "modules", "older", "rule", "silent", "size", "target", "undefined"}  # fmt: skip
    for path in FILES:
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        made = {call.args[0].value for call in calls if _makes(call)}
        assert made <= BY_NAME.keys() | parts, path


def _makes(call):
    return isinstance(call.func, ast.Name) and call.func.id == "Finding" and isinstance(call.args[0], ast.Constant)


def test_the_page_is_current():
    assert PATH.read_text(encoding="utf-8") == text()
