"""What `explain` and `why` have in common: a place is asked, and the answer printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gviz.cli import recordings

if TYPE_CHECKING:
    from gviz.cli.recordings import Recordings
    from gviz.explain.finding import Finding
    from gviz.trace.timeline import Timeline


def answer(timeline: Timeline, place: str | None, at: str | None) -> list[Finding]:
    """What there is to say of a place at a moment, both as people write them; the end without a moment."""
    from gviz.api.moments import moment_of
    from gviz.explain.check import answers

    moment = moment_of(timeline, at) if at else None
    found = answers(timeline, place, moment)
    return [*found, *_wrong_on_the_way(timeline, found, len(timeline) if moment is None else moment)]


def _wrong_on_the_way(timeline: Timeline, found: list[Finding], n: int) -> Iterator[Finding]:
    """The functions of the program through which a gradient came that is asked about, if their rules are wrong."""
    from gviz.explain.findings.custom_function import wrong_rules_behind

    for node in dict.fromkeys(one.node for one in found if one.kind == "gradient"):
        yield from wrong_rules_behind(timeline, node, n)


def said(found: list[Finding], *, whole: bool) -> Iterator[str]:
    """Findings as text, each line with its event; without `whole` the first few lines of each."""
    from gviz.explain.finding import brief, lines

    for one in found:
        for depth, text, event in lines(one) if whole else brief(one):
            yield f"{'  ' * depth}{text}{f'  [event {event}]' if event else ''}"
    if not found:
        yield "nothing is wrong with this recording, as far as it tells; ask about a place, such as w.grad"


def say(given: Recordings, place: str | None, at: str | None, kind: str, *, whole: bool) -> None:
    """Print what there is to say of a place, as text or JSON, which has everything."""

    def data(timeline: Timeline) -> dict[str, Any]:
        found = answer(timeline, place, at)
        return {"finding": found[0] if found else None, "findings": found}

    recordings.say(given, kind, lambda timeline: said(answer(timeline, place, at), whole=whole), data)
