"""One event in one sentence: for line mode, for screen readers, and for the row about why the program stopped."""

from __future__ import annotations

from gviz.events import (
    BackwardFinished,
    BackwardStarted,
    DataSet,
    Edge,
    Event,
    Failed,
    GradAccumulated,
    GradCaptured,
    GradFlowed,
    GradRetained,
    GradSet,
    HookRan,
    Marked,
    Named,
    NodeCreated,
    NodeFreed,
    OptimizerStarted,
    OptimizerStepped,
    Printed,
    RequiresGradSet,
    Returned,
    SavedFreed,
    ScopeEntered,
    ScopeLeft,
    StepFinished,
    StepStarted,
    StorageWritten,
    VariableHeld,
    Warned,
)
from gviz.explain.display_names import MAX_NAME, further_names, label, output_called, output_label
from gviz.explain.iteration_words import iteration_suffix, phase_words
from gviz.explain.outgoing_gradients import OutgoingGradient, outgoing_gradients
from gviz.explain.parameter_updates import all_options, is_unseen, resumed_at, step_of, why_nothing, written_tensor
from gviz.explain.source_frames import at_text
from gviz.explain.tracking import why_untracked
from gviz.explain.value_computation import computation
from gviz.result_tensors import as_taken
from gviz.trace.graph_state import OutputState
from gviz.trace.timeline import Moment, Timeline
from gviz.values.plain_text import abridged, clipped, shown
from gviz.values.value import Value
from gviz.values.value_text import added, grad, share, short


def sentence(timeline: Timeline, n: int, since: int = 0) -> str:
    """Return one full sentence about the moment: event number, phase, node, and what happened."""
    if n == 0:
        return f"start of the recording, before event 1 of {len(timeline)}."
    moment = timeline.at(n)
    words = _BEFORE_THE_KEPT_PART if timeline.dropped.replaces(n) else phase_words(timeline, moment)
    phase = f", {words}" if words else ""
    who = f", node {node_words(timeline, moment)}" if moment.actor else ""
    return f"event {n}{phase}{who}: {description(timeline, moment, since).rstrip('.')}."


def node_words(timeline: Timeline, moment: Moment) -> str:
    """Return the node of the event, with its iteration if it is an earlier one whose graph is freed now."""
    info = timeline.info(moment.actor)
    is_earlier = isinstance(moment.event, NodeFreed) and info.iteration != timeline.iteration_at(moment.n).index
    of = f" {iteration_suffix(timeline, info)}" if is_earlier else ""
    return f"{label(timeline, moment.actor)}{of}"


_NOW = ", now "
_MOST_LISTED = 8
"""The most outputs of one node whose gradients a sentence mentions."""
_BEFORE_THE_KEPT_PART = "from before the part that was kept"
_STARTING = "starting: no tensors yet (importing PyTorch can take a few seconds)"


def description(timeline: Timeline, moment: Moment, since: int = 0, room: int = 0) -> str:
    """Return what happened at the event of the moment, without the full stop.

    At the end of a rule it mentions everything that the rule has sent since event `since`. If there is only `room` for
    the old and the new value of a parameter at an optimizer's step, they come first, in short forms.
    """
    event = moment.event
    if event is None:
        if not timeline.growing:
            return "nothing has happened yet"
        return "before the first event: the program is further on" if len(timeline) else _STARTING
    return _graph(timeline, moment, event, room) or _gradient(timeline, moment, event, since) or _program(moment, event)


