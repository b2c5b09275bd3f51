"""An optimizer that a loop makes anew, so that it loses what it keeps from step to step.

Limits. A new optimizer is right where nothing of the last step is worth keeping:

* the program restored or replaced the parameters before the step, as in an adaptation to each batch that begins at the
  same model: ``net.load_state_dict(source)``
* the step is a whole minimization: ``LBFGS.step(closure)`` evaluates the closure many times
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gviz.events import DataSet, OptimizerStarted, OptimizerStepped, StorageWritten
from gviz.explain.finding import Finding, Number
from gviz.explain.optimizer_construction import constructions
from gviz.explain.parameter_updates import (
    Write,
    is_unseen,
    nodes_with_numbers,
    options_of,
    writer_of,
    written_parameter,
)
from gviz.explain.program_text import (
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
        yield None
        if _are_minimizations(survey, each) or _are_replaced(survey, each):
            continue
        construction = construction_in_loop(timeline, at, receiver(timeline, at, "step"), first.kind)
        if construction is None:
            continue
        text = f"the loop makes a new {shown(first.kind)} before each of {len(each)} steps"
        lost = f"each step{at_text(timeline.stack(stack))} starts without the running averages of earlier steps"
        part = Finding("used", lost, seq, first.parameters[0])
        fix = "make the optimizer once, before the loop"
        numbers = (Number("steps", len(each)),)
        yield Finding("new-optimizer", text, seq, 0, (part,), fix, construction.at, numbers, edit=construction.edit)


_FEWEST_EVALUATIONS = 3
"""The fewest passes in a step that make it a minimization of its own: a closure with a correction has two."""

_REPLACING = {"copy", "fill", "zero", "zeros", "ones", "constant", "uniform", "normal", "set"}


def _are_minimizations(survey: Survey, steps: Sequence[tuple[int, OptimizerStepped]]) -> bool:
    """Return whether the steps run their closure many times on average: the last ones may have little to do."""
    starts = [seq for seq, event in survey.timeline.select((OptimizerStarted,)) if event.stack == steps[0][1].stack]
    if len(starts) != len(steps):
        return False
    passes = [seq for seq, _ in survey.passes]
    ends = [seq for seq, _ in steps]
    inside = sum(bisect_left(passes, end) - bisect_left(passes, start) for start, end in zip(starts, ends, strict=True))
    return inside >= _FEWEST_EVALUATIONS * len(steps)


def _are_replaced(survey: Survey, steps: Sequence[tuple[int, OptimizerStepped]]) -> bool:
    """Return whether the program gave a parameter other numbers after most steps: not those of the step, changed."""
    timeline, parameters = survey.timeline, {*steps[0][1].parameters}
    owners = {out.storage: node for node in parameters for out in survey.nodes[node].created.outputs[:1]}
    ends, replaced = [seq for seq, _ in steps], set[int]()
    writes: Iterator[tuple[int, Write]] = survey.select(StorageWritten, DataSet)
    for seq, event in writes:
        place, node = bisect_left(ends, seq), written_parameter(event, owners)
        if not 0 < place < len(ends) or place in replaced or node not in parameters or timeline.contexts.steps_at(seq):
            continue
        if _is_replaced(survey, node, event, seq, ends[place - 1]):
            replaced.add(place)
    return 2 * len(replaced) > len(ends) - 1


def _is_replaced(survey: Survey, node: int, write: Write, seq: int, stepped: int) -> bool:
    """Return whether a write gives a parameter numbers that were not computed from its own since a step."""
    writer = writer_of(write)
    if is_unseen(survey.timeline, node, writer):  # load_state_dict, or ``parameter.data = ...``
        made = [one for one in nodes_with_numbers(survey.timeline, write.value, seq) if one != node]
    else:
        record = survey.nodes.get(writer)
        if (
            record is None
            or record.op not in _REPLACING
            or record.value is None
            or record.value.size != write.value.size
        ):
            return False
        made = [one.node for one in list(survey.sources(record))[1:]]
    nodes = survey.timeline.nodes
    waiting = [one for one in made if nodes.born(one) > stepped]
    seen = set(waiting)
    while waiting:
        sources = nodes.inputs_by_node.get(waiting.pop(), ())
        if node in sources:
            return False
        new = [one for one in sources if one and one not in seen and nodes.born(one) > stepped]
        waiting += new
        seen.update(new)
    return True


def _keeps(timeline: Timeline, seq: int, step: OptimizerStepped) -> bool:
    """Return whether an optimizer keeps anything from step to step: SGD does so with momentum only."""
    return step.kind != "SGD" or bool(options_of(timeline, step.parameters[0], seq).get("momentum"))


# What the program's source code shows


@dataclass(frozen=True, slots=True)
class _RepeatedStatement:
    """A statement that every iteration of a loop repeats: its line, and the edit that moves it before the loop."""

    at: Frame
    edit: Edit | None


def construction_in_loop(timeline: Timeline, at: Frame | None, name: str, kind: str) -> _RepeatedStatement | None:
    """Return the statement that makes an optimizer of a class under a name, in the innermost loop around a frame.

    A statement in a branch of the loop may run now and then only, and does not count. Neither does a call that reads
    what the loop assigns, since each iteration may need a call of its own.
    """
    source = statement_at(timeline, at)
    loops = [part for part in source[1].around if isinstance(part, ast.For | ast.While)] if source is not None else []
    if source is None or at is None or not loops:
        return None
    text, loop = source[0], loops[-1]
    for construction in constructions(text, kind):
        one, call = construction.statement, construction.call
        if call is not getattr(one.node, "value", None) or name not in names_set(one.node):
            continue
        if one.around[-1] is loop and one.first < at.line:
            if (places_in(call, ast.Load) - places_in(call, ast.Store)) & places_in(loop, ast.Store):
                return None
            rows = text.rows[loop.lineno - 1 : one.first - 1]
            head = text.rows[loop.lineno - 1]
            indent = head[: len(head) - len(head.lstrip())]
            new = "".join(f"{row}\n" for row in [f"{indent}{text.segment(one.node)}", *rows])
            edit = lines_replaced(text, loop.lineno, one.last, new) if text.is_alone(one) else None
            return _RepeatedStatement(frame_of(at, one.first, text), edit)
    return None
