"""The panels of a page, moment after moment, as rows of text: what `gviz.explain.panel` says of a node."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gviz.explain.panel import SECTIONS, Fact, NodeView, Section
from gviz.trace.gradients import in_its_iteration
from gviz.trace.moment import Moment
from gviz.trace.state import NodeState
from gviz.trace.timeline import Timeline

RowKey = tuple[int, int, int]
"""Where a row stands in its panel: the place of its section in `SECTIONS`, what it is about, and its place there."""

Row = tuple[RowKey, str]

States = tuple[NodeState | None, NodeState | None]
"""A node as it is, and as its iteration shows it: what is said may hang on either."""

ALL = frozenset(range(len(SECTIONS)))
STYLES = {"error": "bad", "title": "text", "": "text"}
"""What `page.css` calls a style, where it has another name there."""


class PanelRows:
    """Panels of many nodes, moment after moment; rows that cannot have changed are not worked out again."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._known: dict[int, set[RowKey]] = {}
        self._seen: dict[int, States] = {}

    def rows(self, moment: Moment, node: int, state: NodeState | None) -> Iterator[Row]:
        """The rows that may have changed since the node was asked for last, those that are gone as empty texts.

        Keys sort in the order of the panel.
        """
        states = state, in_its_iteration(self._timeline, moment.n, state)
        numbers = self._to_make(moment, node, states)
        if not numbers:
            return
        known = self._known.setdefault(node, set())
        view = NodeView(self._timeline, moment, node, states[1], full=True)
        found = {
            (number, fact.about, fact.further): _row(fact)
            for number in numbers
            for fact in SECTIONS[number].facts(view)
        }
        before = {key for key in known if key[0] in numbers}
        yield from ((key, "") for key in before - found.keys())
        known -= before
        known.update(found)
        self._seen[node] = states
        yield from found.items()

    def forget(self) -> None:
        """Inputs need a gradient now, or no longer: the rules read differently."""
        self._seen.clear()

    def _to_make(self, moment: Moment, node: int, states: States) -> Collection[int]:
        """The sections that are made anew, by their place."""
        if node not in self._seen:
            return ALL
        before = self._seen[node]
        return [
            number
            for number, section in enumerate(SECTIONS)
            if section.news(moment, node) or _may_differ(section, before, states)
        ]


def _may_differ(section: Section, before: States, now: States) -> bool:
    return any(
        one is not other and section.hang_on(one) != section.hang_on(other)
        for one, other in zip(before, now, strict=True)
    )


def _row(fact: Fact) -> str:
    """A row as one text: its style, its label, and what it says."""
    return f"{_style(fact)}\t{fact.name}\t{''.join(part.text for part in fact.parts)}"


def _style(fact: Fact) -> str:
    """The one style of a row whose parts have several: what is wrong shows, links and asides do not count."""
    styles = {part.style for part in fact.parts if part.text}
    if "error" in styles:
        return "bad"
    style, *others = sorted(styles - {"key", "muted"}) or [("muted" if "muted" in styles else "")]
    return "text" if others else STYLES.get(style, style)
