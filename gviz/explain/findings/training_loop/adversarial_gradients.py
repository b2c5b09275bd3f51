"""A discriminator's step uses the gradient of the generator's loss, too, which wants the opposite; or the reverse.

Idea. A loss trains a first model through a second one, and another loss trains the second on what the first one made,
without a path to it. If both losses push the output of the second model for that input in opposite directions, the
first loss is against the second. A step of the second model that uses the sum of both gradients works against itself.

Example. ``g_loss.backward(); d_loss.backward(); opt_g.step(); opt_d.step()``: the backward pass of ``g_loss`` also
fills the ``.grad`` of the discriminator, and nothing clears it before ``d_loss.backward()``.

The reverse: ``d_loss`` is computed from ``D(fake)`` without ``detach()``, so that its pass also fills the ``.grad`` of
the generator. If nothing clears that before ``opt_g.step()``, the generator also learns to be recognized. If it is
cleared, it has only cost time, and is left out.

Limits. Each model needs an optimizer of its own. The directions are those of all elements of the gradient that arrives
at the last layer; or the losses compare it with different constants, such as 0 and 1. A decoder that two losses train
in one direction, or in several, is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Generator, Iterator
from dataclasses import dataclass

from gviz.events import GradAccumulated, GradSet, OptimizerStepped, StepStarted
from gviz.explain.backward_passes import pass_started, roots_of_pass
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.grad_history import additions_at_steps
from gviz.explain.operation_sets import LOSSES_OF_PAIRS, SAME_NUMBERS
from gviz.explain.program_text import receiver
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import before, wrapped
from gviz.explain.source_frames import at_text, own_frame, own_frames
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.node_gradients import step_grads
from gviz.values.number_text import number as number_text
from gviz.values.value import Stats

_TO_THE_LOSS = frozenset({*SAME_NUMBERS, "sigmoid"})
"""Operations between the output of a discriminator and its loss."""

_MOST_PASSES = 3
"""The most passes of one call for which the graphs are compared, in a step and in all."""


@dataclass(frozen=True, slots=True)
class TakenStep:
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
    pushes: tuple[str, str]


def opposed_losses(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first step of each call that uses the gradients of two losses which are against each other."""
    by_optimizer = yield from survey.once(steps_by_call)
    yield from _findings(survey, by_optimizer)


