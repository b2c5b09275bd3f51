"""The expression of the program that was running when something happened, as Python reads it."""

from __future__ import annotations

import ast
from textwrap import dedent

from gviz import syntax
from gviz.site import Frame, source_lines
from gviz.trace.timeline import Timeline


def expression(timeline: Timeline, at: Frame | None) -> ast.AST | None:
    """What was running at a frame: the expression, or its whole lines where the columns are not known; None if none."""
    text = timeline.source(at.path) if at is not None else None
    if at is None or not text:
        return None
    rows = [row.encode() for row in source_lines(text)[at.line - 1 : at.end_line]]
    if rows and at.column >= 0:
        rows[-1] = rows[-1][: at.end_column]
        rows[0] = rows[0][at.column :]
    running = b"\n".join(rows).decode(errors="replace")
    try:
        return syntax.program(f"({running})" if at.column >= 0 else dedent(running))
    except (SyntaxError, ValueError):  # the file is another by now, or these lines are a part of a statement
        return None


def called(timeline: Timeline, at: Frame | None) -> str:
    """The last name of what the outermost call that was running at a frame calls; empty if none is known."""
    running = expression(timeline, at)
    calls = (node for node in ast.walk(running) if isinstance(node, ast.Call)) if running is not None else ()
    return next(map(called_name, calls), "")


def called_name(call: ast.Call) -> str:
    """The last name of what a call calls: ``item`` of ``x.sum().item()``."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def names_in(part: ast.AST) -> set[str]:
    """The variables that a part of an expression reads."""
    return {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
