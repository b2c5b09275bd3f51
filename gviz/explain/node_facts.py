"""The text in the panel of a node at one moment; terminal and page only draw it.

A panel is a list of `SECTIONS`. Each section yields facts: rows with a name and parts. A part has a named style and may
have an event to go to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gviz.events import NOT_SEEN, DataSet, GradFlowed, NodeCreated, StepStarted, StorageWritten, Warned
from gviz.events.optimizer_options import option_text
from gviz.explain.display_names import MAX_NAME, further_names, is_mask, label, op_title
from gviz.explain.grad_history import accumulation
from gviz.explain.outgoing_gradients import OutgoingGradient, outgoing_gradients
from gviz.explain.parameter_updates import options_of, step_of
from gviz.explain.pass_contributions import LINEAR, origin, transposes_layer_weight
from gviz.explain.source_frames import frame_text
from gviz.explain.tracking import as_at, why_untracked
from gviz.explain.value_computation import Computation, Operand, computation, dropout_effect, saved_names
from gviz.trace.graph_state import Contribution, NodeInfo, NodeState, OutputState
from gviz.trace.timeline import Moment, Timeline
from gviz.values.number_text import bytes_text, dtype_text, shape_text
from gviz.values.plain_text import abridged, clipped, shown
from gviz.values.value import Value
from gviz.values.value_text import FEW, SOME, addition, bad_text, full, grad, share, short

LIST = 8
"""The most users, callers and contributions that are listed; further ones are counted."""


class Part(NamedTuple):
    """A text, its style (as in `gviz.tui.styled_lines`), its event (0: none), and a shorter text."""

    text: str
    style: str = ""
    event: int = 0
    close: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """One row: its name and its parts. `about` is the number of its output, input or user.

    A `further` row (above 0) belongs to the one before it.
    """

    name: str
    parts: tuple[Part, ...]
    about: int = 0
    further: int = 0


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node at a moment, and how much of it is shown.

    A `full` view shows every digit, and facts that a panel without links would omit. A file name may have `room`
    characters. With a `branch` its outgoing gradients (by input) are shown next to the recorded ones.
    """

    timeline: Timeline
    moment: Moment
    node: int
    state: NodeState | None
    full: bool = False
    room: int = 60
    branch: Mapping[int, OutgoingGradient] | None = None

    @property
    def info(self) -> NodeInfo:
        """Return how the node was made."""
        return self.timeline.info(self.node)


def event_part(seq: int) -> Part:
    """Return an event by its number, ``event 12``."""
    return Part(f"event {seq}", "key", seq)


def listed(nodes: Sequence[int], named: Callable[[int], Part]) -> Iterator[Part]:
    """Yield the names of nodes, with commas between them; of very many the first, and the number of the others."""
    for at, node in enumerate(nodes[:LIST]):
        if at:
            yield Part(", ")
        yield named(node)
    if len(nodes) > LIST:
        yield Part(f" and {len(nodes) - LIST} more", "muted")


# How a node was made: formula, value, operands, tracking, users, and place in the source

NOT_RECORDED = "a tensor that is not recorded"
INSIDE_CALL = "it was computed inside a call of PyTorch, which does not pass it on: only its shape is known"


def unborn_facts(view: NodeView) -> Iterator[Fact]:
    """Yield when a node of the future will be made."""
    if view.state is None:
        yield Fact("", (Part("not made yet: "), event_part(view.info.born), Part(" makes it")))


