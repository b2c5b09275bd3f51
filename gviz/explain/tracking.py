"""Tracking by autograd: what a node was made from, where tracking was lost, and the node's kind now."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from gviz.events import COUNTS, NodeCreated, RequiresGradSet, Warned
from gviz.explain.display_names import MAX_TITLE
from gviz.explain.operation_sets import DRAWS
from gviz.explain.program_text import called_at, line_text, target_of, update_in_place
from gviz.explain.source_edit import (
    Edit,
    after,
    behind_next_loss,
    renamed_call,
    stacked,
    statement_instead,
    switch_of,
    switched_off_for_good,
    with_keyword,
    without_arrays,
    without_attribute,
    without_call,
    without_method,
    without_new_leaf,
)
from gviz.explain.source_frames import innermost
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import Iteration, NodeInfo, NodeState
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped, file_line


def ancestors(timeline: Timeline, *nodes: int, up_to: Collection[int] = ()) -> Iterator[int]:
    """Yield what nodes were made from, tracked or not, nearest first, without anything behind the nodes in `up_to`."""
    seen, waiting = set(nodes), deque(node for node in nodes if node)
    while waiting:
        for source in timeline.nodes.inputs_by_node.get(waiting.popleft(), ()):
            if source and source not in seen:
                seen.add(source)
                if source not in up_to:
                    waiting.append(source)
                yield source


def descendants(timeline: Timeline, node: int, end: int = COUNTS) -> set[int]:
    """Return a node and what was made of it up to event `end`, if tracked."""
    seen, waiting = {node}, [node]
    while waiting:
        users = timeline.nodes.users(waiting.pop(), end)
        new = [user for user in users if user not in seen and timeline.info(user).created.requires_grad]
        seen.update(new)
        waiting.extend(new)
    return seen


# Operations that lose track, and what to write instead

_SWITCHED_OFF = "set_grad_enabled(False)"


CREATE_GRAPH = "create_graph=True in autograd.grad, to go on with what it gives"


STACK = "torch.stack(...) of results keeps their history, torch.tensor(...) copies their numbers"


_FIXES = {
    "no_grad": "move this line out of the no_grad block",
    "inference": "move this line out of the inference_mode block",
    "detach": "leave detach() out where the gradient should flow",
    "data": "use the tensor itself instead of .data",
    "dtype": "gradients flow through floating-point results only: not through indices, comparisons, integers",
    "numbers": STACK,
}
"""The reason why an operation is not tracked -> what to write instead."""


_LOSING = {"no_grad", "inference", "detach", "data", "dtype", "numbers"}


@dataclass(frozen=True, slots=True)
class Mend:
    """The fix of a cut: in words, its line (None: the line of the cut), and an edit if possible."""

    fix: str = ""
    at: Frame | None = None
    edit: Edit | None = None


def mend(timeline: Timeline, info: NodeInfo) -> Mend:
    """Return what to write instead of an operation that is not tracked; empty if nothing is known."""
    why, at = info.created.untracked, innermost(info)
    if takes_shape(info):
        return Mend()
    if why in ("no_grad", "inference"):
        return _switched_off(timeline, info)
    edit = None
    match why:
        case "detach" if (estimated := _estimated(timeline, info)) is not None:
            value, passes = estimated
            fix = f"take {value} before this line for a loss of its own: past it, the gradient goes to {passes} only"
            return Mend(fix, at, behind_next_loss(timeline, at))
        case "detach":
            edit = without_new_leaf(timeline, at) or without_arrays(timeline, at)
            edit = edit or without_method(timeline, at, "detach")
        case "data":
            edit = without_new_leaf(timeline, at) or without_attribute(timeline, at, "data")
        case "dtype" if info.op.base_name in ("argmin", "argmax"):
            return _straight_through(timeline, info) or Mend(_FIXES[why])
        case "numbers" if info.op.name == "grad":
            return Mend(CREATE_GRAPH, edit=with_keyword(timeline, at, "grad", "create_graph", "True"))
        case "numbers" if info.op.name in _COPYING and _is_of_one_shape(timeline, info):
            return Mend(_ITSELF, edit=without_call(timeline, at, info.op.name))
        case "numbers" if info.op.name in _COPYING:
            edit = stacked(timeline, at)
    return Mend(_FIXES.get(why, ""), edit=edit)


_COPYING = ("tensor", "as_tensor")
_ITSELF = "the tensor itself, which keeps its history: torch.tensor(...) copies its numbers"


def _is_of_one_shape(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether a tensor is a copy of one other tensor, and not of a list of them."""
    inputs = timeline.nodes.inputs_by_node.get(info.node, ())
    values = [timeline.info(node).created.first_value for node in (info.node, *inputs) if node]
    return len(values) == 1 + len(inputs) == _COPY_AND_ORIGINAL and len({one and one.shape for one in values}) == 1


