"""Hooks of a leaf that write to the leaf: they were meant for the gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import HookRan, OptimizerStarted, OptimizerStepped, StorageWritten
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import (
    positional_parameters,
    program_text,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import wrapped
from gviz.explain.source_frames import at_text
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown


def written_by_hook(survey: Survey) -> Iterator[Finding | None]:
    """Yield hooks after accumulation that write to their parameter and read no gradient: each hook once.

    Such a hook gets the parameter, and not its gradient. One that makes an update of its own reads ``.grad``. A write
    outside of the function of the hook is one of the program, between two hooks.
    """
    timeline, seen = survey.timeline, set[str]()
    since = 0
    for seq, ran in timeline.select((HookRan, OptimizerStarted, OptimizerStepped)):
        if not isinstance(ran, HookRan) or ran.when != "post accumulate" or ran.name in seen:
            since = seq
            continue
        yield None
        written = _written_inside(survey, ran, since, seq)
        since = seq
        if written is None:
            continue
        seen.add(ran.name)
        write, at, function = written
        if ".grad" in function.text:
            continue
        text = titled(
            f"the hook {shown(ran.name)} writes to {{}} itself, not to its gradient", label(timeline, ran.node)
        )
        registered = timeline.stack(ran.stack) if ran.stack else ()
        then = f"a hook after accumulation gets the parameter; it was registered{at_text(registered)}"
        part = Finding("hook", then, seq, ran.node, at=registered[0] if registered else None)
        fix = "write to its .grad in the hook, or use register_hook, whose hook gets the gradient"
        edit = wrapped(timeline, at, function.parameter, ".grad") if function.parameter else None
        yield Finding("written-by-hook", text, write, ran.node, (part,), fix, at, edit=edit)


def _written_inside(survey: Survey, ran: HookRan, start: int, end: int) -> tuple[int, Frame, _FunctionText] | None:
    """Return the first write to the memory of a leaf by its hook between two events, with its line and the hook."""
    record, timeline = survey.nodes.get(ran.node), survey.timeline
    storages = {output.storage for output in record.created.outputs} if record is not None else set()
    for seq, event in timeline.select((StorageWritten,), start, end):
        writer = survey.nodes.get(event.node) if event.storage in storages else None
        at = survey.at(writer) if writer is not None and writer.created.kind == "op" else None
        if writer is None or at is None:
            continue
        functions = (_function_around(timeline, frame, ran.name) for frame in timeline.stack(writer.created.stack))
        function = next((one for one in functions if one is not None), None)
        if function is not None:
            return seq, at, function
    return None


@dataclass(frozen=True, slots=True)
class _FunctionText:
    """The text of a function, and its first parameter; that of a method is the one after ``self``."""

    text: str
    parameter: str


def _function_around(timeline: Timeline, at: Frame | None, name: str) -> _FunctionText | None:
    """Return the function with this name, or the lambda, in which a frame is; None if it is in no such function."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    last = name.rpartition(".")[2]
    for part in ast.walk(text.tree):
        if not isinstance(part, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        known = "<lambda>" if isinstance(part, ast.Lambda) else part.name
        if known == last and _is_inside(part, at):
            names = positional_parameters(part)
            is_method = names[:1] in (["self"], ["cls"])
            return _FunctionText(text.segment(part), next(iter(names[is_method:]), ""))
    return None


def _is_inside(part: ast.expr | ast.stmt, at: Frame) -> bool:
    """Return whether the expression at a frame is a part of another. Unknown columns are those of the whole line."""
    start, end = (part.lineno, part.col_offset), (part.end_lineno or part.lineno, part.end_col_offset or 0)
    here = (at.line, at.column) if at.column >= 0 else (at.line, part.col_offset)
    return start <= here <= end