def _graph(timeline: Timeline, moment: Moment, event: Event, room: int) -> str:
    """Return the text for events of nodes and memory; empty for any other."""
    match event:
        case NodeCreated():
            return _created(timeline, event)
        case StorageWritten():
            return _written(timeline, moment, event, room)
        case DataSet():
            return _set(timeline, moment, event, room)
        case RequiresGradSet(requires_grad=requires_grad, stack=stack):
            return f"requires_grad was set to {requires_grad}{at_text(timeline.stack(stack))}"
        case SavedFreed():
            return "the tensors it had saved for backward were released"
        case NodeFreed():
            return "nothing refers to it any more"
        case Named(name=name, also=others):
            return f"it is called {' and '.join((abridged(name, MAX_NAME), *further_names(others)))}"
        case VariableHeld(variable=variable, node=0):
            return f"{abridged(variable, MAX_NAME)} holds what has no part in this recording so far"
        case VariableHeld(variable=variable, node=node, path=path):
            part = f", which has {label(timeline, node)} as its {abridged(path, MAX_NAME)}" if path else ""
            return f"{abridged(variable, MAX_NAME)} holds {'a model' + part if path else label(timeline, node)}"
        case Returned(node=node, output_nr=nr, path=path):
            which = output_called(timeline.info(node), nr) or "it"
            return f"{which} is {clipped(as_taken(path), 80)} of what the call gave"
    return ""


def _gradient(timeline: Timeline, moment: Moment, event: Event, since: int) -> str:
    """Return the text for events of a backward pass and of ``.grad``; empty for any other."""
    match event:
        case BackwardStarted(roots=roots, retain_graph=retain):
            kept = ", keeping the graph" if retain else ""
            here = [node for node, _ in roots] == [moment.actor]
            where = "here" if here else "at " + ", ".join(output_label(timeline, node, nr) for node, nr in roots)
            return f"backward pass {event.pass_nr} starts {where}{kept}"
        case BackwardFinished(error=error):
            return f"the pass ended with an error: {clipped(error, 300)}" if error else "the pass is over"
        case StepStarted(node=node, grads=grads):
            return f"its gradient is complete, {_grads(timeline, node, grads)}, and its rule runs"
        case GradFlowed():
            return _flowed(timeline, moment, event)
        case StepFinished():
            return _ran(timeline, moment, event, since)
        case GradAccumulated():
            return _accumulated(timeline, moment, event)
        case GradRetained(node=node, output_nr=nr, value=value):
            return f"retain_grad keeps {_owned(timeline, node, nr, '.grad')} {short(value)}"
        case GradCaptured(node=node, output_nr=nr, value=value):
            return f"autograd.grad takes the gradient{_of_one(timeline, node, nr)} {short(value)}"
        case GradSet(node=node, output_nr=nr, how=how, value=value):
            how = {"none": "set to None", "zero": "set to zero"}.get(how, f"changed ({shown(how)}) to {short(value)}")
            return f"{_owned(timeline, node, nr, '.grad')} was {how}"
        case HookRan(node=node, output_nr=nr, when=when, name=name, value=value):
            result = "" if value is None else f" and gave {short(value)}"
            whose = _of_one(timeline, node, nr) if when in ("tensor", "pre") else ""
            return f"a {shown(when)} hook {shown(name)}{whose} ran{result}"
    return ""


def _program(moment: Moment, event: Event) -> str:
    """Return the text for events of the program around the graph."""
    match event:
        case ScopeEntered(name=name, kind=kind):
            of_class = f" ({shown(kind)})" if name not in ("", kind) else ""
            return f"the forward of module {shown(name or kind)}{of_class} begins"
        case ScopeLeft():
            return "the module's forward ends"
        case OptimizerStarted(kind=kind):
            options = all_options(event)
            return f"{shown(kind)} starts a step{', ' * bool(options)}{options}"
        case OptimizerStepped():
            return _stepped(moment, event)
        case Marked(name=""):
            return "the graph as it stands: how it came about was not recorded"
        case Marked(name=name):
            return f"the program marked this moment: {shown(name)}"
        case Printed(stream=stream, text=text):
            return f"the program wrote to {shown(stream)}: {clipped(text.rstrip(), 200)}"
        case Warned(category=category, message=message):
            return f"{shown(category)}: {clipped(message, 300)}"
        case Failed(error=error, message=message):
            return f"the program failed with {shown(error)}{': ' * bool(message)}{clipped(message, 300)}"
    return type(event).__name__


def _stepped(moment: Moment, event: OptimizerStepped) -> str:
    count = len(event.parameters)
    updated = f"has updated {count} parameter{'s' * (count != 1)}"
    if event.raised:
        return f"the step of {shown(event.kind)} ends with {shown(event.raised)}: it {updated}"
    if not count:
        return f"{shown(event.kind)} has updated nothing: {why_nothing(moment, event)}"
    without = f", {len(event.skipped)} had no gradient" if event.skipped else ""
    return f"{shown(event.kind)} {updated}{without}"


