"""Where a nan or inf was born, and the way it took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from gviz.events import BackwardStarted, GradAccumulated, GradFlowed
from gviz.explain.arithmetic import computation
from gviz.explain.contributions import arrived, sent_by
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind, Question
from gviz.explain.names import innermost, label, made_at
from gviz.explain.substitute import word
from gviz.explain.survey import Survey
from gviz.numbers import bad_text, short
from gviz.trace.moment import Moment
from gviz.trace.state import Contribution, OutputState
from gviz.trace.timeline import Timeline
from gviz.values import Value

_SMALL = "add a small number first: sqrt(x + 1e-8)"
_FIXES = {
    "sqrt": _SMALL,
    "rsqrt": _SMALL,
    "norm": "add a small number to what it is taken of: its gradient is not defined at 0",
    "std": "add a small number to the variance: its gradient is not defined where nothing varies",
    "div": "keep what is divided by away from 0: x / (y + 1e-8)",
    "reciprocal": "keep what is divided by away from 0: 1 / (x + 1e-8)",
    "log": "keep its input above 0: log(x.clamp(min=1e-8)), or log_softmax, log1p, binary_cross_entropy_with_logits",
    "exp": "keep its input small: subtract the maximum first, or use softmax, logsumexp",
    "pow": "keep its base above 0, or add a small number to it",
    "acos": "clamp its input to a little less than 1",
    "asin": "clamp its input to a little less than 1",
}
"""By operation: what to write where it makes a nan or inf."""


Place = tuple[Literal["value", "grad"], int, int]
"""Something bad that came from elsewhere: the value or gradient of a node, at a moment."""


def bad_value(asked: Question) -> Finding | None:
    """Where a bad value came from: back over bad inputs, over writes in place, and through the ``.grad`` of a leaf.

    Of what the node sends at this very moment: where that came from, if it is bad.
    """
    if asked.topic == "sent":
        return _sent(asked)
    return followed(asked.timeline, ("value", asked.node, asked.moment.n))


def bad_gradient(asked: Question) -> Finding:
    """Where a bad gradient came from: back over bad contributions, to the rule or the value that made the first."""
    return followed(asked.timeline, ("grad", asked.node, asked.moment.n))


def _sent(asked: Question) -> Finding | None:
    event = asked.moment.event
    if not isinstance(event, GradFlowed) or not bad_text(event.part):
        return None
    return followed(asked.timeline, ("grad", event.node, asked.moment.n))


def followed(timeline: Timeline, place: Place) -> Finding:
    """Go back from place to place, each earlier than the one before, until one has its reason in itself."""
    way: list[int] = []
    while True:
        aspect, node, n = place
        found = _value(timeline, node, n) if aspect == "value" else _gradient(timeline, node, n)
        if isinstance(found, Finding):
            return replace(found, parts=(*found.parts, *_spread(timeline, way))) if way else found
        if not way or way[-1] != node:
            way.append(node)
        place = found


def _value(timeline: Timeline, node: int, n: int) -> Finding | Place:
    info = timeline.info(node)
    if leaf := dict(info.created.attrs).get("grad_of", 0):
        return "grad", int(leaf), n
    made_bad = any(bad_text(output.value) for output in info.created.outputs)
    maker = node if made_bad else _writer(timeline, n, node)
    bad = _bad_operand(timeline, maker, besides=0 if made_bad else node)
    return ("value", bad, timeline.info(maker).born - 1) if bad else _born(timeline, maker or node, known=bool(maker))


def _gradient(timeline: Timeline, node: int, n: int) -> Finding | Place:
    output = _output(timeline.at(n), node)
    part = next((part for part in output.parts if bad_text(part.value)), None) if output is not None else None
    if part is None:
        seq = output.grad_seq if output is not None else 0
        return Finding("nan-born", f"the .grad of {label(timeline, node)} got it from outside the pass", seq, node)
    if not part.source:
        return Finding("nan-seed", f"backward started with {short(part.value)}", part.seq, node)
    if bad_text(arrived(timeline, part)):
        return "grad", part.source, part.seq
    used = _bad_operand(timeline, part.source, besides=0)  # the rule made it of numbers that were bad before
    return ("value", used, timeline.info(part.source).born - 1) if used else _rule(timeline, node, part)


def _writer(timeline: Timeline, n: int, node: int) -> int:
    """The node that had written to the memory of a node last by moment `n`, 0 if none had."""
    output = _output(timeline.at(n), node)
    return output.written_by if output is not None else 0


def _bad_operand(timeline: Timeline, node: int, *, besides: int) -> int:
    """The first input of a node whose value was bad when it was used."""
    operands = computation(timeline, node).operands if node else ()
    return next((o.node for o in operands if o.node and o.node != besides and bad_text(o.value)), 0)


def _born(timeline: Timeline, node: int, *, known: bool) -> Finding:
    info = timeline.info(node)
    made = info.created.outputs[0].value if info.created.outputs else None
    if not known:
        return Finding("nan-born", f"{label(timeline, node)} holds it, and it is not known since when", info.born, node)
    how = computation(timeline, node).text or f"it is {info.created.kind} data"
    text = f"{_what(made)} born in {label(timeline, node)}{made_at(info.frames)}: {how}"
    return Finding("nan-born", text, info.born, node, fix=_fix(info.op.name), at=innermost(info))


def _rule(timeline: Timeline, node: int, part: Contribution) -> Finding:
    """The rule that made a bad contribution of good numbers."""
    info, sent = timeline.info(part.source), sent_by(timeline, part)
    steps = (sent.rule, sent.numbers, word(part.value, "")) if sent.rule else ()
    rule = f": {' = '.join(dict.fromkeys(steps))}" if steps else ""
    text = (
        f"{_what(part.value)} born in the backward rule of {label(timeline, part.source)}{made_at(info.frames)}, "
        f"on the way to {label(timeline, node)}{rule}"
    )
    return Finding(
        "nan-born-backward",
        text,
        part.seq,
        part.source,
        _inputs(timeline, part.source),
        _fix(info.op.name),
        innermost(info),
    )


def _inputs(timeline: Timeline, node: int) -> tuple[Finding, ...]:
    """The numbers that went into the node."""
    how = computation(timeline, node)
    return (Finding("computed", f"forward it was {how.text}", how.event, node),) if how.text else ()


def _fix(op: str) -> str:
    """What is usually written instead, by the operation in which it was born."""
    return _FIXES.get(op.rstrip("_"), "look at the numbers that go in, and keep them away from where it is not defined")


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
    return {"1 nan": "the nan was", "1 inf": "the inf was"}.get(text, f"{text} were")


def found(survey: Survey) -> Iterator[Finding]:
    """The first nan or inf that reached a loss or a ``.grad``; else, as a suspicion, one that was stopped."""
    timeline, seq = survey.timeline, survey.timeline.first_bad()
    first = next(_reached(survey), None) if seq else None
    if first is not None:
        yield followed(timeline, first)
    elif seq:
        stopped = followed(timeline, _place_of(timeline, seq))
        if not _is_a_mask(timeline, stopped.node):
            healed = Finding("healed", "it reached no loss and no .grad: something on the way has stopped it")
            yield replace(stopped, parts=(*stopped.parts, healed), suspected=bool(survey.passes))


def _reached(survey: Survey) -> Iterator[Place]:
    """The bad losses and the bad additions to a ``.grad``, in order of time."""
    for seq, event in survey.select(BackwardStarted, GradAccumulated):
        if isinstance(event, GradAccumulated) and bad_text(event.part):
            yield "grad", event.node, seq
        elif isinstance(event, BackwardStarted):
            roots = (node for node, nr in event.roots if node in survey.timeline)
            yield from (("value", node, seq) for node in roots if _is_bad(survey.timeline.at(seq), node))


def _is_bad(moment: Moment, node: int) -> bool:
    output = _output(moment, node)
    return output is not None and bool(bad_text(output.value))


def _place_of(timeline: Timeline, seq: int) -> Place:
    match timeline.event(seq):
        case GradFlowed(node=node) | GradAccumulated(node=node):
            return "grad", node, seq
        case event:
            return "value", getattr(event, "node", 0), seq


def _is_a_mask(timeline: Timeline, node: int) -> bool:
    """Whether an infinity was put there on purpose: as a constant, or as what hides a part of attention scores."""
    info = timeline.info(node)
    value = info.created.outputs[0].value if info.created.outputs else None
    return "nan" not in bad_text(value) and (
        info.created.kind != "op" or info.op.name.rstrip("_") in {"masked_fill", "where", "fill", "triu", "tril"}
    )


BORN = Kind("nan-born", "error", "where a nan or inf was made in forward", ("bad value", "sent"), bad_value, find=found)
BORN_BACKWARD = Kind(
    "nan-born-backward",
    "error",
    "where a backward rule made a nan or inf",
    ("bad gradient",),
    bad_gradient,
)
SEED = Kind("nan-seed", "error", "a backward pass that was started with a nan or inf")
