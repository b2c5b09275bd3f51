"""backward of a tensor without a grad_fn: the first operation at which tracking was lost."""

from __future__ import annotations

import re

from gviz.events import GradCaptured
from gviz.explain.finding import Finding
from gviz.explain.findings.tracked import CREATE_GRAPH, STACK, cut_fix, loses
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, label_at, why_untracked
from gviz.explain.trouble import Trouble, line_text
from gviz.explain.ways import ancestors
from gviz.plain_text import clipped
from gviz.trace.timeline import Timeline
from gviz.values import Value

PATTERN = r"does not require grad and does not have a grad_fn"
_FIX = "requires_grad=True on what it is made from; data that went through numpy or .item() has no history"


def explain(trouble: Trouble) -> Finding | None:
    """Where the history of the tensor begins too late."""
    if not trouble.says(PATTERN):
        return None
    timeline = trouble.timeline
    root = _root(trouble)
    name = label(timeline, root) if root else "a tensor"
    text = f"backward was called on {name}, which no tracked operation made: there is no way back from it"
    lost = _lost_at(timeline, root) if root else 0
    if not lost:
        said = "nothing that it was made from requires a gradient"
        none = Finding("no-input-requires", said, timeline.nodes.born(root), root)
        why, fix = (_new_data(timeline, root) if root else None) or (none, _FIX)
        return Finding("untracked-loss", text, trouble.seq, root, (why,), fix, why.at or trouble.at)
    info = timeline.info(lost)
    reason = f"tracking was lost first at {label_at(timeline, lost)}: {why_untracked(info.created)}"
    part = Finding("cut", reason, info.born, lost, at=innermost(info))
    return Finding("untracked-loss", text, trouble.seq, root, (part,), _fix(timeline, lost), innermost(info))


def _new_data(timeline: Timeline, root: int) -> tuple[Finding, str] | None:
    """The data on the way to the root that was made of results: of a gradient that was taken, or of their numbers."""
    taken_by = _taken(timeline)
    for node in (root, *ancestors(timeline, root)):
        info = timeline.info(node)
        line = line_text(timeline, innermost(info)).strip()
        value = info.created.first_value
        if info.created.kind != "constant" or value is None:
            continue
        taken = taken_by.get(value, info.born) < info.born
        if taken or re.search(r"\b(as_)?tensor\(\s*[A-Za-z_[]", line):
            data = "what autograd.grad gave" if taken else f"new data to autograd: {clipped(line, 80)}"
            text = f"{label_at(timeline, node)} has no history: it is {data}"
            part = Finding("copied", text, info.born, node, at=innermost(info))
            return part, CREATE_GRAPH if taken else STACK
    return None


def _taken(timeline: Timeline) -> dict[Value, int]:
    """The gradients that were taken without being kept in a ``.grad``, each with the event that gave it first."""
    taken: dict[Value, int] = {}
    for seq, event in timeline.select((GradCaptured,)):
        taken.setdefault(event.value, seq)
    return taken


def _fix(timeline: Timeline, lost: int) -> str:
    info = timeline.info(lost)
    if info.op.name.startswith(("argmax", "argmin")):
        return "indices have no gradient: make the loss of the scores themselves, with softmax or cross_entropy"
    return cut_fix(timeline, info)


def _root(trouble: Trouble) -> int:
    """The tensor on whose line backward was called: by its name there, else the last one that was made."""
    names, last = trouble.names_on_its_line(), next(trouble.made_before(), None)
    named = (info.node for info in trouble.made_before() if info.name in names)
    return next(named, last.node if last is not None else 0)


def _lost_at(timeline: Timeline, root: int) -> int:
    """The earliest operation on the way to the root that lost track of something that requires a gradient."""
    lost = [node for node in (root, *ancestors(timeline, root)) if loses(timeline, node)]
    return min(lost, key=timeline.nodes.born, default=0)


UNTRACKED_LOSS = Kind(
    "untracked-loss", "error", "backward of a tensor whose history was lost on the way", explain=explain
)
