"""Imports point one way. A room not in this table may not be built before it is."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "gviz"
BOTTOM = {"errors", "plain_text", "values", "site", "numbers"}
MAY_IMPORT = {
    "errors": set(),
    "crash": {"errors"},
    "plain_text": set(),
    "values": set(),
    "site": set(),
    "numbers": {"values"},
    "events": BOTTOM,
    "emit": BOTTOM | {"events"},
    "where": BOTTOM | {"events"},
    "engine": BOTTOM | {"emit", "events"},
    "adapters": BOTTOM | {"emit", "events"},
    "trace": BOTTOM | {"emit", "events", "where"},
    "explain": BOTTOM | {"trace", "events", "where"},
    "compare": BOTTOM | {"trace", "events", "where"},
    "whatif": BOTTOM | {"engine", "trace", "events"},
    "graphify": BOTTOM | {"engine", "trace", "events"},
    "live": BOTTOM | {"trace", "emit", "events", "where"},
    "render": BOTTOM | {"trace", "explain", "compare", "events"},
    "tui": BOTTOM | {"crash", "render", "live", "explain", "compare", "whatif", "trace", "events", "where"},
}
EVERYTHING = {"cli", "notebook", "__init__", "__main__"}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if "samples" not in path.parts)


def imported(path):
    """Every module a file imports, wherever in it, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def room(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    here = room(path)
    if here in EVERYTHING:
        return
    rooms = {name.split(".")[1] for name in imported(path) if name.startswith("gviz.")}
    assert rooms - {here} <= MAY_IMPORT[here]


def test_only_the_adapter_imports_torch():
    importing = {path for path in FILES if any(name.split(".")[0] == "torch" for name in imported(path))}
    assert {str(path.relative_to(PACKAGE)) for path in importing} <= {"adapters/pytorch.py"}


def test_every_room_is_in_the_table():
    assert {room(path) for path in FILES} <= MAY_IMPORT.keys() | EVERYTHING
