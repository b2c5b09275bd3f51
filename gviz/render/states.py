"""What state a node's box is in at a moment, and the one word that says it."""

from __future__ import annotations

from typing import Literal

from gviz.numbers import bad_text
from gviz.render.remarks import writes_in_place
from gviz.render.room import Role
from gviz.render.rows import Now
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
    ("freed", "freed"),
    ("waiting", "waiting"),
    ("released", "saved freed"),
    ("done", "done"),
)
"""The word of the state that matters most is shown; first come first shown."""


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
        "freed": state.freed > 0 and info.created.kind != "constant",
        "nan": any(bad_text(output.value) or bad_text(output.incoming) for output in state.outputs),
        "error": has_failed(info.node, state, now.moment) or now.first_bad == info.node,
        "inplace": writes_in_place(now.timeline, info.created),
        "view": any(output.view_of for output in info.created.outputs),
        "untracked": bool(info.created.untracked),
        "backward": bool(info.created.during[0]),
    }
    return tuple(name for name, holds in facts.items() if holds)


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
