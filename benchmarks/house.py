"""How the house is built: its files and lines, who imports whom, and how many files an action enters.

These are measures and no limits: a number that a test enforces is obeyed at the cost of what it stood for.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.table import Row

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gviz"


def rows() -> Iterator[Row]:
    """Each measure as it is, with where it is going as the goal."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
    lines = sum(len(path.read_text().splitlines()) for path in trees)
    yield Row("files and lines of gviz/", f"{len(trees)}, {lines:,}", goal="400")
    imports = import_graph(trees)
    importers = Counter(imported for targets in imports.values() for imported in targets)
    yield Row("files that a single other file imports", str(sum(count == 1 for count in importers.values())))
    names = Counter(path.name for path in trees if path.name not in ("__init__.py", "__main__.py"))
    yield Row("files that share their name with another", str(sum(n for n in names.values() if n > 1)), goal="40")
    single = sum(one_function(tree) for tree in trees.values())
    yield Row("files with a single function and no class", str(single))
    sizes = sorted((len(cycle) for cycle in cycles(imports)), reverse=True)
    yield Row("import cycles, files in each", " ".join(map(str, sizes)) or "none", goal="2")
    for what, program, goal in ACTIONS:
        yield Row(f"files entered: {what}", str(entered(program)), goal=goal)


def import_graph(trees: dict[Path, ast.Module]) -> dict[str, set[str]]:
    """For each module, the modules of gviz that it imports: at its head, in functions, under ``TYPE_CHECKING``."""
    modules = {module_name(path): tree for path, tree in trees.items()}
    graph: dict[str, set[str]] = defaultdict(set)
    for name, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                wanted = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            graph[name] |= {target for target in (nearest(it, modules) for it in wanted) if target and target != name}
    return dict(graph)


def module_name(path: Path) -> str:
    """The dotted name of a file, a package's for its ``__init__.py``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def nearest(dotted: str, modules: dict[str, ast.Module]) -> str | None:
    """The module that a dotted name is, or is a name of."""
    return next((it for it in (dotted, dotted.rpartition(".")[0]) if it in modules), None)


def one_function(tree: ast.Module) -> bool:
    """Whether a file is one function."""
    functions = sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in tree.body)
    return functions == 1 and not any(isinstance(node, ast.ClassDef) for node in tree.body)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, however indirectly.

    These are the strongly connected components of more than one module, by Tarjan's algorithm: a depth-first walk in
    which each module learns of the earliest module, still open, that it leads back to. Where that is itself, all that
    was opened since forms a group.
    """
    order: dict[str, int] = {}
    earliest: dict[str, int] = {}
    open_modules: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = earliest[name] = len(order)
        open_modules.append(name)
        for target in sorted(graph.get(name, ())):
            if target not in order:
                visit(target)
                earliest[name] = min(earliest[name], earliest[target])
            elif target in open_modules:
                earliest[name] = min(earliest[name], order[target])
        if earliest[name] == order[name]:
            start = open_modules.index(name)
            group = open_modules[start:]
            del open_modules[start:]
            if len(group) > 1:
                found.append(sorted(group))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 10_000))
    try:
        for name in sorted(graph):
            if name not in order:
                visit(name)
    finally:
        sys.setrecursionlimit(limit)
    return found


LESSON = """
import gviz.engine as torch
x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
z = x * x + torch.sin(x * y); z.backward()
"""
RECORDED = "import gviz\nwith gviz.record(TRACE, force=True):\n" + "".join(
    f"    {line}\n" for line in LESSON.strip().splitlines()
)
ACTIONS = (
    (
        "x * x, recorded",
        "import gviz, gviz.engine as torch\n"
        "with gviz.record(TRACE, force=True):\n"
        "    x = torch.tensor(2.0, requires_grad=True); x * x\n"
        "    count(lambda: x * x)\n",
        "8",
    ),
    ("an SVG of the first lesson", RECORDED + "count(lambda: gviz.export(TRACE, TRACE + '.svg', force=True))\n", "45"),
    ("why x.grad", RECORDED + "count(lambda: gviz.why(gviz.load(TRACE), 'x.grad'))\n", "45"),
    (
        "the key s, to the screen",
        RECORDED + "import asyncio\n"
        "from gviz.tui.app import DebuggerApp\n"
        "from gviz.tui.session_options import SessionOptions, Title\n"
        "async def press():\n"
        "    app = DebuggerApp(gviz.load(TRACE), SessionOptions(Title('lesson.py')), ascii=False, theme=None)\n"
        "    async with app.run_test(size=(120, 40)) as pilot:\n"
        "        await pilot.press('s'); await pilot.pause()\n"
        "        start(); await pilot.press('s'); await pilot.pause(); stop()\n"
        "asyncio.run(press())\n",
        "45",
    ),
)
"""What a user does, as a program that lets the files be counted which it enters the second time."""

COUNTER = """
import sys, threading
FILES, TRACE, PACKAGE = set(), sys.argv[1], sys.argv[2]
def note(frame, event, arg):
    if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
        FILES.add(frame.f_code.co_filename)
def start():
    threading.setprofile(note); sys.setprofile(note)
def stop():
    sys.setprofile(None); threading.setprofile(None)
def count(action):
    action(); start(); action(); stop()
"""


def entered(program: str) -> int:
    """How many files of gviz an action enters, in a process of its own, once what it imports is imported."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "action.py"  # a file, whose lines gviz reads for the names of its variables
        script.write_text(f"{COUNTER}{program}print(len(FILES))")
        command = [sys.executable, str(script), str(Path(folder) / "lesson.gviz"), f"{PACKAGE}/"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return int(done.stdout.splitlines()[-1])
