"""A tensor that backward needs was changed in place: saved by which operation, changed by which, at which lines."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.events import DataSet, Edge, StorageWritten
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, label_at, made_at, op_title
from gviz.explain.operations import ACTIVATIONS
from gviz.explain.trouble import Trouble
from gviz.explain.writes import Write, writer_of
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline

PATTERN = r"modified by an inplace operation"


def explain(trouble: Trouble) -> Finding | None:
    """The write that came between saving and backward."""
    if not trouble.says(PATTERN):
        return None
    timeline = trouble.timeline
    found = next(_writes(timeline, trouble), None) if trouble.node else None
    if found is None:
        text = "a tensor that backward needs was changed in place after it had been saved"
        return Finding("changed-in-place", text, trouble.seq, trouble.node, fix=_FIX, at=trouble.at)
    (holder, version), seq, write = found
    saver = timeline.info(trouble.node)
    by_node = writer_of(write)
    writer = timeline.info(by_node) if by_node in timeline.nodes else None
    by = f"{op_title(writer)}{made_at(writer.frames)}" if writer is not None else "the program"
    what = label(timeline, holder)
    text = (
        f"{what} was changed in place by {by}, but backward of {label(timeline, saver.node)} still needs it as it was"
    )
    saved = f"saved by {saver.op.grad_fn or label(timeline, saver.node)}{made_at(saver.frames)} at version {version}"
    wrote = f"changed by {label_at(timeline, by_node)} to version {write.version}" if writer else "changed"
    parts = (
        Finding("saved", saved, saver.born, saver.node, at=innermost(saver)),
        Finding("write", wrote, seq, by_node, at=innermost(writer) if writer else None),
    )
    return Finding(
        "changed-in-place", text, seq, holder, parts, _fix(writer), innermost(writer) if writer else trouble.at
    )


_ASSIGNING = ("copy", "setitem")  # as which ``s[1] = v`` is recorded
_FIX = "use the operation that makes a new tensor, or clone() before the change"


def _fix(writer: NodeInfo | None) -> str:
    plain = writer.op.base_name if writer is not None else ""
    if plain in _ASSIGNING:
        return "assign before it is used, write to a clone(), or make the whole of its parts with stack or cat"
    if writer is None or not writer.op.name.endswith("_"):
        return _FIX
    instead = "an activation with inplace=True" if plain in ACTIVATIONS else "an operator like +="
    return f"use {plain}, which makes a new tensor, instead of {plain}_ (or of {instead}); or clone() before"


def _writes(timeline: Timeline, trouble: Trouble) -> Iterator[tuple[Edge, int, Write]]:
    """The first write to whatever the node had saved, after it was made: ``((node, version), event, write)``."""
    info = timeline.info(trouble.node)
    before = timeline.at(info.born)
    for holder, output_nr in [*((info.node, nr) for nr in range(len(info.created.outputs))), *info.created.inputs]:
        state = before.state(holder) if holder else None
        if state is None or output_nr >= len(state.outputs):
            continue
        for seq in timeline.events_of(holder):
            event = timeline.event(seq)
            if not (info.born < seq < trouble.seq and isinstance(event, StorageWritten | DataSet)):
                continue
            if writer_of(event) != info.node:
                yield (holder, state.outputs[output_nr].version), seq, event
                break


CHANGED_IN_PLACE = Kind(
    "changed-in-place", "error", "a tensor that backward needs was written to after it was saved", explain=explain
)
