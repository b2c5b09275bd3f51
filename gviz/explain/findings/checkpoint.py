"""Checkpoints: the part of a forward that backward computes again, with other numbers than before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gviz.explain.display_names import is_mask, label, label_at, titled
from gviz.explain.edit import called_lines, with_keyword
from gviz.explain.finding import Finding
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.trace.timeline import Timeline
from gviz.values.value import Value


def other_recomputation(survey: Survey) -> Iterator[Finding]:
    """Yield operations that backward ran again, on the same numbers and with another result, each line once.

    Such an operation draws at random, in most programs. The gradients are then those of another forward than that of
    the loss.
    """
    timeline, seen = survey.timeline, set[int]()
    again = [
        record for record in survey.nodes.values() if record.created.during[0] and _input(survey, record) is not None
    ]
    if not again:
        return
    places = {_place(survey, record) for record in again}
    before: defaultdict[tuple[int, _Place], list[NodeRecord]] = defaultdict(list)
    for record in survey.nodes.values():
        if not record.created.during[0] and record.created.inputs:
            place = _place(survey, record)
            if place in places:
                before[timeline.iteration_at(record.seq).index, place].append(record)
    for record in again:
        if record.created.stack in seen:
            continue
        runs = before[timeline.iteration_at(record.seq).index, _place(survey, record)]
        source, result = _numbers(survey, record)
        alike = [one for one in runs if one.seq < record.seq and _numbers(survey, one)[0] == source]
        if alike and all(_numbers(survey, one)[1] != result for one in alike):
            seen.add(record.created.stack)
            inside = (one for one in reversed(alike) if _is_in_checkpoint(timeline, one))
            yield _finding(survey, next(inside, alike[-1]), record)


_Place = tuple[str, str, str]
"""An operation, its options, and the path of the module that it ran in."""


def _is_in_checkpoint(timeline: Timeline, record: NodeRecord) -> bool:
    """Return whether a line of a node's call stack calls ``checkpoint``."""
    frames = timeline.stack(record.created.stack)
    calls = {(call.path, call.line) for frame in {*frames} for call in called_lines(timeline, frame, "checkpoint")}
    return any((frame.path, frame.line) in calls for frame in frames)


def _place(survey: Survey, record: NodeRecord) -> _Place:
    scope = survey.scopes.get(record.created.scope)
    return record.op, repr(record.created.attrs), scope.name if scope is not None else ""


def _input(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the only input of an operation, besides the mask that it has drawn; None if there are several."""
    inputs = [source for source in survey.sources(record) if not is_mask(source.created)]
    is_known = record.value is not None and record.value.statistics() is not None
    return inputs[0] if is_known and len(inputs) == 1 and len(record.created.inputs) <= 2 else None


def _numbers(survey: Survey, record: NodeRecord) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Return the numbers of the input and of the result of an operation, as far as they were stored."""
    source = _input(survey, record)
    return _stored(source.value if source is not None else None), _stored(record.value)


def _stored(value: Value | None) -> tuple[object, ...]:
    """Return the numbers of a value for a comparison, in which nan is equal to nan."""
    return () if value is None else (value.shape, value.data, repr(value.stats), value.blob)


def _finding(survey: Survey, first: NodeRecord, again: NodeRecord) -> Finding:
    timeline = survey.timeline
    inner, outer = timeline.stack(again.created.stack), timeline.stack(first.created.stack)
    shared = next((nr for nr, (one, other) in enumerate(zip(inner, outer, strict=False)) if one != other), len(inner))
    at = outer[shared] if shared < len(outer) else survey.at(first)
    text = titled("{} gives other numbers when backward computes it again", label(timeline, first.node))
    same = f"{label_at(timeline, again.node)} is the same call on the same input"
    other = f"{same}: the gradients are those of another forward"
    part = Finding("recomputed", other, again.seq, again.node, at=survey.at(first))
    fix = "leave preserve_rng_state at True: the checkpoint then draws the same random numbers again"
    edit = with_keyword(timeline, at, "checkpoint", "preserve_rng_state", "True")
    return Finding("other-recomputation", text, again.seq, first.node, (part,), fix, at, edit=edit)
