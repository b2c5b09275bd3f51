"""What a changed number makes of a node: old and new beside each other, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gviz.explain.outgoing import OutgoingGradient, outgoing_gradients
from gviz.plain_text import shown
from gviz.trace.gradients import in_its_iteration
from gviz.trace.state import NodeState
from gviz.trace.timeline import Timeline
from gviz.value_text import or_unknown, short
from gviz.values import Value

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView

_NUMBER = 24


def title(beside: BranchView | None, n: int) -> str:
    """``WHAT IF x = 5``, at the moments that were run again."""
    return f"WHAT IF {', '.join(map(shown, beside.changes))}" if beside is not None and beside.covers(n) else ""


def differences(timeline: Timeline, beside: BranchView | None, node: int, n: int) -> list[str]:
    """What is another number in the branch: ``value 9 → 25``; nothing where there is no branch."""
    if beside is None or not node or not beside.covers(n):
        return []
    (here,), (there,) = timeline.at(n).states([node]), beside.states([node], n)
    here = in_its_iteration(timeline, n, here)
    if here is None or there is None:
        return []
    if any(output.value is not None and not output.value.is_known for output in there.outputs):
        return ["not known: the branch stopped before it"]
    return list(_differences(here, there))


def shares_beside(beside: BranchView | None, node: int, n: int) -> dict[int, OutgoingGradient] | None:
    """What the node sends to each input (by slot) in the branch, as far as it has there; None without a branch.

    Nothing is said of gradients that the branch does not know.
    """
    if beside is None or not beside.covers(n):
        return None
    there = beside.branch.numbers.get(node)
    if there is None or node in beside.branch.unknown:
        return {}
    moment = beside.timeline.at(beside.moment(n))
    if moment.state(there) is None:
        return {}
    found = outgoing_gradients(beside.timeline, moment, there)
    return {share.operand.slot: replace(share, numbers=beside.text(share.numbers)) for share in found}


def _differences(here: NodeState, there: NodeState) -> Iterator[str]:
    for nr, (old, new) in enumerate(zip(here.outputs, there.outputs, strict=False)):
        which = f" {nr}" if len(here.outputs) > 1 else ""
        pairs = {
            "value": (old.value, new.value),
            "grad in": (old.incoming, new.incoming),
            ".grad": (old.grad, new.grad),
        }
        texts = {name: (_text(before), _text(after)) for name, (before, after) in pairs.items()}
        yield from (f"{name}{which} {before} → {after}" for name, (before, after) in texts.items() if before != after)


def _text(value: Value | None) -> str:
    return "none" if value is None else or_unknown(short(value, _NUMBER), short(value))
