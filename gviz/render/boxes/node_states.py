"""The states of a node's box at a moment, the word for the most important one, and the remark in its box."""

from __future__ import annotations

from typing import Literal, NamedTuple

from gviz.events import GradFlowed, NodeCreated, StorageWritten
from gviz.explain.iteration_words import iteration_suffix
from gviz.explain.tracking import takes_shape, why_untracked
from gviz.render.boxes.shown_moment import Now, is_masked
from gviz.trace.graph_state import Iteration, NodeInfo, NodeState, OutputState
from gviz.trace.timeline import Moment, Timeline
from gviz.values.plain_text import file_line
from gviz.values.value_text import bad_text

State = Literal[
    "pending", "current", "receiving", "running", "complete", "waiting", "done", "released", "freed", "nan", "inf",
    "error", "missing", "cut", "inplace", "view", "saved", "untracked", "backward",
]  # fmt: skip
"""The states of a box.

- pending: not made yet; current: acts in this event; receiving: a contribution arrives in this event
- running: its backward rule runs; complete: the same for a leaf, which has no rule
- waiting: some contributions have arrived; done: backward has finished here
- released: saved tensors are released; freed: garbage-collected
- nan: contains nan; inf: contains infinities and no nan
- error: the program or a pass failed here, or the first nan appeared here
- missing: a leaf that a pass left without a gradient
- cut: autograd loses track of a tensor that requires a gradient
- inplace: wrote in place; view: shares memory; saved: has saved tensors; untracked: not tracked by autograd
- backward: made by a backward pass, in a graph of gradients
"""


class Shown(NamedTuple):
    """How a state shows in a box: its word in the corner, the look of the box, and its meaning."""

    state: State
    word: str
    look: str
    meaning: str


SHOWN: tuple[Shown, ...] = (
    Shown("error", "! failed", "eight corners", "it went wrong here"),
    Shown("nan", "! nan", "! nan", "holds nan"),
    Shown("inf", "! inf", "! inf", "holds inf"),
    Shown("pending", "pending", "dashed", "not run yet"),
    Shown("missing", "no gradient", "amber", "no pass has brought a gradient to it"),
    Shown("cut", "cut", "amber", "autograd does not track it, so no gradient goes back through it"),
    Shown("receiving", "receives", "", "this event adds to its gradient"),
    Shown("complete", "complete", "", "all contributions have arrived; .grad is written next"),
    Shown("running", "running", "", "its gradient is complete, its rule runs"),
    Shown("current", "now", "►", "acts in this event"),
    Shown("freed", "freed", "dashed and empty", "garbage-collected: nothing refers to it any more"),
    Shown("waiting", "waiting", "", "a closed module: a part of its gradients has arrived"),
    Shown("released", "released", "", "its saved tensors are released"),
    Shown("done", "done", "", "backward has finished here"),
)
"""A box shows only its most important state: the first of this table."""


MEANINGS: tuple[tuple[str, str], ...] = (
    *((shown.word, shown.meaning) for shown in SHOWN),
    ("receives 1 of 2", "this event adds the first of two contributions to its gradient"),
    ("! 3 nan, ! 1 inf, ! first nan, ! first inf", "how many it holds; it is the first that holds any"),
    ("<- now", "on the tape: acts in this event"),
    ("<- rule runs", "on the tape: its gradient is complete, its rule runs"),
    ("waiting (tape)", "on the tape: a pass will come to it"),
    ("cut :4", "in a box of one line: line 4 of the program cuts the graph"),
    ("1 of 2", "one of the two contributions to its gradient has arrived"),
    ("ready", "all of them have arrived, its rule has not run yet"),
    ("in 3 += 4, .grad 3 += 4", "what this event adds, in the pass, or to .grad"),
    ("↻4, v4", "its memory was written in place, and is version 4 now"),
    ("made in pass 2, pass 2", "a backward pass made it (create_graph)"),
    ("no input needs grad, no grad", "not tracked by autograd: no input requires a gradient"),
    ("no_grad, inference, detach, data", "not tracked, because of no_grad, inference_mode, detach() or .data"),
    ("numbers", "not tracked: it takes numbers out of tensors, and leaves their history behind"),
    ("dtype", "not tracked: its dtype cannot have a gradient"),
)
"""Every word for the state of a node, in boxes and on the tape, and its meaning."""


def states_of(info: NodeInfo, state: NodeState | None, now: Now) -> tuple[State, ...]:
    """Return all states of a node."""
    if state is None:
        return ("pending",)
    bad = bad_numbers(now.timeline, info, state)
    facts: dict[State, bool] = {
        "current": now.moment.actor == info.node,
        "receiving": now.receives(info.node),
        "running": state.step == "running",
        "complete": state.step == "running" and info.created.kind != "op",
        "waiting": state.step == "waiting",
        "done": state.step == "done",
        "saved": state.saved == "held",
        "released": state.saved == "freed",
        "freed": is_collected(info, state),
        "nan": "nan" in bad,
        "inf": bool(bad) and "nan" not in bad,
        "error": has_failed(info.node, state, now.moment) or now.first_bad == info.node,
        "missing": has_no_gradient(info, state, after_pass=now.after_pass),
        "cut": now.options.marks and cuts(now.timeline, info),
        "inplace": writes_in_place(now.timeline, info.created),
        "view": any(output.view_of for output in info.created.outputs),
        "untracked": bool(info.created.untracked),
        "backward": bool(info.created.during[0]),
    }
    return tuple(name for name, holds in facts.items() if holds)


