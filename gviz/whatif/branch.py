"""The other course of events: a recording of its own, and how it relates to the one it branched from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gviz.errors import GvizError
from gviz.trace.log import MemoryLog
from gviz.trace.recording.written import write
from gviz.trace.timeline import Timeline
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
    `unknown` (numbers of the recording) are not to be trusted: something between them and the root was not run. Where
    the program read one of `decisions`, it would have gone another way; the branch goes the recorded one.
    """

    log: MemoryLog
    numbers: Mapping[int, int]
    stopped: tuple[Stopped, ...]
    unknown: frozenset[int]
    decisions: tuple[Decision, ...] = ()

    def expression(self, text: str) -> str:
        """An expression about the recording as one about the branch, which numbers its nodes anew.

        GvizError for a node that the branch has not.
        """

        def number(found: re.Match[str]) -> str:
            node = self.numbers.get(int(found[1]))
            if node is None:
                raise GvizError(f"{found[0]} is not known in the branch", exit_code=2)
            return f"#{node}"

        return re.sub(r"#(\d+)", number, text)

    def write(self, path: Path) -> None:
        """Write its events to a new trace. GvizError if that cannot be."""
        write(self.log, path)


def beyond(timeline: Timeline, nodes: Iterable[int]) -> set[int]:
    """These nodes and everything that gradients reach through them."""
    stack, found = list(nodes), set[int]()
    while stack:
        node = stack.pop()
        if node not in found and node in timeline.nodes:
            found.add(node)
            stack += [source for source, _ in timeline.info(node).created.inputs]
    return found
