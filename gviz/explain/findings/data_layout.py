"""Views that give another order of dimensions without moving the elements: rows of a batch are mixed."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.edit import Edit, as_permuted, permutation
from gviz.explain.finding import Finding
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.values.number_text import shape_text

_VIEWS = ("view", "reshape", "_reshape_alias", "_unsafe_view")


def mixed_rows(survey: Survey) -> Iterator[Finding | None]:
    """Yield views with the sizes of a transposed tensor: each line once.

    ``h.view(batch, -1)`` of a state of shape (2, batch, hidden) puts states of different samples into one row. Only
    views that the program itself calls are reported: a layer of a library orders its dimensions on purpose.
    """
    seen: set[int] = set()
    for record in survey.ops(*_VIEWS):
        source = next(survey.sources(record), None)
        if source is None or record.created.stack in seen or record.created.during[0]:
            continue
        yield None
        order = _meant_order(source.shape, record.shape)
        edit = as_permuted(survey.timeline, survey.at(record), order) if order else None
        if edit is not None:
            seen.add(record.created.stack)
            yield _mixed_finding(survey, record, source, order, edit)


def _meant_order(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of dimensions that a view has the sizes of; empty for a view that keeps its rows."""
    sizes = [size for size in before if size > 1]
    if len(before) < 3 or len(set(sizes)) < len(before) or before == after:
        return ()  # of equal sizes the order is not known
    if sorted(after) == sorted(before):
        return tuple(before.index(size) for size in after)
    first, second, *rest = before
    glued = (second, first * rest[0], *rest[1:]), (second, first * prod(rest))
    return (1, 0, *range(2, len(before))) if after in glued else ()


def _mixed_finding(
    survey: Survey, record: NodeRecord, source: NodeRecord, order: tuple[int, ...], edit: Edit
) -> Finding:
    timeline = survey.timeline
    shapes = shape_text(source.shape), shape_text(record.shape)
    text = titled(f"{{}} views {shapes[0]} as {shapes[1]}: its rows are mixed", label(timeline, record.node))
    moved = f"the sizes are those of permute{order}, but a view of {label_at(timeline, source.node)} moves no element"
    part = Finding("operand", moved, source.seq, source.node)
    fix = f"{permutation(order)} before it, and reshape instead of view"
    at = survey.at(record)
    return Finding("mixed-rows", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)