def has_no_gradient(info: NodeInfo, state: NodeState | None, *, after_pass: bool) -> bool:
    """Return whether a leaf has no gradient although a pass of its iteration is over."""
    if not after_pass or info.created.kind not in ("leaf", "parameter") or state is None or not state.outputs:
        return False
    output = state.outputs[0]
    return state.requires_grad and output.grad is None and output.incoming is None


def bad_numbers(timeline: Timeline, info: NodeInfo, state: NodeState) -> str:
    """Return the nan and inf in the values and gradients of a node as text; empty if it has none."""
    return "".join(_bad_value(timeline, info, output) + bad_text(output.incoming) for output in state.outputs)


def _bad_value(timeline: Timeline, info: NodeInfo, output: OutputState) -> str:
    """Return the nan and inf in a value as text, without infinities that the program wrote into a mask."""
    return "" if is_masked(timeline, info.node, output) else bad_text(output.value)


def is_collected(info: NodeInfo, state: NodeState) -> bool:
    """Return whether a node is garbage-collected. A constant never counts: no gradient needs it."""
    return state.freed > 0 and info.created.kind != "constant"


def has_failed(node: int, state: NodeState | None, moment: Moment) -> bool:
    """Return whether the program failed at a node, or the pass failed in its backward rule."""
    return (moment.failed is not None and moment.failed.node == node) or (state is not None and state.step == "failed")


def status(info: NodeInfo, states: tuple[State, ...], now: Now) -> str:
    """Return the word for the most important state; empty if no state has a word."""
    state = now.states.get(info.node)
    if now.first_bad == info.node and not has_failed(info.node, state, now.moment):
        bad = now.timeline.error_index.kind_of_first_bad()
        return f"! first {bad}" if {"nan", "inf"} & {*states} else f"! {bad}"
    word, event = state_word(states), now.moment.event
    if word == "cut":
        return cut_word(info, now)
    if word == "waiting" and state is not None:
        return arrived(state)
    if word != "receives" or state is None or not isinstance(event, GradFlowed):
        return word
    output = state.outputs[event.output_nr]
    return f"{word} {len(output.parts)} of {output.expected}" if output.expected > 1 else word


def cut_word(info: NodeInfo, now: Now) -> str:
    """Return ``cut :4`` for a cut in line 4, in a box that has no room for a row about it."""
    has_row = now.options.density not in ("min", "brief")
    return "cut" if has_row or not info.frames else f"cut :{info.frames[0].line}"


def arrived(state: NodeState) -> str:
    """Return ``1 of 2`` while a node that the pass has reached waits for contributions, then ``ready``."""
    counts = ((len(output.parts), output.expected) for output in state.outputs)
    return next((f"{count} of {expected}" for count, expected in counts if count < expected), "ready")


def state_word(states: tuple[State, ...]) -> str:
    """Return the word for the worst of some states."""
    return next((shown.word for shown in SHOWN if shown.state in states), "")


# ----------------------------------------------------------------------------------------------------------------------
# The remark of a node's box: where autograd stops, what is written in place, and from where the node comes.


def remark(timeline: Timeline, info: NodeInfo, iteration: Iteration) -> str:
    """Return how the node was made: by a backward pass, untracked, in place, or in an older iteration."""
    if info.created.kind != "op":
        return ""
    if info.created.during[0]:
        return f"made in pass {info.created.during[0]}"
    if info.iteration != iteration.index:
        return iteration_suffix(timeline, info)
    if info.created.untracked:
        return "takes only a shape" if takes_shape(info) else why_untracked(info.created, brief=True)
    return "written in place" if writes_in_place(timeline, info.created) else ""


_LOSING = ("no_grad", "inference", "detach", "data", "numbers")
"""Reasons why autograd does not track an operation that it could track."""


def cuts(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether autograd stops tracking a value that requires a gradient at this node.

    What a custom function computes in its forward, and what a backward pass computes, is never tracked, and no cut. Nor
    is what takes only the shape of a tensor, such as the noise ``randn_like(mu)``.
    """
    if info.created.untracked not in _LOSING or info.created.during[0] or takes_shape(info):
        return False
    if not any(node and timeline.info(node).created.requires_grad for node, _ in info.created.inputs):
        return False
    return not _is_in_function(timeline, info)


LONGEST_FORWARD = 200
"""The most nodes that the forward of a custom function is looked through for."""


def _is_in_function(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether a custom function (`torch.autograd.Function`) computed a node in its forward."""
    for node in range(info.node + 1, info.node + LONGEST_FORWARD):
        if node not in timeline.nodes:
            return False
        later = timeline.info(node)
        if later.created.kind == "op" and later.op.is_of_program and is_inside_call(info, later):
            return True
    return False


def is_inside_call(info: NodeInfo, function: NodeInfo) -> bool:
    """Return whether a node was made in the call that made the node of a custom function: deeper in the same stack."""
    inner, outer = info.frames, function.frames
    return len(inner) > len(outer) > 0 and inner[len(inner) - len(outer) :] == outer


def cut_text(info: NodeInfo) -> str:
    """Return where the graph is cut: ``cut by detach at demo.py:4``."""
    at = f" at {file_line(info.frames[0].path, info.frames[0].line)}" if info.frames else ""
    return f"cut by {info.created.untracked}{at}"


_FIRST_EVENTS = 4
"""A write in place is among this many first events of the op that writes."""


def writes_in_place(timeline: Timeline, created: NodeCreated) -> bool:
    """Return whether the op wrote into the memory of one of its inputs instead of making a tensor."""
    if not any(output.version for output in created.outputs):
        return False
    first = (timeline.event(seq) for seq in timeline.events_of(created.node)[:_FIRST_EVENTS])
    return any(isinstance(event, StorageWritten) and event.node == created.node for event in first)