_COPY_AND_ORIGINAL = 2


def _estimated(timeline: Timeline, info: NodeInfo) -> tuple[str, str] | None:
    """Return what ``y`` and ``x`` are called if a cut is the one of ``x + (y - x).detach()``; None for another."""
    difference = timeline.nodes.inputs_by_node.get(info.node, ())
    terms = timeline.nodes.inputs_by_node.get(difference[0], ()) if len(difference) == 1 else ()
    if len(terms) != 2 or timeline.info(difference[0]).op.base_name != "sub":
        return None
    users = (timeline.info(user) for user in timeline.nodes.users(info.node))
    sums = (timeline.nodes.inputs_by_node.get(user.node, ()) for user in users if user.op.base_name == "add")
    if not any(terms[1] in inputs for inputs in sums):
        return None
    value, passes = (timeline.info(term).name for term in terms)
    return value or "y", passes or "the other term"


_LOOKUPS = frozenset({"embedding", "index", "getitem", "index_select", "gather", "take_along_dim"})


def _straight_through(timeline: Timeline, info: NodeInfo) -> Mend | None:
    """Return the fix of a choice by index from a table, as of a codebook: the gradient passes the choice unchanged.

    The tensor that chooses is the nearest named result with the shape of what is chosen.
    """
    chosen = [timeline.info(user) for user in timeline.nodes.users(info.node)]
    lookup = next((one for one in chosen if one.op.base_name in _LOOKUPS and one.name.isidentifier()), None)
    at = innermost(lookup) if lookup is not None else None
    if lookup is None or lookup.created.first_value is None or target_of(timeline, at) != lookup.name:
        return None
    for node in ancestors(timeline, info.node):
        source = timeline.info(node)
        value = source.created.first_value
        is_like = value is not None and value.shape == lookup.created.first_value.shape
        if is_like and source.created.kind == "op" and source.created.requires_grad and source.name.isidentifier():
            through = f"{lookup.name} = {source.name} + ({lookup.name} - {source.name}).detach()"
            fix = f"{through} (straight-through); what it chooses from then needs a loss of its own"
            return Mend(fix, at, after(timeline, at, through))
    return None


def _switched_off(timeline: Timeline, info: NodeInfo) -> Mend:
    """Return the fix of the draw, decorator, block or lasting call that switched gradients off at an operation."""
    at, why = innermost(info), info.created.untracked
    if update := update_in_place(line_text(timeline, at), info.name):
        edit = statement_instead(timeline, at, f"{update}; {info.name}.grad = None")
        return Mend(f"{clipped(update, 80)}, in place: the name then stays with the leaf", edit=edit)
    if why == "no_grad" and called_at(timeline, at, "sample") and _is_drawn(timeline, info):
        return Mend("a discrete draw has no rsample(): add its log_prob times the loss that it leads to, detached")
    if why == "no_grad" and called_at(timeline, at, "sample"):
        fix = "rsample() where the gradient should flow: sample() draws inside no_grad"
        return Mend(fix, edit=renamed_call(timeline, at, "sample", "rsample"))
    if (switch := switch_of(timeline, info.frames)) is not None:
        place = file_line(switch.at.path, switch.at.line)
        if switch.how == "decorator":
            return Mend(f"take the decorator {switch.name} at {place} off this function", switch.at, switch.edit)
        return Mend(_FIXES[why], edit=switch.edit)
    off = switched_off_for_good(timeline, [frame.path for frame in info.frames])
    if why == "no_grad" and off is not None:
        place = file_line(off.at.path, off.at.line)
        fix = f"with torch.no_grad(): around its block instead: {_SWITCHED_OFF} at {place} holds to the end"
        return Mend(fix, off.at, off.edit)
    return Mend(_FIXES.get(why, ""))


