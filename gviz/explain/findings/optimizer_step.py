"""Mistakes with optimizers: unused or uncleared gradients, empty steps, and clearing or clipping at the wrong time."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import isfinite, log2, prod

from gviz.events import (
    BackwardStarted,
    DataSet,
    Event,
    GradAccumulated,
    GradCaptured,
    GradSet,
    NodeCreated,
    OptimizerStarted,
    OptimizerStepped,
    StorageWritten,
    Warned,
    grad_left,
)
from gviz.events.optimizer_options import options_in
from gviz.explain.backward_passes import loss_scale, pass_started
from gviz.explain.display_names import at_text, innermost, iteration_called, label, label_at, titled
from gviz.explain.edit import (
    Edit,
    PlainContainer,
    after,
    assignment_in_loop,
    before,
    divided,
    generator_read,
    in_block,
    moved,
    parameter_last,
    plain_container,
    plateaus_for_maxima,
    removed,
    statement_instead,
    with_keyword,
    wrapped,
)
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.error import used_up
from gviz.explain.findings.no_gradient import PARAMETER_LAST, nameless_leaf
from gviz.explain.grad_history import is_zero
from gviz.explain.operation_sets import LOSSES
from gviz.explain.parameter_updates import (
    Steps,
    all_frozen,
    next_step,
    options_of,
    step_of,
    steps_by,
    why_nothing,
    write_place,
)
from gviz.explain.program_source import (
    arguments,
    assignment,
    called_function,
    called_lines,
    calls_in_block,
    conditional_call,
    keyword_text,
    line_text,
    optimizer_named,
    rates_set,
    receiver,
    target_of,
    update_in_place,
)
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.explain.tracking import ancestors, loses_tracking
from gviz.source.site import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import clipped, file_line, shown
from gviz.values.value import Value
from gviz.values.value_text import bad_text, grad, norm, share


def never_stepped(survey: Survey) -> Iterator[Finding]:
    """Yield leaves that got a gradient and that no optimizer and no line of the program has changed since.

    Inputs with respect to which the program takes derivatives, as the points of a differential equation, do not count.
    """
    if survey.timeline.failures:  # the update may have come later
        return
    requested_nodes = {event.node for _, event in survey.select(GradCaptured)}
    leaves = dict.fromkeys(event.node for _, event in survey.accumulated if event.node in survey.nodes)
    listed: dict[str, list[Finding]] = {}
    containers: dict[str, PlainContainer] = {}
    for node in leaves:
        is_data = node in requested_nodes and survey.nodes[node].created.kind != "parameter"
        finding = None if is_data or node in survey.optimized else unused_gradient(survey.timeline, node, survey.end)
        if finding is None:
            continue
        is_parameter = survey.nodes[node].created.kind == "parameter"
        container = plain_container(survey.timeline, finding.at, survey.timeline.info(node).name)
        if container is None or not is_parameter or _has_optimizer(survey, container):
            yield finding
        else:
            containers[container.text] = container
            listed.setdefault(container.text, []).append(finding)
    for name, findings in listed.items():
        yield _in_a_list(containers[name], findings)


def _has_optimizer(survey: Survey, container: PlainContainer) -> bool:
    """Return whether an optimizer has an element of a container, or no parameter of a model at all."""
    infos = [survey.timeline.info(node) for node in survey.optimized]
    parameters = [info for info in infos if info.created.kind == "parameter"]
    known = (plain_container(survey.timeline, innermost(info), info.name) for info in parameters)
    return not parameters or any(one is not None and one.text == container.text for one in known)


def _in_a_list(container: PlainContainer, findings: list[Finding]) -> Finding:
    """Return one finding about all parameters of layers in a list, which the ``parameters()`` of a model leaves out."""
    count = len(findings)
    some = f"its {count} parameters have" if count > 1 else "its parameter has"
    kind = "dictionary" if container.kind.endswith("Dict") else "list"
    text = titled(f"{{}} is a plain {kind}: no optimizer updates what is in it", container.text)
    unseen = Finding("frozen", f"{some} a gradient, but parameters() of the model leaves them out", findings[0].event)
    fix = f"{container.text} = {container.kind}(...), which registers its elements with the model"
    parts = (unseen, *findings[0].parts)
    return replace(findings[0], text=text, parts=parts, fix=fix, at=container.at, suspected=False, edit=container.edit)


# Unused gradients: of leaves that no optimizer step and no line of the program ever changes

_PASSES = 3
"""The fewest passes after which a parameter is probably trained, and not only examined."""


def unused_gradient(timeline: Timeline, node: int, n: int) -> Finding | None:
    """Return a finding if nothing has used the gradients of a leaf by event `n`; None if something has.

    It is only suspected if the program may use the gradients themselves.
    """
    added = _added(timeline, node, n)
    if not added:
        return None
    steps, info = steps_by(timeline, n), timeline.info(node)
    if node in steps.parameters or _is_a_loss(timeline, node, added[0][1]):
        return None
    if info.created.kind != "parameter" and (_is_grad_input(timeline, node, n) or _is_copy(timeline, node, steps)):
        return None
    if steps.count:
        return _not_in_optimizer(timeline, info, added, steps)
    if not _is_of_a_loop(timeline, [event for _, event in added]):
        return None
    recomputed = _recomputed(timeline, info, added[0][0])
    return _never_updated(timeline, info, added) if recomputed is None else recomputed


def _is_grad_input(timeline: Timeline, node: int, n: int) -> bool:
    """Return whether the program takes derivatives with respect to a leaf by autograd.grad, and needs no ``.grad``."""
    return any(isinstance(timeline.event(seq), GradCaptured) for seq in timeline.events_of(node) if seq <= n)


def _is_copy(timeline: Timeline, node: int, steps: Steps) -> bool:
    """Return whether a leaf was made from a parameter of an optimizer: the cut between them is another finding."""
    return not steps.parameters.isdisjoint(ancestors(timeline, node))


def _added(timeline: Timeline, node: int, n: int) -> list[tuple[int, GradAccumulated]]:
    """Return the additions of passes to the ``.grad`` of a leaf by event `n`; empty if the leaf changed since."""
    added = []
    for seq in timeline.events_of(node):
        if seq > n:
            break
        event = timeline.event(seq)
        if isinstance(event, GradAccumulated):
            added.append((seq, event))
        elif added and isinstance(event, StorageWritten | DataSet):
            return []
    return added


def _is_a_loss(timeline: Timeline, node: int, first: GradAccumulated) -> bool:
    """Return whether the pass began at the leaf itself: it is a loss without a history, not a parameter."""
    started = pass_started(timeline, first.pass_nr)
    return started is not None and any(root == node for root, _ in started.roots)


def _not_in_optimizer(
    timeline: Timeline, info: NodeInfo, added: list[tuple[int, GradAccumulated]], steps: Steps
) -> Finding | None:
    """Return the finding about optimizers with other parameters: surely a mistake if one of them has no gradient."""
    name, seq = label(timeline, info.node), added[0][0]
    if (result := _result_in_its_place(timeline, info)) is not None:
        return _not_registered(timeline, info, result, added, steps)
    if not steps.idle:
        if info.created.kind != "parameter" and not _piles_up(timeline, [event for _, event in added]):
            return None
        text = titled("{} gets a gradient, but no optimizer has updated it", name)
        fact, born = _other_parameters(timeline, steps, added), innermost(info)
        remedy = "pass it to an optimizer, too (layers in a list need nn.ModuleList)"
        if fact.at is not None and born is not None and fact.at.path == born.path and fact.at.line < born.line:
            remedy = "make the optimizer of all parameters() after this line"
        if info.created.kind != "parameter":
            remedy = "make it an nn.Parameter of the model, so that parameters() has it for the optimizer"
        fix = f"{remedy}, or freeze it with requires_grad_(False)"
        is_certain = len(added) > 1 and _follows_trained(timeline, info, steps)
        return Finding("never-stepped", text, seq, info.node, (fact,), fix, born, suspected=not is_certain)
    if info.created.kind != "parameter" and _is_made_in_several_iterations(timeline, info):
        return None  # a loss that each iteration makes anew: the finding is that it reaches no parameter
    step = timeline.event(steps.idle[-1])
    assert isinstance(step, OptimizerStepped)
    frames, kind = timeline.stack(step.stack), shown(step.kind)
    text = titled("{} gets a gradient, but no optimizer holds it", name)
    others = f"{label_at(timeline, step.skipped[0])} and others" if step.skipped else "other parameters"
    idle = f"the step of {kind}{at_text(frames)} found no gradient: it holds {others}"
    at = frames[0] if frames else None
    fix = "make the optimizer after the model is as it stays, of that model's parameters()"
    parts = (Finding("idle", idle, steps.idle[-1], at=at),)
    construction = assignment(timeline, at, receiver(timeline, at, "step"))
    born = innermost(info)
    is_later = (
        construction is not None
        and born is not None
        and construction.path == born.path
        and construction.line < born.line
    )
    edit = moved(timeline, construction, born) if is_later else None
    return Finding(
        "never-stepped", text, seq, info.node, parts, fix, born if is_later else construction or born, edit=edit
    )


def _result_in_its_place(timeline: Timeline, info: NodeInfo) -> NodeInfo | None:
    """Return the named result that the line of a nameless parameter made from it, if nothing else uses the parameter.

    ``self.token = nn.Parameter(torch.randn(d)).view(1, 1, d)`` keeps the result of ``view``, which is no parameter.
    """
    users = [timeline.info(user) for user in timeline.nodes.users(info.node)]
    if info.created.kind != "parameter" or len(users) != 1 or not users[0].name:
        return None
    leaf = nameless_leaf(timeline, users[0])
    return users[0] if leaf is not None and leaf.node == info.node else None


def _not_registered(
    timeline: Timeline, info: NodeInfo, result: NodeInfo, added: list[tuple[int, GradAccumulated]], steps: Steps
) -> Finding:
    """Return the finding about an attribute that holds a result of a parameter, so that no module has the parameter."""
    text = titled("{} is no parameter: it is computed from one", label(timeline, result.node))
    fact, at = _other_parameters(timeline, steps, added), innermost(result)
    edit = parameter_last(timeline, at)
    return Finding("never-stepped", text, added[0][0], info.node, (fact,), PARAMETER_LAST, at, edit=edit)


def _other_parameters(timeline: Timeline, steps: Steps, added: Sequence[tuple[int, GradAccumulated]]) -> Finding:
    """Return the fact that the latest optimizer step updates other parameters, with the line that makes the optimizer.

    It adds what has arrived at the leaf in the meantime."""
    step = timeline.event(steps.last)
    assert isinstance(step, OptimizerStepped)
    frames = timeline.stack(step.stack)
    at = frames[0] if frames else None
    construction = assignment(timeline, at, receiver(timeline, at, "step")) or at
    count = len(step.parameters) + len(step.skipped)
    others = f"{count} other parameter{'s' * (count != 1)}"
    latest = added[-1][1]
    total = latest.value or latest.part
    passes = f"{len(added)} passes" if len(added) > 1 else "one pass"
    place = at_text((construction,) if construction else ())
    text = f"{shown(step.kind)}{place} holds {others}; its .grad is {grad(total, _ROOM)}"
    return Finding("held", f"{text} after {passes}", steps.last, at=construction)


def _is_made_in_several_iterations(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether the line that made a leaf has made another one in another iteration."""
    origins, nodes = timeline.nodes.origins, timeline.nodes
    alike = (origins.stack == info.created.stack).nonzero()[0].tolist() if info.created.stack else []
    ends = [timeline.info(nodes[place]).iteration for place in (alike[:1] + alike[-1:])]
    return len(set(ends)) > 1


