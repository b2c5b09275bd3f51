"""Where a nan or inf was born, and the way it took."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter

from gviz.events import (
    BackwardStarted,
    DataSet,
    GradAccumulated,
    GradCaptured,
    GradFlowed,
    NodeCreated,
    StorageWritten,
)
from gviz.explain.bad_numbers.birth import followed
from gviz.explain.bad_numbers.places import Place, worst
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind, Question
from gviz.explain.names import innermost, iteration_called, label
from gviz.explain.operations import MASKING, SAME_NUMBERS
from gviz.explain.survey import Survey
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.value_text import bad_text


def bad_value(asked: Question) -> Finding | None:
    """Where a bad value came from: back over bad inputs, over writes in place, and through the ``.grad`` of a leaf.

    Of what the node sends at this very moment: where that came from, if it is bad.
    """
    if asked.topic == "sent":
        return _sent(asked)
    first = _first_in_a_row(asked)
    if first == asked.node:
        return followed(asked.timeline, ("value", asked.node, asked.moment.n))
    born = asked.timeline.nodes.born(first)
    found = followed(asked.timeline, ("value", first, born))
    if born <= asked.timeline.dropped.again:
        return found
    return replace(found, parts=(_since(asked, first), *found.parts))


def _first_in_a_row(asked: Question) -> int:
    """The first of those that the line of a node made bad, time after time up to this node.

    A mask is meant to be infinite: the row of what went wrong begins after the last of them.
    """
    timeline, origins, place = asked.timeline, asked.timeline.nodes.origins, asked.timeline.nodes.place_of(asked.node)
    if asked.info.created.kind != "op" or not asked.info.created.stack:
        return asked.node
    same = (origins.stack[:place] == origins.stack[place]) & (origins.op[:place] == origins.op[place])
    first, masks = asked.node, _is_a_mask(timeline, asked.node)
    for earlier in reversed(same.nonzero()[0].tolist()):
        node = timeline.nodes[earlier]
        outputs = timeline.info(node).created.outputs
        if not any(bad_text(output.value) for output in outputs) or _is_a_mask(timeline, node) is not masks:
            break
        first = node
    return first


def _since(asked: Question, first: int) -> Finding:
    timeline, born = asked.timeline, asked.timeline.nodes.born(first)
    nth = bisect_right(timeline.iterations, born, key=attrgetter("start"))
    bad = "nan" if "nan" in bad_text(asked.output.value) else "inf"
    if timeline.info(first).iteration == asked.info.iteration:
        text = f"{label(timeline, asked.node)} is {bad}, and what its line makes is nan or inf each time since #{first}"
    else:
        since = f"{iteration_called(timeline)} {nth}"
        text = f"{label(timeline, asked.node)} is {bad} each time since {since}; the first is #{first}"
    return Finding("since", text, born, first, at=innermost(timeline.info(first)))


def bad_gradient(asked: Question) -> Finding:
    """Where a bad gradient came from: back over bad contributions, to the rule or the value that made the first."""
    return followed(asked.timeline, ("grad", asked.node, asked.moment.n))


def _sent(asked: Question) -> Finding | None:
    event = asked.moment.event
    if not isinstance(event, GradFlowed) or not bad_text(event.part):
        return None
    return followed(asked.timeline, ("grad", event.node, asked.moment.n))


def found(survey: Survey) -> Iterator[Finding]:
    """The first nan or inf that reached a loss or a ``.grad``; else, as a suspicion, one that was stopped."""
    timeline, seq = survey.timeline, survey.timeline.troubles.first_bad()
    first = next(_reached(survey), None) if seq else None
    if first is None and timeline.cut_off:  # by the nan that it was to end with
        first = _place_of(timeline, len(timeline))
    if first is not None:
        yield followed(timeline, first)
    elif seq:
        stopped = followed(timeline, _place_of(timeline, seq))
        if not _is_a_mask(timeline, stopped.node):
            came_to = Finding("healed", _came_to(survey, stopped.event))
            yield replace(stopped, parts=(*stopped.parts, came_to), suspected=timeline.growing or bool(survey.passes))


def _came_to(survey: Survey, born: int) -> str:
    """What has become of a bad number that was born by an event, as far as that is recorded."""
    if any(start > born for start, _ in survey.passes):
        return "it reached no loss and no .grad: something on the way has stopped it"
    where = "the program stands" if survey.timeline.growing else "the recording ends"
    return f"{where} before any backward from it: what becomes of it is not known"


def _reached(survey: Survey) -> Iterator[Place]:
    """The bad losses, the bad additions to a ``.grad`` and the bad results of ``autograd.grad``, in order of time."""
    for seq, event in survey.select(BackwardStarted, GradAccumulated, GradCaptured):
        match event:
            case GradAccumulated(node=node, part=given) | GradCaptured(node=node, value=given):
                if bad_text(given):
                    yield "grad", node, seq
            case BackwardStarted():
                roots = (node for node, nr in event.roots if node in survey.timeline.nodes)
                yield from (("value", node, seq) for node in roots if bad_text(survey.timeline.held(node, 0, seq)))


def _place_of(timeline: Timeline, seq: int) -> Place:
    """Where the bad number of an event is: in the value of what it makes or writes, else in a gradient."""
    match timeline.event(seq):
        case NodeCreated(node=node) | StorageWritten(node=node) | DataSet(node=node):
            return "value", node, seq
        case BackwardStarted(roots=roots, seeds=seeds):
            seeded = ((node, seed) for (node, _), seed in zip(roots, seeds, strict=False))
            return "grad", worst(seeded) or roots[0][0], seq
        case event:
            return "grad", getattr(event, "node", 0), seq


def _is_a_mask(timeline: Timeline, node: int) -> bool:
    """Whether an infinity was put there on purpose: as a constant, or as what hides a part of attention scores."""
    info = timeline.info(node)
    value = info.created.first_value
    masks = info.created.kind != "op" or info.op.base_name in MASKING or _is_log_of_a_mask(timeline, info)
    return masks and "nan" not in bad_text(value)


def _is_log_of_a_mask(timeline: Timeline, info: NodeInfo) -> bool:
    """Whether this is the logarithm of what only says yes or no, which the program made so: not what numbers are."""
    if info.op.base_name != "log" or not info.created.inputs:
        return False
    source = timeline.info(info.created.inputs[0][0])
    while source.op.name in SAME_NUMBERS and source.created.inputs and not _is_yes_or_no(source):
        source = timeline.info(source.created.inputs[0][0])
    return not source.created.requires_grad and _is_yes_or_no(source)


def _is_yes_or_no(info: NodeInfo) -> bool:
    value = info.created.first_value
    return info.op.name in ("tril", "triu") or (value is not None and value.dtype == "bool")


BORN = Kind("nan-born", "error", "where a nan or inf was made in forward", ("bad value", "sent"), bad_value, find=found)
BORN_BACKWARD = Kind(
    "nan-born-backward",
    "error",
    "where a backward rule made a nan or inf",
    ("bad gradient",),
    bad_gradient,
)
SEED = Kind("nan-seed", "error", "a backward pass that was started with a nan or inf")
