"""Optimizer steps that the program undoes: before the next step it writes the old numbers back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isclose

import numpy as np

from gviz.events import (
    DataSet,
    NodeCreated,
    OptimizerStarted,
    OptimizerStepped,
    StorageWritten,
)
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.parameter_updates import written_parameter
from gviz.explain.program_text import called_lines, statement_at, variables_of
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, lines_replaced
from gviz.explain.source_frames import innermost, own_frame
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.value import Stats, Value

# Steps that the program undoes: before the next one it writes the old numbers back
#
# ``self.weight.data = round(self.weight.data)`` in each forward: a step moves the weight by less than half the distance
# of two levels, and the next forward puts it back. The numbers right before a step are then those from before the last
# one, all of them. Weights that a clamp holds at its limits do not count, and neither does a program that uses the new
# numbers before it restores the old ones, as first-order meta-learning and a rejected step do.

_FEWEST_LIMITED = 8
"""Fewer numbers than these may be equal to the limited ones by accident."""

_FEWEST_UNDONE = 4


@dataclass(slots=True)
class _Undone:
    """A parameter's numbers before and after its last step, and by which write of the program they were undone."""

    now: Value | None
    before: Value | None = None
    after: Value | None = None
    stepped: int = 0
    write: tuple[int, StorageWritten | DataSet] | None = None
    steps: int = 0
    last_step: int = 0
    undone: list[tuple[int, StorageWritten | DataSet]] = field(default_factory=list)
    change: float = 0.0