def _created(timeline: Timeline, event: NodeCreated) -> str:
    computed = computation(timeline, event.node)
    result = computed.text or ("without a value" if computed.result is None else short(computed.result))
    if event.kind != "op":
        needs = ", requires a gradient" if event.requires_grad else ""
        return f"{event.kind} {result}{needs}"
    cut = f" (not tracked: {why_untracked(event)})" if event.untracked else ""
    return f"{result}{cut}"


def _written(timeline: Timeline, moment: Moment, event: StorageWritten, room: int) -> str:
    """Return which tensors were written: the tensor of the call, and tensors that share its memory."""
    owner = written_tensor(timeline, event)
    nr, now = _written_output(timeline, moment, owner, event)
    if now is not None and owner and is_unseen(timeline, owner, event.node):
        step = _step_taken(timeline, moment, (owner, nr), now, event.version, room)
        if step:
            return step
    was = _value_before(timeline, moment, owner, nr) if owner else None
    if room and now is not None and was is not None:
        name = f"{label(timeline, owner)} " if owner != event.node else ""
        numbers = _in_room(was, now, room - len(name) - len(", in place"))
        writer = f" by {label(timeline, event.node)}" if event.node else ""
        return f"{name}{numbers}, in place{writer}, version {event.version}"
    whose = f"the memory of {label(timeline, owner)}" if owner and owner != event.node else "its memory"
    writer = f" by {label(timeline, event.node)}" if event.node and event.node != owner else ""
    between = " between recorded iterations" if resumed_at(timeline, moment.n) else ""
    return f"{whose} was written in place{writer}{between}, version {event.version}, now {short(now or event.value)}"


def _step_taken(timeline: Timeline, moment: Moment, edge: Edge, now: Value, version: int, room: int) -> str:
    """Return the optimizer step that wrote a tensor at this moment, with old and new value; empty if there was none.

    In little `room`, the values come first, in equally long forms.
    """
    step = step_of(timeline, edge[0], moment.n)
    if step is None:
        return ""
    was = _value_before(timeline, moment, *edge)
    if room and was is not None:
        tail = f" by {shown(step.kind)}"
        return f"{_in_room(was, now, room - len(tail))}{tail}, in place, version {version}"
    change = f" from {short(was)}" if was is not None else ""
    return f"{shown(step.kind)} takes it{change} to {short(now)}, in place, version {version}"