def _follows_trained(timeline: Timeline, info: NodeInfo, steps: Steps) -> bool:
    """Return whether trained parameters come before this one on the way to the loss, as with a replaced head.

    A program that trains only a head on an unchanged model may have frozen nothing.
    """
    users = timeline.nodes.users(info.node)
    return info.created.kind == "parameter" and any(
        source in steps.parameters
        for user in users[:1]
        for later in (user, *timeline.nodes.users(user))
        for source in ancestors(timeline, later)
    )


def _piles_up(timeline: Timeline, added: list[GradAccumulated]) -> bool:
    """Return whether a loop has added to the gradient several times and nothing cleared it."""
    uncleared = all(event.value is not None for event in added[1:])
    return len(added) >= _PASSES and uncleared and _is_of_a_loop(timeline, added)


def _is_of_a_loop(timeline: Timeline, added: list[GradAccumulated]) -> bool:
    """Return whether one line called the last two passes, as in a training loop."""
    return len(added) > 1 and len({_call_of_pass(timeline, event.pass_nr) for event in added[-2:]} - {0}) == 1


def _call_of_pass(timeline: Timeline, pass_nr: int) -> int:
    started = pass_started(timeline, pass_nr)
    return started.stack if started is not None else 0


def _recomputed(timeline: Timeline, info: NodeInfo, seq: int) -> Finding | None:
    """Return the finding about an update that makes a new, unused tensor from the leaf and its gradient."""
    update = next(
        (user for user in _computed_updates(timeline, info.node) if not timeline.nodes.users(user.node)), None
    )
    if update is None:
        return None
    at, name = innermost(update), shown(update.name)
    text = titled("{} stays as it was: its update makes a new tensor", label(timeline, info.node))
    new_tensor = f"{label_at(timeline, update.node)} is that tensor, and nothing uses it"
    in_place = update_in_place(line_text(timeline, at), update.name)
    fix = f"with torch.no_grad(): {clipped(in_place, 80)}" if in_place else f"with torch.no_grad(): {name or 'it'} -= …"
    parts = (Finding("recomputed", new_tensor, update.born, update.node, at=at),)
    edit = in_block(timeline, at, "with torch.no_grad():", in_place) if in_place else None
    return Finding("never-stepped", text, seq, info.node, parts, fix, at, edit=edit)


def _computed_updates(timeline: Timeline, node: int) -> list[NodeInfo]:
    """Return the nodes that were computed from a leaf and its latest gradient."""
    owners = timeline.nodes.origins.gradient_of
    latest = [timeline.nodes[place] for place in (owners == node).nonzero()[0][-1:].tolist()]
    scaled = {user for gradient in latest for user in timeline.nodes.users(gradient)}
    infos = map(timeline.info, sorted({*scaled, *(user for one in scaled for user in timeline.nodes.users(one))}))
    return [info for info in infos if node in {source for source, _ in info.created.inputs}]


def _never_updated(timeline: Timeline, info: NodeInfo, added: list[tuple[int, GradAccumulated]]) -> Finding | None:
    if info.created.kind != "parameter" or len(added) < _PASSES:
        return None  # the program may only look at its gradient
    text = titled(f"{{}} got gradients in {len(added)} passes, and nothing has updated it", label(timeline, info.node))
    fix = "optimizer.step() after backward(), if it is to learn"
    started = pass_started(timeline, added[-1][1].pass_nr)
    frames = timeline.stack(started.stack) if started is not None else ()
    at = frames[0] if frames else innermost(info)
    name = optimizer_named(timeline, at)
    skipped = conditional_call(timeline, at, name, "step") if name else None
    if skipped is not None:
        condition = clipped(skipped.condition, 80)
        never = f"{name}.step() never ran: {condition} was not true in any of {len(added)} passes"
        part = Finding("idle", never, added[-1][0], at=skipped.at)
        fix = "a condition that comes true: fewer batches to accumulate, or a step after the last batch of each epoch"
        if "%" not in skipped.condition:
            fix = "a condition that comes true, if it is to learn"
        suspected = "%" not in skipped.condition  # a switch of the program may be off on purpose
        return Finding("never-stepped", text, added[0][0], info.node, (part,), fix, skipped.at, suspected=suspected)
    edit = after(timeline, at, f"{name}.step()") if name else None
    return Finding("never-stepped", text, added[0][0], info.node, (), fix, at, suspected=True, edit=edit)


# A step that found nothing to do: backward was forgotten, or everything is frozen

_NAMED = re.compile(r"^[ \t]*([A-Za-z_][\w.\[\]]*\.backward)[ \t]*(?:#.*)?$", re.MULTILINE)


def empty_step(survey: Survey) -> Iterator[Finding]:
    """Yield steps that found no gradient because their parameters are frozen, or no backward has ever run."""
    for seq in steps_by(survey.timeline, survey.end).idle:
        step = survey.timeline.event(seq)
        if not isinstance(step, OptimizerStepped) or not step.skipped:
            continue
        frozen = all_frozen(survey.timeline.at(seq), step)
        if frozen or not survey.passes:
            yield _empty_finding(survey, seq, step, frozen=frozen)


def _empty_finding(survey: Survey, seq: int, step: OptimizerStepped, *, frozen: bool) -> Finding:
    timeline = survey.timeline
    frames = timeline.stack(step.stack)
    text = "this step updates nothing: "
    if frozen:
        text += why_nothing(timeline.at(seq), step)
        then = "no optimizer for the rest" if survey.passes else "backward() before the step"
        fix = f"requires_grad_(True) on what is to learn, and {then}"
    else:
        text += "no backward pass has run"
        fix = _not_called(timeline, frames) or "call backward() on the loss before it"
    first = step.skipped[0]
    has = f"it has {label(timeline, first)}" + (f" and {len(step.skipped) - 1} more" * (len(step.skipped) > 1))
    parts = (Finding("beside", has, timeline.nodes.born(first), first, at=innermost(timeline.info(first))),)
    at, suspected = frames[0] if frames else None, bool(survey.passes)
    return Finding("empty-step", text, seq, first, parts, fix, at, suspected=suspected)


def _not_called(timeline: Timeline, frames: Sequence[Frame]) -> str:
    """Return the fix if the file of the step has a line that names ``backward`` without calling it."""
    text = (timeline.source(frames[0].path) if frames else None) or ""
    named = _NAMED.search(text)
    if named is None:
        return ""
    place = file_line(frames[0].path, text.count("\n", 0, named.start()) + 1)
    return f"{shown(named[1])}() at {place}, which names it and does not call it"


# A gradient that a step has used and that the next backward added to

_CLEARED = {"none", "zero"}
_ROOM = 40
"""Characters for a gradient in the finding."""


# The ``.grad`` of a leaf is in one of four states; `_LeafGrad` holds the event that led to each.
#
#   state     backward (None before)   backward (adds up)   update of the leaf      cleared, or set once used
#   empty     filled                   filled               empty                   empty
#   filled    filled                   filled               used                    empty
#   used      filled                   added                used                    empty
#   added     filled                   added                used, and a finding     empty
#
# ``loss.backward(); opt.step(); loss.backward(); opt.step()`` goes filled, used, added, used: the second step used the
# first gradient again. Accumulation over micro-batches (backward, backward, step) never leaves filled before the step.
# A program that scales or clips a ``.grad`` before its step changes no state.


@dataclass(slots=True)
class _LeafGrad:
    """The ``.grad`` of one leaf: the events that filled it, used it, and then added to it; 0 for none."""

    filled: int = 0
    used: int = 0
    added: int = 0


