"""The changes that a branch was asked for, and which of them it has come to."""

from __future__ import annotations

from collections.abc import Container, Iterable

from gviz.errors import GvizError
from gviz.plain_text import clipped
from gviz.trace.timeline import Timeline
from gviz.whatif.change import Change, by_node


class Asked:
    """What is to be changed of the values that nodes have, and of the gradients that arrive at them."""

    def __init__(self, changes: Iterable[Change]) -> None:
        changes = tuple(changes)
        self.values = by_node(change for change in changes if not change.of_gradient)
        self.gradients = by_node(change for change in changes if change.of_gradient)
        self._made: set[int] = set()
        self._arrived: set[int] = set()

    def made(self, node: int) -> None:
        """A node has its value in the branch, changed if that was asked for."""
        self._made.add(node)

    def arrived(self, node: int) -> None:
        """A gradient that was to be changed has arrived at a node."""
        self._arrived.add(node)

    def refuse_unused(self, timeline: Timeline, nodes: Container[int], told: Container[int], *, stopped: bool) -> None:
        """Raise `GvizError` if a number was to be changed and was not, although the branch never stopped before it.

        `nodes` are those of the iteration, `told` those that the branch has met, and `stopped` says whether it did.
        """
        for node in sorted(self.values.keys() - self._made):
            if not stopped or node not in nodes or node in told:
                why = "a pass makes it" if node in told else "no operation in it uses that"
                name = f"#{node} {clipped(timeline.info(node).title, 40)}"
                raise GvizError(f"{name} cannot be changed in this iteration", why=why, exit_code=2)
        for node in sorted(self.gradients.keys() - self._arrived):
            if not stopped or node not in nodes:
                name = clipped(timeline.info(node).name or f"node #{node}", 40)
                raise GvizError(f"no gradient arrives at {name} in this iteration", exit_code=2)
