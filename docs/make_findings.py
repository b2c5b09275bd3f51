"""Writes ``findings.md``: what `gviz check` looks for and `gviz explain` says. Run it as ``make findings``."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.answers import RESULTS
from gviz.explain.finding_kinds import KINDS, Kind

PATH = Path(__file__).with_name("findings.md")
_HEAD = """\
# What gviz finds

Written by `make findings` from the table of kinds (`gviz/explain/finding_kinds.py`); do not edit. `gviz check` looks
for errors and warnings in a whole recording; `--only` and `--ignore` take these names. `gviz explain`, and `e` in the
debugger, answer questions with any of them. A warning that may be intended is reported as a note.
"""
_SECTIONS = {
    "error": "Errors: the program raised, or its result is wrong",
    "warning": "Warnings: most likely a mistake",
    "note": "Notes: may be intended",
    "fact": "Facts: answers to questions",
}


def text() -> str:
    """The page as it should be."""
    return _HEAD + "".join(_section(severity, title) for severity, title in _SECTIONS.items()) + _measured()


_MEASURED = """
## Measured

`python -m benchmarks.answers --write` checks {sick} programs with one mistake each, of {kinds} kinds that people ask
about in public, and {healthy} programs without any. An answer counts if it names the line of the mistake, and the cause
there. Where it carries an edit, the edit is applied, and the program must then be right.

| programs | PyTorch | the built-in engine |
|---|---|---|
"""


def _measured() -> str:
    """What the programs of the benchmark were answered when it was run last."""
    told = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = (
        ("line named", "line", "sick"),
        ("cause named, too", "cause", "sick"),
        ("right with the edit", "mended", "edits"),
        ("healthy, with a warning or an error", "alarms", "healthy"),
    )
    each = [told["torch"], told["builtin"]]
    lines = [f"| {what} | {' | '.join(f'{one[number]} of {one[of]}' for one in each)} |\n" for what, number, of in rows]
    lines.append(f"| not run: the engine lacks names they use | {' | '.join(str(one['left']) for one in each)} |\n")
    engines = zip(("PyTorch", "the built-in engine"), each, strict=True)
    missed = "".join(f"* {engine}: {', '.join(sorted(one['missed'])) or 'none'}\n" for engine, one in engines)
    return _MEASURED.format(**each[0]) + "".join(lines) + f"\nNot answered yet, by engine:\n\n{missed}"


def _section(severity: str, title: str) -> str:
    rows = "".join(_row(kind) for kind in KINDS if kind.severity == severity)
    return f"\n## {title}\n\n| name | meaning |\n|---|---|\n{rows}"


def _row(kind: Kind) -> str:
    return f"| `{kind.name}` | {kind.meaning} |\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