def not_cleared(survey: Survey) -> Iterator[Finding | None]:
    """Yield, for each leaf, the first use of a sum of an old and a new gradient, and how often it happened.

    The old gradient may be that of a step before, or of a pass for another optimizer.
    """
    yield from _of_another_loss(survey)
    leaves: defaultdict[int, _LeafGrad] = defaultdict(_LeafGrad)
    holders: dict[int, int] = {}
    first: dict[int, _LeafGrad] = {}
    iterations: defaultdict[int, set[int]] = defaultdict(set)
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped, StorageWritten, DataSet):
        yield None
        match event:
            case GradAccumulated(node=node, value=value) if node in survey.nodes:
                leaf = leaves[node]
                if leaf.used and value is not None:
                    leaf.added = seq
                else:
                    leaf.filled = seq
                holders |= {out.storage: node for out in survey.nodes[node].created.outputs} if value is None else {}
            case GradSet(node=node, how=how) if how in _CLEARED or _is_used(leaves[node]):
                leaves.pop(node, None)
            case GradSet():
                pass  # scaled or clipped, before its step
            case _:
                for node, leaf in [(node, leaves[node]) for node in _updated(event, holders) if node in leaves]:
                    if leaf.added > leaf.used:
                        first.setdefault(node, replace(leaf))
                        iterations[node].add(survey.timeline.iteration_at(leaf.added).index)
                    leaf.used = seq
    yield from (_not_cleared_finding(survey.timeline, leaf, len(iterations[node])) for node, leaf in first.items())


def _is_used(leaf: _LeafGrad) -> bool:
    """Return whether a step has used all of it: then a program that changes it knows about the old gradient."""
    return leaf.used > max(leaf.filled, leaf.added)


def _updated(event: Event, holders: dict[int, int]) -> Iterable[int]:
    """Return the leaves that an event updated."""
    match event:
        case OptimizerStepped(parameters=parameters):
            return parameters
        case StorageWritten(storage=storage) if storage in holders:
            return (holders[storage],)
        case DataSet(node=node):
            return (node,)
    return ()


def _not_cleared_finding(timeline: Timeline, leaf: _LeafGrad, times: int) -> Finding:
    seq, event = leaf.added, timeline.event(leaf.added)
    assert isinstance(event, GradAccumulated)
    name = label(timeline, event.node)
    before = timeline.event(leaf.filled) if leaf.filled else None
    had = grad_left(before) if before is not None else None
    since = f" from backward pass {before.pass_nr}" if isinstance(before, GradAccumulated) else ""
    started = pass_started(timeline, event.pass_nr)
    frames = timeline.stack(started.stack) if started is not None else ()
    text = titled(f"the .grad of {{}} still held the gradient{since}", name)
    added = f"{_brief(had)} was there, and backward{at_text(frames)} added {_brief(event.part)}: {_brief(event.value)}"
    parts = (
        Finding("sum", f"{added}{_how_often(timeline, times)}", seq, event.node),
        Finding("accumulated", "backward had brought it here", leaf.filled, event.node),
        Finding("used", "a step had used it here", leaf.used, event.node),
    )
    fix = "optimizer.zero_grad() before each backward(), or w.grad = None after the update"
    numbers, at = (Number("iterations", times, seq),), frames[0] if frames else None
    edit = _clearing_edit(timeline, event.node, leaf.used, at)
    return Finding("not-cleared", text, seq, event.node, parts, fix, at, numbers, edit=edit)


def _clearing_edit(timeline: Timeline, node: int, used: int, at: Frame | None) -> Edit | None:
    """Return an edit with its optimizer's ``zero_grad()`` before backward, or ``.grad = None``
    after a manual update.
    """
    step = next((timeline.event(one.said) for one in timeline.contexts.steps_at(used)), timeline.event(used))
    if isinstance(step, OptimizerStarted | OptimizerStepped):
        frames = timeline.stack(step.stack)
        name = receiver(timeline, frames[0] if frames else None, "step")
        return before(timeline, at, f"{name}.zero_grad()") if name else None
    frames = write_place(timeline, used, step) if isinstance(step, StorageWritten) else ()
    name = timeline.info(node).name
    return after(timeline, frames[0], f"{name}.grad = None") if frames and name.isidentifier() else None


def _how_often(timeline: Timeline, times: int) -> str:
    """Return in how many of the recorded iterations it happened; empty if there is only one."""
    count = len(timeline.iterations)
    if times < 2:
        return ""
    return f", in {times:,} of {count:,} {iteration_called(timeline)}s"


def _brief(value: Value | None) -> str:
    """Return the numbers of a small gradient, the norm (L2) of a large one."""
    return share(value, _ROOM) if value is not None else grad(value)


# The gradient of another loss: a pass for one optimizer has also reached the parameters of another
# |
# ``g_loss.backward(); opt_g.step(); d_loss.backward(); opt_d.step()`` also brings the gradient of ``g_loss`` to the
# discriminator, whose step then uses the sum of both. A step of another optimizer between the two passes shows that the
# first pass was for that one. The sum may be meant: an encoder that two heads share gets the gradients of both. So the
# parameter must come after those of the other optimizer, as a discriminator comes after the generator. If the second
# loss also cuts the path to the other optimizer, each loss trains one part, and the sum is certainly wrong.


