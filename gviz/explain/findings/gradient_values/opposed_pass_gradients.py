"""Gradients of two backward passes that cancel each other in the same parameters."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gviz.events import GradAccumulated, GradSet, OptimizerStepped
from gviz.explain.backward_passes import call_of_pass, roots_of_pass
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.grad_history import CLEARED
from gviz.explain.program_text import line_text, receiver
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import before, wrapped
from gviz.explain.source_frames import at_text
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.values.number_text import number
from gviz.values.value_text import norm

# Two passes whose gradients cancel each other: the critic's loss reaches the generator, with the other sign
#
# ``d_loss = D(fake).mean() - D(real).mean()`` without ``detach()`` leaves its gradient in the generator, and ``g_loss =
# -D(G(z)).mean()`` adds nearly the negative of it. Two losses of one model may balance each other, too, where it has
# learned what it can. So both passes must go through parameters that another optimizer trains.

_CANCELLED = 0.1
"""The largest norm of a sum that counts as cancelled, relative to the norms of both parts together."""

_FEWEST_CANCELLED = 4


@dataclass(frozen=True, slots=True)
class _TwoPasses:
    """The gradients of two passes in one step: a parameter, the additions to it, and the norms over all parameters."""

    node: int
    first: tuple[int, GradAccumulated]
    second: tuple[int, GradAccumulated]
    sizes: tuple[float, float]
    sum: float

    @property
    def is_cancelled(self) -> bool:
        """Whether hardly anything is left of both."""
        return self.sum <= _CANCELLED * sum(self.sizes)


def opposed_passes(survey: Survey) -> Iterator[Finding | None]:
    """Yield steps that in most iterations use the gradients of two calls of backward that cancel each other."""
    calls = {event.pass_nr: event.stack for _, event in survey.passes}
    added: dict[int, list[tuple[int, GradAccumulated]]] = {}
    steps: defaultdict[int, list[_TwoPasses | None]] = defaultdict(list)
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case GradAccumulated(node=node, value=value):
                added[node] = [*(added.get(node, []) if value is not None else []), (seq, event)]
            case GradSet(node=node, how=how) if how in CLEARED:
                added.pop(node, None)
            case OptimizerStepped(parameters=parameters, stack=stack):
                steps[stack].append(_two_passes(calls, {node: added.pop(node, []) for node in parameters}))
    for stack, each in steps.items():
        known = [one for one in each if one is not None]
        cancelled = [one for one in known if one.is_cancelled]
        if len(cancelled) >= max(_FEWEST_CANCELLED, len(each) / 2) and _share_others(survey, stack, cancelled[-1]):
            yield _opposed_finding(survey, stack, cancelled, len(each))


def _two_passes(
    calls: Mapping[int, int], added: Mapping[int, Sequence[tuple[int, GradAccumulated]]]
) -> _TwoPasses | None:
    """Return the gradients that a step uses, if two calls of backward have brought all of them."""
    squares, pairs = [0.0, 0.0, 0.0], list[tuple[int, Sequence[tuple[int, GradAccumulated]]]]()
    for node, parts in added.items():
        if len(parts) != 2 or parts[0][1].value is not None:
            return None
        pairs.append((node, parts))
        values = [parts[0][1].part, parts[1][1].part, parts[1][1].value]
        for at, value in enumerate(values):
            size = norm(value) if value is not None else None
            if size is None:
                return None
            squares[at] += size * size
    passes = {(parts[0][1].pass_nr, parts[1][1].pass_nr) for _, parts in pairs}
    if len(passes) != 1 or len({calls.get(number, 0) for number in next(iter(passes))}) != 2 or not all(squares[:2]):
        return None
    node, (first, second) = max(pairs, key=lambda pair: norm(pair[1][0][1].part) or 0.0)
    return _TwoPasses(node, first, second, (squares[0] ** 0.5, squares[1] ** 0.5), squares[2] ** 0.5)


def _share_others(survey: Survey, stack: int, one: _TwoPasses) -> bool:
    """Return whether both passes go through parameters of an optimizer other than that of a step."""
    steps = [event for _, event in survey.select(OptimizerStepped)]
    own = {node for event in steps if event.stack == stack for node in event.parameters}
    others = {node for event in steps if event.stack != stack for node in event.parameters} - own
    roots = (roots_of_pass(survey.timeline, event.pass_nr) for _, event in (one.first, one.second))
    return all(not others.isdisjoint(survey.history(*each)) for each in roots)


def _opposed_finding(survey: Survey, stack: int, cancelled: Sequence[_TwoPasses], count: int) -> Finding:
    timeline, last = survey.timeline, cancelled[-1]
    (_, first), (seq, second) = last.first, last.second
    roots = [next(iter(roots_of_pass(timeline, event.pass_nr)), 0) for event in (first, second)]
    losses = (timeline.info(root).name or label(timeline, root) for root in roots)
    text = titled("the gradients of {} and {} cancel each other in {}", *losses, label(timeline, last.node))
    places = [timeline.stack(call_of_pass(timeline, event.pass_nr)) for event in (first, second)]
    sizes = [
        f"|g| {number(size)} from backward{at_text(place)}" for size, place in zip(last.sizes, places, strict=True)
    ]
    sums = f"{sizes[0]} and {sizes[1]}: the sum is {number(last.sum)}"
    part = Finding("sum", f"{sums}, and so in {len(cancelled):,} of {count:,} steps", seq, last.node)
    name = receiver(timeline, next(iter(timeline.stack(stack)), None), "step")
    numbers = (
        Number("first", last.sizes[0], last.first[0]),
        Number("second", last.sizes[1], seq),
        Number("sum", last.sum, seq),
        Number("steps", len(cancelled)),
    )
    at = next(iter(places[1]), None)
    edit = before(timeline, at, f"{name}.zero_grad()") if name else None
    fix = f"{name or 'optimizer'}.zero_grad() right before this backward(), or detach() in the other loss"
    entered = _entered(survey, roots, stack)
    if entered is not None:
        place, tensor = entered
        if (detached := wrapped(timeline, place, tensor, ".detach()")) is not None:
            at, edit = place, detached
            fix = f"{tensor}.detach() here, or {name or 'optimizer'}.zero_grad() right before the second backward()"
    return Finding("opposed-passes", text, seq, last.node, (part,), fix, at, numbers, edit=edit)


def _entered(survey: Survey, roots: Sequence[int], stack: int) -> tuple[Frame, str] | None:
    """Return the line where a named result of a step's parameters enters the model of another optimizer.

    It is a line of the first loss, and not of the second, which needs the path.
    """
    timeline, steps = survey.timeline, [event for _, event in survey.select(OptimizerStepped)]
    own = {one for event in steps if event.stack == stack for one in event.parameters}
    others = {one for event in steps if event.stack != stack for one in event.parameters} - own
    first, second = ({root, *ancestors(timeline, root)} for root in roots)
    for user in sorted(first - second):
        if user not in survey.nodes or survey.nodes[user].created.kind != "op":
            continue
        before_it = ancestors(timeline, user)
        if own.isdisjoint(before_it) or others.isdisjoint(before_it):
            continue
        for source in survey.sources(survey.nodes[user]):
            name, below = timeline.info(source.node).name, {source.node, *ancestors(timeline, source.node)}
            if name.isidentifier() and not own.isdisjoint(below) and others.isdisjoint(below):
                frames = timeline.stack(survey.nodes[user].created.stack)
                lines = (frame for frame in frames if re.search(rf"\b{name}\b", line_text(timeline, frame)))
                return next(((frame, name) for frame in lines), None)
    return None