def _is_drawn(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether the call of an operation has made a discrete draw from its result, as ``bernoulli``."""
    waiting, seen = [info], {info.node}
    while waiting:
        one = waiting.pop()
        if one.op.base_name in DRAWS:
            return True
        users = (timeline.info(user) for user in timeline.nodes.users(one.node) if user not in seen)
        new = [user for user in users if user.created.stack == info.created.stack]
        seen.update(user.node for user in new)
        waiting += new
    return False


def loses_tracking(timeline: Timeline, node: int) -> bool:
    """Return whether an operation lost track of a tensor that requires a gradient."""
    info, inputs = timeline.info(node), timeline.nodes.inputs_by_node.get(node, ())
    if info.created.untracked not in _LOSING or takes_shape(info):
        return False
    return any(_required_grad(timeline, source, info.born) for source in inputs)


def _required_grad(timeline: Timeline, node: int, n: int) -> bool:
    """Return whether a tensor required a gradient at event `n`, since it was made or since ``requires_grad_()``."""
    if timeline.info(node).created.requires_grad:
        return True
    later = (timeline.event(seq) for seq in reversed(timeline.events_of(node)) if seq < n)
    return next((event.requires_grad for event in later if isinstance(event, RequiresGradSet)), False)


def cuts_after(timeline: Timeline, node: int, window: range) -> Iterator[NodeInfo]:
    """Yield the untracked operations, made in a `window`, at which the paths forward from a node leave the graph."""
    seen, waiting = {node}, deque([node])
    while waiting:
        here = waiting.popleft()
        info = timeline.info(here)
        if info.created.untracked:
            yield info
            continue
        new = [user for user in timeline.nodes.users(here) if user not in seen and timeline.nodes.born(user) in window]
        seen.update(new)
        waiting.extend(new)


# `requires_grad_()` makes a leaf from a node that was made as a constant, or was cut off


def as_at(info: NodeInfo, state: NodeState | None) -> NodeInfo:
    """Return the node as if it had been made with its present properties."""
    created = info.created
    if state is None or not state.requires_grad or created.requires_grad:
        return info
    kind = "parameter" if created.kind == "parameter" else "leaf"
    return replace(info, created=msgspec.structs.replace(created, kind=kind, requires_grad=True))


def as_in(timeline: Timeline, iteration: Iteration, infos: Mapping[int, NodeInfo]) -> dict[int, NodeInfo]:
    """Return the nodes as if each had been made with its properties at the end of an iteration.

    An iteration has only one picture.
    """
    nodes = [node for node, info in infos.items() if not info.created.requires_grad]
    states = dict(zip(nodes, timeline.at(iteration.end).states(nodes), strict=True)) if nodes else {}
    return {node: as_at(info, states.get(node)) for node, info in infos.items()}


# Recordings of only some modules or phases

RECORD_ALL = "record everything around it, without --module and --phase"


def is_partial(timeline: Timeline) -> bool:
    """Return whether only some modules were recorded, or only backward passes."""
    return timeline.once(_is_partial, 0)


def _is_partial(timeline: Timeline, _: int) -> bool:
    return any(event.unseen in ("modules", "forward") for _, event in timeline.select([Warned]))


# Why autograd does not track an operation

UNTRACKED = {
    "no_grad": ("inside no_grad", "not tracked: no_grad"),
    "inference": ("inside inference_mode", "not tracked: inference"),
    "detach": ("detach cuts the graph here", "not tracked: detach"),
    "data": (".data cuts the graph here", "not tracked: .data"),
    "dtype": ("its dtype cannot have a gradient", "not tracked: dtype"),
    "numbers": ("it takes the numbers, and leaves their history behind", "not tracked: numbers only"),
    "inputs": ("no input requires a gradient", "no input needs grad"),
}
"""Why autograd does not track an op: the text after "not tracked", and a brief text by itself."""


def why_untracked(created: NodeCreated, *, brief: bool = False) -> str:
    """Return why autograd does not track an op. A `brief` text has at most `MAX_TITLE` characters."""
    known = UNTRACKED.get(created.untracked)
    return known[brief] if known else clipped(created.untracked, MAX_TITLE)


def why_cut(info: NodeInfo) -> str:
    """Return why no gradient flows back through an op that autograd does not track."""
    return "it takes no more than a shape and a dtype" if takes_shape(info) else why_untracked(info.created)


def takes_shape(info: NodeInfo) -> bool:
    """Return whether an untracked op would send only zeros anyway: ``ones_like(x)``, ``x.new_zeros(3)``."""
    name = info.op.base_name
    is_new = name.startswith("new_") and name != "new_tensor"
    is_other = name == "broadcast_tensors"  # this one of several tensors has no gradient
    return info.created.untracked == "numbers" and (is_new or is_other or name.endswith("_like"))


def untracked_word(reason: str) -> str:
    """Return the same reason in one word."""
    return "no grad" if reason == "inputs" else clipped(reason, 9)