def _of_another_loss(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first step of each call that uses a gradient which a pass for another optimizer had left."""
    timeline = survey.timeline
    filled: dict[int, tuple[int, GradAccumulated]] = {}
    left: dict[int, _Left] = {}
    sums: dict[int, tuple[int, GradAccumulated, _Left]] = {}
    reported: set[int] = set()
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case GradAccumulated(node=node, value=value):
                if node in left and value is not None and not _are_of_one_call(timeline, left[node].event, event):
                    sums[node] = seq, event, left[node]
                filled[node] = seq, event
            case GradSet(node=node):
                for known in (filled, left, sums):
                    known.pop(node, None)
            case OptimizerStepped(parameters=parameters, stack=stack):
                after = (node for node in parameters if node in sums and stack not in reported)
                mixed = next((node for node in after if _comes_after(survey, node, sums[node][2])), 0)
                if mixed:
                    reported.add(stack)
                    finding = _other_loss_finding(timeline, event, mixed, *sums[mixed])
                    yield replace(finding, suspected=not _cuts_path(timeline, sums[mixed][1], sums[mixed][2]))
                passes = {filled[node][1].pass_nr for node in parameters if node in filled}
                for node in parameters:
                    for known in (filled, left, sums):
                        known.pop(node, None)
                left |= {
                    node: _Left(*one, frozenset(parameters))
                    for node, one in filled.items()
                    if one[1].pass_nr in passes and node in survey.optimized
                }


@dataclass(frozen=True, slots=True)
class _Left:
    """A gradient that a pass has left in `.grad`, and the parameters of the optimizer whose step the pass was for."""

    seq: int
    event: GradAccumulated
    stepped: frozenset[int]


def _roots(timeline: Timeline, pass_nr: int) -> list[int]:
    """Return the nodes at which a pass began."""
    started = pass_started(timeline, pass_nr)
    return [node for node, _ in started.roots if node in timeline.nodes] if started is not None else []


def _comes_after(survey: Survey, node: int, left: _Left) -> bool:
    """Return whether an operation of a pass uses a parameter, and is computed from those of the other optimizer."""
    roots = _roots(survey.timeline, left.event.pass_nr)
    graph = {*roots, *ancestors(survey.timeline, *roots)}
    users = [user for user in survey.timeline.nodes.users(node) if user in graph]
    return not left.stepped.isdisjoint(ancestors(survey.timeline, *users))


def _cuts_path(timeline: Timeline, event: GradAccumulated, left: _Left) -> bool:
    """Return whether a loss is computed from the parameters of the other optimizer, without a path to them."""
    graph = ancestors(timeline, *_roots(timeline, event.pass_nr))
    cuts = [one for one in graph if loses_tracking(timeline, one)]
    return not left.stepped.isdisjoint(ancestors(timeline, *cuts))


def _are_of_one_call(timeline: Timeline, one: GradAccumulated, other: GradAccumulated) -> bool:
    """Return whether two passes were begun by one call, as those of micro-batches are."""
    return _call_of_pass(timeline, one.pass_nr) == _call_of_pass(timeline, other.pass_nr)


def _other_loss_finding(
    timeline: Timeline,
    step: OptimizerStepped,
    node: int,
    seq: int,
    event: GradAccumulated,
    left: _Left,
) -> Finding:
    first, started = (pass_started(timeline, one.pass_nr) for one in (left.event, event))
    places = [timeline.stack(one.stack) if one is not None else () for one in (first, started)]
    roots = first.roots if first is not None else ()
    of = label(timeline, roots[0][0]) if roots and roots[0][0] in timeline.nodes else "another loss"
    text = titled("the .grad of {} still held the gradient of {}", label(timeline, node), of)
    added = f"{_brief(left.event.part)} was there from backward{at_text(places[0])}, for another optimizer"
    parts = (
        Finding("sum", f"{added}; {_brief(event.part)} was added: {_brief(event.value)}", seq, node),
        Finding("used", f"the step{at_text(timeline.stack(step.stack))} uses the sum", seq, node),
    )
    frames = timeline.stack(step.stack)
    at, name = (places[1][0] if places[1] else None), receiver(timeline, frames[0] if frames else None, "step")
    fix = f"{name or 'optimizer'}.zero_grad() before this backward(), or detach() what the other loss must not reach"
    edit = before(timeline, at, f"{name}.zero_grad()") if name else None
    return Finding("not-cleared", text, seq, node, parts, fix, at, edit=edit)


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
            case GradSet(node=node, how=how) if how in _CLEARED:
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
    roots = (_roots(survey.timeline, event.pass_nr) for _, event in (one.first, one.second))
    return all(not others.isdisjoint(_reached_by_gradients(survey, each)) for each in roots)


def _reached_by_gradients(survey: Survey, roots: Iterable[int]) -> set[int]:
    """Return the nodes from which these roots were computed, without those behind a cut such as `detach`."""
    waiting, reached = list(roots), set[int]()
    while waiting:
        record = survey.nodes.get(waiting.pop())
        if record is not None and record.node not in reached and record.created.requires_grad:
            reached.add(record.node)
            waiting += [source for source, _ in record.created.inputs if source]
    return reached


def _opposed_finding(survey: Survey, stack: int, cancelled: Sequence[_TwoPasses], count: int) -> Finding:
    timeline, last = survey.timeline, cancelled[-1]
    (_, first), (seq, second) = last.first, last.second
    roots = [next(iter(_roots(timeline, event.pass_nr)), 0) for event in (first, second)]
    losses = (timeline.info(root).name or label(timeline, root) for root in roots)
    text = titled("the gradients of {} and {} cancel each other in {}", *losses, label(timeline, last.node))
    places = [timeline.stack(_call_of_pass(timeline, event.pass_nr)) for event in (first, second)]
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


# Two steps with one gradient: backward has brought nothing new in between
#
# Steps within a step are those of an optimizer that wraps another, and a closure may step by itself: only steps that
# follow each other count. A gradient that the program has set by itself since is a new one.


def repeated_step(survey: Survey) -> Iterator[Finding | None]:
    """Yield calls of ``step()`` that use only gradients that an earlier step has used already."""
    timeline = survey.timeline
    used: dict[int, int] = {}
    first: dict[int, tuple[int, int]] = {}
    counts: defaultdict[int, int] = defaultdict(int)
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case GradAccumulated(node=node):
                used[node] = 0
            case GradSet(node=node):
                used.pop(node, None)
            case OptimizerStepped(parameters=parameters, raised="", stack=stack) if parameters:
                before = {used.get(node, 0) for node in parameters}
                is_own = 0 not in before and not any(_is_nested_step(timeline, seq, other) for other in before)
                if is_own and not _is_written_back(survey, parameters[0], max(before), seq):
                    first.setdefault(stack, (seq, max(before)))
                    counts[stack] += 1
                used |= {node: seq for node in parameters if node in used}
    for stack, (seq, earlier) in first.items():
        yield _repeated_finding(survey, seq, earlier, counts[stack])


def _is_written_back(survey: Survey, parameter: int, earlier: int, seq: int) -> bool:
    """Return whether the program wrote to a parameter between two steps, as a search that tries another length does."""
    record = survey.nodes.get(parameter)
    storages = {output.storage for output in record.created.outputs} if record is not None else set()
    timeline = survey.timeline
    started = next((step.said for step in timeline.contexts.steps_at(seq)), seq)
    return any(
        (isinstance(event, StorageWritten) and event.storage in storages)
        or (isinstance(event, DataSet) and event.node == parameter)
        for n, event in timeline.select((StorageWritten, DataSet), earlier + 1, started)
        if step_of(timeline, parameter, n) is None
    )


def _is_nested_step(timeline: Timeline, seq: int, earlier: int) -> bool:
    """Return whether the step that event `seq` ends began before event `earlier`, the end of another."""
    return any(step.said < earlier for step in timeline.contexts.steps_at(seq))


def _repeated_finding(survey: Survey, seq: int, earlier: int, count: int) -> Finding:
    timeline = survey.timeline
    step, before = timeline.event(seq), timeline.event(earlier)
    assert isinstance(step, OptimizerStepped)
    assert isinstance(before, OptimizerStepped)
    node = step.parameters[0]
    at, first = (next(iter(timeline.stack(event.stack)), None) for event in (step, before))
    often = f", {count} times" if count > 1 else ""
    text = f"this step uses gradients that an earlier step has used{often}"
    since = f"no backward has run since the step{at_text(timeline.stack(before.stack))} used the .grad of"
    part = Finding("used", f"{since} {label(timeline, node)}", earlier, node)
    same = at is not None and first is not None and (at.path, at.line) == (first.path, first.line)
    fix = "one step() after each backward()"
    edit = None if same or step.kind != before.kind else removed(timeline, at)
    numbers = (Number("repeated steps", count),)
    return Finding("repeated-step", text, seq, node, (part,), fix, at, numbers, suspected=count < 2, edit=edit)


# An optimizer that the loop makes anew: what it keeps from step to step is lost


def new_optimizer(survey: Survey) -> Iterator[Finding | None]:
    """Yield optimizers that keep averages and that the loop of their step makes anew, for the same parameters."""
    timeline = survey.timeline
    steps: defaultdict[int, list[tuple[int, OptimizerStepped]]] = defaultdict(list)
    for seq, event in survey.select(OptimizerStepped):
        yield None
        if event.parameters and not event.raised:
            steps[event.stack].append((seq, event))
    for stack, each in steps.items():
        (seq, first), at = each[0], next(iter(timeline.stack(stack)), None)
        if len(each) < _PASSES or len({event.parameters for _, event in each}) > 1 or not _keeps(timeline, seq, first):
            continue
        construction = assignment_in_loop(timeline, at, receiver(timeline, at, "step"), first.kind)
        if construction is None:
            continue
        text = f"the loop makes a new {shown(first.kind)} before each of {len(each)} steps"
        lost = f"each step{at_text(timeline.stack(stack))} starts without the running averages of earlier steps"
        part = Finding("used", lost, seq, first.parameters[0])
        fix = "make the optimizer once, before the loop"
        numbers = (Number("steps", len(each)),)
        yield Finding("new-optimizer", text, seq, 0, (part,), fix, construction.at, numbers, edit=construction.edit)


def _keeps(timeline: Timeline, seq: int, step: OptimizerStepped) -> bool:
    """Return whether an optimizer keeps anything from step to step: SGD does so with momentum only."""
    return step.kind != "SGD" or bool(options_of(timeline, step.parameters[0], seq).get("momentum"))


# Passes after the last step: the last, incomplete group of an accumulation


def left_over(survey: Survey) -> Iterator[Finding]:
    """Yield the passes after the last step, if a step followed each full group of passes before, all of one call."""
    timeline = survey.timeline
    groups: list[list[BackwardStarted]] = [[]]
    last = 0
    for seq, event in survey.select(BackwardStarted, OptimizerStepped):
        if isinstance(event, BackwardStarted):
            groups[-1].append(event)
        elif groups[-1]:
            groups.append([])
            last = seq
    *full, rest = groups
    counts, calls = {len(group) for group in full}, {event.stack for group in groups for event in group}
    if not rest or len(full) < 2 or len(counts) != 1 or len(calls) != 1 or not len(rest) < min(counts):
        return
    if not timeline.finished or timeline.failures:
        return
    step = timeline.event(last)
    assert isinstance(step, OptimizerStepped)
    (count,), frames = counts, timeline.stack(step.stack)
    text = f"no step uses the gradients of the last {len(rest)} backward pass{'es' * (len(rest) != 1)}"
    part = Finding("used", f"every other step came after {count} passes", last, next(iter(step.parameters), 0))
    fix = "call step() once more after the loop"
    numbers, at = (Number("passes", len(rest)),), frames[0] if frames else None
    yield Finding("left-over", text, last, 0, (part,), fix, at, numbers, suspected=True)


# A gradient that was cleared before the step that should use it


# `filled` and `cleared` contain the leaves in these two states, each with its event.
# |
#   backward -> filled;  filled + zero_grad() -> cleared;  cleared + backward -> filled
#   step with only cleared parameters -> the finding;  any other step, or an update by hand -> neither


def cleared_early(survey: Survey) -> Iterator[Finding | None]:
    """Yield steps whose gradients were all cleared just before, or else passes whose gradients no step uses."""
    has_finding = False
    for one in _cleared_before_step(survey):
        yield one
        has_finding |= one is not None
    if not has_finding:
        yield from _unused_passes(survey)


def _cleared_before_step(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first step of an optimizer whose gradients were all cleared just before."""
    filled: dict[int, int] = {}
    cleared: dict[int, int] = {}
    owners: dict[int, int] = {}
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped, StorageWritten, DataSet):
        yield None
        match event:
            case GradAccumulated(node=node) if node in survey.nodes:
                filled[node] = seq
                owners[survey.nodes[node].created.outputs[0].storage] = node
                cleared.pop(node, None)
            case GradSet(node=node, how="none" | "zero") if node in filled:
                cleared[node] = seq
            case GradSet(node=node):  # the program stores its own gradient there
                cleared.pop(node, None)
            case OptimizerStepped(raised="", parameters=parameters) if cleared and cleared.keys() >= {*parameters}:
                yield _cleared_finding(survey, seq, event, *min(cleared.items(), key=lambda pair: pair[1]), filled)
                return
            case StorageWritten(storage=storage) if owners.get(storage, 0) not in cleared:  # updated by hand
                filled.pop(owners.get(storage, 0), None)
            case DataSet(node=node) if node not in cleared:
                filled.pop(node, None)
            case OptimizerStepped():
                filled.clear()
                cleared.clear()


def _cleared_finding(
    survey: Survey, seq: int, step: OptimizerStepped, node: int, cleared: int, filled: dict[int, int]
) -> Finding:
    timeline = survey.timeline
    frames = timeline.stack(step.stack)
    name = label(timeline, node)
    text = titled("this step finds no gradient: the .grad of {} was cleared before it", name)
    parts = (
        Finding("accumulated", f"backward had brought the .grad of {name} here", filled[node], node),
        Finding(
            "cleared",
            f"it was cleared{_cleared_at(timeline, cleared)}; the step{at_text(frames)} came before another backward",
            cleared,
            node,
        ),
    )
    fix = "zero_grad() before backward(), or after step()"
    event, last = timeline.event(cleared), frames[0] if frames else None
    if any(cleared < record.seq < seq and record.created.requires_grad for record in survey.nodes.values()):
        call = next((timeline.stack(one.stack) for start, one in survey.passes if start > seq), ())
        fix = "step() after backward(): it runs between the forward and backward that it is to follow"
        edit = moved(timeline, last, call[0]) if call else None
        return Finding("cleared-early", text, seq, node, parts, fix, last, edit=edit)
    at = next(iter(timeline.stack(event.stack)), None) if isinstance(event, GradSet) else None
    return Finding("cleared-early", text, seq, node, parts, fix, at or last, edit=moved(timeline, at, last))


