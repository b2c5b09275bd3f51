"""Checkpoints: the part of a forward that backward computes again, with other numbers than before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gviz.explain.display_names import is_mask, label, label_at, titled
from gviz.explain.edit import with_keyword
from gviz.explain.finding import Finding
from gviz.explain.program_text import called_lines
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.source.site import Frame
from gviz.trace.timeline import Timeline


def other_recomputation(survey: Survey) -> Iterator[Finding | None]:
    """Yield operations that backward ran again, on the same numbers and with another result, each line once.

    Such an operation draws at random, in most programs. So does a line that makes a tensor of other numbers than in
    the forward. The gradients are then those of another forward than that of the loss.
    """
    timeline, seen = survey.timeline, set[int]()
    again = [record for record in survey.nodes.values() if record.created.during[0] and _may_draw(survey, record)]
    if not again:
        return
    places = {_place(survey, record) for record in again}
    before: defaultdict[tuple[int, _Place, _Numbers], list[NodeRecord]] = defaultdict(list)
    for number, record in enumerate(survey.nodes.values()):
        if not number % _STRETCH:
            yield None
        if not record.created.during[0] and _may_draw(survey, record) and (place := _place(survey, record)) in places:
            before[timeline.iteration_at(record.seq).index, place, _given(survey, record)].append(record)
    inside: dict[int, bool] = {}  # by the call stack of the forward

    def is_inside(record: NodeRecord) -> bool:
        stack = record.created.stack
        if stack not in inside:
            inside[stack] = _is_in_checkpoint(timeline, record)
        return inside[stack]

    for number, record in enumerate(again):
        if not number % _STRETCH:
            yield None
        runs = before[timeline.iteration_at(record.seq).index, _place(survey, record), _given(survey, record)]
        runs = [one for one in reversed(runs) if one.seq < record.seq]
        if record.created.stack in seen or not runs or any(_stored(one) == _stored(record) for one in runs):
            continue
        of_line = (one for one in runs if one.created.kind == "op" and _line(survey, one) == _line(survey, record))
        first = next((one for one in runs if is_inside(one)), None) or next(of_line, None)
        if first is not None:
            seen.add(record.created.stack)
            yield _finding(survey, first, record)


_STRETCH = 1000
"""Nodes that are examined at a time."""


def _line(survey: Survey, record: NodeRecord) -> Frame | None:
    """Return the innermost line of the program that made a node."""
    return next(iter(survey.timeline.stack(record.created.stack)), None)


_CHECKPOINTS = ("checkpoint", "checkpoint_sequential")


def _is_in_checkpoint(timeline: Timeline, record: NodeRecord) -> bool:
    """Return whether a line of a node's call stack calls ``checkpoint``."""
    frames = timeline.stack(record.created.stack)
    calls = {(call.path, call.line) for frame in {*frames} for call in called_lines(timeline, frame, *_CHECKPOINTS)}
    return any((frame.path, frame.line) in calls for frame in frames)


_Place = tuple[str, str, str]
"""An operation, its options, and the path of the module that it ran in."""


def _place(survey: Survey, record: NodeRecord) -> _Place:
    scope = survey.scopes.get(record.created.scope)
    return record.op, repr(record.created.attrs), scope.name if scope is not None else ""


_Numbers = tuple[object, ...]
"""The numbers of a tensor in a comparison, in which nan is equal to nan."""


def _may_draw(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a node is an operation with one input, or a tensor of numbers that the program made."""
    value, inputs = record.value, record.created.inputs
    if value is None or value.statistics() is None:
        return False
    if not inputs:
        return record.created.kind == "constant" and value.size > 1 and "float" in value.dtype
    return len(inputs) <= 2 and len(_inputs(survey, record)) == 1


def _inputs(survey: Survey, record: NodeRecord) -> list[NodeRecord]:
    """Return the inputs of an operation, besides the mask that it has drawn."""
    return [source for source in survey.sources(record) if not is_mask(source.created)]


def _given(survey: Survey, record: NodeRecord) -> _Numbers:
    """Return the numbers of the input of an operation; for a new tensor its shape, and the line that made it."""
    inputs = _inputs(survey, record)
    return _stored(inputs[0]) if inputs else (record.shape, _line(survey, record))


def _stored(record: NodeRecord) -> _Numbers:
    """Return the numbers of a node as far as they were stored."""
    value = record.value
    return () if value is None else (value.shape, value.data, repr(value.stats), value.blob)


def _finding(survey: Survey, first: NodeRecord, again: NodeRecord) -> Finding:
    timeline = survey.timeline
    inner, outer = timeline.stack(again.created.stack), timeline.stack(first.created.stack)
    shared = next((nr for nr, (one, other) in enumerate(zip(inner, outer, strict=False)) if one != other), len(inner))
    at = outer[shared] if shared < len(outer) else survey.at(first)
    text = titled("{} gives other numbers when backward computes it again", label(timeline, first.node))
    is_new = not again.created.inputs
    same = "made on the same line" if is_new else "the same call on the same input"
    other = f"{label_at(timeline, again.node)} is {same}: the gradients are those of another forward"
    part = Finding("recomputed", other, again.seq, again.node, at=survey.at(first))
    fix = "leave preserve_rng_state at True: the checkpoint then draws the same random numbers again"
    edit = with_keyword(timeline, at, "checkpoint", "preserve_rng_state", "True")
    return Finding("other-recomputation", text, again.seq, first.node, (part,), fix, at, edit=edit)
