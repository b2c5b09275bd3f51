"""The way of a nan or inf back to where it was born: over rules, operations and writes in place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from gviz.events import GradAccumulated, GradSet, grad_left
from gviz.explain.bad_numbers.carried import bad_beside, went_in
from gviz.explain.bad_numbers.element import made_at_element, made_of, sent_at_element
from gviz.explain.bad_numbers.fixes import DIVERGING, LEAPT, fix, is_beyond, is_of_size
from gviz.explain.bad_numbers.leapt import leapt
from gviz.explain.bad_numbers.places import Place, bad_part, output_at, worst
from gviz.explain.bad_numbers.way import told
from gviz.explain.computation import Operand, computation
from gviz.explain.contributions import arrived, ran
from gviz.explain.finding import Finding
from gviz.explain.grad_writes import GradWrite, write_at
from gviz.explain.names import innermost, iteration_called, label, made_at
from gviz.explain.partial import RECORD_ALL, is_partial
from gviz.explain.root_values import grown_until, in_a_row
from gviz.explain.trouble import line_text
from gviz.explain.writes import by_step, is_unseen, step_of
from gviz.plain_text import clipped
from gviz.trace.state import Contribution, NodeInfo, OutputState
from gviz.trace.timeline import Timeline
from gviz.value_text import bad_text, short
from gviz.values import Value

_LAST_OF_ALL = "gviz record --on nan, which ends at the first one: with --last it keeps what led there"


def followed(timeline: Timeline, place: Place) -> Finding:
    """Go back from place to place, each earlier than the one before, until one has its reason in itself."""
    way: list[Place] = []
    while True:
        aspect, node, n = place
        found = _older(timeline, place) or (
            _value(timeline, node, n) if aspect == "value" else _gradient(timeline, node, n)
        )
        way.append(place)
        if isinstance(found, Finding):
            return replace(found, parts=(*found.parts, *told(timeline, way)))
        place = found


def _older(timeline: Timeline, place: Place) -> Finding | None:
    """What was bad already where the kept last part of a run begins: what happened before is not in the recording."""
    aspect, node, n = place
    again = timeline.dropped.again
    if not again:
        return None
    output = output_at(timeline.at(n), node, aspect)
    if output is None or (aspect == "grad" and bad_part(output) is not None):
        return None
    value, since = (output.value, output.value_seq) if aspect == "value" else (output.grad, output.grad_seq)
    if not 0 < since <= again or not bad_text(value):
        return None
    whose = label(timeline, node) if aspect == "value" else f"the .grad of {label(timeline, node)}"
    text = (
        f"{whose} was {'nan' if 'nan' in bad_text(value) else 'inf'} already where this recording begins: "
        f"it is older than the part that was kept, {timeline.dropped.events:,} events before it were dropped"
    )
    return Finding("nan-born", text, again, node, fix=_LAST_OF_ALL)


def _value(timeline: Timeline, node: int, n: int) -> Finding | Place:
    info = timeline.info(node)
    if leaf := dict(info.created.attrs).get("grad_of", 0):
        return "grad", int(leaf), n
    made = info.born > timeline.dropped.again and _made_bad(timeline, node)
    return _made(timeline, node) if made else _written(timeline, node, n)


def _made(timeline: Timeline, node: int, besides: int = 0) -> Finding | Place:
    """A bad value that an operation has made."""
    bad = _bad_operand(timeline, node, besides)
    return ("value", bad, timeline.info(node).born - 1) if bad else _born(timeline, node)


def _written(timeline: Timeline, node: int, n: int) -> Finding | Place:
    """A bad value that was written in place over another."""
    output = output_at(timeline.at(n), node, "value")
    if output is None or output.value_seq <= timeline.info(node).born:
        since = f"{label(timeline, node)} holds it, and it is not known since when"
        return Finding("nan-born", since, timeline.info(node).born, node)
    writer, seq = output.written_by, output.value_seq
    if not is_unseen(timeline, node, writer):
        found = _made(timeline, writer, node)
        before = timeline.held(node, 0, seq - 1)
        return ("value", node, seq - 1) if isinstance(found, Finding) and bad_text(before) else found
    owner = writer or node
    return _earlier(timeline, owner, seq) or _updated(timeline, owner, seq, output.value)


def _earlier(timeline: Timeline, node: int, seq: int) -> Place | None:
    """What was bad before an update: the ``.grad``, or the value itself; if only one holds a nan, that one."""
    output = output_at(timeline.at(seq - 1), node, "value")
    known = {"value": bad_text(output.value), "grad": bad_text(output.grad)} if output is not None else {}
    bad: list[Literal["value", "grad"]] = [aspect for aspect in ("value", "grad") if known.get(aspect)]
    aspect = next((aspect for aspect in bad if "nan" in known[aspect]), bad[0] if bad else None)
    return (aspect, node, seq - 1) if aspect else None


def _updated(timeline: Timeline, node: int, seq: int, value: Value | None) -> Finding:
    """An update that has made a bad value of good ones."""
    step, output = step_of(timeline, node, seq), output_at(timeline.at(seq - 1), node, "value")
    frames = timeline.stack(step.stack) if step is not None else ()
    by = f"by {by_step(timeline, node, seq)}{made_at(frames)}" if step is not None else "in place"
    text = f"{_what(value)} born when {label(timeline, node)} was updated {by}"
    parts = _before(node, output) if output is not None else ()
    smaller = LEAPT if step is not None else ""
    return Finding("nan-born", text, seq, node, parts, smaller, frames[0] if frames else None)


def _before(node: int, output: OutputState) -> tuple[Finding, ...]:
    """The numbers that an update had to work with."""
    value = Finding("before", f"its value was {short(output.value)} before", output.value_seq, node)
    grad = Finding("before", f"its .grad was {short(output.grad)} before", output.grad_seq, node)
    return (value, grad) if output.grad is not None else (value,)


def _gradient(timeline: Timeline, node: int, n: int) -> Finding | Place:
    output = output_at(timeline.at(n), node, "grad")
    part = None if _is_overwritten(timeline, output) else bad_part(output)
    if part is None:
        return _held_before(timeline, node, n, output.grad_seq if output is not None else 0)
    if not part.source:
        return Finding("nan-seed", f"backward started with {short(part.value)}", part.seq, node)
    return worst(_went_in(timeline, part)) or _rule(timeline, node, part)


def _is_overwritten(timeline: Timeline, output: OutputState | None) -> bool:
    """Whether the program has written to a ``.grad`` since the last contribution."""
    seq = output.grad_seq if output is not None else 0
    written = seq > 0 and isinstance(timeline.event(seq), GradSet)
    return written and output is not None and all(part.seq < seq for part in output.parts)


def _went_in(timeline: Timeline, part: Contribution) -> Iterator[tuple[Place, Value | None]]:
    """The numbers of which a rule made a contribution: the gradient, the inputs of its node, and its result."""
    node, born = part.source, timeline.info(part.source).born
    yield ("grad", node, part.seq), arrived(timeline, part)
    computed = computation(timeline, node)
    yield from ((("value", operand.node, born - 1), operand.value) for operand in computed.operands if operand.node)
    yield ("value", node, born), computed.result


def _held_before(timeline: Timeline, node: int, n: int, seq: int) -> Finding | Place:
    """A bad ``.grad`` that the pass of this moment has not brought: an earlier one has, or the program."""
    if 0 < seq < n:
        return "grad", node, seq
    before = output_at(timeline.at(n - 1), node, "grad") if seq else None
    if before is not None and bad_text(before.grad) and isinstance(timeline.event(seq), GradAccumulated):
        return "grad", node, n - 1
    source = went_in(timeline, seq) if seq else None
    return ("grad", *source) if source is not None else _put_there(timeline, node, seq)


def _put_there(timeline: Timeline, node: int, seq: int) -> Finding:
    """A bad ``.grad`` that no pass has brought, and no other is known to have: whose line wrote it."""
    write = write_at(timeline, seq)
    if write is None or not write.frames:
        text = f"the .grad of {label(timeline, node)} got it from outside the pass"
        return Finding("nan-born", text, seq, node)
    text = f"{_what(write.after)} written to the .grad of {label(timeline, node)}{made_at(write.frames)}"
    line = Finding("write", clipped(line_text(timeline, write.at).strip(), 120), seq, node, at=write.at)
    return Finding("nan-born", text, seq, node, (line, *suspected(timeline, write)), at=write.at)


def suspected(timeline: Timeline, write: GradWrite) -> Iterator[Finding]:
    """The bad ``.grad`` that the same line wrote to, and that may have gone into this one."""
    beside = bad_beside(timeline, write)
    if beside is not None:
        bad = bad_text(grad_left(timeline.event(beside.filled)))
        text = f"the same line wrote to the .grad of {label(timeline, beside.node)}, which held {bad}"
        born = (followed(timeline, ("grad", beside.node, beside.filled)),) if beside.sure else ()
        may = "" if beside.sure else ": it may have come from there"
        yield Finding("beside", f"{text}{may}", beside.filled, beside.node, born)


def _bad_operand(timeline: Timeline, node: int, besides: int = 0) -> int:
    """The input of a node whose value was bad when it was used; 0 if none was."""
    known = _known_operands(timeline, node)
    return worst((o.node, o.value) for o in known if o.node and o.node != besides) or 0


def _known_operands(timeline: Timeline, node: int) -> Iterator[Operand]:
    """The inputs of a node; for one whose value was not recorded, as within a call that makes several, its own."""
    seen, waiting = {node}, [node]
    while waiting:
        for operand in computation(timeline, waiting.pop()).operands:
            value = operand.value
            if value is not None and value.is_known:
                yield operand
            elif operand.node not in seen and operand.node:
                seen.add(operand.node)
                waiting.append(operand.node)


def _made_bad(timeline: Timeline, node: int) -> bool:
    return any(bad_text(output.value) for output in timeline.info(node).created.outputs)


def _born(timeline: Timeline, node: int) -> Finding:
    info = timeline.info(node)
    made = info.created.first_value
    where = made_at_element(timeline, info)
    how = (computation(timeline, node).without_shapes if where else made_of(timeline, node)) or _given(
        timeline, info, made
    )
    there = f"{label(timeline, node)}{made_at(info.frames)}{', ' * bool(where)}{where}: {how}"
    if _is_blind(timeline, node):
        text = f"{_what(made)} met in {there}; it may be older, as not all that went into it was recorded"
        return Finding("nan-born", text, info.born, node, fix=RECORD_ALL, at=innermost(info))
    text = f"{_what(made)} born in {there}"
    remedy = _fix(timeline, info, made)
    grown = tuple(_grown(timeline, node, info.born)) if remedy == DIVERGING else ()
    leap = leapt(timeline, node, info.born) if is_of_size(remedy) else None
    if leap is not None:
        return Finding("nan-born", text, info.born, node, (*grown, leap), LEAPT, innermost(info))
    return Finding("nan-born", text, info.born, node, grown, remedy, innermost(info))


def _given(timeline: Timeline, info: NodeInfo, made: Value | None) -> str:
    """What a bad value is that no operation made."""
    if is_beyond(info, made, line_text(timeline, innermost(info))):
        return "it is a number beyond float16, which has none above 65504"
    return f"it is {info.created.kind} data"


def _grown(timeline: Timeline, node: int, n: int) -> Iterator[Finding]:
    """That the loss has grown from pass to pass before something became too large."""
    if values := grown_until(timeline, n):
        text = (
            f"the loss had grown from {iteration_called(timeline)} to {iteration_called(timeline)}: {in_a_row(values)}"
        )
        yield Finding("grew", text, n, node)


def _rule(timeline: Timeline, node: int, part: Contribution) -> Finding:
    """The rule that made a bad contribution of good numbers."""
    info, where = timeline.info(part.source), sent_at_element(timeline, part)
    blind = _is_blind(timeline, part.source)
    text = (
        f"{_what(part.value)} {'met' if blind else 'born'} in the backward rule of "
        f"{label(timeline, part.source)}{made_at(info.frames)}, "
        f"on the way to {label(timeline, node)}{', ' * bool(where)}{where}{ran(timeline, part)}"
    )
    return Finding(
        "nan-born-backward",
        text,
        part.seq,
        part.source,
        _inputs(timeline, part.source),
        RECORD_ALL if blind else _fix(timeline, info, part.value),
        innermost(info),
    )


def _is_blind(timeline: Timeline, node: int) -> bool:
    """Whether a number that went into a node is not known, as only a part of the program was recorded."""
    values = (operand.value for operand in computation(timeline, node).operands)
    return is_partial(timeline) and any(value is None or not value.is_known for value in values)


def _inputs(timeline: Timeline, node: int) -> tuple[Finding, ...]:
    """The numbers that went into the node."""
    how, text = computation(timeline, node), made_of(timeline, node)
    return (Finding("computed", f"forward it was {text}", how.event, node),) if text else ()


def _fix(timeline: Timeline, info: NodeInfo, made: Value | None) -> str:
    operands = (operand.value for operand in computation(timeline, info.node).operands)
    line = line_text(timeline, innermost(info))
    return fix(info, made, operands, diverging=bool(grown_until(timeline, info.born)), line=line)


def _what(value: Value | None) -> str:
    text = bad_text(value)
    if not text:
        return "a nan or inf was"
    count, _, rest = text.partition(" ")
    return f"the {rest} was" if count == "1" and "," not in rest else f"{text} were"
