"""Findings as SARIF 2.1.0, which code hosts show next to the changed lines."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from gviz.explain.check import RankFinding
from gviz.explain.finding import Finding, edit_of, lines, whole
from gviz.explain.finding_kinds import Kind, findable
from gviz.explain.source_edit import Edit
from gviz.source.call_stack import Frame
from gviz.values.plain_text import shown_json
from gviz.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "note": "note", "fact": "none"}


_NOWHERE = {"physicalLocation": {"artifactLocation": {"uri": "unknown"}, "region": {"startLine": 1}}}
"""The place of a finding without one: code hosts reject a log with a result that has no place."""


Rows = Callable[[Frame], str]
"""Returns the line of the program at a frame, empty if it is unknown."""


def text(findings: list[RankFinding], ranks: Callable[[RankFinding], str], rows: Callable[[RankFinding], Rows]) -> str:
    """Return one SARIF log with one run. Paths below the working directory are relative.

    The text of `ranks` is appended to the first line of a finding; `rows` returns the lines of its program.
    """
    rules = [_rule(kind) for kind in findable()]
    driver = {"name": "gviz", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "results": [_result(one, ranks(one), rows(one)) for one in findings],
        "columnKind": "unicodeCodePoints",
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return shown_json(json.dumps(document, indent=2, ensure_ascii=False))


def _rule(kind: Kind) -> dict[str, Any]:
    meaning = {"text": kind.meaning}
    level = {"level": _LEVELS[kind.severity]}
    return {"id": kind.name, "shortDescription": meaning, "fullDescription": meaning, "help": meaning,
            "defaultConfiguration": level}  # fmt: skip


def _result(rank_finding: RankFinding, ranks: str, rows: Rows) -> dict[str, Any]:
    one, finding = rank_finding.checked, rank_finding.checked.finding
    first, *rest = (text for _, text, _ in lines(finding))
    at = finding.at or next((part.at for part in _placed(finding)), None)
    result: dict[str, Any] = {
        "ruleId": finding.kind,
        "level": _LEVELS[one.level],
        "message": {"text": "\n".join([f"{first}{ranks}", *rest])},
        "locations": [_location(at, rows)] if at is not None else [_NOWHERE],
    }
    related = [
        {"message": {"text": part.text}, **_location(part.at, rows)} for part in _placed(finding) if part.at is not None
    ]
    if (edit := edit_of(finding)) is not None:
        result["fixes"] = [_fix(edit, finding.fix)]
    return result | ({"relatedLocations": related} if related else {})


def _fix(edit: Edit, description: str) -> dict[str, Any]:
    """Return an edit as a replacement of whole lines."""
    region = {"startLine": edit.line, "startColumn": 1, "endLine": edit.end_line + 1, "endColumn": 1}
    replaced = {"deletedRegion": region, "insertedContent": {"text": edit.new}}
    return {
        "description": {"text": description or "edit the program"},
        "artifactChanges": [{"artifactLocation": {"uri": _uri(edit.path)}, "replacements": [replaced]}],
    }


def _placed(finding: Finding) -> Iterator[Finding]:
    return (part for part in whole(finding) if part is not finding and part.at is not None)


def _location(frame: Frame, rows: Rows) -> dict[str, Any]:
    region = {"startLine": frame.line, "endLine": max(frame.end_line, frame.line), **_columns(frame, rows)}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(frame.path)}, "region": region}}


def _columns(frame: Frame, rows: Rows) -> dict[str, int]:
    """Return the columns of an expression, counted in characters from 1; a frame counts the bytes of UTF-8 from 0."""
    if (frame.end_line, frame.end_column) < (frame.line, frame.column):
        return {}
    last = frame if frame.end_line == frame.line else msgspec.structs.replace(frame, line=frame.end_line)
    first_row, last_row = rows(frame).encode(), rows(last).encode()
    if not 0 <= frame.column <= len(first_row) or not 0 < frame.end_column <= len(last_row):
        return {}
    start, end = (
        len(row[:column].decode(errors="replace"))
        for row, column in ((first_row, frame.column), (last_row, frame.end_column))
    )
    return {"startColumn": start + 1, "endColumn": end + 1}


def _uri(path: str) -> str:
    """Return a path below the working directory as a relative URI, any other as it is. All else is percent-encoded."""
    here, whole = Path.cwd(), Path(path)
    if whole.is_absolute() and whole.is_relative_to(here):
        whole = whole.relative_to(here)
    name = quote(os.fsencode(whole.as_posix()))
    return f"file://{name}" if whole.is_absolute() else name
