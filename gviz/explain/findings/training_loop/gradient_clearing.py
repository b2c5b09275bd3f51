"""``zero_grad`` that is missing, or that comes before a step has used the gradients."""

from __future__ import annotations

import ast
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from gviz.events import (
    DataSet,
    Event,
    GradAccumulated,
    GradSet,
    OptimizerStarted,
    OptimizerStepped,
    StorageWritten,
    grad_left,
)
from gviz.explain.backward_passes import call_of_pass, pass_started, roots_of_pass
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.training_loop.adversarial_gradients import opposed_losses
from gviz.explain.grad_history import CLEARED, is_zero
from gviz.explain.iteration_words import iteration_called
from gviz.explain.parameter_updates import (
    Write,
    change_in_statistics,
    is_unseen,
    nodes_with_numbers,
    write_place,
    writer_of,
)
from gviz.explain.program_text import receiver, statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, after, before, moved, removed
from gviz.explain.source_frames import at_text
from gviz.explain.tracking import ancestors, loses_tracking
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown
from gviz.values.value import Value
from gviz.values.value_text import bad_text, grad, norm, share

# A gradient that a step has used and that the next backward added to

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
# A program that scales or clips a ``.grad`` before its step changes no state. Two more sums are meant: one whose
# updates in between were taken back (``p.add_(e); ...; p.sub_(e)``, or ``add_(e); ...; sub_(2 * e); ...; add_(e)``) and
# that is then halved, and one that becomes the leaf, not from its own numbers (``w.copy_(-w.grad)``, dual averaging).
# A sum with the gradient at changed numbers that were taken back may be meant even if it is not halved, as that of an
# attack on an embedding: it is a note.


@dataclass(slots=True)
class _LeafGrad:
    """The ``.grad`` of one leaf: the events that filled it, used it, and then added to it; 0 for none.

    `before` has the leaf's numbers before the use, unless it was a step. `taken_back` says that it has them again.
    """

    filled: int = 0
    used: int = 0
    added: int = 0
    before: Value | None = None
    taken_back: bool = False


def not_cleared(survey: Survey) -> Iterator[Finding | None]:
    """Yield, for each leaf, the first use of a sum of an old and a new gradient, and how often it happened.

    The old gradient may be that of a step before, or of a pass for another optimizer.
    """
    yield from _of_another_loss(survey)
    yield from opposed_losses(survey)
    leaves: defaultdict[int, _LeafGrad] = defaultdict(_LeafGrad)
    holders: dict[int, int] = {}
    first: dict[int, _LeafGrad] = {}
    iterations: defaultdict[int, set[int]] = defaultdict(set)
    written: _Writers = defaultdict(dict)  # of the memory of results, not of parameters
    numbers = {record.node: record.value for record in survey.nodes.values() if record.created.kind != "op"}
    of_parameters = {
        output.storage
        for record in survey.nodes.values()
        if record.created.kind == "parameter"
        for output in record.created.outputs
    }
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped, StorageWritten, DataSet):
        yield None
        if isinstance(event, StorageWritten) and event.storage not in of_parameters:
            _keep_writer(survey, event, written)
        match event:
            case GradAccumulated(node=node, value=value) if node in survey.nodes:
                leaf = leaves[node]
                if leaf.used and value is not None:
                    leaf.added = seq
                else:
                    leaf.filled = seq
                holders |= {out.storage: node for out in survey.nodes[node].created.outputs} if value is None else {}
            case GradSet(node=node, how=how) if (
                how in CLEARED or _is_used(leaves[node]) or _is_replaced(survey.timeline, event)
            ):
                leaves.pop(node, None)
            case GradSet(node=node):  # scaled or clipped, before its step
                leaf = leaves[node]
                if leaf.taken_back and leaf.used < leaf.added and _is_halved(survey.timeline, leaf.added, event):
                    leaves[node] = _LeafGrad(filled=leaf.added)
            case _:
                updated = [node for node in _updated(event, holders) if node in leaves]
                is_refreshed = (
                    bool(updated)
                    and isinstance(event, StorageWritten | DataSet)
                    and _is_refreshed(survey, updated[0], seq, event, written)
                )
                for node, leaf in [(node, leaves[node]) for node in updated]:
                    old = numbers.get(node)
                    if isinstance(event, StorageWritten | DataSet):
                        if old is not None and old == event.value:
                            continue  # ``w.data += e`` is two events
                        numbers[node] = event.value
                        if leaf.before is not None and _takes_back(leaf.before, old, event.value):
                            leaf.before, leaf.taken_back = None, True
                            continue
                    if is_refreshed:
                        continue
                    if leaf.added > leaf.used and not _becomes_the_leaf(survey, node, leaf.used, event):
                        found = first.setdefault(node, replace(leaf))
                        found.taken_back |= leaf.taken_back  # in the first iteration, the write before is unknown
                        iterations[node].add(survey.timeline.iteration_at(leaf.added).index)
                    leaf.used = seq
                    leaf.before = old if isinstance(event, StorageWritten | DataSet) else None
                    leaf.taken_back = False
    yield from (_not_cleared_finding(survey.timeline, leaf, len(iterations[node])) for node, leaf in first.items())


