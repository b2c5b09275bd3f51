"""An optimizer that a loop makes anew, so that it loses what it keeps from step to step."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import OptimizerStepped
from gviz.explain.finding import Finding, Number
from gviz.explain.parameter_updates import options_of
from gviz.explain.program_text import (
    called_name,
    frame_of,
    names_set,
    receiver,
    statement_at,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import Edit, lines_replaced, places_in
from gviz.explain.source_frames import at_text
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown

_FEWEST_STEPS = 3
"""The fewest steps after which a loop, and not an accident, makes the optimizer anew."""


def new_optimizer(survey: Survey) -> Iterator[Finding | None]:
    """Yield optimizers that keep averages and that the loop of their step makes anew, for the same parameters."""
    timeline = survey.timeline
    steps: defaultdict[int, list[tuple[int, OptimizerStepped]]] = defaultdict(list)
    for seq, event in survey.select(OptimizerStepped):
        yield None
        if event.parameters and not event.raised:
            steps[event.stack].append((seq, event))
    for stack, each in steps.items():
        (seq, first), at = each[0], next(iter(timeline.stack(stack)), None)
        if (
            len(each) < _FEWEST_STEPS
            or len({event.parameters for _, event in each}) > 1
            or not _keeps(timeline, seq, first)
        ):
            continue
        construction = assignment_in_loop(timeline, at, receiver(timeline, at, "step"), first.kind)
        if construction is None:
            continue
        text = f"the loop makes a new {shown(first.kind)} before each of {len(each)} steps"
        lost = f"each step{at_text(timeline.stack(stack))} starts without the running averages of earlier steps"
        part = Finding("used", lost, seq, first.parameters[0])
        fix = "make the optimizer once, before the loop"
        numbers = (Number("steps", len(each)),)
        yield Finding("new-optimizer", text, seq, 0, (part,), fix, construction.at, numbers, edit=construction.edit)


def _keeps(timeline: Timeline, seq: int, step: OptimizerStepped) -> bool:
    """Return whether an optimizer keeps anything from step to step: SGD does so with momentum only."""
    return step.kind != "SGD" or bool(options_of(timeline, step.parameters[0], seq).get("momentum"))


# What the text of the program says


@dataclass(frozen=True, slots=True)
class _RepeatedStatement:
    """A statement that every iteration of a loop repeats: its line, and the edit that moves it before the loop."""

    at: Frame
    edit: Edit | None


def assignment_in_loop(timeline: Timeline, at: Frame | None, name: str, function: str) -> _RepeatedStatement | None:
    """Return the statement that assigns a call of a function to a name, in the innermost loop around a frame.

    A statement in a branch of the loop may run now and then only, and does not count. Neither does a call that reads
    what the loop assigns, since each iteration may need a call of its own.
    """
    source = statement_at(timeline, at)
    loops = [part for part in source[1].around if isinstance(part, ast.For | ast.While)] if source is not None else []
    if source is None or at is None or not loops:
        return None
    text, loop = source[0], loops[-1]
    for one in text.statements:
        value = getattr(one.node, "value", None)
        if not isinstance(value, ast.Call) or called_name(value) != function or name not in names_set(one.node):
            continue
        if one.around[-1] is loop and one.first < at.line:
            if (places_in(value, ast.Load) - places_in(value, ast.Store)) & places_in(loop, ast.Store):
                return None
            rows = text.rows[loop.lineno - 1 : one.first - 1]
            head = text.rows[loop.lineno - 1]
            indent = head[: len(head) - len(head.lstrip())]
            new = "".join(f"{row}\n" for row in [f"{indent}{text.segment(one.node)}", *rows])
            edit = lines_replaced(text, loop.lineno, one.last, new) if text.is_alone(one) else None
            return _RepeatedStatement(frame_of(at, one.first, text), edit)
    return None
