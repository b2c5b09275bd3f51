"""The box of a collapsed module, call or loop: its rows of text and its states at a moment.

A box shows the number of nodes in the module, its output, its gradients, and the worst state of its nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import hypot, inf, isfinite, nan

from msgspec.structs import replace as replace_struct

from gviz.events import GradFlowed
from gviz.explain.display_names import title as node_name
from gviz.explain.grad_history import holds_older, passes_in
from gviz.explain.hook_effects import HookEffect
from gviz.explain.training import root_of_pass
from gviz.render.boxes.box_row import Row, Style
from gviz.render.boxes.box_size import (
    BRIEF_GAP,
    BRIEF_LENGTH,
    WIDEST_VALUE,
    Outline,
    data_text,
    has_contents,
    tensor_room,
    value_room,
)
from gviz.render.boxes.box_text import (
    HOOK,
    LONGEST_HOOK,
    as_grid,
    below_value,
    brief_gradient_row,
    fitting_rows,
    gradient_next_to_name,
    gradient_rooms,
    hook_names,
    room_beside,
    roomy,
    stacked_room,
)
from gviz.render.boxes.edge_content import gradient_symbol
from gviz.render.boxes.folding import Group, Preparation
from gviz.render.boxes.gradient_bars import (
    BRIEF_BARS,
    EACH,
    MOST_BARS,
    bars,
    parameter_uses,
    part_parameters,
    step_results,
)
from gviz.render.boxes.node_states import State, cut_text, cut_word, cuts, has_no_gradient, state_word
from gviz.render.boxes.shown_moment import Now, is_masked
from gviz.render.boxes.tensor_pictures import DIGITS
from gviz.trace.graph_state import OPTIMIZER, NodeInfo, NodeState
from gviz.trace.timeline import Timeline
from gviz.values.number_text import count_text, number
from gviz.values.plain_text import abridged, clipped, shown
from gviz.values.value import Value, capture
from gviz.values.value_text import NO_VALUE, bad_text, grad, norm


def group_rows(place: Outline, group: Group, now: Now) -> tuple[Row, ...]:
    """Return the rows below the title of a collapsed module, as many as the outline has room for."""
    if place.height == 1 and not now.options.adds_gradients:
        return ()
    state = now.states[place.node]
    if state is not None and state.outputs:
        own = now.own(now.timeline.info(place.node), state.outputs[0], 0)
        state = replace_struct(state, outputs=(own, *state.outputs[1:]))
    if place.height == 1:
        return () if group.preparation is not None else gradient_next_to_name(_brief(roomy(place), group, state, now))
    if group.preparation is not None:
        return _data(place, group, group.preparation, state, now)
    if now.options.density == "min":  # below the name are the bars
        each = _bars(group, now, BRIEF_BARS)
        return (replace(each, is_left=True),) if each is not None else ()
    if now.options.density == "brief":
        return _brief(place, group, state, now)
    node_count = sum(now.states[node] is not None for node in group.inner)
    some = f"{node_count} of " if 0 < node_count < len(group.inner) else ""
    last_value = state.outputs[0].value if state is not None and state.outputs else None
    gives = as_grid(_gives(place, state, now), last_value, now.timeline.info(place.node).created.first_value, now)
    hooks = _hooks(group, now)
    rows = [Row(f"{some}{_contents(group, now)}{_weights(group, now)}{hooks}", "muted"), gives]
    if group.call.is_source_call:
        rows = [
            Row(f"{_inside(group, now)}{hooks}", "muted"),
            replace(gives, label="value"),
            *_arriving(place, state, now),
        ]
    if cut := _cut(group, now):
        rows[0] = Row(cut, "muted")
    if not has_contents(group, now.options) and not cut:
        rows = rows[1:]
    if group.call.of > 1 and now.gradients:
        rows.append(_adds(group, now))
    if group.parameters and now.leaf_gradients:
        rows.append(_gradient(group, now))
    if now.gradients and (each := _bars(group, now)) is not None:
        rows.append(each)
    return fitting_rows(rows, place, now)


def _data(place: Outline, group: Group, data: Preparation, state: NodeState | None, now: Now) -> tuple[Row, ...]:
    """Return what a box of data preparation shows: the data that enters the graph, and the number of operations."""
    there = sum(now.states[node] is not None and now.timeline.info(node).created.kind == "op" for node in group.nodes)
    counted = Row(data_text(data, there if 0 < there < data.operations else 0), "muted")
    if not data.is_entry:
        return (counted,)
    value = state.outputs[0].value if state is not None and state.outputs else None
    if now.options.density == "brief":
        gives = _gives(place, state, now, tensor_room(value))
        return replace(gives, label="", is_left=True), replace(counted, shares_line=True)
    first = now.timeline.info(place.node).created.first_value
    return fitting_rows(
        [counted, as_grid(replace(_gives(place, state, now), label="value"), value, first, now)], place, now
    )


MOST_OPERATIONS = 30
"""The most operations that are listed in the tooltip of a box."""


def operation_list(group: Group, timeline: Timeline) -> str:
    """Return the operations on data that a box represents, in order of creation: ``images = div``, one a line."""
    nodes = [node for node in sorted(group.nodes) if timeline.info(node).created.kind == "op"]
    lines = [node_name(timeline.info(node)) for node in nodes[:MOST_OPERATIONS]]
    more = len(nodes) - len(lines)
    return "\n".join([*lines, *([f"and {more} more"] if more else [])])


def _contents(group: Group, now: Now) -> str:
    """Return the number of nodes in a module, or its only call: ``33 nodes``, ``12 x 33 nodes``, ``linear``."""
    count = len(group.inner)
    if group.repeat is not None:
        each = len(group.repeat.members[0])
        return f"{group.repeat.count} x {each} node{'s' * (each != 1)}"
    if now.options.graph_filter.calls and group.does:
        return group.does
    return f"{count} node{'s' * (count != 1)}"


def _cut(group: Group, now: Now) -> str:
    """Return where the graph is cut inside of a collapsed call, ``cut by detach at demo.py:4``; "" if it is not."""
    return next(map(cut_text, _cuts(group, now)), "")


def _cuts(group: Group, now: Now) -> Iterator[NodeInfo]:
    """Yield the nodes of a collapsed call at which the graph is cut."""
    nodes = now.timeline.once(_cut_nodes, group) if now.options.marks else ()
    return (now.timeline.info(node) for node in nodes if now.states[node] is not None)


def _cut_nodes(timeline: Timeline, group: Group) -> tuple[int, ...]:
    return tuple([node for node in group.inner if cuts(timeline, timeline.info(node))])


def group_status(group: Group, states: tuple[State, ...], now: Now) -> str:
    """Return the word for the most important state of a collapsed module; empty if no state has a word."""
    failed = now.moment.failed.node if now.moment.failed is not None else 0
    steps = {state.step for node in group.nodes if (state := now.states[node]) is not None}
    if now.first_bad in group.nodes and failed not in group.nodes and "failed" not in steps:
        return f"! first {now.timeline.error_index.kind_of_first_bad()}"
    word = state_word(states)
    return next((cut_word(info, now) for info in _cuts(group, now)), word) if word == "cut" else word


def inner_hooks(group: Group, now: Now) -> list[HookEffect]:
    """Return the hooks that changed gradients inside of a collapsed call. Those of its result are on its line."""
    nodes = filter(now.hooked, (*group.parameters, *group.inner[:-1])) if now.has_hooks else ()
    return [effect for node in nodes for effect in now.hooks(node)]


def _hooks(group: Group, now: Now) -> str:
    names = hook_names(inner_hooks(group, now))
    return f", {HOOK} {clipped(', '.join(names), LONGEST_HOOK)}" if names else ""


MOST_NAMES = 3


def _inside(group: Group, now: Now) -> str:
    """Return the nodes of a function call and the parameters that only it uses: ``2 nodes: t, addmm; weight, bias``."""
    names = [*dict.fromkeys(shown(now.timeline.info(node).op.name) for node in group.inner)]
    own = [abridged(now.timeline.info(node).name.rpartition(".")[2], 12) for node in group.parameters]
    parts = [f"{len(group.inner)} nodes: {_some(names)}"] if len(group.inner) > 1 else []
    return clipped("; ".join([*parts, *([_some(own)] if own else [])]), WIDEST_VALUE)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")


def _arriving(place: Outline, state: NodeState | None, now: Now) -> Iterator[Row]:
    """Yield the incoming gradient of a call's result, if it can have one."""
    created = now.timeline.info(place.node).created
    if created.requires_grad and now.gradients:
        incoming = state.outputs[0].incoming if state is not None and state.outputs else None
        style: Style = "bad" if bad_text(incoming) else "grad" if incoming is not None else "muted"
        text = grad(incoming, place.width - 6, DIGITS) if incoming is not None else now.nothing
        yield as_grid(Row(text, style, "grad"), incoming, created.first_value, now)