def _is_used(leaf: _LeafGrad) -> bool:
    """Return whether a step has used all of it: then a program that changes it knows about the old gradient."""
    return leaf.used > max(leaf.filled, leaf.added)


def _is_replaced(timeline: Timeline, event: GradSet) -> bool:
    """Return whether the program assigned another gradient, ``p.grad = g``, not a part of the old: ``p.grad / 2``."""
    frames = timeline.stack(event.stack) if event.how == "assigned" else ()
    source = statement_at(timeline, frames[0]) if frames else None
    match source[1].node if source is not None else None:
        case ast.Assign(targets=[ast.Attribute(attr="grad") as target], value=value):
            old = ast.unparse(target)
            return not any(isinstance(part, ast.Attribute) and ast.unparse(part) == old for part in ast.walk(value))
    return False


# Sums of gradients that are meant


def _takes_back(before: Value, now: Value | None, value: Value) -> bool:
    """Return whether a write gives a leaf the numbers it had before the last one, but for rounding."""
    stats = [one.statistics() if one is not None else None for one in (before, now, value)]
    old, moved, new = stats
    if old is None or moved is None or new is None:
        return False
    left, moved_by = change_in_statistics(old, new), change_in_statistics(old, moved)
    return left <= _ROUNDING * max(abs(old.min), abs(old.max)) and left < moved_by / 10


_ROUNDING = 1e-4
"""The most by which numbers differ that were added and subtracted again, as a part of the largest."""


def _is_halved(timeline: Timeline, added: int, event: GradSet) -> bool:
    """Return whether the program halves a sum of two gradients: it takes their mean."""
    accumulated = timeline.event(added)
    before = accumulated.value if isinstance(accumulated, GradAccumulated) else None
    if before is None or event.value is None:
        return False
    old, new = norm(before), norm(event.value)
    return bool(old) and new is not None and math.isclose(2 * new, old or 0.0, rel_tol=1e-4)


def _becomes_the_leaf(survey: Survey, node: int, used: int, event: Event) -> bool:
    """Return whether a leaf's new numbers are not computed from those that it has since the last write.

    Then the ``.grad`` is not a gradient but a sum of all of them, as in dual averaging.
    """
    writer = writer_of(event) if isinstance(event, StorageWritten | DataSet) else 0
    if is_unseen(survey.timeline, node, writer) or survey.nodes[writer].op != "copy":
        return False
    source = survey.timeline.nodes.inputs_by_node[writer][-1]
    made = [survey.nodes[one] for one in (source, *ancestors(survey.timeline, source)) if one in survey.nodes]
    memory = {output.storage for output in survey.nodes[node].created.outputs}
    read = (output.storage for one in made if one.seq > used
            for one_source in survey.sources(one) for output in one_source.created.outputs)  # fmt: skip
    return memory.isdisjoint(read)


# Writes that use no gradient: of the numbers of another model, or of an average
# |
# ``load_state_dict`` and ``p.data = v`` are no operations. What they read is known by its numbers: the latest tensor
# that had those which the parameter has now. If no tensor had them, the write may be an update that is not recorded.