def _in_room(was: Value, now: Value, room: int) -> str:
    """Return an old and a new value, each in its longest form of at most half of the room."""
    each = max((room - len(" → ")) // 2, 1)
    return f"{short(was, each)} → {short(now, each)}"


def _value_before(timeline: Timeline, moment: Moment, node: int, nr: int) -> Value | None:
    before = timeline.at(moment.n - 1).state(node)
    return before.outputs[nr].value if before is not None and nr < len(before.outputs) else None


def _set(timeline: Timeline, moment: Moment, event: DataSet, room: int) -> str:
    """Return the new value of a tensor that got other memory, or that is part of the written memory."""
    by_none = event.writer in (0, moment.actor)
    if by_none and event.value == _value_before(timeline, moment, event.node, event.output_nr):
        return f"its memory was written elsewhere: it is {short(event.value)} as before"
    edge = event.node, event.output_nr
    step = by_none and _step_taken(timeline, moment, edge, event.value, event.version, room)
    how = "were set" if by_none else f"were changed by {label(timeline, event.writer)}"
    owned = _owned(timeline, event.node, event.output_nr, "data")
    if event.device:
        how = f"were moved from {clipped(event.source, 40)} to {clipped(event.device, 40)}"
    return step or f"{owned} {how}, version {event.version}, now {short(event.value)}"


def _written_output(timeline: Timeline, moment: Moment, owner: int, event: StorageWritten) -> tuple[int, Value | None]:
    """Return the output of a node that was written at this moment, and its value; None if no output was."""
    state = moment.state(owner) if owner else None
    if state is None:
        return 0, None
    pairs = zip(timeline.info(owner).created.outputs, state.outputs, strict=True)
    concerned = (
        (nr, now.value)
        for nr, (output, now) in enumerate(pairs)
        if output.storage == event.storage and now.value_seq == moment.n
    )
    return next(concerned, (0, None))


def _flowed(timeline: Timeline, moment: Moment, event: GradFlowed) -> str:
    target = output_label(timeline, event.node, event.output_nr)
    arrived = _target_at(timeline, moment.n, event)
    count = f" ({len(arrived.parts)} of {arrived.expected})" if arrived is not None and arrived.expected > 1 else ""
    before = _target_at(timeline, moment.n - 1, event)
    if event.total is None or before is None or before.incoming is None:
        return f"sends {share(event.part)} to {target}{count}"
    return f"sends to {target}: incoming gradient {added(before.incoming, event.part, event.total, gives=_NOW)}{count}"


def _target_at(timeline: Timeline, n: int, event: GradFlowed) -> OutputState | None:
    """Return the state, at moment `n`, of the output that receives a contribution."""
    state = timeline.at(n).state(event.node)
    return state.outputs[event.output_nr] if state is not None else None


def _ran(timeline: Timeline, moment: Moment, event: StepFinished, since: int) -> str:
    """Return what the rule has sent since event `since`, with the sum if a target has several contributions."""
    sent = [
        each
        for each in outgoing_gradients(timeline, moment, event.node)
        if each.part is not None and each.after is not None
    ]
    news = [_sent(timeline, each) for each in sent if each.event > since]
    if sent:
        return f"its rule has run{' and sent ' * bool(news)}{'; '.join(news)}"
    state = moment.state(event.node)
    if state is None or timeline.info(event.node).created.kind == "op":
        return "its rule has run"
    return f"its .grad is {short(state.outputs[0].grad)} now" if state.outputs[0].grad else "it is through"


def _sent(timeline: Timeline, sent: OutgoingGradient) -> str:
    """Return one contribution, and the sum with those before it: ``3 to #1 x, 3 += 3, now 6 (2 of 2)``."""
    assert sent.part is not None  # it has been sent
    target = output_label(timeline, sent.operand.node, sent.operand.output_nr)
    count = f" ({sent.nth} of {sent.expected})" if sent.expected > 1 else ""
    if sent.before is None or sent.after is None:
        return f"{share(sent.part)} to {target}{count}"
    return f"to {target} {added(sent.before, sent.part, sent.after, gives=_NOW)}{count}"


def _accumulated(timeline: Timeline, moment: Moment, event: GradAccumulated) -> str:
    if event.value is None:
        return f".grad was None, is now {grad(event.part)}"
    before = timeline.at(moment.n - 1).state(event.node)
    old = before.outputs[0].grad if before is not None else None
    if old is None:
        return f".grad += {share(event.part)}, now {grad(event.value)}"
    return f".grad {added(old, event.part, event.value, gives=_NOW)}"


def _grads(timeline: Timeline, node: int, grads: tuple[Value | None, ...]) -> str:
    """Return the gradient of each output, ``p [2 2], q [3]``; of very many outputs only the first."""
    info = timeline.info(node)
    texts = [
        f"{output_called(info, nr)} {short(grad) if grad is not None else None}".lstrip()
        for nr, grad in enumerate(grads[:_MOST_LISTED])
    ]
    return ", ".join([*texts, *[f"{len(grads) - _MOST_LISTED} more"] * (len(grads) > _MOST_LISTED)])


def _of_one(timeline: Timeline, node: int, nr: int) -> str:
    """Return which of several outputs it is, `` of q``; empty if there is only one."""
    which = output_called(timeline.info(node), nr)
    return f" of {which}" if which else ""


def _owned(timeline: Timeline, node: int, nr: int, what: str) -> str:
    """Return a property of an output: ``.grad``, ``its data``; of one of several ``.grad of q``, ``the data of q``."""
    whose = _of_one(timeline, node, nr)
    article = "" if what.startswith(".") else "the " if whose else "its "
    return f"{article}{what}{whose}"
