"""The nodes of a recording: which there are, how they were made and from what, and how they are named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property

import numpy as np

from gviz import events as e
from gviz.site import Frame
from gviz.trace.claims import Claims
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.log import damaged, expect
from gviz.trace.names import Names
from gviz.trace.outline import Outline
from gviz.trace.state import UNKNOWN_OP, Origins
from gviz.trace.weakly import weakly
from gviz.values import Array


class Roster(Outline):
    """The part of `Timeline` that says which nodes there are, and what never changes about them."""

    def __contains__(self, node: object) -> bool:
        """Whether there is a node of this number."""
        return isinstance(node, int) and self.born(node) > 0

    def op(self, number: int) -> e.OpSeen:
        """An operation by its number."""
        return self._log.ops.get(number, UNKNOWN_OP)

    @cached_property
    def nodes(self) -> Sequence[int]:
        """All nodes, in the order of their creation."""
        nodes: list[int] = self._index.lists["created"].whole().keys[np.argsort(self._births, kind="stable")].tolist()
        return nodes

    def place_of(self, node: int) -> int:
        """Where a node stands in `nodes`, from 0; -1 if there is no such node. Threads do not number in this order."""
        return self._places.get(node, -1)

    @property
    def last_naming(self) -> int:
        """The event that named a node last, 0 if none has: names may come later than their nodes."""
        return self._index.lists["kind"].last(KIND_NUMBERS[e.Named], len(self))

    def created(self, nodes: Sequence[int]) -> Iterator[tuple[int, e.NodeCreated]]:
        """How nodes were made, but for those that the log does not know; much cheaper than one `info` after another."""
        run = self._index.lists["created"].whole()
        known = nodes if len(run.keys) else ()
        at = np.minimum(run.keys.searchsorted(known), len(run.keys) - 1)
        found = run.keys[at] == known
        births = run.seqs[run.starts[at[found]]].tolist()
        self._log.prefetch(births)
        for node, born in zip(np.asarray(known)[found].tolist(), births, strict=True):
            yield node, expect(self._events, born, e.NodeCreated)

    @cached_property
    def origins(self) -> Origins:
        """How the `nodes` were made, as far as the index says it: much cheaper than the events that made them."""
        table = self._index.tables["origins"]
        return Origins(*table[1:, table[0].searchsorted(np.sort(self._births))])

    def possible_name(self, stack: int) -> str:
        """What a node that was made at a stack is called, or nothing, where it is not one of those `named`."""
        return self._claims.possible(stack)

    @cached_property
    def named(self) -> frozenset[int]:
        """The nodes to which the program itself has given names."""
        return frozenset(self._index.lists["named"].whole().keys.tolist())

    def born(self, node: int) -> int:
        """The event that made a node, 0 if there is none."""
        return self._index.lists["created"].last(node, len(self))

    @cached_property
    def made_from(self) -> Mapping[int, Sequence[int]]:
        """By node: the nodes that it has as inputs, as often as it uses them; those with no known input are left out.

        For questions that follow long ways; the first call takes in all nodes.
        """
        return _grouped(*self._index.tables["edges"][1:3].tolist())

    @cached_property
    def made_into(self) -> Mapping[int, Sequence[int]]:
        """By node: the nodes that have it as an input, as often as they use it."""
        return _grouped(*self._index.tables["edges"][2:0:-1].tolist())

    def users(self, node: int) -> tuple[int, ...]:
        """The nodes that have an output of this one as an input, in the order of their creation."""
        rows = self._index.lists["edges_to"].of_key(node).astype(np.int64) - 1
        return tuple(dict.fromkeys(self._index.tables["edges"][1, rows].tolist()))

    @property
    def sources(self) -> Mapping[str, str | None]:
        """The texts of all source files that something was made in, by path."""
        return self._log.sources

    def source(self, path: str) -> str | None:
        """The text of a source file as it was when the program ran, if it was kept."""
        return self._log.sources.get(path)

    def stack(self, number: int) -> tuple[Frame, ...]:
        """A call stack of the program, innermost frame first."""
        return self._log.stacks.get(number, ())

    @cached_property
    def _births(self) -> Array:
        """The events that made the nodes, in the order of the nodes' numbers."""
        run = self._index.lists["created"].whole()
        return run.seqs[run.starts[:-1]]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {node: place for place, node in enumerate(self.nodes)}

    def _given_name(self, node: int) -> str:
        """The name that the program itself gave."""
        named = self._index.lists["named"].last(node, len(self))
        return expect(self._log, named, e.Named).name if named else ""

    @cached_property
    def _names(self) -> Names:
        return Names(
            self._places,
            self.origins,
            weakly(self._created),
            weakly(self._given_name),
            self._claims,
            op=weakly(self._op_name),
            module=cache(weakly(self._scope_name)),
            goes_on=bool(self.open_from),
        )

    @cached_property
    def _claims(self) -> Claims:
        return Claims(self._log.stacks, self._log.sources)

    def _created(self, node: int) -> e.NodeCreated:
        born = self.born(node)
        if not born:
            raise damaged(f"there is no node {node}")
        return expect(self._events, born, e.NodeCreated)

    def _op_name(self, number: int) -> str:
        return self.op(number).name

    def _scope_name(self, scope: int) -> str:
        call = self.call(scope)
        return call.name if call is not None else ""


def _grouped(keys: list[int], entries: list[int]) -> Mapping[int, Sequence[int]]:
    found: defaultdict[int, list[int]] = defaultdict(list)
    for key, entry in zip(keys, entries, strict=True):
        found[key].append(entry)
    return dict(found)