_Writers = defaultdict[int, dict[int, int]]
"""The operations that wrote to a storage, one of each line: the writer by its call stack."""


def _keep_writer(survey: Survey, event: StorageWritten, written: _Writers) -> None:
    if (record := survey.nodes.get(event.node)) is not None:
        written[event.storage].setdefault(record.created.stack, event.node)


def _is_refreshed(survey: Survey, node: int, seq: int, event: Write, written: _Writers) -> bool:
    """Return whether a write computes a leaf only from itself and other parameters, as an average of a model does.

    Such a write uses no gradient. Anything else that it reads may have been computed from one.
    """
    timeline, writer = survey.timeline, writer_of(event)
    if not is_unseen(timeline, node, writer):
        return _uses_only_parameters(survey, node, writer, written)
    if timeline.contexts.steps_at(seq):
        return False
    alike = nodes_with_numbers(timeline, event.value, seq)
    if any(survey.nodes[one].created.kind == "parameter" for one in alike):
        return True
    return any(_uses_only_parameters(survey, node, one, written) for one in alike[-_MOST_ALIKE:])


def _uses_only_parameters(survey: Survey, node: int, writer: int, written: _Writers) -> bool:
    """Return whether an operation and those before it read only a leaf, parameters, their copies and plain numbers.

    Results of ``autograd.grad`` do not count: a step of an inner loop is taken with them, and no ``.grad`` is used.
    """
    waiting, seen = [writer], {writer}
    captured = {event.pass_nr for _, event in survey.passes if event.inputs}
    while waiting and len(seen) < _MOST_SOURCES:
        record = survey.nodes[waiting.pop()]
        storages = [output.storage for output in record.created.outputs]
        writers = [one for storage in storages for one in written.get(storage, {}).values()]
        if record.op == "grad" or record.created.during[0] in captured:
            continue  # of autograd.grad, which leaves every .grad as it was
        if record.created.kind != "op" and not _is_plain(survey, record):
            return False
        for source in (*(source for source, _ in record.created.inputs), *writers):
            if source not in survey.nodes:
                return False
            if source not in seen and source != node and survey.nodes[source].created.kind != "parameter":
                seen.add(source)
                waiting.append(source)
    return not waiting


