"""Writes ``findings.md``: what `gviz check` looks for and `gviz explain` says. Run it as ``make findings``."""

from __future__ import annotations

from pathlib import Path

from gviz.explain.kinds import KINDS, Kind

PATH = Path(__file__).with_name("findings.md")
_HEAD = """\
# What gviz finds

Written by `make findings` from the table of kinds (`gviz/explain/kinds.py`); do not edit. `gviz check` looks for
errors and warnings in a whole recording; `--only` and `--ignore` take these names. `gviz explain`, and `e` in the
debugger, answer questions with any of them. A warning that may be meant so where it is found is a note, too.
"""
_SECTIONS = {
    "error": "Errors: it raised, or computes something wrong",
    "warning": "Warnings: it is most likely wrong",
    "note": "Notes: it is possible, and may be meant so",
    "fact": "Facts: what is, as the answer to a question",
}


def text() -> str:
    """The page as it should be."""
    return _HEAD + "".join(_section(severity, title) for severity, title in _SECTIONS.items())


def _section(severity: str, title: str) -> str:
    rows = "".join(_row(kind) for kind in KINDS if kind.severity == severity)
    return f"\n## {title}\n\n| name | meaning |\n|---|---|\n{rows}"


def _row(kind: Kind) -> str:
    return f"| `{kind.name}` | {kind.meaning} |\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
