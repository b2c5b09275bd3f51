"""A discriminator's step uses the gradient of the generator's loss, too, which wants the opposite.

Idea. A loss trains a first model through a second one, and another loss trains the second on what the first one made,
without a path to it. If both losses push the output of the second model for that input in opposite directions, the
first loss is against the second. A step of the second model that uses the sum of both gradients works against itself.

Example. ``g_loss.backward(); d_loss.backward(); opt_g.step(); opt_d.step()``: the backward pass of ``g_loss`` also
fills the ``.grad`` of the discriminator, and nothing clears it before ``d_loss.backward()``.

Limits. Each model needs an optimizer of its own. The directions are those of all elements of the gradient that arrives
at the last layer. A decoder that two losses train in one direction, or in several, is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gviz.events import GradAccumulated, GradSet, OptimizerStepped, StepStarted
from gviz.explain.backward_passes import pass_started, roots_of_pass
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.edit import before
from gviz.explain.finding import Finding
from gviz.explain.grad_history import CLEARED
from gviz.explain.program_text import receiver
from gviz.explain.source_frames import at_text
from gviz.explain.survey import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.trace.node_gradients import step_grads
from gviz.values.value import Stats

_MOST_PASSES = 3
"""The most passes of one call for which the graphs are compared, in a step and in all."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step, its parameters, and by call of backward the passes whose gradients it used."""

    seq: int
    event: OptimizerStepped
    passes: dict[int, list[int]]
    last: dict[int, tuple[int, GradAccumulated]]


@dataclass(frozen=True, slots=True)
class _Opposed:
    """The output of a model in two passes, and the gradients that arrive there."""

    first: NodeRecord
    second: NodeRecord
    gradients: tuple[Stats, Stats]


