"""What is told of the way that a bad number took from where it was born: what it became, who carried it, how far."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from gviz.events import GradSet
from gviz.explain.bad_numbers.carried import went_in
from gviz.explain.bad_numbers.meeting import met
from gviz.explain.bad_numbers.places import Place, bad_at, bad_part, output_at
from gviz.explain.computation import computation
from gviz.explain.contributions import ran
from gviz.explain.finding import Finding
from gviz.explain.names import innermost, label, label_at, made_at
from gviz.explain.trouble import line_text
from gviz.plain_text import clipped
from gviz.trace.timeline import Timeline
from gviz.value_text import bad_text


def told(timeline: Timeline, way: list[Place]) -> Iterator[Finding]:
    """What is worth telling of a way, whose last place is where the number was born."""
    yield from _became(timeline, way)
    yield from _carried(timeline, way)
    yield from _spread(timeline, way)


def _became(timeline: Timeline, way: list[Place]) -> tuple[Finding, ...]:
    """Where an infinity became a nan, on a way that ends where the infinity was born."""
    texts = [bad_text(bad_at(timeline, place)) for place in way]
    if "nan" in texts[-1] or "nan" not in "".join(texts):
        return ()
    last = max(i for i, text in enumerate(texts) if "nan" in text)
    where, node, n = _changed(timeline, way[last], way[last + 1])
    return (Finding("became-nan", f"it became nan in {where}", n, node, at=innermost(timeline.info(node))),)


def _changed(timeline: Timeline, place: Place, before: Place) -> tuple[str, int, int]:
    """What made one bad thing of the one before it, in words; the node, and the event."""
    aspect, node, n = place
    part = bad_part(output_at(timeline.at(n), node, aspect)) if aspect == "grad" else None
    if part is not None and part.source:
        where = f"the backward rule of {label_at(timeline, part.source)}{ran(timeline, part)}"
        return where, part.source, part.seq
    if aspect == "grad" or before[1] == node:
        return f"the {'.grad' if aspect == 'grad' else 'update'} of {label(timeline, node)}", node, n
    how = ": ".join(filter(None, (computation(timeline, node).text, met(timeline, node))))
    return f"{label_at(timeline, node)}{f': {how}' if how else ''}", node, timeline.info(node).born


def _carried(timeline: Timeline, way: list[Place]) -> Iterator[Finding]:
    """The line that carried a bad number from one ``.grad`` to others, as clipping by the norm of all does."""
    for (aspect, node, n), (_, source, _) in pairwise(way):
        write = timeline.event(n)
        if aspect == "grad" and source != node and isinstance(write, GradSet) and went_in(timeline, n):
            frames = timeline.stack(write.stack)
            line = line_text(timeline, frames[0] if frames else None).strip()
            text = f"from the .grad of {label(timeline, source)} to that of others{made_at(frames)}: {line}"
            yield Finding("carried", clipped(text, 120), n, node, at=frames[0] if frames else None)


def _spread(timeline: Timeline, way: list[Place]) -> tuple[Finding, ...]:
    nodes = list(dict.fromkeys(node for _, node, _ in reversed(way[:-1]) if node != way[-1][1]))
    if not nodes:
        return ()
    names = [label(timeline, node) for node in nodes]
    told = names if len(names) <= 6 else [*names[:3], f"{len(names) - 5} more", *names[-2:]]
    return (Finding("spread", f"from there it spread through {', '.join(told)}", 0, nodes[-1]),)
