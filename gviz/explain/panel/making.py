"""How a node was made: formula, value, operands, what it is to autograd, who uses it, and where in the source."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gviz.events import NOT_SEEN, DataSet, StorageWritten, Warned
from gviz.events.options import option_text
from gviz.explain.computation import Computation, Operand, computation
from gviz.explain.dropped import dropped
from gviz.explain.kept import kept_names
from gviz.explain.names import MAX_NAME, frame_text, further_names, is_mask, op_title, why_untracked
from gviz.explain.panel.fact import LIST, Fact, NodeView, Part, event, listed
from gviz.explain.standing import as_at
from gviz.explain.writes import options_of, step_of
from gviz.numbers import bytes_text, dtype_text, shape_text
from gviz.plain_text import abridged, clipped, shown
from gviz.site import source_lines
from gviz.trace.state import NodeState
from gviz.trace.timeline import Timeline
from gviz.value_text import bad_text, full, short
from gviz.values import Value

NOT_RECORDED = "a tensor that is not recorded"
WITHIN = "it was computed within a call of PyTorch, which gives it to nobody: its shape alone is known"
LINEAR = "x @ weight.T + bias"
_TRANSPOSES = re.compile(r"\.m?T\b|\.t\(|transpose|permute|swapaxes|swapdims|adjoint|\bt\(")


def to_be_made(view: NodeView) -> Iterator[Fact]:
    """When a node of the future will be made."""
    if view.state is None:
        yield Fact("", (Part("not made yet: "), event(view.info.born), Part(" makes it")))


def formula(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """The operation with its numbers."""
    computed = _computed(view, state)
    if computed.formula:
        yield Fact("formula", (Part(computed.brief), *shapes_behind(computed.shapes)))


def shapes_behind(shapes: str) -> Iterator[Part]:
    """The shapes of what has only its name in a formula or rule, behind it."""
    if shapes:
        yield Part(f"   {shapes}", "muted")


def _computed(view: NodeView, state: NodeState) -> Computation:
    """How its value came to be: a replay of a captured graph, or a run of a static one, computes it again."""
    made = view.info.created
    if made.kind != "op" or not state.outputs:
        return computation(view.timeline, view.node)
    output = state.outputs[0]
    is_own = output.written_by == view.node and output.version == made.outputs[0].version
    is_again = is_own and isinstance(view.timeline.event(output.value_seq), StorageWritten)  # else it has other data
    return computation(view.timeline, view.node, output.value_seq if is_again else 0)


def values(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """What every output holds, and who has written to it since it was made."""
    for nr, output in enumerate(state.outputs):
        value, since = output.value, output.value_seq
        held = _no_value(view, nr) if value is None else _value(value, since, in_full=view.full)
        yield Fact(of_output("value", nr, state), (*own_name(view, nr), *held), nr)
        if not nr and _is_within(view, output.value):
            yield Fact("", (Part(WITHIN, "muted"),), 0, 1)
        if output.version > view.info.created.outputs[nr].version:
            by = f" by #{output.written_by}" if output.written_by not in (0, view.node) else _by_optimizer(view, since)
            text = f"written in place{by}, version {output.version}, "
            yield Fact("", (Part(text, "sum"), event(output.value_seq)), nr, 1)
        elif output.written_by and isinstance(view.timeline.event(output.value_seq), DataSet):
            yield Fact("", (Part("was given other data, ", "sum"), event(output.value_seq)), nr, 1)


def _by_optimizer(view: NodeView, since: int) -> str:
    """The optimizer whose step wrote to it, with its learning rate."""
    step = step_of(view.timeline, view.node, since)
    lr = options_of(view.timeline, view.node, since).get("lr")
    return f" by {shown(step.kind)}{f', lr={option_text(lr)}' * (lr is not None)}" if step is not None else ""


def _is_within(view: NodeView, value: Value | None) -> bool:
    """Whether a value is not stored because no call of the program has given it."""
    unknown = value is not None and value.size > 0 and value.statistics() is None
    return unknown and view.info.created.kind == "op" and view.timeline.once(_only_within_calls, 0)


def _only_within_calls(timeline: Timeline, start: int) -> bool:
    """Whether what happens within a call is the only thing of which a recording says that it has no values."""
    warned = timeline.select((Warned,), start + 1, len(timeline) + 1)
    unseen = {event.unseen for _, event in warned if event.category == NOT_SEEN}
    return "composite" in unseen and unseen.isdisjoint(("transform", "forward", "modules", "replay"))


def of_output(name: str, nr: int, state: NodeState) -> str:
    """The name of a row about an output, with the number of one among several."""
    return f"{name} {nr}" if len(state.outputs) > 1 else name


def own_name(view: NodeView, nr: int) -> Iterator[Part]:
    """What the program calls one of several outputs."""
    name = view.info.output_name(nr) if len(view.info.created.outputs) > 1 else ""
    if name:
        yield Part(f"{abridged(name, MAX_NAME)}  ", "key")


def _value(value: Value, since: int, *, in_full: bool) -> Iterator[Part]:
    yield Part(full(value) if in_full else short(value), number_style(value, "value"), since)
    shape = shape_text(value.shape)
    if not in_full and not (value.shape and short(value).startswith(shape)):
        yield Part(f"  {shape} {dtype_text(value.dtype)}", "muted")


def _no_value(view: NodeView, nr: int) -> Iterator[Part]:
    """Of a graph that is built before its numbers, they come; of one that was there before the recording, never."""
    last = view.timeline.at(len(view.timeline)).state(view.node)
    comes = last is not None and last.outputs[nr].value is not None
    yield Part("none yet: the graph is built before its numbers" if comes else "not stored", "muted")


def number_style(value: Value, style: str) -> str:
    """The style of a number, which is another where something is wrong with it."""
    return "error" if bad_text(value) else style


def operands(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """With what it was computed."""
    for at, operand in enumerate(_computed(view, state).operands):
        yield Fact("" if at else "with", tuple(_operand(operand)), at)


def _operand(operand: Operand) -> Iterator[Part]:
    if not operand.node:
        yield Part(NOT_RECORDED, "muted")
        return
    yield Part(numbered(operand), "key", operand.born)
    yield Part(f"  {short(operand.value) if operand.value is not None else 'not stored'}", "value")
    if operand.parameter and operand.parameter not in ("self", "other", "input"):
        yield Part(f"  ({shown(operand.parameter)})", "muted")


def numbered(operand: Operand) -> str:
    """An operand by its number, and by its name if it has one: ``#1 x``; ``#2 output 1``."""
    return operand.name if operand.name.startswith("#") else f"#{operand.node} {operand.name}".rstrip()


