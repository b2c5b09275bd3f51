"""A loss of a copy of the model: the copy gets the gradient, and the model that the optimizer holds gets none.

Idea. An optimizer finds no gradient in any of its steps, and other parameters that began with the numbers of its own
get one. ``copy.deepcopy``, ``load_state_dict`` into another model and ``nn.Parameter(p.data - lr * g)`` make such
parameters: no operation of the graph leads from them back to the model.

Example. MAML with ``fast = copy.deepcopy(model)``, an inner step on ``p.data`` of `fast`, and the loss of ``fast(x)``.

Limits. The copies must be of most parameters of the optimizer. A program that copies the gradients or the numbers of
the copy back to the model, as first-order MAML and Reptile do, has a step that finds gradients, or writes to the model:
nothing is reported.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gviz.events import DataSet, Event, GradAccumulated, GradSet, NodeCreated, OptimizerStepped, StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.grad_history import CLEARED
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.parameter_updates import Write, idle_parameters, is_unseen, write_place, writer_of
from gviz.explain.program_text import (
    assignment,
    called_name,
    frame_of,
    function_of,
    places_read,
    places_set,
    program_text,
    receiver,
    statement_at,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import at_text, innermost, is_of_library, own_frame
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown
from gviz.values.value import Value

_FEWEST = 4
"""The fewest numbers that two parameters do not have in common by accident."""


@dataclass(frozen=True, slots=True)
class _ParameterCopy:
    """A parameter with the numbers of another, its `original`, or computed from them, since event `seq`."""

    original: int
    seq: int
    is_computed: bool = False


@dataclass(frozen=True, slots=True)
class _ParameterCopies:
    """The parameters that began as copies of those of an idle optimizer (`held`), by node.

    `siblings` are the leaves that the same calls made: a bias of a single number, for example.
    """

    of: Mapping[int, _ParameterCopy]
    siblings: frozenset[int]
    held: frozenset[int]

    def __contains__(self, node: int) -> bool:
        return node in self.of or node in self.siblings or (bool(self.of) and node in self.held)


def parameter_copies(timeline: Timeline, n: int) -> _ParameterCopies:
    """Return the copies of parameters that got a gradient by event `n`, while the step of the originals found none."""
    return timeline.once(_parameter_copies, n)


def _parameter_copies(timeline: Timeline, n: int) -> _ParameterCopies:
    held = _without_gradient(timeline, n)
    if not held:
        return _ParameterCopies({}, frozenset(), frozenset())
    by_numbers = {numbers: node for node in held if (numbers := _numbers(timeline.memory_value(node, 0, n)))}
    leaves = {event.node for _, event in timeline.select((GradAccumulated,), 1, n + 1)} - held
    infos = {node: timeline.info(node) for node in leaves if node in timeline.nodes}
    steps = _steps(timeline, n) if infos else {}
    found: dict[int, _ParameterCopy] = {}
    storages: dict[int, int] = {}
    for node, info in infos.items():
        created = info.created
        storages |= {output.storage: node for output in created.outputs}
        if created.kind == "op":
            continue
        if (numbers := _numbers(created.first_value)) in by_numbers and numbers is not None:
            found[node] = _ParameterCopy(by_numbers[numbers], info.born)
        elif numbers in steps and numbers is not None and created.first_value is not None:
            source = _updated(timeline, steps[numbers], created.first_value.shape, held)
            if source and steps[numbers] < node:
                found[node] = _ParameterCopy(source, info.born, is_computed=True)
    for seq, node, value in _written(timeline, storages, n) if by_numbers else ():
        numbers = _numbers(value) if node in infos and node not in found else None
        if numbers in by_numbers and numbers is not None and infos[node].created.kind != "op":
            found[node] = _ParameterCopy(by_numbers[numbers], seq)
    if 2 * len({copied.original for copied in found.values()}) <= len(by_numbers):
        found = {}  # some layers were replaced, and not the model
    stacks = {infos[node].created.stack for node in found} - {0}
    siblings = {node for node, info in infos.items() if info.created.stack in stacks and info.created.kind != "op"}
    return _ParameterCopies(found, frozenset(siblings), held)


def _written(timeline: Timeline, storages: Mapping[int, int], n: int) -> Iterator[tuple[int, int, Value]]:
    """Yield each write by event `n` with its node and the value afterwards; `storages` are the memories of nodes."""
    for seq, event in timeline.select((StorageWritten, DataSet), 1, n + 1):
        match event:
            case StorageWritten(storage=storage, value=value) if storage in storages:
                yield seq, storages[storage], value
            case DataSet(node=node, value=value):
                yield seq, node, value


def _without_gradient(timeline: Timeline, n: int) -> frozenset[int]:
    """Return the parameters of optimizers that never had a gradient, if nothing else has changed them either."""
    passes = [phase.start for phase in timeline.phases if phase.kind == "backward"]
    idle = idle_parameters(timeline, n) if passes else frozenset[int]()
    if not idle:
        return idle
    busy = {node for _, step in timeline.select((OptimizerStepped,), 1, n + 1) for node in step.parameters}
    idle -= busy
    if any(_is_changed(timeline, event, seq > passes[0]) for node in idle for seq, event in _events_of(timeline, node)):
        return frozenset()
    return idle


def _events_of(timeline: Timeline, node: int) -> Iterator[tuple[int, Event]]:
    return ((seq, timeline.event(seq)) for seq in timeline.events_of(node))


def _is_changed(timeline: Timeline, event: Event, is_later: bool) -> bool:
    """Return whether an event gives a gradient to a parameter, or writes to it after the first backward pass."""
    match event:
        case GradAccumulated():
            return True
        case GradSet(how=how):
            return how not in CLEARED
        case StorageWritten():
            return is_later
        case DataSet(source=source):
            return is_later and not source
    return False


def _numbers(value: Value | None, fewest: int = _FEWEST) -> tuple[object, ...] | None:
    """Return what is known of the numbers of a tensor; None if others may have the same, as zeros and ones do."""
    stats = value.statistics() if value is not None else None
    if value is None or stats is None or value.size < fewest or not stats.min < stats.max:
        return None
    return value.size, value.dtype, value.data, value.blob, value.stats


def _steps(timeline: Timeline, n: int) -> dict[tuple[object, ...], int]:
    """Return the sums, differences and copies by their numbers: ``p.data - g`` for ``nn.Parameter(p.data - g)``."""
    created = (event for _, event in timeline.select((NodeCreated,), 1, n + 1) if event.kind == "op")
    steps = (one for one in created if timeline.op(one.op).base_name in _OF_STEPS)
    found: dict[tuple[object, ...], int] = {}
    for one in steps:
        if (numbers := _numbers(one.first_value)) is not None:
            found.setdefault(numbers, one.node)  # later ones may be views of the new leaf
    return found


def _updated(timeline: Timeline, node: int, shape: tuple[int, ...], held: frozenset[int]) -> int:
    """Return the parameter to which a result adds something of the same shape; 0 for anything else."""
    waiting, seen = [node], {node}
    while waiting and len(seen) < _MOST_BETWEEN:
        info = timeline.info(waiting.pop())
        value = info.created.first_value
        if value is None or value.shape != shape:
            continue
        if info.node in held:
            return info.node
        if info.op.base_name in _OF_STEPS:
            new = [source for source, _ in info.created.inputs if source and source not in seen]
            seen |= {*new}
            waiting += reversed(new)
    return 0


_OF_STEPS = SAME_NUMBERS | {"data", "detach", "add", "sub"}
_MOST_BETWEEN = 12


def copies_with_returned_gradient(survey: Survey) -> frozenset[int]:
    """Return the leaves that began as copies of parameters of an optimizer whose ``.grad`` the program assigns.

    First-order MAML and other methods with workers copy the gradients of such leaves to the model.
    """
    timeline = survey.timeline
    assigned = {event.node for _, event in survey.select(GradSet) if event.how not in CLEARED}
    known = {node: survey.nodes[node] for node in assigned & survey.optimized if node in survey.nodes}
    if not known:
        return frozenset()
    storages = {output.storage: node for node, one in known.items() for output in one.created.outputs}
    values = [(node, one.value) for node, one in known.items()]
    values += [(node, value) for _, node, value in _written(timeline, storages, survey.end)]
    originals = {_numbers(value, 2) for node, value in values if node in known} - {None}
    leaves = [survey.nodes[event.node] for _, event in survey.accumulated if event.node in survey.nodes]
    stacks = {one.created.stack for one in leaves if _numbers(one.value, 2) in originals} - {0}
    return frozenset(one.node for one in leaves if one.created.stack in stacks)


def gradients_of_copies(survey: Survey) -> Iterator[Finding | None]:
    """Yield for each line that copies a model that it gets the gradient, and not the model of the optimizer."""
    timeline = survey.timeline
    if timeline.failures:
        return
    yield None
    copies = parameter_copies(timeline, survey.end)
    by_line: defaultdict[tuple[str, int], list[tuple[int, Frame]]] = defaultdict(list)
    for node in sorted(copies.of):
        if (at := _line_of_copy(timeline, node, copies.of[node])) is not None:
            by_line[at.path, at.line].append((node, at))
    for each in by_line.values():
        yield _finding(survey, copies, [node for node, _ in each], each[0][1])


def _line_of_copy(timeline: Timeline, node: int, copied: _ParameterCopy) -> Frame | None:
    """Return the line that gave a leaf the numbers of another: that wrote to it, that copied, or that made it."""
    event, info = timeline.event(copied.seq), timeline.info(node)
    if isinstance(event, Write):
        frames = timeline.stack(event.stack) if isinstance(event, DataSet) else ()
        if not is_unseen(timeline, node, writer_of(event)):
            frames = frames or timeline.info(writer_of(event)).frames
        if frames:
            return own_frame(frames)
    for frame in info.frames if not copied.is_computed else ():
        source = statement_at(timeline, frame)
        if source is None or is_of_library(frame.path):
            continue
        text, here = source
        for one in text.by_function[function_of(here)]:
            if one.first >= here.first and any(called_name(call) in _COPYING for call in one.parts(ast.Call)):
                return frame if one.first == here.first else frame_of(frame, one.first, text)
    return innermost(info)


_COPYING = ("deepcopy", "load_state_dict", "vector_to_parameters")


def _finding(survey: Survey, copies: _ParameterCopies, nodes: list[int], at: Frame) -> Finding:
    timeline, node, copied = survey.timeline, nodes[0], copies.of[nodes[0]]
    steps = [(seq, one) for seq, one in survey.select(OptimizerStepped) if copied.original in one.skipped]
    seq, step = steps[-1]
    frames, kind, others = timeline.stack(step.stack), shown(step.kind), len(step.skipped) - 1
    text = titled(f"the gradient goes to {{}}, a copy of what {kind} holds", label(timeline, node))
    held = f"{label_at(timeline, copied.original)}{f' and {others} more' * bool(others)}"
    idle = f"{kind}{at_text(frames)} found no gradient in {len(steps)} step{'s' * (len(steps) != 1)}: it holds {held}"
    parts = [Finding("idle", idle, seq, copied.original, at=frames[0] if frames else None)]
    if (write := _write_by_program(timeline, node, copied.seq)) is not None:
        line = f"{label(timeline, node)} is changed{at_text((write[1],))}, which is no operation of the graph"
        parts.append(Finding("write", line, write[0], node, at=write[1]))
    is_inner = write is not None or copied.is_computed or len(nodes) > len(step.skipped)
    fix, numbers = _INNER if is_inner else _ONCE, (Number("steps without a gradient", len(steps)),)
    if not is_inner and (own := _optimizer_of_the_copy(timeline, at, frames)) is not None:
        copy, made = own
        text = titled(
            f"{kind} holds a copy, {{}}, and another model has the gradient", label(timeline, copied.original)
        )
        parts[0] = replace(
            parts[0], text=f"{label(timeline, node)} has the gradient: the loss is computed with it", at=at
        )
        fix = f"give the optimizer the parameters() of the model that the loss uses, or compute the loss with {copy}"
        at = made
    return Finding("copied-model", text, seq, node, tuple(parts), fix, at, numbers)


def _optimizer_of_the_copy(timeline: Timeline, at: Frame, step: tuple[Frame, ...]) -> tuple[str, Frame] | None:
    """Return the variable to which a line copies a model, and the line of the optimizer, if that takes the copy's."""
    stepped = own_frame(step)
    made = assignment(timeline, stepped, receiver(timeline, stepped, "step"))
    text, optimizer = program_text(timeline, at), statement_at(timeline, made)
    if text is None or made is None or optimizer is None:
        return None
    for one in text.statements:
        if one.first == at.line and any(called_name(call) in _COPYING for call in one.parts(ast.Call)):
            name = next((name for name in places_set(one.node) if name in places_read(optimizer[1].node)), "")
            if name:
                return name, made
    return None


def _write_by_program(timeline: Timeline, node: int, since: int) -> tuple[int, Frame] | None:
    """Return the first write to a leaf after an event, and its line."""
    for seq, event in _events_of(timeline, node):
        if seq <= since or not isinstance(event, Write):
            continue
        frames = timeline.stack(event.stack) if isinstance(event, DataSet) and event.stack else ()
        frames = frames or (write_place(timeline, seq, event) if isinstance(event, StorageWritten) else ())
        at = own_frame(frames)
        return (seq, at) if at is not None else None
    return None


_INNER = (
    "copy the gradients of the copy to the .grad of the model, or compute the loss with the model itself; to train "
    "through an inner step: torch.func.functional_call, with parameters p - lr * g of autograd.grad(create_graph=True)"
)
_ONCE = "give the optimizer the parameters() of the copy, or compute the loss with the model that the optimizer holds"