def formula_facts(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """Yield the operation with its numbers."""
    computed = _computed(view, state)
    if computed.formula:
        yield Fact("formula", (Part(computed.brief), *shapes_suffix(computed.shapes)))


def shapes_suffix(shapes: str) -> Iterator[Part]:
    """Yield the shapes of the tensors that a formula or rule shows only by name, for use after it."""
    if shapes:
        yield Part(f"   {shapes}", "muted")


def _computed(view: NodeView, state: NodeState) -> Computation:
    """Return the computation of its value. A replay of a captured graph or a run of a static one repeats it."""
    created = view.info.created
    if created.kind != "op" or not state.outputs:
        return computation(view.timeline, view.node)
    output = state.outputs[0]
    is_own = output.written_by == view.node and output.version == created.outputs[0].version
    is_again = is_own and isinstance(view.timeline.event(output.value_seq), StorageWritten)  # else it has other data
    return computation(view.timeline, view.node, output.value_seq if is_again else 0)


def value_facts(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """Yield the value of every output, and its later writers."""
    for nr, output in enumerate(state.outputs):
        value, since = output.value, output.value_seq
        parts = _no_value(view, nr) if value is None else _value(value, since, in_full=view.full)
        yield Fact(of_output("value", nr, state), (*own_name(view, nr), *parts), nr)
        if not nr and _is_inside_call(view, output.value):
            yield Fact("", (Part(INSIDE_CALL, "muted"),), 0, 1)
        if output.version > view.info.created.outputs[nr].version:
            by = f" by #{output.written_by}" if output.written_by not in (0, view.node) else _by_optimizer(view, since)
            text = f"written in place{by}, version {output.version}, "
            yield Fact("", (Part(text, "sum"), event_part(output.value_seq)), nr, 1)
        elif output.written_by and isinstance(view.timeline.event(output.value_seq), DataSet):
            yield Fact("", (Part("was given other data, ", "sum"), event_part(output.value_seq)), nr, 1)


def _by_optimizer(view: NodeView, since: int) -> str:
    """Return the optimizer whose step wrote to it, with its learning rate."""
    step = step_of(view.timeline, view.node, since)
    lr = options_of(view.timeline, view.node, since).get("lr")
    return f" by {shown(step.kind)}{f', lr={option_text(lr)}' * (lr is not None)}" if step is not None else ""


def _is_inside_call(view: NodeView, value: Value | None) -> bool:
    """Return whether a value is not stored because no call of the program returned it."""
    unknown = value is not None and value.size > 0 and value.statistics() is None
    return unknown and view.info.created.kind == "op" and view.timeline.once(_only_inside_calls, 0)


def _only_inside_calls(timeline: Timeline, start: int) -> bool:
    """Return whether values inside of calls are the only values that the recording reports as missing."""
    warned = timeline.select((Warned,), start + 1, len(timeline) + 1)
    unseen = {event.unseen for _, event in warned if event.category == NOT_SEEN}
    return "composite" in unseen and unseen.isdisjoint(("transform", "forward", "modules", "replay"))


def of_output(name: str, nr: int, state: NodeState) -> str:
    """Return the name of a row about an output, with its number if there are several."""
    return f"{name} {nr}" if len(state.outputs) > 1 else name


def own_name(view: NodeView, nr: int) -> Iterator[Part]:
    """Yield the program's name of one of several outputs."""
    name = view.info.output_name(nr) if len(view.info.created.outputs) > 1 else ""
    if name:
        yield Part(f"{abridged(name, MAX_NAME)}  ", "key")


def _value(value: Value, since: int, *, in_full: bool) -> Iterator[Part]:
    yield Part(full(value) if in_full else short(value), number_style(value, "value"), since)
    shape = shape_text(value.shape)
    if not in_full and not (value.shape and short(value).startswith(shape)):
        yield Part(f"  {shape} {dtype_text(value.dtype)}", "muted")


def _no_value(view: NodeView, nr: int) -> Iterator[Part]:
    """Yield why there is no value: a static graph gets it later, a graph older than the recording never."""
    last = view.timeline.at(len(view.timeline)).state(view.node)
    comes = last is not None and last.outputs[nr].value is not None
    yield Part("none yet: the graph is built before its numbers" if comes else "not stored", "muted")


def number_style(value: Value, style: str) -> str:
    """Return the style of a number, or the error style if it is bad."""
    return "error" if bad_text(value) else style


def operand_facts(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """Yield the operands."""
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
    """Return an operand by its number, and by its name if it has one: ``#1 x``; ``#2 output 1``."""
    return operand.name if operand.name.startswith("#") else f"#{operand.node} {operand.name}".rstrip()


def argument_facts(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """Yield the arguments that are not tensors."""
    attributes = computation(view.timeline, view.node).attributes
    if attributes and view.info.created.kind == "op":
        yield Fact("args", (Part(clipped(", ".join(f"{name} {value}" for name, value in attributes), 400)),))
    if did := dropout_effect(view.timeline, view.node):
        yield Fact("", (Part(did),), 0, 1)


def kind_facts(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """Yield special properties of the node; none for a tracked operation, whose grad_fn is shown above."""
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


def saved_facts(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """Yield the tensors that it saves for its backward rule, or when they were released."""
    if state.saved == "freed":
        yield Fact("saved", (Part("released, ", "muted"), event_part(state.saved_freed)))
    elif state.saved == "held":
        computed = computation(view.timeline, view.node)
        by_name = {operand.parameter: operand for operand in computed.operands}
        names = saved_names(view.timeline, view.node)
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


def user_facts(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """Yield the nodes that were made from it so far; whether there will be others is known only in a recording."""
    users = view.timeline.nodes.users(view.node, view.moment.n)

    def named(user: int) -> Part:
        info = view.timeline.info(user)
        return Part(f"#{user} {clipped(info.name or op_title(info), 30)}", "key", info.born)

    yield Fact("used by", tuple(listed(users, named)) if users else (_no_user(view),))


def _no_user(view: NodeView) -> Part:
    comes = view.timeline.growing or view.timeline.nodes.users(view.node)
    return Part("nothing yet" if comes else "nothing", "muted")


def place_facts(view: NodeView) -> Iterator[Fact]:
    """Yield the place in the source, the event, and the callers."""
    info = view.info
    event = (Part("  "), event_part(info.born))
    if not info.frames:
        yield Fact("at", (Part("an unknown place", "muted"), *event))
        return
    first, *callers = info.frames
    yield Fact("at", (Part(frame_text(first, view.room), "title"), *event))
    for depth, frame in enumerate(callers[:LIST], 1):
        yield Fact("from", (Part(frame_text(frame, view.room - 5)),), 0, depth)
    if len(callers) > LIST:
        yield Fact("", (Part(f"and {len(callers) - LIST} more callers", "muted"),), 0, LIST + 1)


def module_facts(view: NodeView) -> Iterator[Fact]:
    """Yield the module in whose forward it was made.

    The transposed weight of a linear layer, which no line of the program writes, also has its purpose.
    """
    if view.info.scope:
        yield Fact("in module", (Part(clipped(view.info.scope, 200)),))
    if transposes_layer_weight(view.timeline, view.info):
        text = f"a linear layer is {LINEAR}: this is its weight.T, which no line of the program writes"
        yield Fact("", (Part(text, "muted"),), 0, 1)


# Gradients: the incoming gradient, ``.grad``, and the outgoing gradient for every input

IN_BRANCH = "not known in the branch"


def incoming_facts(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """Yield what has arrived in the latest pass, contribution by contribution."""
    for nr, output in enumerate(state.outputs if state.requires_grad else ()):
        yield Fact(of_output("incoming", nr, state), (*own_name(view, nr), *_incoming_parts(view, output)), nr)
        if view.full or len(output.parts) > 1:
            yield from _contributions(view, nr, output)


def _incoming_parts(view: NodeView, output: OutputState) -> Iterator[Part]:
    value = output.incoming
    if value is None:
        yield Part("none yet", "muted")
        return
    text = full(value) if view.full and FEW < value.size <= SOME else grad(value)
    yield Part(text, number_style(value, "grad"), output.parts[-1].seq if output.parts else 0)
    if output.expected > 1:
        yield Part(f"  ({len(output.parts)} of {output.expected})", "muted")
    elif len(output.parts) == 1 and not view.full:
        yield Part(f"  from {_source(view, output.parts[0])}", "muted")


def _contributions(view: NodeView, nr: int, output: OutputState) -> Iterator[Fact]:
    """Yield every contribution to a sum, in the order of arrival."""
    for at, part in enumerate(output.parts[:LIST], 1):
        number = Part(share(part.value), "grad", part.seq)
        if view.full:
            yield Fact("+=", (number, Part(f"  from {_rule_of(view, part)}, "), event_part(part.seq)), nr, at)
        else:
            yield Fact("+=", (number, Part(f"  from {_source(view, part)}", "muted")), nr, at)
    if len(output.parts) > LIST:
        yield Fact("", (Part(f"and {len(output.parts) - LIST} more contributions", "muted"),), nr, LIST + 1)


def _source(view: NodeView, part: Contribution) -> str:
    """Return the source of a contribution: a node, or the call of ``backward()`` itself."""
    return label(view.timeline, part.source) if part.source else "backward()"


def _rule_of(view: NodeView, part: Contribution) -> str:
    return origin(view.timeline, part) if part.source else "backward()"


def grad_facts(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """Yield ``.grad`` if the node can have one."""
    if not state.requires_grad:
        return
    leaf = as_at(view.info, state).created.kind in ("leaf", "parameter")
    for nr, output in enumerate(state.outputs):
        if leaf or output.grad is not None:
            yield Fact(of_output(".grad", nr, state), (*own_name(view, nr), *_grad_parts(view, output)), nr)


def _grad_parts(view: NodeView, output: OutputState) -> Iterator[Part]:
    """Yield ``.grad``, and its value before the pass: ``3 += 3 -> 6  (the former since pass 1)``."""
    value = output.grad
    if value is None:
        yield Part("None", "muted", output.grad_seq)
        return
    was = accumulation(view.timeline, view.node, output)
    text = full(value) if view.full else short(value)
    if was is None:
        yield Part(text, number_style(value, "grad"), output.grad_seq)
    else:
        yield from _addition(was.before, was.part, value, to=output.grad_seq)
        more = text.removeprefix(short(value))
        yield Part(("" if more != text else "  ") + more if view.full else "", "grad")
        yield Part(f"  (the former since pass {was.since})" if was.since else "", "muted")
    if view.full and output.grad_seq:
        yield from (Part(", ", "muted"), event_part(output.grad_seq))


def outgoing_facts(view: NodeView, state: NodeState) -> Iterator[Fact]:
    """Yield the rule with its numbers for every input, and ``old += new -> sum``; before it has run only the rule.

    In a branch the numbers are those of the branch, with the recorded ones below if they differ.
    """
    created = view.info.created
    if created.kind != "op" or created.untracked:
        return
    for sent in outgoing_gradients(view.timeline, view.moment, view.node):
        there = sent if view.branch is None else view.branch.get(sent.operand.slot)
        yield from _rule(sent, there)
        if sent.part is not None and _is_known(sent.part):
            yield from _sum(sent, there)
        elif sent.part is not None:
            yield Fact(
                "outgoing", (Part(f"{sent.nth} of {sent.expected}, without numbers", "muted"),), sent.operand.slot, 2
            )


def _is_known(value: Value) -> bool:
    """Return whether anything is known of its elements. Nothing is before a graph runs, or if they were not stored."""
    return not value.size or value.statistics() is not None


def _rule(sent: OutgoingGradient, there: OutgoingGradient | None) -> Iterator[Fact]:
    """Yield ``to #1 x``: ``g * x = 1 * 5 = 5``, and if the recording had other numbers ``recorded 1 * 3 = 3``."""
    slot, name = sent.operand.slot, f"to {numbered(sent.operand)}" if sent.operand.node else "to ?"
    if sent.missing:
        yield Fact(name, (Part(sent.missing, "muted"),), slot)
        return
    here, branch = _numbers(sent), IN_BRANCH if there is None else _numbers(there)
    text = " = ".join(filter(None, [sent.summed, branch]))
    yield Fact(name, (Part(text), *shapes_suffix(sent.shapes)), slot)
    if here != branch:
        yield Fact("recorded", (Part(here),), slot, 1)


def _numbers(sent: OutgoingGradient) -> str:
    """Return the rule with numbers, and its result if that is one number.

    More numbers are read once, in the outgoing gradient below.
    """
    if sent.part is not None and not _is_known(sent.part):
        return ""
    steps = [sent.numbers] if not sent.reduced and sent.numbers != sent.rule else []
    if sent.part is not None and sent.part.size == 1 and short(sent.part) != sent.numbers:
        steps.append(short(sent.part))
    return " = ".join(steps)


def _sum(sent: OutgoingGradient, there: OutgoingGradient | None) -> Iterator[Fact]:
    """Yield the outgoing gradient: ``outgoing 1``. If contributions were sent before, yield their sum with it.

    For example ``sum 1 += 3 -> 4  (2 of 2)`` at the input. The recorded numbers are below it, if they differ.
    """
    slot, total = sent.operand.slot, _sum_parts(sent if there is None or there.part is None else there, sent.event)
    of = Part(f"  ({sent.nth} of {sent.expected})", "muted", close=f" ({sent.nth}/{sent.expected})")
    name = "outgoing" if sent.before is None or sent.after is None else "sum"
    yield Fact(name, (*total, of) if sent.expected > 1 else total, slot, 2)
    recorded = _sum_parts(sent, sent.event)
    if recorded != total:
        yield Fact("recorded", recorded, slot, 3)


def _sum_parts(sent: OutgoingGradient, seq: int) -> tuple[Part, ...]:
    """Return the contribution and the sum to which it is added, with a link to the event of the recording."""
    assert sent.part is not None  # it has been sent
    if sent.before is None or sent.after is None:
        return (Part(share(sent.part), "grad", seq),)
    return tuple(_addition(sent.before, sent.part, sent.after, seq))


def _addition(before: Value, part: Value, after: Value, seq: int = 0, to: int = 0) -> Iterator[Part]:
    """Yield ``1 += 3 -> 4``. The term links to event `seq`, the result to event `to`."""
    old, new, total = addition(before, part, after)
    yield from (Part(old, "grad"), Part(" += "), Part(new, "grad", seq), Part(" -> "))
    yield Part(total, number_style(after, "sum"), to)


# The sections in their order, each with the part of a node's state on which its facts depend

Facts = Callable[[NodeView], Iterator[Fact]]


def _fixed(state: NodeState | None) -> object:
    """Return the state of facts that never change once the node is made."""
    return state is None


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its name, its `facts`, and the part of a node's state on which they depend (`hang_on`).

    At a moment that is `news` for a node they may differ though its state is the same.
    """

    name: str
    facts: Facts
    hang_on: Callable[[NodeState | None], object] = _fixed
    news: Callable[[Moment, int], bool] = lambda moment, node: False


def _after_creation(facts: Callable[[NodeView, NodeState], Iterator[Fact]]) -> Facts:
    """Return a section that is empty before the node is made."""
    return lambda view: facts(view, view.state) if view.state is not None else iter(())


def _of_state(part: Callable[[NodeState], object]) -> Callable[[NodeState | None], object]:
    return lambda state: None if state is None else part(state)


def _contents(state: NodeState) -> object:
    return [(output.value_seq, output.version) for output in state.outputs]


def _arrivals(state: NodeState) -> object:
    arrived = [(output.incoming, len(output.parts), output.expected) for output in state.outputs]
    return state.requires_grad, state.pass_nr, arrived


def _rule_state(state: NodeState) -> object:
    """Return the state of a rule, which is constant before it has run."""
    return (state.pass_nr, state.step) if state.step in ("running", "done", "failed") else ()


def _exists(moment: Moment, node: int) -> bool:
    return isinstance(moment.event, NodeCreated)


def _sends(moment: Moment, node: int) -> bool:
    return moment.actor == node and isinstance(moment.event, GradFlowed | StepStarted)


SECTIONS = (
    Section("to be made", unborn_facts),
    Section("formula", _after_creation(formula_facts), _of_state(_contents)),
    Section("value", _after_creation(value_facts), _of_state(_contents)),
    Section("with", _after_creation(operand_facts), _of_state(_contents)),
    Section("args", _after_creation(argument_facts)),
    Section("kind", _after_creation(kind_facts), _of_state(lambda state: state.requires_grad)),
    Section("saved", _after_creation(saved_facts), _of_state(lambda state: (state.saved, state.saved_freed))),
    Section("used by", _after_creation(user_facts), news=_exists),
    Section("incoming", _after_creation(incoming_facts), _of_state(_arrivals)),
    Section(
        ".grad",
        _after_creation(grad_facts),
        _of_state(lambda state: (state.requires_grad, [output.grad_seq for output in state.outputs])),
    ),
    Section("to", _after_creation(outgoing_facts), _of_state(_rule_state), _sends),
    Section("at", place_facts),
    Section("in module", module_facts),
)