def opposed_losses(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first step of each call that uses the gradients of two losses which are against each other."""
    calls = {event.pass_nr: event.stack for _, event in survey.passes}
    used: defaultdict[int, list[tuple[int, GradAccumulated]]] = defaultdict(list)
    by_optimizer: defaultdict[int, list[_Step]] = defaultdict(list)
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case GradAccumulated(node=node, value=value):
                used[node] = [*(used[node] if value is not None else []), (seq, event)]
            case GradSet(node=node, how=how) if how in CLEARED:
                used.pop(node, None)
            case OptimizerStepped(stack=stack, parameters=parameters):
                if len(by_optimizer[stack]) < _MOST_PASSES:
                    numbers = {part.pass_nr for node in parameters for _, part in used.get(node, ())}
                    passes: defaultdict[int, list[int]] = defaultdict(list)
                    for number in sorted(numbers):
                        passes[calls.get(number, 0)].append(number)
                    last = {node: used[node][-1] for node in parameters if used.get(node)}
                    by_optimizer[stack].append(_Step(seq, event, dict(passes), last))
                for node in parameters:
                    used.pop(node, None)
    yield from _findings(survey, by_optimizer)


def _findings(survey: Survey, by_optimizer: dict[int, list[_Step]]) -> Iterator[Finding | None]:
    for steps in by_optimizer.values():
        for other_steps in by_optimizer.values():
            yield None
            step, first = steps[0], other_steps[0]
            common = [call for call in step.passes if call in first.passes]
            own = [call for call in step.passes if call not in first.passes]
            if len(common) != 1 or len(own) != 1 or not {*step.event.parameters}.isdisjoint(first.event.parameters):
                continue
            if _is_stepped_between(survey, first.seq, step.passes[common[0]][-1], step.passes[own[0]][-1]):
                continue
            pairs = list(zip(step.passes[common[0]], step.passes[own[0]], strict=False))[:_MOST_PASSES]
            opposed = [_opposed(survey, *pair, step.event.parameters, first.event.parameters) for pair in pairs]
            known = [one for one in opposed if one is not None]
            if known and len(known) == len(opposed):
                is_single = all(len(numbers) == 1 for one in steps for numbers in one.passes.values())
                yield _finding(survey, step, pairs[0], known[0], is_single=is_single)
                break


def _is_stepped_between(survey: Survey, step: int, *passes: int) -> bool:
    """Return whether a step comes after one of two passes and before the other."""
    starts = [seq for seq, event in survey.passes if event.pass_nr in passes]
    return min(starts) < step < max(starts)


def _opposed(survey: Survey, first: int, second: int, own: Collection[int], others: Collection[int]) -> _Opposed | None:
    """Return the output of a model to which two passes send gradients of opposite signs.

    In the first pass it is computed from the parameters `others` of another model, and in the second without a path.
    """
    graphs = [set(survey.history(*roots_of_pass(survey.timeline, number))) for number in (first, second)]
    if not graphs[1].isdisjoint(others):
        return None
    layers = [_last_layers(survey, graph, own) for graph in graphs]
    if len(layers[0]) != 1:
        return None
    output = layers[0][0]
    alike = [one for one in layers[1] if one.op == output.op and one.shape == output.shape]
    alike = [one for one in alike if not {*others}.isdisjoint(ancestors(survey.timeline, one.node))]
    if len(alike) != 1 or {*others}.isdisjoint(ancestors(survey.timeline, output.node)):
        return None
    arrived = _arrived(survey, first, output.node), _arrived(survey, second, alike[0].node)
    if arrived[0] is None or arrived[1] is None:
        return None
    down, up = sorted((arrived[0], arrived[1]), key=lambda one: one.mean)
    is_opposed = down.min < 0 and down.max <= 0 <= up.min and up.max > 0
    return _Opposed(output, alike[0], (arrived[0], arrived[1])) if is_opposed else None


def _last_layers(survey: Survey, graph: set[int], parameters: Collection[int]) -> list[NodeRecord]:
    """Return the uses of the last layer in a graph: the operation with parameters that is behind all others."""
    uses = dict[int, list[int]]()
    for node in parameters:
        users = [user for user in survey.timeline.nodes.users(node) if user in graph]
        views = [user for user in users if survey.nodes[user].op in ("t", "transpose", "view")]
        through = [user for view in views for user in survey.timeline.nodes.users(view) if user in graph]
        uses[node] = sorted({*users, *through} - {*views})
    last = max((nodes[-1] for nodes in uses.values() if nodes), default=0)
    return [survey.nodes[node] for node in next((nodes for nodes in uses.values() if last in nodes), [])]


def _arrived(survey: Survey, pass_nr: int, node: int) -> Stats | None:
    """Return the statistics of the gradient that arrives at a node in a pass."""
    timeline = survey.timeline
    start = next((seq for seq, event in survey.passes if event.pass_nr == pass_nr), 0)
    stop = next((seq for seq, event in survey.passes if seq > start), survey.end + 1)
    for seq, event in timeline.select((StepStarted,), start, stop):
        if event.node == node and event.pass_nr == pass_nr:
            value = next(iter(step_grads(timeline, seq)), None)
            return value.statistics() if value is not None else None
    return None


def _finding(survey: Survey, step: _Step, passes: tuple[int, int], opposed: _Opposed, *, is_single: bool) -> Finding:
    timeline = survey.timeline
    started = [pass_started(timeline, number) for number in passes]
    places = [timeline.stack(one.stack) if one is not None else () for one in started]
    loss = label(timeline, next(iter(roots_of_pass(timeline, passes[0])), 0))
    node = next(node for node in step.last if node in survey.nodes)
    seq, _ = step.last[node]
    text = titled("the .grad of {} also has the gradient of {}", label(timeline, node), loss)
    signs = ["up" if one.mean < 0 else "down" for one in opposed.gradients]
    used = f"the step{at_text(timeline.stack(step.event.stack))} uses the sum of both"
    pushes = f"backward{at_text(places[0])} pushes {label_at(timeline, opposed.first.node)} {signs[0]}"
    part = Finding("sum", f"{pushes}, and that{at_text(places[1])} pushes it {signs[1]}; {used}", seq, node)
    is_cleared = is_single and passes[0] < passes[1]
    at = next(iter(places[1] if is_cleared else places[0]), None)
    name = receiver(timeline, next(iter(timeline.stack(step.event.stack)), None), "step")
    edit = before(timeline, at, f"{name}.zero_grad()") if name and is_cleared else None
    clear = f"{name or 'optimizer'}.zero_grad() before this backward(), or " if is_cleared else ""
    fix = f"{clear}requires_grad_(False) for its model while the other loss is computed, and True again after it"
    return Finding("not-cleared", text, seq, node, (part,), fix, at, edit=edit)