def _is_plain(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a constant has one number in all elements, or those that a parameter had.

    A gradient may look the same.
    """
    nodes = survey.timeline.nodes
    if nodes.origins.gradient_of.item(nodes.place_of(record.node)):
        return False
    stats = record.stats
    if stats is not None and stats.min == stats.max:
        return True
    alike = nodes_with_numbers(survey.timeline, record.value, record.seq) if record.value is not None else ()
    return any(survey.nodes[one].created.kind == "parameter" for one in alike)


_MOST_SOURCES = 60
"""The most operations of an update that are examined."""
_MOST_ALIKE = 3
"""The most tensors with the numbers of a write that are examined."""


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
    was, came, is_now = (in_short(value) for value in (had, event.part, event.value))
    added = f"{was} was there, and backward{at_text(frames)} added {came}: {is_now}"
    parts = (
        Finding("sum", f"{added}{_how_often(timeline, times)}", seq, event.node),
        Finding("accumulated", "backward had brought it here", leaf.filled, event.node),
        Finding("used", "a step had used it here", leaf.used, event.node),
    )
    numbers, at = (Number("iterations", times, seq),), frames[0] if frames else None
    edit = _clearing_edit(timeline, event.node, leaf.used, at)
    optimizer = _optimizer(timeline, leaf.used)
    variable = timeline.info(event.node).name
    is_step = bool(timeline.contexts.steps_at(leaf.used)) or isinstance(timeline.event(leaf.used), OptimizerStepped)
    fix = f"{optimizer or 'optimizer'}.zero_grad() before each backward()"
    if not optimizer:
        fix = f"{fix}, or w.grad = None after the update"
    if not is_step and variable:
        fix = f"{shown(variable)}.grad = None before each backward(), for example after the update"
    return Finding("not-cleared", text, seq, event.node, parts, fix, at, numbers, suspected=leaf.taken_back, edit=edit)


def _clearing_edit(timeline: Timeline, node: int, used: int, at: Frame | None) -> Edit | None:
    """Return an edit with its optimizer's ``zero_grad()`` before backward, or ``.grad = None``
    after a manual update.
    """
    if name := _optimizer(timeline, used):
        return before(timeline, at, f"{name}.zero_grad()")
    event = timeline.event(used)
    frames = write_place(timeline, used, event) if isinstance(event, StorageWritten) else ()
    name = timeline.info(node).name
    return after(timeline, frames[0], f"{name}.grad = None") if frames and name.isidentifier() else None


def _optimizer(timeline: Timeline, used: int) -> str:
    """Return the variable of the optimizer whose step used a gradient; empty if it is unknown or was no step."""
    step = next((timeline.event(one.said) for one in timeline.contexts.steps_at(used)), timeline.event(used))
    frames = timeline.stack(step.stack) if isinstance(step, OptimizerStarted | OptimizerStepped) else ()
    return receiver(timeline, frames[0], "step") if frames else ""


def _how_often(timeline: Timeline, times: int) -> str:
    """Return in how many of the recorded iterations it happened; empty if there is only one."""
    count = len(timeline.iterations)
    if times < 2:
        return ""
    return f", in {times:,} of {count:,} {iteration_called(timeline)}s"


def in_short(value: Value | None) -> str:
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


def _comes_after(survey: Survey, node: int, left: _Left) -> bool:
    """Return whether an operation of a pass uses a parameter, and is computed from those of the other optimizer."""
    roots = roots_of_pass(survey.timeline, left.event.pass_nr)
    graph = {*roots, *ancestors(survey.timeline, *roots)}
    users = [user for user in survey.timeline.nodes.users(node) if user in graph]
    return not left.stepped.isdisjoint(ancestors(survey.timeline, *users))


def _cuts_path(timeline: Timeline, event: GradAccumulated, left: _Left) -> bool:
    """Return whether a loss is computed from the parameters of the other optimizer, without a path to them."""
    graph = ancestors(timeline, *roots_of_pass(timeline, event.pass_nr))
    cuts = [one for one in graph if loses_tracking(timeline, one)]
    return not left.stepped.isdisjoint(ancestors(timeline, *cuts))


def _are_of_one_call(timeline: Timeline, one: GradAccumulated, other: GradAccumulated) -> bool:
    """Return whether two passes were begun by one call, as those of micro-batches are."""
    return call_of_pass(timeline, one.pass_nr) == call_of_pass(timeline, other.pass_nr)


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
    added = f"{in_short(left.event.part)} was there from backward{at_text(places[0])}, for another optimizer"
    parts = (
        Finding("sum", f"{added}; {in_short(event.part)} was added: {in_short(event.value)}", seq, node),
        Finding("used", f"the step{at_text(timeline.stack(step.stack))} uses the sum", seq, node),
    )
    frames = timeline.stack(step.stack)
    at, name = (places[1][0] if places[1] else None), receiver(timeline, frames[0] if frames else None, "step")
    fix = f"{name or 'optimizer'}.zero_grad() before this backward(), or detach() what the other loss must not reach"
    edit = before(timeline, at, f"{name}.zero_grad()") if name else None
    return Finding("not-cleared", text, seq, node, parts, fix, at, edit=edit)


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
        yield from _unused_assignments(survey)


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
    clearings = {event.stack for _, event in survey.select(GradSet) if event.node == node and event.how in CLEARED}
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
    assigned = {event.node for _, event in survey.select(GradSet) if event.how == "assigned"}
    if not assigned.isdisjoint(one.filled):
        return True  # the program keeps sums of its own: a read of such a tensor is no read of a `.grad`
    for node, filled in one.filled.items():
        grads = [nodes[place] for place in (owners == node).nonzero()[0].tolist()]
        readers = [*grads, *(user for grad in grads for user in nodes.users(grad))]
        if any(filled < nodes.born(reader) <= one.cleared.get(node, until) for reader in readers):
            return True
    return False


# Gradients that the program stored in ``.grad`` itself, and cleared before a step
# |
# A program that clips the gradients of single samples adds them up in ``.grad``. If it also clears them for each part
# of a batch, a step finds only those of the last part. In most of the cases the gradients must be lost without being
# read, and in the others a step uses them.


@dataclass(slots=True)
class _Stored:
    """What became of the gradients stored in one leaf: the clearings that lost some, and the steps that used some."""

    since: int = 0
    lost: list[tuple[int, int]] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    is_of_pass: bool = False


def _unused_assignments(survey: Survey) -> Iterator[Finding | None]:
    leaves: defaultdict[int, _Stored] = defaultdict(_Stored)
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case GradAccumulated(node=node):
                leaves[node].is_of_pass = True
            case GradSet(node=node, how=how) if how in CLEARED:
                if leaves[node].since:
                    leaves[node].lost.append((leaves[node].since, seq))
                leaves[node].since = 0
            case GradSet(node=node, value=value) if value is not None and not is_zero(value):
                leaves[node].since = seq
            case OptimizerStepped(parameters=parameters):
                for node in parameters:
                    if leaves[node].since:
                        leaves[node].used.append(seq)
                    leaves[node].since = 0
    for node, leaf in leaves.items():
        between = [(start, end) for start, end in leaf.lost if leaf.used and leaf.used[0] < end < leaf.used[-1]]
        if leaf.is_of_pass or not between or len(leaf.lost) < len(leaf.used):
            continue
        if not any(_is_read_between(survey, node, *one) for one in between[:_TRIED]):
            yield _unused_assignment_finding(survey, node, leaf, between[0])
            return


def _is_read_between(survey: Survey, node: int, start: int, end: int) -> bool:
    """Return whether an operation may have used the ``.grad`` of a leaf after it was stored, and before it was cleared.

    It may be read as the ``.grad`` of the leaf, or as the result that was stored there.
    """
    nodes, owners = survey.timeline.nodes, survey.timeline.nodes.origins.gradient_of
    event = survey.timeline.event(start)
    value = event.value if isinstance(event, GradSet) else None
    records = list(survey.nodes.values())
    at = bisect_right(records, start, key=lambda record: record.seq)
    stored = [one.node for one in records[max(at - _MOST_SOURCES, 0) : at] if one.value == value]
    grads = [nodes[place] for place in (owners == node).nonzero()[0].tolist()]
    users = (survey.nodes[user] for grad in (*grads, *stored) for user in nodes.users(grad) if user in survey.nodes)
    readers = [*grads, *(user.node for user in users if "zero" not in user.op)]
    return not stored or any(start < nodes.born(reader) <= end for reader in readers)


def _unused_assignment_finding(survey: Survey, node: int, leaf: _Stored, lost: tuple[int, int]) -> Finding:
    timeline, (stored, cleared) = survey.timeline, lost
    event, again = timeline.event(stored), timeline.event(cleared)
    step = timeline.event(next(seq for seq in leaf.used if seq > cleared))
    frames = timeline.stack(again.stack) if isinstance(again, GradSet) else ()
    stored_at = at_text(timeline.stack(event.stack)) if isinstance(event, GradSet) else ""
    steps = timeline.stack(step.stack) if isinstance(step, OptimizerStarted | OptimizerStepped) else ()
    at = next(iter(frames), None)
    count = len(leaf.lost) + len(leaf.used)
    text = f"gradients are cleared before a step uses them, {len(leaf.lost)} of {count} times"
    brought = f"the program stored the .grad of {label(timeline, node)}{stored_at}; it is cleared"
    parts = (
        Finding("accumulated", f"{brought}{_cleared_at(timeline, cleared)}", stored, node),
        Finding("used", f"the step{at_text(steps)} uses only what was stored after that", cleared),
    )
    fix = "zero_grad() once for each step, after the step"
    numbers = (Number("cleared unused", len(leaf.lost)), Number("steps", len(leaf.used)))
    here = (frame for frame in steps if at is not None and (frame.path, frame.function) == (at.path, at.function))
    edit = moved(timeline, at, next(here, None)) if receiver(timeline, at, "zero_grad") else None
    return Finding("cleared-early", text, cleared, node, parts, fix, at, numbers, edit=edit)
