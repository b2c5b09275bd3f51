"""The nodes of a timeline by the names they had."""

from __future__ import annotations

from difflib import get_close_matches

from gviz.trace.timeline import Timeline
from gviz.where import split_aspect


class NamedNodes:
    """Which nodes may have had which names, in order of creation; whether one had is only told of those asked for."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._known: dict[str, list[int]] = {}
        self._count = 0
        self._naming = 0

    def last(self, name: str, n: int) -> int:
        """The node that got this name last by moment `n`, 0 if none has."""
        self._grow()
        info = self.timeline.info
        may_be = reversed(self._known.get(name, ()))
        return next((node for node in may_be if info(node).name == name and info(node).born <= n), 0)

    def near(self, name: str, n: int) -> str:
        """The name most like this one that a node had by moment `n`, empty if none is like it."""
        self._grow()
        stem, aspect = split_aspect(name)
        close = get_close_matches(stem, [known for known in self._known if self.last(known, n)], 1)
        return close[0] + (f".{aspect}" if aspect else "") if close else ""

    def _grow(self) -> None:
        nodes, naming = self.timeline.nodes, self.timeline.last_naming
        if naming != self._naming:  # older nodes may have got theirs
            self._known, self._count, self._naming = {}, 0, naming
        for node, made in self.timeline.created(nodes[self._count :]):
            name = self.timeline.possible_name(node, made.stack)
            if name is None or any(attribute == "grad_of" for attribute, _ in made.attrs):
                name = self.timeline.info(node).name
            if name:
                self._known.setdefault(name, []).append(node)
        self._count = len(nodes)
