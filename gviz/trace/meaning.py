"""Which nodes of a recording a place means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from gviz import events as e
from gviz.trace.timeline import Timeline
from gviz.where import Place, Possible

_AT_ONCE = 4096


class Meant:
    """The nodes that a place means. What was found is remembered as long as no node gets another name."""

    def __init__(self, timeline: Timeline, place: Place) -> None:
        self._timeline = timeline
        self._place = place
        self._fits: dict[int, bool] = {}
        self._kinds: dict[tuple[int, int, int], Literal["yes", "maybe", "no"]] = {}
        self._began: dict[int, int] = {}  # by node: the stack of the node with which its line began
        self._storages: tuple[int, frozenset[int]] = 0, frozenset()

    def __contains__(self, node: int) -> bool:
        """Whether this node is meant."""
        fits = self._fits.get(node)
        return self._decided(node) if fits is None else fits

    def among(self, nodes: Sequence[int]) -> Iterable[int]:
        """Those of many nodes that are meant; much cheaper than one by one."""
        for node, made in self._timeline.created([node for node in nodes if node not in self._fits]):
            match self._likely(node, made):
                case "no":
                    self._fits[node] = False
                case "yes":
                    self._keep(node, not self._is_inside_line(node))
        return [node for node in nodes if node in self]

    def any(self) -> bool:
        """Whether there is any node that is meant."""
        nodes = self._timeline.nodes
        return any(self.among(nodes[at : at + _AT_ONCE]) for at in range(0, len(nodes), _AT_ONCE))

    def memory(self) -> frozenset[int]:
        """The storages that the nodes lie in."""
        nodes = self._timeline.nodes
        if self._storages[0] != len(nodes):
            made = self._timeline.created([*self.among(nodes)])
            self._storages = len(nodes), frozenset(output.storage for _, one in made for output in one.outputs)
        return self._storages[1]

    def _likely(self, node: int, made: e.NodeCreated) -> Literal["yes", "maybe", "no"]:
        """What can be told of a node without working out whether it is a step on the way to what is assigned.

        That goes by operation, call stack and module, which many nodes have in common.
        """
        if self._place.kind == "node":
            return "yes" if node == self._place.number else "no"
        name = self._timeline.possible_name(node, made.stack)
        if name is None or any(attribute == "grad_of" for attribute, _ in made.attrs):
            return "maybe"
        kind = made.op, made.stack, made.scope
        if kind not in self._kinds:
            call = self._timeline.call(made.scope)
            op, scope, frames = self._timeline.op(made.op), call.name if call else "", self._timeline.stack(made.stack)
            nameless, named = (self._place.fits(Possible(node, text, op, scope, frames)) for text in ("", name))
            self._kinds[kind] = "yes" if nameless else "maybe" if named else "no"
        return self._kinds[kind]

    def _decided(self, node: int) -> bool:
        fits = node in self._timeline and self._place.fits(self._timeline.info(node))
        return self._keep(node, fits and not self._is_inside_line(node))

    def _keep(self, node: int, fits: bool) -> bool:
        if not self._timeline.growing or self._place.kind in ("node", "line", "op"):  # a name may not be known yet
            self._fits[node] = fits
        return fits

    def _is_inside_line(self, node: int) -> bool:
        """Whether a line that was stopped at when it began to run is still running: nodes of it came one after another.

        In a loop it begins anew with the node that it began with.
        """
        if self._place.kind != "line":
            return False
        unknown, first = [], node
        while first not in self._began and first - 1 in self._timeline and self._is_of_line(first - 1):
            unknown.append(first)
            first -= 1
        began = self._began.setdefault(first, self._timeline.info(first).created.stack)
        self._began |= dict.fromkeys(unknown, began)
        return node != first and self._timeline.info(node).created.stack != began

    def _is_of_line(self, node: int) -> bool:
        return self._place.fits(self._timeline.info(node))
