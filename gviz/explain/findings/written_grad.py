"""A ``.grad`` that the program has changed after a pass: clipped, scaled, cleared, replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gviz.events import GradSet
from gviz.explain.bad_numbers.birth import suspected
from gviz.explain.finding import Finding
from gviz.explain.findings.gradient import gradient
from gviz.explain.grad_writes import GradWrite, effect, writes_since_pass
from gviz.explain.kind import Kind, Question
from gviz.explain.names import innermost, label, made_at
from gviz.explain.trouble import line_text
from gviz.plain_text import clipped
from gviz.trace.timeline import Timeline
from gviz.value_text import grad

MOST_WRITES = 3
"""So many are told one by one, the latest."""

_WIDTH = 80


def written(asked: Question) -> Finding | None:
    """What the writes since the last pass have done to the numbers, and how these had come about."""
    timeline, output = asked.timeline, asked.output
    if output.grad is None or not output.grad_seq or not isinstance(timeline.event(output.grad_seq), GradSet):
        return None
    filled, writes = writes_since_pass(timeline, asked.node, output.grad_seq)
    if not writes:
        return gradient(asked.at(filled)) if filled else _found_there(asked)
    last = writes[-1]
    how = f"changed {len(writes)} times, last" if len(writes) > 1 else effect(timeline, last, brief=bool(filled))
    brought = f"backward made it {grad(writes[0].before)}, and then " if filled else ""
    text = f"{label(timeline, asked.node)}: .grad is {grad(output.grad)}: {brought}it was {how}{made_at(last.frames)}"
    parts = (*_each(timeline, asked.node, writes), *suspected(timeline, last), *_before(asked, filled))
    return Finding("assigned", text, last.seq, asked.node, parts, at=last.at or innermost(asked.info))


def _found_there(asked: Question) -> Finding:
    """A ``.grad`` that was there before it was recorded."""
    text = f"{label(asked.timeline, asked.node)}: .grad is {grad(asked.output.grad)}, set before it was recorded"
    return Finding("assigned", text, asked.output.grad_seq, asked.node, at=innermost(asked.info))


def _each(timeline: Timeline, node: int, writes: list[GradWrite]) -> Iterator[Finding]:
    """The writes with their lines as they stand in the program; of only one what it did was said."""
    if len(writes) > MOST_WRITES:
        yield Finding("more", f"{len(writes) - MOST_WRITES} writes before these")
    for write in writes[-MOST_WRITES:]:
        line = line_text(timeline, write.at).strip()
        words = (f"{effect(timeline, write)}{made_at(write.frames)}" if len(writes) > 1 else "", line)
        if text := ": ".join(filter(None, words)):
            yield Finding("write", clipped(text, _WIDTH), write.seq, node, at=write.at)


def _before(asked: Question, filled: int) -> Iterator[Finding]:
    """What backward had made of it before the program wrote to it."""
    if filled and (found := gradient(asked.at(filled))) is not None:
        value = asked.at(filled).output.grad
        yield replace(found, text=f"before that it was {grad(value)}, from backward", fix="")


ASSIGNED = Kind("assigned", "fact", "a .grad that the program has set or changed itself", ("gradient",), written)