def _bars(group: Group, now: Now, most_bars: int = MOST_BARS) -> Row | None:
    """Return the gradients of equal parts as a row of bars, with their least and greatest norm; None for no parts.

    The row of the steps of a loop is labelled ``|∂L/∂h|``, as the line of that gradient is.
    """
    if parameters := now.timeline.once(part_parameters, group):
        label, norms = EACH, [gradient_norm(nodes, now.states) for nodes in parameters]
    elif results := now.timeline.once(step_results, group):
        symbols = {gradient_symbol(now.timeline.info(node), now.result) for node, _ in results}
        symbol = symbols.pop() if len(symbols) == 1 else ""
        label, norms = f"|{symbol}|" if symbol else EACH, [_incoming_norm(*result, now) for result in results]
    else:
        return None
    text = bars(norms, most_bars)
    return Row(text, "grad", label) if text else Row(NO_VALUE, "muted", label)


def _incoming_norm(node: int, output_nr: int, now: Now) -> float | None:
    state = now.states.get(node)
    incoming = state.outputs[output_nr].incoming if state is not None and output_nr < len(state.outputs) else None
    return _length(incoming) if incoming is not None else None


def gradient_norm(nodes: Iterable[int], states: Mapping[int, NodeState | None]) -> float | None:
    """Return the norm of all ``.grad`` of some leaves together; None if no ``.grad`` is known.

    The norm is nan or inf if one of the gradients contains nan or inf.
    """
    outputs = [state.outputs[0] for node in nodes if (state := states.get(node)) is not None and state.outputs]
    bad = "".join(bad_text(output.grad) for output in outputs)
    if bad:
        return nan if "nan" in bad else inf
    lengths = [_length(output.grad) for output in outputs if output.grad is not None]
    known = [length for length in lengths if length is not None]
    return hypot(*known) if known else None