def _cleared_at(timeline: Timeline, cleared: int) -> str:
    event = timeline.event(cleared)
    return (at_text(timeline.stack(event.stack)) if isinstance(event, GradSet) else "") or " here"


# Passes whose gradients were cleared before any step, while steps use the gradients of other passes
# |
# A pass counts as unused if each leaf that got a gradient from it was cleared, and no step, no update by hand and no
# operation has read it before. Many such passes are intended: of a GAN's generator, which also reach the discriminator
# (another leaf of the same pass is used), of a warm-up (no step before), of a closure (it runs within a step), of an
# attack on the input (its gradient is read). They are a mistake if one call of backward has unused passes half of the
# time, between steps.


@dataclass(slots=True)
class _UnusedPass:
    """A pass, begun at event `start` by the call of a stack; `filled` and `cleared` by leaf, the events of both."""

    start: int
    stack: int
    filled: dict[int, int]
    cleared: dict[int, int]
    is_used: bool = False


def _unused_passes(survey: Survey) -> Iterator[Finding | None]:
    passes = {event.pass_nr: _UnusedPass(seq, event.stack, {}, {}) for seq, event in survey.passes}
    pending: defaultdict[int, set[int]] = defaultdict(set)
    owners: dict[int, int] = {}
    updates: list[int] = []
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped, StorageWritten, DataSet):
        yield None
        match event:
            case GradAccumulated(node=node, pass_nr=number, part=part) if number in passes and node in survey.nodes:
                owners[survey.nodes[node].created.outputs[0].storage] = node
                passes[number].is_used |= bool(bad_text(part))  # a step that a scaler skips
                if not is_zero(part):
                    passes[number].filled[node] = seq
                    pending[node].add(number)
            case GradSet(node=node, how="none" | "zero"):
                for number in pending.pop(node, ()):
                    passes[number].cleared[node] = seq
            case GradSet():
                pass
            case _:
                used = [node for node in _updated(event, owners) if node in pending]
                updates += [seq] * bool(used)
                for number in (number for node in used for number in pending.pop(node)):
                    passes[number].is_used = True
    sites: defaultdict[int, list[_UnusedPass]] = defaultdict(list)
    for one in passes.values():
        if one.filled:
            sites[one.stack].append(one)
    for site in sites.values():
        yield _unused_finding(survey, site, updates)


def _unused_finding(survey: Survey, site: list[_UnusedPass], updates: list[int]) -> Finding | None:
    """Return a finding about one call of backward, if most of its gradients between steps are cleared unused."""
    timeline = survey.timeline
    steps = [seq for seq, _ in survey.select(OptimizerStepped)]
    unused = [one for one in site if one.cleared and not one.is_used and not _has_step(one, steps)]
    between = [one for one in unused if updates and updates[0] < one.start < updates[-1]]
    is_single = len(site) == len(unused) == len(updates) == 1 and site[0].start < updates[0]
    if not is_single and (not between or 2 * len(unused) < len(site)):
        return None
    if any(_is_read(survey, one) or timeline.contexts.steps_at(one.start) for one in (between or unused)[:_TRIED]):
        return None
    calls = timeline.stack(site[0].stack)[:1]
    if any(timeline.stack(one.stack)[:1] == calls and timeline.contexts.steps_at(seq) for seq, one in survey.passes):
        return None  # the closure of a step, called once more for its loss
    first = (between or unused)[0]
    node, cleared = min(first.cleared.items(), key=lambda pair: pair[1])
    if survey.optimized and node not in survey.optimized:
        return None
    frames, again = timeline.stack(first.stack), timeline.event(cleared)
    at = next(iter(timeline.stack(again.stack)), None) if isinstance(again, GradSet) else None
    use = next(seq for seq in updates if seq > cleared)
    step = next((timeline.event(one.said) for one in timeline.contexts.steps_at(use)), timeline.event(use))
    by = at_text(timeline.stack(step.stack)) if isinstance(step, OptimizerStarted | OptimizerStepped) else ""
    often = f"{len(unused)} of {len(site)} pass{'es' * (len(site) != 1)}"
    text = f"gradients are cleared before a step uses them, in {often}"
    brought = f"backward{at_text(frames)} brought the .grad of {label(timeline, node)}"
    parts = (
        Finding("accumulated", f"{brought}; it is cleared{_cleared_at(timeline, cleared)}", first.filled[node], node),
        Finding("used", f"the step{by} used only what came after", use),
    )
    fix = "zero_grad() once for each step: before the first backward() that the step is to use, or after the step"
    numbers = (Number("unused passes", len(unused)), Number("passes", len(site)))
    last = (
        next(iter(timeline.stack(step.stack)), None) if isinstance(step, OptimizerStarted | OptimizerStepped) else None
    )
    # If one call clears all gradients, it moves behind the step. If there are several calls, this one has no purpose.
    clearings = {event.stack for _, event in survey.select(GradSet) if event.node == node and event.how in _CLEARED}
    edit = moved(timeline, at, last) if len(clearings) == 1 else removed(timeline, at)
    return Finding("cleared-early", text, cleared, node, parts, fix, at, numbers, suspected=is_single, edit=edit)


def _has_step(one: _UnusedPass, steps: list[int]) -> bool:
    """Return whether an optimizer stepped before the clearing: the pass was for that step, whatever it found."""
    at = bisect_right(steps, one.start)
    return at < len(steps) and steps[at] < min(one.cleared.values())


_TRIED = 3
"""The most passes of one call that are checked for reads of their gradients."""


def _is_read(survey: Survey, one: _UnusedPass) -> bool:
    """Return whether an operation used a gradient of a pass before it was cleared."""
    nodes, owners = survey.timeline.nodes, survey.timeline.nodes.origins.gradient_of
    until = max(one.cleared.values())
    for node, filled in one.filled.items():
        grads = [nodes[place] for place in (owners == node).nonzero()[0].tolist()]
        readers = [*grads, *(user for grad in grads for user in nodes.users(grad))]
        if any(filled < nodes.born(reader) <= one.cleared.get(node, until) for reader in readers):
            return True
    return False


# Gradients that are clipped before backward: the clipping has nothing to clip

_READ = (NodeCreated, GradAccumulated, GradSet, OptimizerStepped, StorageWritten, DataSet)
_CLIPPING = ("clip_grad_norm_", "clip_grad_value_")


# One state for the whole program, in two variables: `clipped` is the clipping that found no gradient at all, `late` is
# the clipping after which backward brought one.
# |
#   clipping without gradients -> clipped;  clipped + backward -> late;  late + update -> the finding
#   clipping with gradients -> neither


def clipped_early(survey: Survey) -> Iterator[Finding | None]:
    """Yield clippings that had nothing to clip or came before the gradients, and one of gradients still scaled."""
    yield from _clipped_nothing(survey)
    yield from _clipped_unseen(survey)
    yield from _clipped_before_backward(survey)
    yield from _clipped_while_scaled(survey)


def _clipped_nothing(survey: Survey) -> Iterator[Finding]:
    """Yield the clippings that were given no parameters, because their generator was used up: PyTorch warns of them."""
    timeline = survey.timeline
    for seq, event in timeline.select((Warned,)):
        frames = timeline.stack(event.stack)
        at = frames[0] if frames else None
        if _EMPTY_CLIPPING not in event.message or called_function(timeline, at) not in _CLIPPING:
            continue
        text, read = "this clipping has nothing to clip: it gets no parameters", generator_read(timeline, at)
        if read is None:
            fix = "give it a list of the parameters, or net.parameters() anew each time"
            yield Finding("clipped-early", text, seq, fix=fix, at=at)
            continue
        text = titled("nothing to clip: {} is a generator that was already consumed", shown(read.name))
        fix = f"make it a list, which can be read again: {shown(read.name)} = list(...)"
        yield Finding("clipped-early", text, seq, 0, (used_up(read, seq),), fix, at, edit=read.edit)


def _clipped_unseen(survey: Survey) -> Iterator[Finding]:
    """Yield clippings next to a step that have touched no gradient, because they were given a generator used up.

    PyTorch warns only of some generators: not of ``filter`` and ``map``.
    """
    timeline = survey.timeline
    warned = {(at.path, at.line) for _, event in timeline.select((Warned,)) for at in timeline.stack(event.stack)[:1]}
    active = {event.stack for _, event in survey.select(GradSet)}
    lines = {(at.path, at.line) for stack in active for at in timeline.stack(stack)[:1]} | warned
    steps = {event.stack: seq for seq, event in survey.select(OptimizerStepped) if event.parameters}
    for stack, seq in steps.items():
        for at in calls_in_block(timeline, next(iter(timeline.stack(stack)), None), *_CLIPPING):
            read = generator_read(timeline, at) if (at.path, at.line) not in lines else None
            if read is None or read.first is None:
                continue
            lines.add((at.path, at.line))
            text = titled("nothing to clip: {} is a generator that was already consumed", shown(read.name))
            fix = f"make it a list, which can be read again: {shown(read.name)} = list(...)"
            yield Finding("clipped-early", text, seq, 0, (used_up(read, seq),), fix, at, edit=read.edit)


_EMPTY_CLIPPING = "`parameters` is an empty generator"


