"""The answer to ``why``: why a node has the value, the gradient, or the missing gradient it has at a moment."""

from __future__ import annotations

from gviz.events import GradFlowed
from gviz.explain.arithmetic import computation
from gviz.explain.finding import Finding
from gviz.explain.made_of import contribution, gradient_made_of
from gviz.explain.names import label, made_at
from gviz.explain.no_gradient import why_none
from gviz.explain.origin import where_gradient_went_bad, where_value_went_bad
from gviz.numbers import bad_text, short
from gviz.trace.moment import Moment
from gviz.trace.state import Contribution, OutputState
from gviz.trace.timeline import Timeline
from gviz.where import Aspect


def why(timeline: Timeline, moment: Moment, node: int, aspect: Aspect | None = None) -> Finding:
    """Explain a node's value or gradient; without `aspect` whatever is most in need of it.

    That is a nan or an infinity, else the gradient once a backward pass has begun, else the value.
    """
    state = moment.state(node)
    if state is None or not state.outputs:
        born = timeline.info(node).born
        return Finding("unborn", f"{label(timeline, node)} is made later, by event {born}", born, node)
    event, output = moment.event, state.outputs[0]
    if aspect is None and isinstance(event, GradFlowed) and event.source == node:
        return _sending(timeline, moment, event)
    if aspect == "value" or (aspect is None and (bad_text(output.value) or not _has_gradients(timeline, moment))):
        return _value(timeline, moment, node, output)
    if aspect is None and moment.pass_nr and not output.parts and output.grad is None:
        return _value(timeline, moment, node, output)  # the pass has not come to it
    gradient = output.incoming if output.grad is None else output.grad
    if bad_text(gradient):
        return where_gradient_went_bad(timeline, moment, node)
    asked_in_vain = output.grad is None and (aspect == "grad" or timeline.info(node).created.kind != "op")
    if not output.parts or (asked_in_vain and moment.pass_nr != state.pass_nr):
        return why_none(timeline, moment, node) if output.grad is None else _given(timeline, node, output)
    return gradient_made_of(timeline, moment, node, output)


def _given(timeline: Timeline, node: int, output: OutputState) -> Finding:
    """A ``.grad`` that no pass has brought."""
    text = f"the .grad of {label(timeline, node)} was set by the program: {short(output.grad)}"
    return Finding("assigned", text, output.grad_seq, node)


def _sending(timeline: Timeline, moment: Moment, event: GradFlowed) -> Finding:
    """What the node sends at this very moment."""
    if bad_text(event.part):
        return where_gradient_went_bad(timeline, moment, event.node)
    return contribution(timeline, Contribution(event.source, event.slot, event.part, moment.n))


def _has_gradients(timeline: Timeline, moment: Moment) -> bool:
    return any(phase.kind == "backward" and phase.start <= moment.n for phase in timeline.phases)


def _value(timeline: Timeline, moment: Moment, node: int, output: OutputState) -> Finding:
    """How a value was computed, and who wrote to its memory since."""
    if bad_text(output.value):
        return where_value_went_bad(timeline, moment, node)
    info = timeline.info(node)
    how = computation(timeline, node).text or f"{info.created.kind} {short(info.created.outputs[0].value)}"
    made = Finding("computed", f"{label(timeline, node)}{made_at(info.frames)}: {how}", info.born, node)
    if not output.written_by:
        return made
    writer = timeline.info(output.written_by)
    now = f"then {label(timeline, writer.node)}{made_at(writer.frames)} wrote to its memory: {short(output.value)}"
    return Finding("written", made.text, info.born, node, (Finding("write", now, output.value_seq, writer.node),))
