"""Where a nan or an infinity was born, and the way it took."""

from __future__ import annotations

from gviz.events import StepStarted
from gviz.explain.arithmetic import computation, step_event
from gviz.explain.finding import Finding
from gviz.explain.made_of import sent_by
from gviz.explain.names import label, made_at
from gviz.numbers import bad_text, short
from gviz.trace.moment import Moment
from gviz.trace.state import Contribution, OutputState
from gviz.trace.timeline import Timeline
from gviz.values import Value

LONGEST_WAY = 1000


def where_value_went_bad(timeline: Timeline, moment: Moment, node: int) -> Finding:
    """The first node, going back from this one over bad inputs, all of whose inputs were numbers."""
    way: list[int] = []
    here = node
    while len(way) < LONGEST_WAY:
        operands = computation(timeline, here).operands
        bad = next((operand.node for operand in operands if operand.node and bad_text(operand.value)), 0)
        if not bad:
            break
        way.append(here)
        here = bad
    info = timeline.info(here)
    made = info.created.outputs[0].value if info.created.outputs else None
    if not bad_text(made):
        return _written(timeline, moment, here, way)
    how = computation(timeline, here).text or f"it is {info.created.kind} data"
    text = f"{_what(made)} was born in {label(timeline, here)}{made_at(info.frames)}: {how}"
    return Finding("born", text, info.born, here, _spread(timeline, way))


def _written(timeline: Timeline, moment: Moment, node: int, way: list[int]) -> Finding:
    """It came by a write in place: the value was a number when it was made."""
    state = moment.state(node)
    output = state.outputs[0] if state is not None else None
    if output is None or not output.written_by:
        return Finding("born", f"{label(timeline, node)} holds it, and it is not known since when", 0, node)
    writer = timeline.info(output.written_by)
    text = (
        f"{_what(output.value)} was written into {label(timeline, node)} by {label(timeline, writer.node)}"
        f"{made_at(writer.frames)}"
    )
    return Finding("born", text, output.value_seq, writer.node, _spread(timeline, way))


def where_gradient_went_bad(timeline: Timeline, moment: Moment, node: int) -> Finding:
    """The first rule, going back from this gradient over bad contributions, that made one of what was none."""
    way: list[int] = []
    here, output = node, _output(moment, node)
    while output is not None and len(way) < LONGEST_WAY:
        part = next((part for part in output.parts if bad_text(part.value)), None)
        if part is None:
            break
        if not part.source:
            return Finding("seed", f"backward started with {short(part.value)}", part.seq, here, _spread(timeline, way))
        arrived = _arrived(timeline, part)
        if arrived is None or not bad_text(arrived):
            return _rule(timeline, here, part, way)
        way.append(here)
        here, output = part.source, _output(timeline.at(part.seq), part.source)
    seq = output.grad_seq if output is not None else 0
    text = f"the .grad of {label(timeline, here)} got it from outside the pass"
    return Finding("born", text, seq, here, _spread(timeline, way))


def _arrived(timeline: Timeline, part: Contribution) -> Value | None:
    """The bad one of the gradients with which the rule of a contribution ran, else any."""
    ran = step_event(timeline, timeline.at(part.seq), part.source)
    started = timeline.event(ran) if ran else None
    grads = [grad for grad in started.grads if grad is not None] if isinstance(started, StepStarted) else []
    return next((grad for grad in grads if bad_text(grad)), grads[0] if grads else None)


def _rule(timeline: Timeline, node: int, part: Contribution, way: list[int]) -> Finding:
    info, sent = timeline.info(part.source), sent_by(timeline, part)
    rule = f": {sent.rule} = {sent.numbers}" if sent is not None and sent.rule else ""
    text = (
        f"{_what(part.value)} was born in the backward rule of {label(timeline, part.source)}{made_at(info.frames)}, "
        f"on the way to {label(timeline, node)}{rule}"
    )
    parts = _inputs(timeline, part.source)
    return Finding("born backward", text, part.seq, part.source, (*parts, *_spread(timeline, way)))


def _inputs(timeline: Timeline, node: int) -> tuple[Finding, ...]:
    """The numbers that went into the node."""
    how = computation(timeline, node)
    return (Finding("computed", f"forward it was {how.text}", how.event, node),) if how.text else ()


def _spread(timeline: Timeline, way: list[int]) -> tuple[Finding, ...]:
    if not way:
        return ()
    names = [label(timeline, node) for node in reversed(way)]
    shown = names if len(names) <= 6 else [*names[:3], f"{len(names) - 5} more", *names[-2:]]
    return (Finding("spread", f"from there it spread through {', '.join(shown)}", 0, way[0]),)


def _output(moment: Moment, node: int) -> OutputState | None:
    state = moment.state(node)
    return state.outputs[0] if state is not None and state.outputs else None


def _what(value: Value | None) -> str:
    text = bad_text(value)
    return {"1 nan": "the nan", "1 inf": "the infinity"}.get(text, text)