def _clipped_while_scaled(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first clipping of gradients that are still multiplied by the scale of the loss."""
    timeline, is_clipping = survey.timeline, partial(survey.timeline.once, _clips)
    scaled: dict[int, tuple[int, float]] = {}
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case GradAccumulated(node=node, pass_nr=number):
                scale = timeline.once(loss_scale, number)
                if scale > 1:
                    scaled[node] = seq, scale
            case GradSet(node=node) if node in scaled:
                since, scale = scaled.pop(node)
                step = next_step(timeline, node, seq)
                if step and is_clipping(event.stack) and _is_divided_later(timeline, node, seq, step):
                    yield _scaled_finding(timeline, node, seq, since, scale)
                    return
            case OptimizerStepped():
                scaled.clear()


_LEAST_OF_A_SCALER = 64


def scaled_step(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first step with gradients that are still scaled, by a power of 2 as of a ``GradScaler``."""
    timeline = survey.timeline
    scaled: dict[int, int] = {}
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case GradAccumulated(node=node, pass_nr=number):
                scale = timeline.once(loss_scale, number)
                if scale >= _LEAST_OF_A_SCALER and scale == 2 ** round(log2(scale)):
                    scaled[node] = number
            case GradSet(node=node):
                scaled.pop(node, None)
            case OptimizerStepped(parameters=parameters, raised="") if scaled.keys() & {*parameters}:
                node = next(node for node in parameters if node in scaled)
                yield _scaled_step_finding(
                    timeline, event, seq, node, scaled[node], timeline.once(loss_scale, scaled[node])
                )
                return


def _scaled_step_finding(
    timeline: Timeline, event: OptimizerStepped, seq: int, node: int, pass_nr: int, scale: float
) -> Finding:
    frames, started = timeline.stack(event.stack), pass_started(timeline, pass_nr)
    call = next(iter(timeline.stack(started.stack)), None) if started is not None else None
    at = frames[0] if frames else None
    text = f"this step uses gradients still multiplied by the loss scale, {number(scale)}"
    part = Finding("used", f"nothing has divided the .grad of {label(timeline, node)} since backward", seq, node)
    fix = "scaler.step(optimizer), which divides them first, and then scaler.update()"
    scaler, stepped = receiver(timeline, call, "scale"), receiver(timeline, at, "step")
    edit = statement_instead(timeline, at, f"{scaler}.step({stepped})") if scaler and stepped else None
    numbers = (Number("loss scale", scale),)
    return Finding("scaled-step", text, seq, node, (part,), fix, at, numbers, suspected=True, edit=edit)


def _is_divided_later(timeline: Timeline, node: int, seq: int, step: int) -> bool:
    """Return whether a gradient is changed again between its clipping and the step, as ``unscale_`` does."""
    return any(seq < n < step and isinstance(timeline.event(n), GradSet) for n in timeline.events_of(node))


def _scaled_finding(timeline: Timeline, node: int, seq: int, since: int, scale: float) -> Finding:
    event = timeline.event(seq)
    frames = timeline.stack(event.stack) if isinstance(event, GradSet) else ()
    text = f"gradients are clipped while multiplied by the loss scale, {number(scale)}"
    before, after = (timeline.at(n).state(node) for n in (seq - 1, seq))
    had = before.outputs[0].grad if before is not None else None
    has = after.outputs[0].grad if after is not None else None
    parts = (
        Finding("accumulated", f"the .grad of {label(timeline, node)} was {_brief(had)}", since, node),
        Finding(
            "used",
            f"clipping made it {_brief(has)}, which is then divided by {number(scale)}: almost nothing is left",
            seq,
            node,
        ),
    )
    fix = "scaler.unscale_(optimizer) before the clipping"
    numbers, at = (Number("loss scale", scale),), frames[0] if frames else None
    step = next_step(timeline, node, seq)
    edit = _unscaling_edit(timeline, step, at)
    return Finding("clipped-early", text, seq, node, parts, fix, at, numbers, edit=edit)


def _unscaling_edit(timeline: Timeline, step: int, at: Frame | None) -> Edit | None:
    """Return an edit with ``scaler.unscale_(optimizer)`` before the clipping.

    The names are those of the line ``scaler.step(optimizer)``.
    """
    event = timeline.event(step) if step else None
    frame = next(iter(timeline.stack(event.stack)), None) if isinstance(event, OptimizerStepped) else None
    scaler, names = receiver(timeline, frame, "step"), arguments(timeline, frame, "step")
    return before(timeline, at, f"{scaler}.unscale_({names[0]})") if scaler and names else None


def _clipped_before_backward(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first update whose gradients came after the clipping, which found none."""
    is_clipping = partial(survey.timeline.once, _clips)
    filled: set[int] = set()
    learned: set[int] = set()
    clipped = late = 0
    for seq, event in survey.select(*_READ):
        yield None
        if isinstance(event, NodeCreated | GradSet) and is_clipping(event.stack):
            clipped, late = (0, 0) if filled else (clipped or seq, late)
        match event:
            case GradSet(node=node, how="none" | "zero"):
                filled.discard(node)
            case GradSet(node=node):
                filled.add(node)
            case GradAccumulated(node=node) if node in survey.nodes:
                filled.add(node)
                learned.update(output.storage for output in survey.nodes[node].created.outputs)
                clipped, late = 0, late or clipped
            case _ if late and _is_update(event, learned, filled):
                yield _clipped_finding(survey.timeline, late, seq)
                return


def _is_update(event: Event, learned: set[int], filled: set[int]) -> bool:
    """Return whether an event changes a leaf: one in a memory of `learned`, or one with a gradient."""
    match event:
        case StorageWritten(storage=storage):
            return storage in learned
        case DataSet(node=node):
            return node in filled
    return isinstance(event, OptimizerStepped)


def clipped_late(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first clipping after a step whose gradients are cleared before the next step could use them."""
    timeline, is_clipping = survey.timeline, partial(survey.timeline.once, _clips)
    stepped: dict[int, int] = {}
    clipped: dict[int, int] = {}
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case OptimizerStepped(parameters=parameters):
                stepped |= dict.fromkeys(parameters, seq)
                for node in parameters:
                    clipped.pop(node, None)
            case GradAccumulated(node=node):
                stepped.pop(node, None)
            case GradSet(node=node, how="none" | "zero"):
                if node in clipped and node in stepped:
                    yield _late_finding(timeline, node, clipped[node], stepped[node])
                    return
            case GradSet(node=node) if node in stepped and is_clipping(event.stack) and _changes(timeline, seq, node):
                clipped[node] = seq


def _changes(timeline: Timeline, seq: int, node: int) -> bool:
    """Return whether an event changes a ``.grad``: a clipping to a large norm only measures it."""
    before, after = (timeline.at(n).state(node) for n in (seq - 1, seq))
    return before is None or after is None or before.outputs[0].grad != after.outputs[0].grad


def _late_finding(timeline: Timeline, node: int, seq: int, step: int) -> Finding:
    event, before = timeline.event(seq), timeline.event(step)
    assert isinstance(event, GradSet)
    assert isinstance(before, OptimizerStepped)
    frames, stepped = timeline.stack(event.stack), timeline.stack(before.stack)
    text = "gradients are clipped after the step, and cleared before another uses them"
    part = Finding(
        "used", f"the step{at_text(stepped)} used the .grad of {label(timeline, node)} unclipped", step, node
    )
    at, last = (next(iter(one), None) for one in (frames, stepped))
    edit = moved(timeline, at, last, ahead=True)
    fix = "clip between backward() and step()"
    return Finding("clipped-late", text, seq, node, (part,), fix, at, edit=edit)


# Several passes of one call before each step, each of a mean: their sum is larger by their number


def summed_passes(survey: Survey) -> Iterator[Finding | None]:
    """Yield a call of backward that runs several times before each step, for the mean of a part each time."""
    timeline = survey.timeline
    groups: list[list[BackwardStarted]] = [[]]
    for _, event in survey.select(BackwardStarted, OptimizerStepped):
        yield None
        if isinstance(event, BackwardStarted):
            groups[-1].append(event)
        elif groups[-1]:
            groups.append([])
    groups = groups[: -1 if survey.optimized else 0]
    counts = {len(group) for group in groups}
    calls = {event.stack for group in groups for event in group}
    roots = [survey.nodes.get(node) for group in groups for event in group for node, _ in event.roots[:1]]
    if len(groups) < 2 or len(counts) != 1 or len(calls) != 1 or min(counts) < 2:
        return
    if any(record is None or not _is_mean(record) for record in roots) or not _adds_up(survey, groups[0]):
        return
    if divided_passes(survey):
        return
    (count,), (call,) = counts, calls
    frames, last = timeline.stack(call), roots[0]
    at, number_of = frames[0] if frames else None, f"{count} backward passes"
    assert last is not None
    text = f"the gradients of {number_of} add up before each step"
    mean = f"each begins at a mean, as {label_at(timeline, last.node)}: the sum is {count} times that of all parts"
    part = Finding("root", mean, last.seq, last.node)
    fix = f"divide each loss by the number of parts: (loss / {count}).backward()"
    edit = divided(timeline, at, count)
    numbers = (Number("passes", count),)
    yield Finding("summed-passes", text, last.seq, last.node, (part,), fix, at, numbers, suspected=True, edit=edit)


def divided_passes(survey: Survey) -> set[int]:
    """Return the passes whose gradients the program has divided by a number before the step used them.

    ``p.grad.div_(samples)`` makes a mean of a sum. One factor holds for all parameters: one over a whole number, or the
    same in several steps. The factor of a clipping is neither.
    """
    return survey.timeline.once(_divided_passes, survey.end)


def _divided_passes(timeline: Timeline, end: int) -> set[int]:
    latest: dict[int, tuple[Value, tuple[int, ...]]] = {}
    reached: defaultdict[int, set[int]] = defaultdict(set)
    factors: defaultdict[tuple[int, ...], dict[int, float]] = defaultdict(dict)
    for _, event in timeline.select((GradAccumulated, GradSet), 1, end + 1):
        if isinstance(event, GradAccumulated):
            earlier = latest[event.node][1] if event.value is not None and event.node in latest else ()
            latest[event.node] = event.value or event.part, (*earlier, event.pass_nr)
            reached[event.pass_nr].add(event.node)
        elif not isinstance(event, GradSet):
            continue
        elif event.value is None or event.how in _CLEARED:
            latest.pop(event.node, None)
        elif event.node in latest:
            before, passes = latest[event.node]
            latest[event.node] = event.value, passes
            was, size = norm(before), norm(event.value)
            if was and size and size <= _HALF * was and not _clips(timeline, event.stack):
                factors[passes][event.node] = was / size
    common: dict[tuple[int, ...], float] = {}
    for passes, each in factors.items():
        least, most = min(each.values()), max(each.values())
        if each.keys() == reached[passes[-1]] and most - least <= _ALIKE * most:
            common[passes] = most
    is_whole = all(abs(one - round(one)) <= _WHOLE for one in common.values())
    is_constant = len(common) > 1 and max(common.values()) - min(common.values()) <= _ALIKE * max(common.values())
    return {one for passes in common for one in passes} if is_whole or is_constant else set()


_HALF = 0.501
"""The largest factor by which a sum becomes a mean."""

_ALIKE, _WHOLE = 1e-3, 0.02
"""How far factors may be apart, relative to them, and how far one over a factor may be from a whole number."""


def _is_mean(record: NodeRecord) -> bool:
    return record.op == "mean" or (
        record.op in LOSSES and dict(record.created.attrs).get("reduction", "mean") == "mean"
    )


def _adds_up(survey: Survey, group: list[BackwardStarted]) -> bool:
    """Return whether the passes of a group add to the same gradients, and nothing clears them in between."""
    numbers = {event.pass_nr for event in group[1:]}
    added = [event for _, event in survey.accumulated if event.pass_nr in numbers]
    return bool(added) and all(event.value is not None for event in added)


def _clips(timeline: Timeline, stack: int) -> bool:
    """Return whether the source line calls one of PyTorch's functions that clip gradients."""
    frames = timeline.stack(stack)
    return bool(frames) and called_function(timeline, frames[0]) in _CLIPPING


def _clipped_finding(timeline: Timeline, clipped: int, used: int) -> Finding:
    event = timeline.event(clipped)
    assert isinstance(event, NodeCreated | GradSet)
    frames = timeline.stack(event.stack)
    text = "this clipping has nothing to clip: backward has brought no gradient yet"
    parts = (Finding("used", "what backward brought after it is used as it is", used),)
    fix = "clip between backward() and the update"
    started = next((one for seq, one in reversed(_passes(timeline, clipped, used))), None)
    call = next(iter(timeline.stack(started.stack)), None) if started is not None else None
    edit = moved(timeline, frames[0], call)
    return Finding("clipped-early", text, clipped, event.node, parts, fix, frames[0], edit=edit)


def _passes(timeline: Timeline, start: int, end: int) -> list[tuple[int, BackwardStarted]]:
    """Return the backward passes that began between two events."""
    return list(timeline.select((BackwardStarted,), start, end))


# Means of parts with different numbers of targets: the mean over the parts is not the mean over the targets

_UNEVEN = 1.1
"""How much larger the greatest number of targets must be than the least."""


def uneven_means(survey: Survey) -> Iterator[Finding | None]:
    """Yield a call of backward for means of several parts before a step, if the parts count different targets."""
    timeline = survey.timeline
    group: list[BackwardStarted] = []
    for _, event in survey.select(BackwardStarted, OptimizerStepped):
        yield None
        if isinstance(event, BackwardStarted):
            group.append(event)
            continue
        losses: list[NodeRecord] = []
        if len({started.stack for started in group}) == 1:
            losses = [record for started in group if (record := _mean_of_targets(survey, started)) is not None]
        is_known = bool(losses) and len(losses) == len(group) and _have_one_factor(survey, group, losses)
        counts = [count for record in losses if (count := _counted_targets(timeline, record))] if is_known else []
        if counts and len(counts) == len(group) and max(counts) > _UNEVEN * min(counts) and _adds_up(survey, group):
            yield _uneven_finding(survey, group[-1], losses, counts)
            return
        group = []


def _mean_of_targets(survey: Survey, started: BackwardStarted) -> NodeRecord | None:
    """Return the mean of a loss over classes at which a pass began, also if it was divided by the number of parts."""
    record = survey.nodes.get(started.roots[0][0]) if len(started.roots) == 1 else None
    while record is not None and record.op in ("div", "mul") and not record.shape:
        record = next((one for one in survey.sources(record) if one.created.requires_grad), None)
    is_mean = record is not None and dict(record.created.attrs).get("reduction", "mean") in ("mean", 1)
    return record if record is not None and is_mean and record.op in _OVER_CLASSES else None


def _have_one_factor(survey: Survey, group: Sequence[BackwardStarted], losses: Sequence[NodeRecord]) -> bool:
    """Return whether all passes began at the same multiple of their loss, by the numbers of both.

    A program may weight each part by its number of targets.
    """
    factors = list[float]()
    for started, record in zip(group, losses, strict=True):
        root = survey.nodes[started.roots[0][0]]
        values = [*started.seeds[:1], root.value, record.value]
        stats = [value.statistics() for value in values if value is not None and value.size == 1]
        sizes = [one.mean if one is not None else 0.0 for one in stats]
        if len(sizes) < 2 or not all(isfinite(size) and size for size in sizes):
            return False
        factors.append(prod(sizes[:-1]) / sizes[-1])
    return max(factors) - min(factors) <= _SAME_FACTOR * max(map(abs, factors))


_SAME_FACTOR = 0.02

_OVER_CLASSES = ("nll_loss", "nll_loss2d", "cross_entropy", "nll_loss_nd")


def _counted_targets(timeline: Timeline, record: NodeRecord) -> int:
    """Return the number of targets that count; 0 if they are unknown."""
    values = [timeline.memory_value(node, nr, record.seq) for node, nr in record.created.inputs[1:2] if node]
    array = timeline.array(values[0]) if values and values[0] is not None else None
    ignored = dict(record.created.attrs).get("ignore_index", -100)
    return int((array != ignored).sum()) if array is not None else 0


def _uneven_finding(
    survey: Survey, started: BackwardStarted, losses: Sequence[NodeRecord], counts: Sequence[int]
) -> Finding:
    timeline, last = survey.timeline, losses[-1]
    frames, root = timeline.stack(started.stack), survey.nodes[started.roots[0][0]]
    text = f"means over {min(counts)} to {max(counts)} targets add up with one weight"
    each = f"the {len(counts)} parts before a step count {', '.join(map(str, counts[:8]))} targets"
    part = Finding("root", f"{each}: a target in a small part has a larger weight", last.seq, last.node)
    fix = "reduction='sum' for each part, divided by the number of targets of all parts together"
    numbers = (Number("least", min(counts)), Number("most", max(counts)))
    at = survey.at(root) or (frames[0] if frames else None)
    return Finding("uneven-means", text, root.seq, root.node, (part,), fix, at, numbers, suspected=True)


# A schedule that returns rates where factors of the rate are expected


def squared_rate(survey: Survey) -> Iterator[Finding | None]:
    """Yield a schedule whose highest rate is the square of the rate with which the optimizer was made.

    The program must make a schedule that multiplies. Others may reach such a rate on purpose.
    """
    timeline, highest, place = survey.timeline, dict[tuple[str, float], float](), dict[tuple[str, float], int]()
    for seq, event in timeline.select((OptimizerStarted,)):
        for group in range(len(event.options)):
            options = options_in(event.options, group)
            start, rate = options.get("initial_lr"), options.get("lr")
            if isinstance(start, float | int) and isinstance(rate, float | int):
                key = event.kind, float(start)
                highest[key], place[key] = max(highest.get(key, 0.0), float(rate)), seq
    yield None
    for (kind, start), rate in highest.items():
        step = timeline.event(place[kind, start])
        is_square = 0 < start < 1 and abs(rate - start * start) <= 1e-6 * start * start
        if not is_square or not isinstance(step, OptimizerStarted):
            continue
        frames = timeline.stack(step.stack)
        files = {frame.path: frame for frame in frames}.values()
        lines = (line for frame in files for line in called_lines(timeline, frame, "LambdaLR", "MultiplicativeLR"))
        call = next(lines, None)
        if call is None:
            continue
        text = f"the learning rate reaches {number(rate)}, the square of {number(start)}"
        means = f"{shown(kind)} was made with {number(start)}, and LambdaLR multiplies it by what the function returns"
        part = Finding("used", means, place[kind, start])
        fix = f"return a factor, at most 1, from the function and not the rate {number(start)} itself"
        yield Finding("squared-rate", text, place[kind, start], 0, (part,), fix, call)


# ReduceLROnPlateau(mode="max") that gets a loss: while the loss falls, it lowers the learning rate


def plateau_mode(survey: Survey) -> Iterator[Finding | None]:
    """Yield a plateau schedule for a maximum that gets a loss and has lowered the rate after the loss fell."""
    timeline = survey.timeline
    cuts = [(seq, step) for seq, step in timeline.select((OptimizerStarted,)) if _lowers_rate(step)]
    if not cuts:
        return
    seq, step = cuts[0]
    files = {frame.path: frame for frame in timeline.stack(step.stack)}.values()
    for at, name, assigned, edit in (one for frame in files for one in plateaus_for_maxima(timeline, frame)):
        yield None
        losses = [
            (record, record.value.statistics())
            for record in survey.ops(*LOSSES, *_LOSSES_OF_CLASSES)
            if record.seq < seq and not record.shape and record.value is not None
            if timeline.info(record.node).name == name and _is_on_line(survey, record, assigned)
        ]
        values = [stats.max for _, stats in losses if stats is not None]
        if len(values) < 2 or not values[-1] < values[0]:
            continue
        last, _ = losses[-1]
        text = titled("a schedule for a maximum gets the loss {}", label(timeline, last.node))
        fell = f"it fell from {number(values[0])} to {number(values[-1])}, and the learning rate was lowered"
        part = Finding("used", fell, last.seq, last.node, at=survey.at(last))
        fix = 'mode="min" for a loss, or give step() a number that is to rise'
        yield Finding("plateau-mode", text, seq, last.node, (part,), fix, at, edit=edit)
        return


def _is_on_line(survey: Survey, record: NodeRecord, lines: range) -> bool:
    at = survey.at(record)
    return at is not None and at.line in lines


_LOSSES_OF_CLASSES = ("cross_entropy", "nll_loss", "nll_loss2d")


def _lowers_rate(step: OptimizerStarted) -> bool:
    """Return whether the learning rate of a group was lowered since the step before."""
    groups = zip(step.before, step.options, strict=False)
    rates = ((dict(before).get("lr"), dict(now).get("lr")) for before, now in groups)
    return any(isinstance(was, float) and isinstance(rate, float) and rate < was for was, rate in rates)


# A cosine schedule that was stepped beyond its end: the learning rate rises again

_LOW, _HIGH = 0.02, 0.9
"""The parts of its highest value below which a learning rate counts as low, and above which it has risen again."""


def cosine_rises(survey: Survey) -> Iterator[Finding | None]:
    """Yield the step at which a `CosineAnnealingLR` has raised a learning rate again after it came to its end.

    It follows the cosine beyond ``T_max`` steps. Schedules with restarts jump up; this one rises as slowly as it fell.
    """
    timeline = survey.timeline
    rates: list[tuple[int, OptimizerStarted, float]] = []
    for seq, step in timeline.select((OptimizerStarted,)):
        rate = options_in(step.options, 0).get("lr")
        if isinstance(rate, float) and (not rates or step.kind == rates[0][1].kind):
            rates.append((seq, step, rate))
    most = max((rate for _, _, rate in rates), default=0.0)
    high = next((at for at, (_, _, rate) in enumerate(rates) if rate >= _HIGH * most > 0), len(rates))
    low = next((at for at in range(high, len(rates)) if rates[at][2] <= _LOW * most), 0)
    again = next((at for at in range(low + 2, len(rates)) if rates[at][2] >= _HIGH * most), 0) if low else 0
    if not again or any(after < before for before, after in pairwise(rate for _, _, rate in rates[low : again + 1])):
        return
    yield None
    seq, step, _ = rates[again]
    files = {frame.path: frame for frame in timeline.stack(step.stack)}.values()
    at = next((one for frame in files for one in called_lines(timeline, frame, "CosineAnnealingLR")), None)
    if at is None:
        return
    text = f"the learning rate rose again to its start: the schedule ends after {low - high} steps"
    fell = f"it fell from {number(most)} to {number(rates[low][2])} in {low - high} steps, then rose in {again - low}"
    part = Finding("used", fell, seq, at=next(iter(timeline.stack(step.stack)), None))
    fix = "T_max is the number of calls of scheduler.step(): call it once an epoch, or make T_max epochs * batches"
    yield Finding("schedule-period", text, seq, 0, (part,), fix, at, suspected=True)


# A learning rate of 0, or practically 0, that lasts: the schedule ended long before the training

_IDLE_SHARE = 1 / 3
"""The part of the steps at the end beyond which a rate of 0 is no annealing."""

_FEWEST_IDLE = 4

_NOTHING = 1e-6
"""The part of the highest learning rate below which a rate is practically 0: annealing ends above it."""


@dataclass(slots=True)
class _Rates:
    """The highest learning rate of the groups in each step of an optimizer, and the events that began the steps."""

    seqs: list[int]
    rates: list[float]
    last: OptimizerStarted

    @property
    def idle(self) -> int:
        """The number of steps at the end with a rate of practically 0; 0 if no step before them had a higher one."""
        least = _NOTHING * max(self.rates, default=0.0)
        above = [at for at, rate in enumerate(self.rates) if rate > least]
        return len(self.rates) - above[-1] - 1 if above else 0


def zero_rate(survey: Survey) -> Iterator[Finding | None]:
    """Yield optimizers whose learning rate is practically 0 in all groups, in more than the last third of the steps.

    A warm-up begins with 0, annealing reaches it in the last steps, and a group that has 0 from the start is frozen.
    It is a note if another optimizer continues, or if the program writes the 0 itself: this may be intended.
    """
    timeline = survey.timeline
    known: dict[tuple[str, int, tuple[int, ...]], _Rates] = {}
    started: tuple[int, OptimizerStarted] | None = None
    for seq, event in timeline.select((OptimizerStarted, OptimizerStepped)):
        yield None
        if isinstance(event, OptimizerStarted):
            started = seq, event
        elif isinstance(event, OptimizerStepped) and event.parameters and started and started[1].stack == event.stack:
            begun, start = started
            groups = [options_in(start.options, at).get("lr") for at in range(len(start.options))]
            rates = [float(rate) for rate in groups if isinstance(rate, float | int)]
            if rates and len(rates) == len(groups):
                one = known.setdefault((start.kind, start.stack, event.parameters[:1]), _Rates([], [], start))
                one.seqs.append(begun)
                one.rates.append(max(rates))
                one.last = start
    for (_, _, parameters), one in known.items():
        if one.idle >= _FEWEST_IDLE and one.idle > _IDLE_SHARE * len(one.rates):
            others = [other for other in known.values() if other is not one]
            goes_on = any(other.seqs[-1] > one.seqs[-one.idle] and not other.idle for other in others)
            finding = _zero_rate_finding(survey, one, parameters)
            yield replace(finding, suspected=goes_on or _writes_zero(line_text(timeline, finding.at)))


def _writes_zero(line: str) -> bool:
    """Return whether a line sets a learning rate to the number 0."""
    return re.search(r"""\[["']lr["']\]\s*=\s*0(\.0*)?\s*(#|$)""", line) is not None


def _zero_rate_finding(survey: Survey, one: _Rates, parameters: tuple[int, ...]) -> Finding:
    timeline, count, idle = survey.timeline, len(one.rates), one.idle
    seq = one.seqs[-idle]
    is_zero = one.rates[-idle] == 0
    rate = "0" if is_zero else "nearly 0"
    text = f"the learning rate is {rate} in the last {idle:,} of {count:,} steps of {shown(one.last.kind)}"
    later = [(at, event) for at, event in survey.accumulated if at > seq and event.node in parameters]
    sizes = [(at, event.node, size) for at, event in later if (size := norm(event.part))]
    still = ""
    if sizes:
        still = f"; the last gradient of {label(timeline, sizes[-1][1])} is |g| {number(sizes[-1][2])}"
    was = f"it was {number(one.rates[-idle - 1])} before step {count - idle + 1:,}"
    if not is_zero:
        was = f"it fell from {number(max(one.rates))} to {number(one.rates[-1])}"
    part = Finding("used", f"{was}{still}", seq, parameters[0])
    at, fix, edit = _schedule_of(timeline, one)
    numbers = (Number("steps", count), Number("steps with a rate of 0", idle, seq))
    return Finding("zero-rate", text, seq, 0, (part,), fix, at, numbers, edit=edit)


_ENDING = ("LinearLR", "PolynomialLR")
_MULTIPLYING = ("StepLR", "MultiStepLR", "ExponentialLR")
_GAMMA, _ZERO = {"ExponentialLR": 1}, ("0", "0.0", "0.")
_OF_FUNCTIONS = ("LambdaLR", "MultiplicativeLR")
_STOPPED = "a schedule that reaches 0 with the last step"


def _schedule_of(timeline: Timeline, one: _Rates) -> tuple[Frame | None, str, Edit | None]:
    """Return the line that sets the rate to 0, as far as the program shows it, with the fix."""
    frames = timeline.stack(one.last.stack)
    files = list({frame.path: frame for frame in frames}.values())
    for name in _MULTIPLYING:
        for frame in (line for file in files for line in called_lines(timeline, file, name)):
            is_named = keyword_text(timeline, frame, name, "gamma") in _ZERO
            if is_named or (*arguments(timeline, frame, name), "", "", "")[_GAMMA.get(name, 2)] in _ZERO:
                edit = with_keyword(timeline, frame, name, "gamma", "1.0") if is_named else None
                return frame, f"{name} multiplies the rate by gamma=0: gamma=1.0 keeps it, 0.1 lowers it", edit
    names = (*_ENDING, *_OF_FUNCTIONS, *_MULTIPLYING)
    if one.rates[-1] > 0 and (multiplied := _multiplied_too_often(timeline, one, files)) is not None:
        return multiplied
    calls = [(name, line) for file in files for name in names for line in called_lines(timeline, file, name)]
    if len(calls) != 1:
        lines = [line for file in files for line in rates_set(timeline, file)]
        return (lines if len(lines) == 1 else [*frames[:1], None])[0], _STOPPED, None
    name, at = calls[0]
    changes = [place for place, (was, rate) in enumerate(pairwise(one.rates), 1) if was != rate]
    period = changes[0] if changes else 0
    if name not in _ENDING or any(after - before != period for before, after in pairwise([0, *changes])):
        return at, f"{_STOPPED}, and not {one.idle:,} steps before it", None
    calls_of_step = -(-len(one.rates) // period)
    each = "after each step" if period == 1 else f"every {period} steps"
    fix = f"total_iters={calls_of_step}: it counts the calls of scheduler.step(), here {each}"
    return at, fix, with_keyword(timeline, at, name, "total_iters", str(calls_of_step))


def _multiplied_too_often(
    timeline: Timeline, one: _Rates, files: Sequence[Frame]
) -> tuple[Frame | None, str, None] | None:
    """Return the line that steps a schedule which multiplies the rate: most likely for each batch, not each epoch."""
    for name in _MULTIPLYING:
        for made in (line for file in files for line in called_lines(timeline, file, name)):
            schedule = target_of(timeline, made)
            lines = (line for file in files for line in called_lines(timeline, file, "step"))
            at = next((line for line in lines if schedule and receiver(timeline, line, "step") == schedule), made)
            falls = sum(rate < was for was, rate in pairwise(one.rates))
            often = f"{name} lowered the rate {falls:,} times in {len(one.rates):,} steps of the optimizer"
            return at, f"{often}: {schedule or 'scheduler'}.step() once an epoch, or a gamma nearer to 1", None
    return None