def reached_generators(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first step of each call that uses a gradient of the loss of the model behind it, against its own."""
    by_optimizer = yield from survey.once(steps_by_call)
    for steps in by_optimizer.values():
        yield None
        findings = (_reached(survey, steps[0], others[0]) for others in by_optimizer.values())
        yield next((one for one in findings if one is not None), None)


def steps_by_call(survey: Survey) -> Generator[None, None, dict[int, list[TakenStep]]]:
    """Return the first steps of each call of ``step()``, by its stack, and which passes have filled what they use."""
    by_optimizer: dict[int, list[TakenStep]] = {}
    calls = {event.pass_nr: event.stack for _, event in survey.passes}
    for found in additions_at_steps(survey.select(GradAccumulated, GradSet, OptimizerStepped)):
        yield None
        if found is None:
            continue
        seq, event, used = found
        if len(by_optimizer.setdefault(event.stack, [])) < _MOST_PASSES:
            passes: defaultdict[int, list[int]] = defaultdict(list)
            for number in sorted({part.pass_nr for parts in used.values() for _, part in parts}):
                passes[calls.get(number, 0)].append(number)
            last = {node: parts[-1] for node, parts in used.items()}
            by_optimizer[event.stack].append(TakenStep(seq, event, dict(passes), last))
    return by_optimizer


def _findings(survey: Survey, by_optimizer: dict[int, list[TakenStep]]) -> Iterator[Finding | None]:
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
    layers = [last_layer(survey, graph, own)[1] for graph in graphs]
    if len(layers[0]) != 1:
        return None
    output = layers[0][0]
    alike = [one for one in layers[1] if one.op == output.op and one.shape == output.shape]
    alike = [one for one in alike if not {*others}.isdisjoint(ancestors(survey.timeline, one.node))]
    if len(alike) != 1 or {*others}.isdisjoint(ancestors(survey.timeline, output.node)):
        return None
    pushes = _pushes(survey, (first, output), (second, alike[0]))
    return _Opposed(output, alike[0], pushes) if pushes is not None else None


def _pushes(survey: Survey, *outputs: tuple[int, NodeRecord]) -> tuple[str, str] | None:
    """Return the directions in which two passes push all elements of an output; None if these are not opposite."""
    arrived = [arrived_gradient(survey, pass_nr, output.node) for pass_nr, output in outputs]
    if arrived[0] is None or arrived[1] is None:
        return None
    down, up = sorted((arrived[0], arrived[1]), key=lambda one: one.mean)
    if not (down.min < 0 and down.max <= 0 <= up.min and up.max > 0):
        return None
    return ("up", "down") if arrived[0] is down else ("down", "up")


# The reverse: a generator whose step also uses the gradient of the discriminator's loss


def _reached(survey: Survey, step: TakenStep, other: TakenStep) -> Finding | None:
    """Return the finding about a generator's step that also uses the passes of a discriminator's step."""
    own, others = step.event.parameters, other.event.parameters
    if not {*own}.isdisjoint(others):
        return None
    for common in step.passes.keys() & other.passes.keys():
        for call in step.passes.keys() - {common}:
            pairs = list(zip(step.passes[common], step.passes[call], strict=False))[:_MOST_PASSES]
            known = [_reached_in(survey, *pair, own, others) for pair in pairs]
            if known and all(known) and known[0] is not None:
                is_only_its = call not in other.passes or _has_own_data(survey, pairs[0][0], own, others)
                return _reached_finding(survey, step, pairs[0], known[0], others) if is_only_its else None
    return None


def _reached_in(
    survey: Survey, first: int, second: int, own: Collection[int], others: Collection[int]
) -> _Opposed | None:
    """Return the output of a discriminator that two passes push in opposite directions and through which both reach
    the generator with the parameters `own`.
    """
    outputs = []
    for number in (first, second):
        graph = set(survey.history(*roots_of_pass(survey.timeline, number)))
        _, layers = last_layer(survey, graph, others)
        outputs.append([one for one in layers if not {*own}.isdisjoint(survey.history(one.node))])
    if [len(one) for one in outputs] != [1, 1] or outputs[0][0].op != outputs[1][0].op:
        return None
    pair = (first, outputs[0][0]), (second, outputs[1][0])
    pushes = _pushes(survey, *pair) or _constants(survey, *pair)
    return _Opposed(pair[0][1], pair[1][1], pushes) if pushes is not None else None


def _constants(survey: Survey, *outputs: tuple[int, NodeRecord]) -> tuple[str, str] | None:
    """Return the two different constants with which the losses of two passes compare an output."""
    constants = [target_number(survey, number, output) for number, output in outputs]
    if constants[0] is None or constants[1] is None or constants[0] == constants[1]:
        return None
    return f"to {number_text(constants[0])}", f"to {number_text(constants[1])}"


def target_number(survey: Survey, pass_nr: int, output: NodeRecord) -> float | None:
    """Return the number of all elements of the target with which the loss of a pass compares an output."""
    graph, record = set(survey.history(*roots_of_pass(survey.timeline, pass_nr))), output
    while True:
        users = [user for user in survey.timeline.nodes.users(record.node) if user in graph]
        if len(users) != 1:
            return None
        user = survey.nodes[users[0]]
        if user.op in LOSSES_OF_PAIRS:
            targets = [one for one in survey.sources(user) if one is not record]
            stats = targets[0].stats if len(targets) == 1 and not targets[0].created.requires_grad else None
            return stats.mean if stats is not None and stats.min == stats.max else None
        if user.op not in _TO_THE_LOSS:
            return None
        record = user


def _has_own_data(survey: Survey, pass_nr: int, own: Collection[int], others: Collection[int]) -> bool:
    """Return whether a loss also judges data that the generator did not make: it is the discriminator's."""
    graph = set(survey.history(*roots_of_pass(survey.timeline, pass_nr)))
    _, layers = last_layer(survey, graph, others)
    return any({*own}.isdisjoint(ancestors(survey.timeline, one.node)) for one in layers)


def _reached_finding(
    survey: Survey, step: TakenStep, passes: tuple[int, int], opposed: _Opposed, others: Collection[int]
) -> Finding:
    timeline = survey.timeline
    started = [pass_started(timeline, number) for number in passes]
    places = [timeline.stack(one.stack) if one is not None else () for one in started]
    loss = label(timeline, next(iter(roots_of_pass(timeline, passes[0])), 0))
    node = next(node for node in step.last if node in survey.nodes)
    seq, _ = step.last[node]
    text = titled("the gradient of {} goes into the step of {}, too", loss, label(timeline, node))
    used = f"the step{at_text(timeline.stack(step.event.stack))} uses the sum of both"
    against = f"backward{at_text(places[0])} pushes {label_at(timeline, opposed.first.node)} {opposed.pushes[0]}"
    sums = f"{against}, and that{at_text(places[1])} pushes it {opposed.pushes[1]}; {used}"
    part = Finding("sum", sums, seq, node, at=own_frame(places[0]))
    name, at = _detachable(survey, opposed, others)
    what = f"{name}.detach()" if name else "detach() what the generator made"
    optimizer = receiver(timeline, next(iter(timeline.stack(step.event.stack)), None), "step") or "optimizer"
    fix = f"{what} where {loss} is computed, or {optimizer}.zero_grad() before the other backward()"
    edit = wrapped(timeline, at, name, ".detach()") if name else None
    return Finding("reaches-other-part", text, seq, node, (part,), fix, at, suspected=True, edit=edit)


def _detachable(survey: Survey, opposed: _Opposed, others: Collection[int]) -> tuple[str, Frame | None]:
    """Return the variable with what a generator made and the line that gives it to the discriminator in the first pass.

    The name is empty if there is no such variable, or if the line is also that of the second pass.
    """
    timeline = survey.timeline
    record = opposed.first
    scope = survey.outermost(record.created.scope) if record.created.scope in survey.scopes else 0
    behind = {node for node in survey.history(record.node) if _is_of_discriminator(survey, node, scope, others)}
    edges = {source.node for node in behind for source in survey.sources(survey.nodes[node])} - behind - {*others}
    edges = {node for node in edges if survey.nodes[node].created.requires_grad}
    frames = own_frames(timeline.stack(record.created.stack))[::-1]
    again = own_frames(timeline.stack(opposed.second.created.stack))
    name = timeline.info(next(iter(edges))).name if len(edges) == 1 else ""
    if name.isidentifier():
        for at in frames:
            if wrapped(timeline, at, name, ".detach()") is not None:
                is_shared = any((one.path, one.line) == (at.path, at.line) for one in again)
                return ("" if is_shared else name), at
    return "", next((at for at in frames if at not in again), survey.at(record))


def _is_of_discriminator(survey: Survey, node: int, scope: int, others: Collection[int]) -> bool:
    """Return whether a node was made in the module call `scope`, or depends on the parameters `others`."""
    created = survey.nodes[node].created
    is_inside = bool(scope) and created.scope in survey.scopes and survey.outermost(created.scope) == scope
    return created.kind == "op" and (is_inside or not {*others}.isdisjoint(survey.history(node)))


def last_layer(survey: Survey, graph: set[int], parameters: Collection[int]) -> tuple[int, list[NodeRecord]]:
    """Return a parameter of the last layer in a graph, and the uses of that layer; 0 if there is none."""
    uses = {node: uses_of_parameter(survey, graph, node) for node in parameters}
    last = max((nodes[-1] for nodes in uses.values() if nodes), default=0)
    parameter = next((node for node, nodes in uses.items() if last in nodes), 0)
    return parameter, [survey.nodes[node] for node in uses.get(parameter, ())]


def uses_of_parameter(survey: Survey, graph: set[int], parameter: int) -> list[int]:
    """Return the operations of a graph that use a parameter, itself or transposed, in order."""
    users = [user for user in survey.timeline.nodes.users(parameter) if user in graph]
    views = [user for user in users if survey.nodes[user].op in ("t", "transpose", "view")]
    through = [user for view in views for user in survey.timeline.nodes.users(view) if user in graph]
    return sorted({*users, *through} - {*views})


def arrived_gradient(survey: Survey, pass_nr: int, node: int) -> Stats | None:
    """Return the statistics of the gradient that arrives at a node in a pass."""
    timeline = survey.timeline
    start = next((seq for seq, event in survey.passes if event.pass_nr == pass_nr), 0)
    stop = next((seq for seq, event in survey.passes if seq > start), survey.end + 1)
    for seq, event in timeline.select((StepStarted,), start, stop):
        if event.node == node and event.pass_nr == pass_nr:
            value = next(iter(step_grads(timeline, seq)), None)
            return value.statistics() if value is not None else None
    return None


def _finding(
    survey: Survey, step: TakenStep, passes: tuple[int, int], opposed: _Opposed, *, is_single: bool
) -> Finding:
    timeline = survey.timeline
    started = [pass_started(timeline, number) for number in passes]
    places = [timeline.stack(one.stack) if one is not None else () for one in started]
    loss = label(timeline, next(iter(roots_of_pass(timeline, passes[0])), 0))
    node = next(node for node in step.last if node in survey.nodes)
    seq, _ = step.last[node]
    text = titled("the .grad of {} also has the gradient of {}", label(timeline, node), loss)
    signs = opposed.pushes
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
