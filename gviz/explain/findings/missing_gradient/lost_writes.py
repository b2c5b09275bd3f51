"""Writes to a temporary tensor that nothing uses afterwards, such as the copy that an index makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gviz.events import StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown

# A write to a copy that the same line makes, and that nothing reads: the tensor that was meant keeps its numbers
# |
# ``x[rows].zero_()`` writes to the copy that an index of rows makes; ``layer.weight.data.normal_()`` after
# `weight_norm` writes to a product of two parameters that each access computes anew.


def lost_writes(survey: Survey) -> Iterator[Finding | None]:
    """Yield writes in place to a result of the same line that nothing uses afterwards: each line once."""
    timeline, seen = survey.timeline, set[int]()
    owners = _first_of_each_memory(survey)
    for seq, event in survey.select(StorageWritten):
        writer, owner = survey.nodes.get(event.node), owners.get(event.storage)
        if writer is None or owner is None or writer.created.stack in seen or owner.created.kind != "op":
            continue
        if writer.created.kind != "op" or owner is writer or not owner.created.inputs:
            continue
        yield None
        at, origin = survey.at(writer), survey.at(owner)
        if at is None or origin is None or (at.path, at.line) != (origin.path, origin.line):
            continue
        if _discards_result(timeline, at) and not _is_used_later(survey, event.storage, at):
            seen.add(writer.created.stack)
            yield _lost_finding(survey, seq, writer, owner)


def _first_of_each_memory(survey: Survey) -> dict[int, NodeRecord]:
    """Return the node that made each memory. A write has the memory of its input."""
    owners: dict[int, NodeRecord] = {}
    for record in survey.nodes.values():
        for output in record.created.outputs:
            owners.setdefault(output.storage, record)
    return owners


def _is_used_later(survey: Survey, storage: int, at: Frame) -> bool:
    """Return whether a tensor in a memory has a name, is the root of a pass, or is used on another line."""
    timeline = survey.timeline
    holders = {
        record.node for record in survey.nodes.values() if any(one.storage == storage for one in record.created.outputs)
    }
    users = {user for node in holders for user in timeline.nodes.users(node)}
    places = [survey.at(survey.nodes[node]) for node in holders | users if node in survey.nodes]
    is_elsewhere = any(one is None or (one.path, one.line) != (at.path, at.line) for one in places)
    freed = timeline.nodes.freed(survey.end)
    return is_elsewhere or any(timeline.info(node).name or node not in freed for node in holders)


def _lost_finding(survey: Survey, seq: int, writer: NodeRecord, owner: NodeRecord) -> Finding:
    timeline, source = survey.timeline, next(survey.sources(owner), None)
    name = shown(timeline.op(writer.created.op).name)
    text = titled(f"{name} writes to {{}}, a new tensor that nothing uses", label(timeline, owner.node))
    parts: tuple[Finding, ...] = ()
    if source is not None:
        names = label_at(timeline, owner.node), label_at(timeline, source.node)
        kept = f"{names[0]} is computed from {names[1]}, which stays as it was"
        parts = (Finding("operand", kept, source.seq, source.node, at=survey.at(source)),)
    fix = "write to what it is computed from, or before it is: the parameter first, then the parametrization"
    if owner.op in _COPYING:
        fix = "an index of rows or a mask makes a copy: assign to it, x[rows] = ..., or use index_fill_, masked_fill_"
    return Finding("lost-write", text, seq, owner.node, parts, fix, survey.at(writer))


_COPYING = ("getitem", "index", "index_select", "masked_select", "gather", "take")


# What the program's source code shows


def _discards_result(timeline: Timeline, at: Frame | None) -> bool:
    """Return whether a statement only writes to something: ``x[rows].zero_()``, ``x[rows][0] = 1``, ``init.zeros_(x)``.

    No variable has its result.
    """
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name.endswith("_") and not name.endswith("__")
        case ast.Assign(targets=[ast.Subscript(value=whole)]) | ast.AugAssign(target=ast.Subscript(value=whole)):
            return not isinstance(whole, ast.Name)
    return False
