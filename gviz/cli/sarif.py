"""Findings as SARIF 2.1.0, which code hosts show next to the changed lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gviz.explain.check import RankFinding
from gviz.explain.edit import Edit
from gviz.explain.finding import Finding, edit_of, lines, whole
from gviz.explain.kinds import Kind, findable
from gviz.source.site import Frame
from gviz.values.plain_text import shown, shown_json
from gviz.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "note": "note", "fact": "none"}


_NOWHERE = {"physicalLocation": {"artifactLocation": {"uri": "unknown"}, "region": {"startLine": 1}}}
"""The place of a finding without one: code hosts reject a log with a result that has no place."""


def text(findings: list[RankFinding], ranks: Callable[[RankFinding], str]) -> str:
    """Return one SARIF log with one run. Paths below the working directory are relative.

    The text of `ranks` is appended to the first line of a finding.
    """
    rules = [_rule(kind) for kind in findable()]
    driver = {"name": "gviz", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "results": [_result(one, ranks(one)) for one in findings],
        "columnKind": "unicodeCodePoints",
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return shown_json(json.dumps(document, indent=2, ensure_ascii=False))


def _rule(kind: Kind) -> dict[str, Any]:
    meaning = {"text": kind.meaning}
    level = {"level": _LEVELS[kind.severity]}
    return {"id": kind.name, "shortDescription": meaning, "fullDescription": meaning, "help": meaning,
            "defaultConfiguration": level}  # fmt: skip


def _result(rank_finding: RankFinding, ranks: str) -> dict[str, Any]:
    one, finding = rank_finding.checked, rank_finding.checked.finding
    first, *rest = (text for _, text, _ in lines(finding))
    at = finding.at or next((part.at for part in _placed(finding)), None)
    result: dict[str, Any] = {
        "ruleId": finding.kind,
        "level": _LEVELS[one.level],
        "message": {"text": "\n".join([f"{first}{ranks}", *rest])},
        "locations": [_location(at)] if at is not None else [_NOWHERE],
    }
    related = [
        {"message": {"text": part.text}, **_location(part.at)} for part in _placed(finding) if part.at is not None
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


def _location(frame: Frame) -> dict[str, Any]:
    region = {"startLine": frame.line, "endLine": frame.end_line}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(frame.path)}, "region": region}}


def _uri(path: str) -> str:
    """Return a path below the working directory as a relative URI, any other as it is."""
    here = Path.cwd()
    whole = Path(shown(path))
    if whole.is_absolute() and whole.is_relative_to(here):
        return quote(whole.relative_to(here).as_posix())
    return whole.as_uri() if whole.is_absolute() else quote(whole.as_posix())
