"""What state a node's box is in at a moment, and the one word that says it."""

from __future__ import annotations

from typing import Literal

from gviz.numbers import bad_text
from gviz.render.boxes.remarks import writes_in_place
from gviz.render.boxes.room import Role
from gviz.render.boxes.rows import Now
from gviz.trace.moment import Moment
from gviz.trace.state import NodeInfo, NodeState

State = Literal[
    "pending", "current", "running", "waiting", "done", "released", "freed", "nan", "error", "inplace", "view",
    "saved", "untracked", "backward",
]  # fmt: skip
"""Not made yet; concerned by this event; its rule runs; some contributions arrived; through; saved tensors released;
gone; holds nan or inf; where the program or a pass failed, or a nan came first; wrote in place; shares memory; has
saved tensors; not tracked; made by a backward pass, in a graph of gradients."""

WORDS: tuple[tuple[State, str], ...] = (
    ("error", "! failed"),
    ("nan", "! nan"),
    ("pending", "pending"),
    ("running", "running"),
    ("current", "now"),
    ("freed", "gone"),
    ("waiting", "waiting"),
    ("released", "saved freed"),
    ("done", "done"),
)
"""The word of the state that matters most is shown; first come first shown."""


MEANINGS: tuple[tuple[str, str], ...] = (
    ("pending", "not made yet: the program comes to it later"),
    ("now, <- now", "this event is about it"),
    ("waiting", "a pass will come to it; in a box: a part of its gradient has arrived"),
    ("1 of 2", "so many of the contributions to its gradient have arrived"),
    ("ready", "all of them have arrived, its rule has not run yet"),
    ("running, <- rule runs", "its gradient is complete, and its backward rule runs"),
    ("complete", "a leaf: its gradient is complete, and not yet added to .grad"),
    ("done", "the pass is through with it"),
    ("in 3 += 4, .grad 3 += 4", "what this event adds, in the pass, or to .grad"),
    ("saved freed, freed", "the tensors it had saved for backward are released"),
    ("gone", "nothing refers to it any more"),
    ("! failed", "its rule raised the error that ended the pass, or the program failed there"),
    ("! nan, ! 3 nan, ! 1 inf, ! first nan", "it holds nan or inf; it is the first that did"),
    ("↻4, v4", "its memory was written in place, and is version 4 now"),
    ("made in pass 2, pass 2", "a backward pass made it (create_graph)"),
    ("no input needs grad, no grad", "not tracked by autograd: no input requires a gradient"),
    ("no_grad, detach, data", "not tracked, because of no_grad, detach() or .data"),
    ("numbers", "not tracked: it takes numbers out of tensors, and leaves their history behind"),
    ("dtype", "not tracked: its dtype cannot have a gradient"),
)
"""Every word for the state of a node, in boxes and on the tape, and what it means."""


def states_of(info: NodeInfo, state: NodeState | None, now: Now) -> tuple[State, ...]:
    """All states of a node."""
    if state is None:
        return ("pending",)
    facts: dict[State, bool] = {
        "current": now.moment.actor == info.node,
        "running": state.step == "running",
        "waiting": state.step == "waiting",
        "done": state.step == "done",
        "saved": state.saved == "held",
        "released": state.saved == "freed",
        "freed": is_gone(info, state),
        "nan": any(bad_text(output.value) or bad_text(output.incoming) for output in state.outputs),
        "error": has_failed(info.node, state, now.moment) or now.first_bad == info.node,
        "inplace": writes_in_place(now.timeline, info.created),
        "view": any(output.view_of for output in info.created.outputs),
        "untracked": bool(info.created.untracked),
        "backward": bool(info.created.during[0]),
    }
    return tuple(name for name, holds in facts.items() if holds)


def is_gone(info: NodeInfo, state: NodeState) -> bool:
    """Whether nothing refers to a node any more; of a constant, which no gradient needs, nobody asks."""
    return state.freed > 0 and info.created.kind != "constant"


def has_failed(node: int, state: NodeState | None, moment: Moment) -> bool:
    """Whether the program failed at a node, or its rule with the pass."""
    return (moment.failed is not None and moment.failed.node == node) or (state is not None and state.step == "failed")


def status(info: NodeInfo, role: Role, held: tuple[State, ...], now: Now) -> str:
    """The word for the state that matters most; empty where there is nothing to say."""
    if now.first_bad == info.node and not has_failed(info.node, now.states.get(info.node), now.moment):
        return "! first nan" if "nan" in held else "! nan"
    word = group_word(held)
    return "complete" if word == "running" and role in ("leaf", "parameter") else word


def group_word(held: tuple[State, ...]) -> str:
    """The word for the worst of the states of a closed module."""
    return next((word for name, word in WORDS if name in held), "")