_length = lru_cache(maxsize=8192)(norm)  # there are thousands of gradients, and an event changes only one


def group_states(group: Group, now: Now) -> tuple[State, ...]:
    """Return the states of a collapsed module.

    A bad state applies if one of its nodes has it, a good state if all nodes have it.
    """
    inner = [now.states[node] for node in (group.inner if group.preparation is None else group.nodes)]
    there = [state for state in inner if state is not None]
    if not there:
        return ("pending",)
    steps = {state.step for state in there} - {"none"}
    parameters = [state for node in group.parameters if (state := now.states[node]) is not None]
    everything, missing = frozenset(group.nodes), _missing(group, now)
    failed = now.moment.failed.node if now.moment.failed is not None else 0
    several = (there[-1], *parameters) if now.first_bad else ()  # never without a first bad node
    outputs = [(state.node, out) for state in several for out in state.outputs]
    values = [out.value for node, out in outputs if not is_masked(now.timeline, node, out)]
    bad = "".join(map(bad_text, (*values, *(out.grad for _, out in outputs))))
    facts: dict[State, bool] = {
        "current": now.moment.actor in everything,
        "receiving": isinstance(now.moment.event, GradFlowed) and now.moment.event.node in everything,
        "running": "running" in steps,
        "waiting": bool(steps & {"waiting", "done"}) and steps != {"done"},
        "done": steps == {"done"},
        "released": any(state.saved == "freed" for state in there) and all(state.saved != "held" for state in there),
        "freed": len(there) == len(inner) and all(state.freed for state in there),
        "nan": "nan" in bad,
        "inf": bool(bad) and "nan" not in bad,
        "missing": 0 < len(missing) == len(group.parameters),
        "cut": now.options.marks and bool(now.timeline.once(_cut_nodes, group)),
        "error": bool({now.first_bad, failed} & everything)
        or "failed" in {state.step for state in (*there, *parameters)},
    }
    return tuple(name for name, holds in facts.items() if holds)


