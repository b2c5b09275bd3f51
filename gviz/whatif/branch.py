"""The other course of events: a recording of its own, and how it relates to the one it branched from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gviz.trace.log import MemoryLog
from gviz.trace.recording.written import write
from gviz.trace.timeline import Timeline
from gviz.values import Value
from gviz.whatif.decisions import Decision


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why a node's value (or, with `of_gradient`, the gradients on the other side of it) cannot be told."""

    node: int
    why: str
    of_gradient: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """What was run again: its events, and for every node of the recording the branch's node.

    `stopped` says where the branch had to stop; what depends on those nodes is not in it. The gradients of the nodes in
    `unknown` (numbers of the recording) have no numbers in it: something between them and the root was not run. Nor is
    known what lies in the memories `forgotten`, which were written to with what is not known. Where the program read
    one of `decisions`, it would have gone another way; the branch goes the recorded one.
    """

    log: MemoryLog
    numbers: Mapping[int, int]
    stopped: tuple[Stopped, ...]
    unknown: frozenset[int]
    decisions: tuple[Decision, ...] = ()
    forgotten: frozenset[int] = frozenset()

    def write(self, path: Path) -> None:
        """Write its events to a new trace. GvizError if that cannot be."""
        write(self.log, path)


def not_known(value: Value) -> Value:
    """A value of that form of which no number is known."""
    return Value(value.dtype, value.shape)


def beyond(timeline: Timeline, nodes: Iterable[int]) -> set[int]:
    """These nodes and everything that gradients reach through them."""
    stack, found = list(nodes), set[int]()
    while stack:
        node = stack.pop()
        if node not in found and node in timeline.nodes:
            found.add(node)
            stack += [source for source, _ in timeline.info(node).created.inputs]
    return found