def undone_steps(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters whose numbers before a step are, in most iterations, those from before the step before it."""
    timeline = survey.timeline
    parameters = [survey.nodes[node] for node in survey.optimized if node in survey.nodes]
    owners = {out.storage: one.node for one in parameters for out in one.created.outputs[:1] if out.strides is None}
    known = {one.node: _Undone(one.value) for one in parameters}
    of_step, started, running = dict[int, tuple[int, ...]](), dict[int, int](), 0
    for seq, event in timeline.select((OptimizerStarted, OptimizerStepped)):
        if isinstance(event, OptimizerStarted):
            started[event.stack] = seq
        elif isinstance(event, OptimizerStepped):
            of_step[started.pop(event.stack, 0)] = event.parameters
    for seq, event in timeline.select((StorageWritten, DataSet, OptimizerStarted, OptimizerStepped)):
        yield None
        match event:
            case StorageWritten() | DataSet() if (node := written_parameter(event, owners)) in known:
                known[node].now = event.value
                known[node].write = None if running else (seq, event)
            case OptimizerStarted():
                running = seq
                for node in of_step.get(seq, ()):
                    if node in known:
                        _compare(survey, node, known[node])
            case OptimizerStepped(parameters=stepped):
                running = 0
                for one in (known[node] for node in stepped if node in known):
                    one.after, one.stepped, one.last_step, one.steps = one.now, seq, seq, one.steps + 1
    for node, one in known.items():
        if len(one.undone) >= max(_FEWEST_UNDONE, one.steps / 2):
            yield _undone_finding(survey, node, one)


def _compare(survey: Survey, node: int, one: _Undone) -> None:
    """Note whether the numbers before a step that begins are those from before the last step, and why."""
    timeline = survey.timeline
    if one.stepped and one.write is not None and one.now is not None and not _is_alike(timeline, one.after, one.before):
        written = one.write
        is_back = _is_alike(timeline, one.now, one.before) and not _is_limited(timeline, one.before, one.after)
        if is_back and not _is_used_between(survey, node, one.stepped, written):
            one.undone.append(written)
            one.change = max(one.change, _distance(timeline, one.before, one.after))
    one.before, one.stepped, one.write = one.now, 0, None


def _is_alike(timeline: Timeline, one: Value | None, other: Value | None) -> bool:
    """Return whether two values have the same numbers, as far as they are known; the shape does not matter."""
    if one is None or other is None or one.size != other.size:
        return False
    arrays = timeline.array(one), timeline.array(other)
    if arrays[0] is not None and arrays[1] is not None:
        return bool((arrays[0].reshape(-1) == arrays[1].reshape(-1)).all())  # 0 is -0
    stats = one.statistics(), other.statistics()
    if stats[0] is None or stats[1] is None:
        return False
    same = (stats[0].min, stats[0].max, stats[0].zero) == (stats[1].min, stats[1].max, stats[1].zero)
    close = (isclose(was, now, rel_tol=1e-6) for was, now in zip(_means(stats[0]), _means(stats[1]), strict=True))
    return same and all(close)


def _means(stats: Stats) -> tuple[float, float]:
    return stats.mean, stats.rms


def _is_limited(timeline: Timeline, before: Value | None, after: Value | None) -> bool:
    """Return whether a clamp at the largest number brings the old numbers back, or may bring them back."""
    was, became = (timeline.array(value) if value is not None else None for value in (before, after))
    if was is None or became is None:
        stats = before.statistics() if before is not None else None
        return stats is None or isclose(stats.rms, max(abs(stats.min), abs(stats.max)), rel_tol=1e-5)
    limit = np.abs(was).max(initial=0)
    return was.size < _FEWEST_LIMITED or bool((became.reshape(-1).clip(-limit, limit) == was.reshape(-1)).all())


def _distance(timeline: Timeline, before: Value | None, after: Value | None) -> float:
    was, became = (timeline.array(value) if value is not None else None for value in (before, after))
    return float(np.abs(became.reshape(-1) - was.reshape(-1)).max()) if was is not None and became is not None else 0.0


def _is_used_between(survey: Survey, node: int, stepped: int, written: tuple[int, StorageWritten | DataSet]) -> bool:
    """Return whether an operation between a step and a write used the new numbers, other than to compute the write."""
    timeline, (until, event) = survey.timeline, written
    source = _source_of(survey, until, event)
    origins = {source.node, *ancestors(timeline, source.node)} if source is not None else set[int]()
    waiting, count = [node], 0
    while waiting and count < _MOST_USERS:
        for user in timeline.nodes.users(waiting.pop()):
            record = survey.nodes.get(user)
            if record is None or not stepped < record.seq < until or record.node in origins:
                continue
            if record.op not in ("detach", "data") or record.created.requires_grad:
                return True
            waiting.append(user)
            count += 1
    return False


_MOST_USERS = 1000


def _source_of(survey: Survey, seq: int, event: StorageWritten | DataSet) -> NodeRecord | None:
    """Return the operation whose result a write brought: the one that wrote, or that computed what was assigned."""
    writer = survey.nodes.get(event.writer if isinstance(event, DataSet) else event.node)
    if writer is not None and writer.created.kind == "op":
        return writer
    made = (survey.timeline.event(one) for one in range(seq - 1, max(seq - _NEAR, 0), -1))
    same = (
        one.node
        for one in made
        if isinstance(one, NodeCreated) and _is_alike(survey.timeline, one.first_value, event.value)
    )
    return survey.nodes.get(next(same, 0))


_NEAR = 20
"""The events before an assignment to ``.data`` among which its value was computed."""


def _undone_finding(survey: Survey, node: int, one: _Undone) -> Finding:
    timeline, (seq, write) = survey.timeline, one.undone[-1]
    source = _source_of(survey, seq, write)
    frames = timeline.stack(write.stack) if isinstance(write, DataSet) and write.stack else ()
    at = own_frame(frames) or (survey.at(source) if source is not None else None)
    text = titled(f"{{}} gets its old numbers back after {len(one.undone)} of {one.steps} steps", label(timeline, node))
    moved = f"a step moved it by up to {number(one.change)}, and then" if one.change else "a step moved it, and then"
    back = f"{moved} the program wrote the numbers from before the step"
    part = Finding("write", back, seq, node)
    is_own = source is not None and node in ancestors(timeline, source.node)
    edit = _straight_through(timeline, at) if is_own else None
    fix = "do not write these numbers back, or write them before the training only"
    if is_own:
        fix = "keep the exact weight, and compute with a rounded copy: w + (rounded - w).detach()"
    numbers = (Number("undone steps", len(one.undone), seq), Number("steps", one.steps))
    if at is None:  # a copy of a tensor that is no part of the graph
        step = timeline.event(one.last_step)
        line = own_frame(timeline.stack(step.stack)) if isinstance(step, OptimizerStepped) else None
        lines = list(called_lines(timeline, line, "load_state_dict")) or list(called_lines(timeline, line, "copy_"))
        at = lines[0] if len(lines) == 1 else innermost(timeline.info(node))
    return Finding("undone-steps", text, seq, node, (part,), fix, at, numbers, edit=edit)


# What the program's source code shows


def _straight_through(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``self.weight.data = round(self.weight.data)`` with a rounded copy that passes the gradient through.

    ``weight = self.weight + (round(self.weight) - self.weight).detach()`` is what the rest of the function reads then.
    """
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Assign(targets=[ast.Attribute(value=ast.Attribute() as tensor, attr="data")], value=value):
            pass
        case _:
            return None
    if source is None or not isinstance(source[1].around[-1], ast.FunctionDef):
        return None
    (text, one), function = source, source[1].around[-1]
    name, whole, variable = text.segment(tensor), text.segment(value), tensor.attr
    later = [other for other in one.block if other.lineno > one.last]
    reads = [other for other in later if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", text.segment(other))]
    if not reads or variable in variables_of(text, function) or f"{name}.data" not in whole:
        return None
    rounded = whole.replace(f"{name}.data", name)
    rows = [f"{text.indent(one)}{variable} = {name} + ({rounded} - {name}).detach()"]
    last = max(other.end_lineno or other.lineno for other in reads)
    rows += [re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w])", variable, row) for row in text.rows[one.last : last]]
    return lines_replaced(text, one.first, last, "".join(f"{row}\n" for row in rows)) if text.is_alone(one) else None