def _brief(place: Outline, group: Group, state: NodeState | None, now: Now) -> tuple[Row, ...]:
    """Return the row of a brief box: its output and its gradient, or the number of nodes in an optimizer step."""
    if group.call.path == OPTIMIZER:
        return (Row(f"{len(group.inner)} nodes", "muted"),)
    value = state.outputs[0].value if state is not None and state.outputs else None
    most = tensor_room(value)
    if now.options.marks:  # the room of a gradient that may arrive stays free
        is_apart = now.options.stacks or not (group.parameters and now.leaf_gradients)
        most = max(most, place.width - len("gives ") - (0 if is_apart else BRIEF_GAP + len(".grad ") + BRIEF_LENGTH))
    if group.call.is_source_call:
        info = now.timeline.info(place.node)
        gives = replace(_gives(place, state, now, value_room(value, now.options)), label="")
        room = stacked_room(place, value, now.options)
        whole = replace(_gives(place, state, now, room), label="") if now.options.marks else gives
        if not (info.created.requires_grad and now.gradients):
            return (whole,)
        incoming = state.outputs[0].incoming if state is not None and state.outputs else None
        rooms = gradient_rooms(info.created.first_value, now.options)
        rights = [brief_gradient_row(incoming, now.nothing, "grad", room, now.options) for room in rooms]
        room = place.width - BRIEF_GAP - gives.characters
        if now.options.stacks:
            return whole, below_value(rights[0])
        fitting = (row for row in rights if now.options.lists_elements or row.characters <= room)
        right = next(fitting, rights[-1])
        if now.options.marks and not now.options.lists_elements:
            room = room_beside(place, right, gives.characters, now.options)
            gives = replace(_gives(place, state, now, room), label="")
        return gives, right
    gradient = _brief_gradient(group, now)
    each = _bars(group, now, BRIEF_BARS) if place.height > 2 else None
    below = [replace(each, is_left=True)] if each is not None else []
    if gradient is None:
        return (replace(_gives(place, state, now, most), is_left=True), *below)
    if now.options.stacks:
        stacked = replace(gradient, shares_line=False, is_left=True)
        return replace(_gives(place, state, now, most), is_left=True), stacked, *below
    room = room_beside(place, gradient, len("gives ") + tensor_room(value), now.options) - len("gives ")
    return _gives(place, state, now, min(room, most)), gradient, *below


def _brief_gradient(group: Group, now: Now) -> Row | None:
    """Return the ``.grad`` of a call's parameters, or only what the call adds to it if something else did, too.

    None if nothing is known: the sum of all calls would seem to be the gradient of this one.
    """
    if _calls(group) > 1 or _holds_older(group, now):
        adds = _adds(group, now)
        return replace(adds, shares_line=True) if adds.text != NO_VALUE else None
    length = gradient_norm(group.parameters, now.states)
    return replace(_total(length), shares_line=True) if length is not None else None


def _calls(group: Group) -> int:
    """Return how often the graph calls the module of a group; 1 if the group has all of its calls."""
    if group.repeat is None:
        return group.call.of
    return group.repeat.of if group.repeat.of > group.repeat.count else 1


def _holds_older(group: Group, now: Now) -> bool:
    """Return whether a ``.grad`` of a module holds gradients of other passes than the last one of this graph."""
    start = now.timeline.iteration_at(now.moment.n).start
    states = [state for node in group.parameters if (state := now.states[node]) is not None and state.outputs]
    about = ((state.node, state.outputs[0].grad_seq, start) for state in states if state.outputs[0].grad is not None)
    return any(now.timeline.once(_has_older, each) for each in about)


def _has_older(timeline: Timeline, about: tuple[int, int, int]) -> bool:
    node, seq, start = about
    return holds_older(timeline, node, seq, start)


def _missing(group: Group, now: Now) -> list[int]:
    """Return the parameters of a module that no backward pass has given a gradient."""
    if not now.after_pass:
        return []
    infos = ((node, now.timeline.info(node)) for node in group.parameters)
    return [node for node, info in infos if has_no_gradient(info, now.states[node], after_pass=True)]


def _weights(group: Group, now: Now) -> str:
    count = now.timeline.once(_weight_count, group)
    return f", {count_text(count)} params" if count else ""


