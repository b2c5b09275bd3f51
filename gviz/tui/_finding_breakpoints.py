"""The moments of findings, for ``break finding vanishing net.*``."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.errors import GvizError, did_you_mean
from gviz.explain.check import findings
from gviz.explain.finding import Finding, whole
from gviz.explain.finding_kinds import findable
from gviz.query_syntax.stop_condition import Stop
from gviz.system.cooperative_work import WorkProgress
from gviz.trace.breakpoint_hits import Hit, Hits
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped


class FindingHits(Hits):
    """The events of findings of one kind (empty: of any kind), searched once, and again after the recording grew.

    Raises GvizError for an unknown kind.
    """

    def __init__(self, timeline: Timeline, stop: Stop, kind: str) -> None:
        super().__init__(timeline, stop)
        self._finding_kinds = _kinds_named(kind)
        self._seen = -1
        self._hits: list[Hit] = []

    def can_hit(self) -> bool:
        """Return whether there is any finding."""
        return bool(self._all())

    def in_stretch(self, stretch: range) -> list[Hit]:
        """Return the findings in a range of events."""
        return [hit for hit in self._all() if hit.n in stretch]

    def preparation(self) -> Iterator[WorkProgress]:
        """Search for the findings, unless the current recording was searched already."""
        if self._seen == len(self._timeline):
            return
        seen, by_event = len(self._timeline), {}
        for one in findings(self._timeline):
            if isinstance(one, WorkProgress):
                yield one
            elif one.event and self._fits(one):
                by_event[one.event] = one
        self._hits = [hit for n in sorted(by_event) if (hit := self._hit(by_event[n])) is not None]
        self._seen = seen

    def _all(self) -> list[Hit]:
        for _ in self.preparation():
            pass
        return self._hits

    def _fits(self, finding: Finding) -> bool:
        of_place = self._matching is None or any(one.node and one.node in self._matching for one in whole(finding))
        return of_place and finding.kind in self._finding_kinds

    def _hit(self, finding: Finding) -> Hit | None:
        event = self._timeline.event(finding.event)
        hit = self._tested(finding.event, finding.node or self._timeline.at(finding.event).node, event)
        return Hit(hit.n, hit.note or f"{finding.kind}: {clipped(finding.text, 200)}") if hit is not None else None


def _kinds_named(kind: str) -> frozenset[str]:
    """Return the kinds that a stop names: one, or all for an empty name. Raises GvizError for an unknown kind."""
    known = [one.name for one in findable()]
    if kind and kind not in known:
        hint = did_you_mean(kind, known, ", ".join(known))
        raise GvizError(f"there is no kind of finding {clipped(kind, 30)}", hint=hint, exit_code=2)
    return frozenset([kind] if kind else known)
