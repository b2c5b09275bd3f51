"""Why the program failed and what to try: who, where and the remedy beside PyTorch's own words."""

from __future__ import annotations

from dataclasses import dataclass

from gviz.explain.trouble import trouble_at
from gviz.plain_text import shown
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One failure. `cause` and `remedy` are empty for an error that is not about the graph.

    `related` are facts with the event at which they happened: ``("written by #7 at train.py:6", 13)``.
    """

    event: int
    error: str
    message: str
    node: int
    cause: str
    remedy: str
    related: tuple[tuple[str, int], ...]


def diagnosis(timeline: Timeline, moment: Moment) -> Diagnosis | None:
    """The failure the moment stands at, or None."""
    trouble = trouble_at(timeline, moment.n) if moment.n else None
    if trouble is None:
        return None
    from gviz.explain.why import why_failed  # with every kind of answer: imported where something failed

    found = why_failed(trouble)
    known = found.kind != "failed" or bool(found.fix)
    related = tuple((part.text, part.event) for part in found.parts if part.event and part.event != moment.n)
    return Diagnosis(
        moment.n,
        shown(trouble.error),
        shown(trouble.message, lines=True),
        trouble.node,
        found.text if known else "",
        found.fix,
        related,
    )