def _weight_count(timeline: Timeline, group: Group) -> int:
    infos = map(timeline.info, group.parameters)
    return sum(value.size for info in infos if (value := info.created.first_value) is not None)


def _gives(place: Outline, state: NodeState | None, now: Now, room: int = 0) -> Row:
    if state is None or not state.outputs:
        return Row(NO_VALUE, "muted", "gives")
    value = state.outputs[0].value
    form, style = now.value_form(place.node, state.outputs[0])
    return Row(form(value, room or place.width - 6, DIGITS), style, "gives")


def _adds(group: Group, now: Now) -> Row:
    """Return the row of the gradient that this call sent to the parameters in the latest pass that reached them."""
    sent: dict[int, list[Value]] = {}
    for source, user, slot in now.timeline.once(parameter_uses, group):
        part = now.contribution(source, 0, user, slot)
        if part is not None:
            sent.setdefault(source, []).append(part.value)
    lengths = [_length(parts[0]) if len(parts) == 1 else _length_of_sum(parts) for parts in sent.values()]
    known = [length for length in lengths if length is not None]
    if not known:
        return Row(NO_VALUE, "muted", "adds")
    return Row(f"|g| {number(hypot(*known), 3)}", "sum", "adds")


def _length_of_sum(parts: Sequence[Value]) -> float | None:
    """Return the norm of a sum; None if the elements of a term were not stored."""
    arrays = [array for part in parts if (array := part.array()) is not None]
    return norm(capture(sum(arrays[1:], arrays[0]))) if len(arrays) == len(parts) else None


def _gradient(group: Group, now: Now) -> Row:
    """Return the row of the parameters' ``.grad``, to which every call of the module and older passes have added."""
    length, missing = gradient_norm(group.parameters, now.states), len(_missing(group, now))
    if length is None:
        return Row("None", "muted", ".grad")
    if missing:
        some = f"|g| {number(length, 3)}, {missing} of {len(group.parameters)} without"
        return Row(some, "grad" if isfinite(length) else "bad", ".grad")
    of, total = _calls(group), _total(length)
    passes = _passes(group, now)
    several = passes or (", all passes" if _holds_older(group, now) else "")
    every = several or (f", all {of} calls" if of > 1 else "")
    return replace(total, text=f"{total.text}{every}")


MOST_PASSES = 3
"""The most passes whose numbers are listed."""


def _passes(group: Group, now: Now) -> str:
    """Return the passes whose gradients the ``.grad`` of a module holds; empty for only one pass of this iteration.

    They have the names of their losses if each has another: ``of d_loss and g_loss``; else numbers: ``, passes 3, 4``.
    """
    numbers: set[int] = set()
    for node in group.parameters:
        state = now.states[node]
        if state is not None and state.outputs and state.outputs[0].grad is not None:
            added = now.timeline.once(_passes_added, (node, state.outputs[0].grad_seq))
            if not added:
                return ""
            numbers.update(added)
    passes = sorted(numbers)
    start = now.timeline.iteration_at(now.moment.n).start
    if not passes or (len(passes) == 1 and now.timeline.pass_start(passes[0]) >= start):
        return ""
    names = [now.timeline.once(_loss_of, pass_nr) for pass_nr in passes[: MOST_PASSES + 1]]
    if 1 < len(names) == len({*names}) <= 2 and all(0 < len(name) <= _LONGEST_LOSS for name in names):
        return f" of {' and '.join(names)}"
    if len(passes) > MOST_PASSES:
        is_run = passes[-1] - passes[0] == len(passes) - 1
        return f", passes {passes[0]} to {passes[-1]}" if is_run else f", {len(passes)} passes"
    return f", pass{'es' * (len(passes) > 1)} {', '.join(map(str, passes))}"


_LONGEST_LOSS = 8
"""The most characters of the name of a loss next to a norm."""


def _passes_added(timeline: Timeline, about: tuple[int, int]) -> tuple[int, ...]:
    return passes_in(timeline, *about)


def _loss_of(timeline: Timeline, pass_nr: int) -> str:
    """Return the name of the only result from which a pass started; empty if it has none."""
    root = root_of_pass(timeline, pass_nr)
    return timeline.info(root).name if root else ""


def _total(length: float) -> Row:
    return Row(f"|g| {number(length, 3)}", "grad" if isfinite(length) else "bad", ".grad")
