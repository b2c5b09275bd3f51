"""The commonest reason for a number that has no ``backward``: a line that took it out of its tensor."""

from __future__ import annotations

import re

from gviz.explain.trouble import Trouble
from gviz.plain_text import clipped, file_line
from gviz.site import source_lines

_TAKEN_OUT = r"\.item\(\)|\.tolist\(\)|\.numpy\(\)|\bfloat\(|\bint\("


def number_called(trouble: Trouble) -> str:
    """The name on which ``backward`` was called though it is a number; empty for any other error."""
    if not re.match(r"'(float|int|list|numpy\.\w+)' object has no attribute 'backward'", trouble.message):
        return ""
    called = re.search(r"([A-Za-z_]\w*)\.backward\b", trouble.line)
    return called[1] if called else ""


def made_number(trouble: Trouble, name: str) -> str:
    """The last line up to that of the error that made a name a number: ``train.py:9: loss = loss.item()``, or empty."""
    at = trouble.at
    text = trouble.timeline.source(at.path) if at is not None else None
    if at is None or text is None:
        return ""
    making = re.compile(rf"(?<![\w.]){name}\s*=(?!=)[^;#]*(?:{_TAKEN_OUT})[^;#]*")
    for line, row in reversed(list(enumerate(source_lines(text)[: at.line], 1))):
        if found := making.search(row):
            return f"{file_line(at.path, line)}: {clipped(found[0].strip(), 100)}"
    return ""
