"""Replicas of a model for data-parallel training that get one gradient and have different numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

import numpy as np

from gviz.events import (
    GradSet,
    OptimizerStepped,
    StepStarted,
)
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.parameter_updates import numbers_without_shape
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import at_text, innermost
from gviz.trace.timeline import Timeline
from gviz.values.value import Value

_FEWEST_REPLICATED = 2


def replicas_apart(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first line that gives one gradient to two parameters with different numbers, for several pairs.

    A pair must get equal gradients before every optimizer step: other parameters may get equal ones once. Gradients
    whose elements all have one size do not count: zeros, or the signs that signSGD uses, are equal by chance.
    """
    timeline = survey.timeline
    last: dict[int, tuple[int, GradSet]] = {}
    now: defaultdict[int, dict[frozenset[int], tuple[int, int, GradSet]]] = defaultdict(dict)
    always: dict[int, dict[frozenset[int], tuple[int, int, GradSet]]] = {}
    for seq, event in chain(survey.select(GradSet, OptimizerStepped), [(survey.end, None)]):
        if not isinstance(event, GradSet):
            for stack in last:
                before_it = always.get(stack, now[stack])
                always[stack] = {pair: one for pair, one in before_it.items() if pair in now[stack]}
            last.clear()
            now.clear()
            continue
        if event.value is None:
            continue
        yield None
        before = last.get(event.stack)
        last[event.stack] = seq, event
        if before is None or before[1].value != event.value or _has_one_size(timeline, event.value):
            continue
        values = [timeline.memory_value(node, 0, seq) for node in (before[1].node, event.node)]
        pair = frozenset((before[1].node, event.node))
        if (
            None not in values
            and numbers_without_shape(values[0]) != numbers_without_shape(values[1])
            and pair <= survey.optimized
        ):
            now[event.stack].setdefault(pair, (seq, before[1].node, event))
    for pairs in always.values():
        apart = [one for pair, one in pairs.items() if not _are_used_together(timeline, *pair)]
        if len(apart) >= _FEWEST_REPLICATED:
            yield _apart_finding(survey, *apart[0])
            return


def _are_used_together(timeline: Timeline, *nodes: int) -> bool:
    """Return whether two parameters are inputs of one operation, or terms of one sum, as the biases of a cell are.

    An operation that backward did not go through, as one that only compares them, does not count.
    """
    users = [_users_and_sums(timeline, node) for node in nodes]
    return any(
        isinstance(timeline.event(n), StepStarted) for user in users[0] & users[1] for n in timeline.events_of(user)
    )


def _users_and_sums(timeline: Timeline, parameter: int) -> set[int]:
    """Return the operations on a parameter, and the sums that it is a term of."""
    found, waiting = set[int](), [parameter]
    while waiting:
        node = waiting.pop()
        for user in timeline.nodes.users(node):
            info = timeline.info(user)
            op = info.op.base_name
            is_sum = op in {"add", *SAME_NUMBERS} or (op == "addmm" and info.created.inputs[0][0] == node)
            if user not in found and (is_sum or node == parameter):
                found.add(user)
                waiting += [user] * is_sum
    return found


def _has_one_size(timeline: Timeline, value: Value) -> bool:
    """Return whether all elements have the same absolute value, or may have it as far as the statistics show."""
    array, stats = timeline.array(value), value.statistics()
    if array is not None:
        return np.unique(np.abs(array)).size < 2
    return stats is None or abs(stats.min) == abs(stats.max)


def _apart_finding(survey: Survey, seq: int, first: int, event: GradSet) -> Finding:
    timeline = survey.timeline
    one, other = timeline.info(first), timeline.info(event.node)
    text = titled(
        "{} and {} get the same gradient, but differ",
        label(timeline, first),
        label(timeline, event.node),
    )
    places = timeline.stack(event.stack)
    part = Finding(
        "first", f"they get it{at_text(places)}, as replicas do, but they started with different values", seq, first
    )
    common = [frame for frame in one.frames if any((frame.path, frame.line) == (f.path, f.line) for f in other.frames)]
    own = innermost(other)
    at = next((frame for frame in reversed(common) if own is not None and frame.path == own.path), own)
    fix = "let all replicas start with the same numbers: replica.load_state_dict(first.state_dict())"
    return Finding("replicas-apart", text, seq, first, (part,), fix, at, suspected=True)
