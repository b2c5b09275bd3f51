"""What a dropout did: how much became zero, and by what the rest is larger."""

from __future__ import annotations

from gviz.explain.names import is_mask
from gviz.numbers import number
from gviz.trace.timeline import Timeline


def dropped(timeline: Timeline, node: int) -> str:
    """``4 of 10 elements became 0, the others times 1/(1 - p) = 1.429``; empty for a node whose mask is not known."""
    created = timeline.nodes.created(node)
    p = dict(created.attrs).get("p")
    source = created.inputs[1][0] if len(created.inputs) == 2 else 0
    drawn = timeline.nodes.created(source) if source else None
    known = drawn.first_value if drawn is not None and is_mask(drawn) else None
    stats = None if known is None else known.statistics()
    if known is None or stats is None or not isinstance(p, float | int):
        return ""
    made = created.first_value
    what = "elements" if made is None or made.shape == known.shape else "channels"
    if p == 1:
        return "everything became 0 (p 1)"
    return f"{stats.zero} of {known.size} {what} became 0, the others times 1/(1 - p) = {number(1 / (1 - p))}"
