"""The search for nodes by a text (``/``): the order of the matches, and the remark about the one that is selected.

A search by a whole name (``relu``) also has matches with the text as a part of a name (``leaky_relu``): they are only
counted, and the pattern ``*relu*`` selects them, too. The first match is one of the current iteration, if that has
any, because only that is drawn. From there the matches are in the order of their creation, and wrap around at the ends.
"""

from __future__ import annotations

from bisect import bisect_right

from gviz.errors import GvizError
from gviz.explain.iteration_words import iteration_called
from gviz.query import nodes as node_query
from gviz.system.cooperative_work import AT_ONCE, LongWork, WorkProgress
from gviz.trace.graph_state import BAD
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped

MOST_COUNTED = 10_000
"""In a recording with more nodes, the matches are not counted: each name would have to be computed."""


class NodeSearch:
    """The nodes of a timeline that match a text: by their whole name, else by a part of it."""

    def __init__(self, timeline: Timeline, text: str) -> None:
        self._timeline, self._text = timeline, text.strip()
        self._matches: node_query.Matches | None = None
        self._is_whole_name = False
        self._counted: tuple[int, list[int], int] = -1, [], 0
        """For a number of nodes: the matches, and how many more nodes have the text as a part of a name."""

    def first(self, selected: int, n: int) -> LongWork[int]:
        """Return the first match, preferably in the iteration of moment `n`. Raises GvizError if nothing matches."""
        timeline, text = self._timeline, self._text
        if text in BAD:
            yield from timeline.error_index.looking_for_bad()
        exact = node_query.exactly(timeline, text)
        node = (yield from self._search(exact, selected, n)) if text else 0
        self._is_whole_name = bool(node)
        self._matches = exact if node else node_query.query(timeline, text)
        node = node or (yield from self._search(self._matches, selected, n))
        if not node:
            raise GvizError(f"no node matches {clipped(text, 40)}", exit_code=2)
        return node

    def _search(self, matches: node_query.Matches, selected: int, n: int) -> LongWork[int]:
        """Return the next match after the selected node in the iteration, else its first, else the next of all.

        If the selected node is a match itself, as in a search that is repeated, the iteration does not begin again.
        """
        timeline = self._timeline
        drawn = timeline.nodes.of(timeline.iteration_at(n)) if timeline.iterations else ()
        here = sorted(drawn, key=timeline.nodes.place_of)
        at = bisect_right(here, timeline.nodes.place_of(selected), key=timeline.nodes.place_of)
        ahead = (*here[at:], *here[:at])
        if selected in timeline.nodes and matches(selected):
            ahead = tuple(here[at:]) if selected in here else ()
        for done, node in enumerate(ahead):
            if not done % AT_ONCE:
                yield WorkProgress("looking for a node:", done, len(ahead))
            if matches(node):
                return node
        return (yield from node_query.search(timeline, matches, selected))

    def next(self, selected: int, *, backward: bool = False) -> LongWork[int]:
        """Return the next match in the order of creation (`backward`: the previous one)."""
        assert self._matches is not None, "the first match comes first"
        node = yield from node_query.search(self._timeline, self._matches, selected, backward=backward)
        if not node:
            raise GvizError("no node matches the last search", exit_code=2)
        return node

    def remark(self, node: int, n: int) -> LongWork[str]:
        """Return which match a node is: ``match 1 of 10, in iteration 1; the graph shows iteration 5``."""
        timeline, texts = self._timeline, list[str]()
        if len(timeline.nodes) <= MOST_COUNTED:
            matches, parts = yield from self._count()
            texts.append(f"match {matches.index(node) + 1} of {len(matches)}" if node in matches else "a match")
            if parts:
                texts[-1] += f" ({parts} more with /*{clipped(self._text, 20)}*)"
        here = timeline.iteration_at(n) if timeline.iterations else None
        if here is not None and node not in timeline.nodes.of(here):
            word, own = iteration_called(timeline), timeline.iterations[timeline.info(node).iteration].number
            texts.append(f"in {word} {own:,}; the graph shows {word} {here.number:,}")
        return ", ".join(texts)

    def _count(self) -> LongWork[tuple[list[int], int]]:
        timeline = self._timeline
        if self._counted[0] != len(timeline.nodes):
            assert self._matches is not None, "the first match comes first"
            part = node_query.query(timeline, self._text) if self._is_whole_name else self._matches
            found, parts = [], 0
            for done, node in enumerate(timeline.nodes):
                if not done % AT_ONCE:
                    yield WorkProgress("counting the matches: node", done, len(timeline.nodes))
                if self._matches(node):
                    found.append(node)
                elif self._is_whole_name and part(node):
                    parts += 1
            self._counted = len(timeline.nodes), found, parts
        return self._counted[1], self._counted[2]