def arguments(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """The arguments that are no tensors."""
    given = computation(view.timeline, view.node).attributes
    if given and view.info.created.kind == "op":
        yield Fact("args", (Part(clipped(", ".join(f"{name} {value}" for name, value in given), 400)),))
    if did := dropped(view.timeline, view.node):
        yield Fact("", (Part(did),), 0, 1)


def kind(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """What is special about the node; nothing for a tracked operation, whose grad_fn stands above."""
    created = as_at(view.info, state).created
    text = ""
    if created.kind != "op":
        what = "what the dropout drew" if is_mask(created) else created.kind
        text = f"{what}, {'requires grad' if state.requires_grad else 'no grad'}"
    elif created.untracked:
        text = f"not tracked: {why_untracked(created)}"
    elif base := next((output.view_of for output in created.outputs if output.view_of), 0):
        text = f"a view of #{base}: shares its memory"
    if text:
        yield Fact("kind", (Part(text),))
    if view.info.also:
        others = ", ".join(further_names(view.info.also))
        yield Fact("also", (Part(others, "key"), Part("  one tensor with several names", "muted")))


def saved(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """What it keeps for its backward rule, or when it was released."""
    if state.saved == "freed":
        yield Fact("saved", (Part("released, ", "muted"), event(state.saved_freed)))
    elif state.saved == "held":
        computed = computation(view.timeline, view.node)
        by_name = {operand.parameter: operand for operand in computed.operands}
        names = kept_names(view.timeline, view.node)
        kept = ", ".join(_saved_name(by_name.get(name), name, view.node) for name in names)
        values = [by_name[name].value if name in by_name else computed.result for name in names]
        size = sum(value.nbytes for value in values if value is not None)
        if kept:
            yield Fact("saved", (Part(kept), Part(f"  ({bytes_text(size)})" if size else "", "muted")))


def _saved_name(operand: Operand | None, name: str, node: int) -> str:
    if operand is None:
        return f"{shown(name)} #{node}" if name == "result" else shown(name)
    if not operand.node:
        return NOT_RECORDED
    return operand.name if operand.name.startswith("#") else f"{operand.name} #{operand.node}".lstrip()


def users(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """The nodes that were made with it so far; whether any will be is known of what is recorded."""
    found = view.timeline.nodes.users(view.node, view.moment.n)

    def named(user: int) -> Part:
        info = view.timeline.info(user)
        return Part(f"#{user} {clipped(info.name or op_title(info), 30)}", "key", info.born)

    yield Fact("used by", tuple(listed(found, named)) if found else (_no_user(view),))


def _no_user(view: NodeView) -> Part:
    comes = view.timeline.growing or view.timeline.nodes.users(view.node)
    return Part("nothing yet" if comes else "nothing", "muted")


def place(view: NodeView) -> Iterator[Fact]:
    """The place in the source, the event, and the callers."""
    info = view.info
    made = (Part("  "), event(info.born))
    if not info.frames:
        yield Fact("at", (Part("an unknown place", "muted"), *made))
        return
    first, *callers = info.frames
    yield Fact("at", (Part(frame_text(first, view.room), "title"), *made))
    for depth, frame in enumerate(callers[:LIST], 1):
        yield Fact("from", (Part(frame_text(frame, view.room - 5)),), 0, depth)
    if len(callers) > LIST:
        yield Fact("", (Part(f"and {len(callers) - LIST} more callers", "muted"),), 0, LIST + 1)


def module(view: NodeView) -> Iterator[Fact]:
    """The module in whose forward it was made; of the transposed weight of a linear layer, which no line of the
    program writes, what it is there for."""
    if view.info.scope:
        yield Fact("in module", (Part(clipped(view.info.scope, 200)),))
    if _is_weight_of_a_layer(view):
        text = f"a linear layer is {LINEAR}: this is its weight.T, which no line of the program writes"
        yield Fact("", (Part(text, "muted"),), 0, 1)


def _is_weight_of_a_layer(view: NodeView) -> bool:
    """Whether a node transposes a parameter in a line that transposes nothing."""
    info, timeline = view.info, view.timeline
    if info.op.name != "t" or not info.frames or timeline.info(info.created.inputs[0][0]).created.kind != "parameter":
        return False
    first = info.frames[0]
    lines = source_lines(timeline.source(first.path) or "")[first.line - 1 : first.end_line]
    return bool(lines) and not _TRANSPOSES.search("\n".join(lines))
