"""Steps of optimizers: what wrote to a parameter, with which options, and which steps had nothing to do."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite

from gviz.events import (
    DataSet,
    Event,
    NodeCreated,
    OptimizerStarted,
    OptimizerStepped,
    StorageWritten,
)
from gviz.events.optimizer_options import Option, option_text, options_in
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Moment, Timeline
from gviz.trace.whole_iterations import NUMBERED
from gviz.values.plain_text import shown
from gviz.values.value import Stats, Value


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of all optimizers by a moment: their number, their parameters, and those that never had a gradient.

    `idle` are the last events of calls of ``step()`` that found no gradient, any of the times. `last` is the last event
    of all; 0 without a step.
    """

    count: int
    parameters: frozenset[int]
    idle: tuple[int, ...]
    last: int


def has_stepped(timeline: Timeline, n: int) -> bool:
    """Return whether an optimizer has stepped by event `n`."""
    return next(iter(timeline.select((OptimizerStepped,), 1, n + 1)), None) is not None


def steps_by(timeline: Timeline, n: int) -> Steps:
    """Return the steps of all optimizers up to event `n`."""
    return timeline.once(_steps_by, n)


def _steps_by(timeline: Timeline, n: int) -> Steps:
    steps = list(timeline.select((OptimizerStepped,), 1, n + 1))
    busy = {step.stack for _, step in steps if step.parameters}
    idle = {step.stack: seq for seq, step in steps if step.stack not in busy}
    parameters = frozenset(node for _, step in steps for node in (*step.parameters, *step.skipped))
    return Steps(len(steps), parameters, tuple(idle.values()), steps[-1][0] if steps else 0)


def idle_parameters(timeline: Timeline, n: int) -> frozenset[int]:
    """Return the parameters of optimizers whose steps found no gradient at all by event `n`, any of the times."""
    steps = (timeline.event(seq) for seq in steps_by(timeline, n).idle)
    return frozenset(node for step in steps if isinstance(step, OptimizerStepped) for node in step.skipped)


def next_step(timeline: Timeline, node: int, n: int) -> int:
    """Return the first step after event `n` of an optimizer that has a parameter; 0 if there is none."""
    steps = timeline.select((OptimizerStepped,), n + 1)
    return next((seq for seq, step in steps if node in step.parameters or node in step.skipped), 0)


def all_frozen(moment: Moment, step: OptimizerStepped) -> bool:
    """Return whether a step that ends at a moment has parameters, and none of them requires a gradient."""
    return bool(step.skipped) and not any(state and state.requires_grad for state in moment.states(step.skipped))


def why_nothing(moment: Moment, step: OptimizerStepped) -> str:
    """Return why a step that ends at a moment had nothing to do: ``all of its 2 parameters are frozen``."""
    count = len(step.skipped)
    if not count:
        return "none of its parameters is used in what is recorded, so no gradient comes to them"
    if all_frozen(moment, step):
        return f"all of its {count} parameters are frozen" if count > 1 else "its parameter is frozen"
    return f"none of its {count} parameters has a gradient" if count > 1 else "its parameter has no gradient"


# Writes to the memory of a tensor: by an operation, or by an optimizer whose own arithmetic is not recorded

Write = StorageWritten | DataSet


def writer_of(write: Write) -> int:
    """Return the node that wrote; if it was no operation, the tensor's own node or 0."""
    return write.writer if isinstance(write, DataSet) else write.node


def written_tensor(timeline: Timeline, write: StorageWritten) -> int:
    """Return the node whose tensor was written to: back from the operation that wrote, over views of the memory."""
    owner = write.node
    while owner and timeline.info(owner).created.inputs:
        first, output_nr = timeline.info(owner).created.inputs[0]
        if not first or timeline.info(first).created.outputs[output_nr].storage != write.storage:
            break
        owner = first
    return owner


def is_unseen(timeline: Timeline, owner: int, writer: int) -> bool:
    """Return whether a write was not a recorded operation, for example by an optimizer of PyTorch."""
    return writer in (0, owner) or timeline.info(writer).created.kind != "op"


# The tensors that had the numbers of a value: what a write that is no operation has copied


def nodes_with_numbers(timeline: Timeline, value: Value, before: int) -> list[int]:
    """Return the nodes that had the numbers of a value before an event, in order."""
    known = timeline.once(_numbers_by_event, len(timeline)).get(_numbers_of(value), ())
    return [node for seq, node in known if seq < before and node in timeline.nodes]


def _numbers_by_event(timeline: Timeline, n: int) -> dict[tuple[object, ...], list[tuple[int, int]]]:
    """Return which nodes had which numbers, from which event on: when they were made, and after each write.

    What is written to the memory of a parameter counts as the parameter.
    """
    found: defaultdict[tuple[object, ...], list[tuple[int, int]]] = defaultdict(list)
    owners: dict[int, int] = {}
    events: Iterator[tuple[int, NodeCreated | Write]] = timeline.select(
        (NodeCreated, StorageWritten, DataSet), 1, n + 1
    )
    for seq, event in events:
        value, node = event.first_value if isinstance(event, NodeCreated) else event.value, event.node
        if isinstance(event, NodeCreated) and event.kind == "parameter":
            owners |= {output.storage: node for output in event.outputs}
        elif isinstance(event, StorageWritten):
            node = owners.get(event.storage, node)
        if value is not None and value.is_known:
            found[_numbers_of(value)].append((seq, node))
    return found


def _numbers_of(value: Value) -> tuple[object, ...]:
    """Return what is stored of the numbers of a tensor, whatever its shape is."""
    return value.size, value.dtype, value.data, value.blob, value.stats


def step_of(timeline: Timeline, node: int, seq: int) -> OptimizerStarted | OptimizerStepped | None:
    """Return the optimizer step that wrote to a node by event `seq`, if it was one; in an older trace, its end."""
    return next((first for first, _ in _steps_of(timeline, node, seq)), None)


def resumed_at(timeline: Timeline, seq: int) -> int:
    """Return the iteration with which a recording within a budget continued, if event `seq` is a write that only
    repeats what had changed since the last recorded iteration; otherwise 0.
    """
    recorded = timeline.recorded_iterations
    if recorded is None or not recorded.paused:
        return 0
    place = bisect_left(timeline.marks, (seq, "")) - 1
    if place < 0 or not (match := NUMBERED.fullmatch(timeline.marks[place][1])):
        return 0
    between = range(timeline.marks[place][0] + 1, seq + 1)
    written = sum(1 for _ in timeline.select((StorageWritten, DataSet), between.start, between.stop))
    return int(match[1]) if written == len(between) else 0


def options_of(timeline: Timeline, node: int, seq: int) -> dict[str, Option]:
    """Return the options of the parameter's group in that step; empty if they are unknown."""
    for first, ended in _steps_of(timeline, node, seq):
        if isinstance(first, OptimizerStarted):
            return options_in(first.options, _group_of(node, first, ended))
    return {}


def maximizes(step: OptimizerStarted) -> bool:
    """Return whether a step makes what it is given larger, for some of its parameters."""
    return any(options_in(step.options, group).get("maximize") for group in range(len(step.options)))


def rates_of(step: OptimizerStarted) -> list[float | None]:
    """Return the learning rate of each group of a step; None for a group without a known number."""
    rates = (options_in(step.options, group).get("lr") for group in range(len(step.options)))
    return [float(rate) if isinstance(rate, float | int) else None for rate in rates]


def step_words(timeline: Timeline, node: int, seq: int) -> str:
    """Return that step as text: ``SGD (lr=0.15, momentum=0.9)``; empty if no step wrote to the node."""
    step, options = step_of(timeline, node, seq), options_text(options_of(timeline, node, seq))
    return f"{shown(step.kind)}{f' ({options})' * bool(options)}" if step is not None else ""


def _group_of(node: int, first: OptimizerStarted, ended: Event | None) -> int:
    """Return the group of a parameter, -1 if it is unknown."""
    if len(first.options) < 2:
        return 0
    if not isinstance(ended, OptimizerStepped):
        return -1
    until = list(accumulate(ended.per_group))
    return bisect_right(until, ended.parameters.index(node)) if until else -1


def _steps_of(
    timeline: Timeline, node: int, seq: int
) -> Iterator[tuple[OptimizerStarted | OptimizerStepped, Event | None]]:
    """Yield the steps that may have written to a node by event `seq`: the first event of each, and its end."""
    phase = timeline.phase_at(seq)
    for step in timeline.contexts.steps_at(seq):
        first, ended = timeline.event(step.said), timeline.event(step.end) if step.end else None
        if isinstance(ended, OptimizerStepped) and node not in ended.parameters:
            continue
        if isinstance(first, OptimizerStarted):
            yield first, ended
        in_phase = phase is not None and phase.kind == "optimizer" and step.end <= phase.end
        if isinstance(first, OptimizerStepped) and in_phase:
            yield first, ended


def write_place(timeline: Timeline, n: int, write: StorageWritten) -> tuple[Frame, ...]:
    """Return the place of a write in the program: the operation that wrote, or the step of the optimizer."""
    node = write.node
    if node not in timeline.nodes:
        return ()
    step = step_of(timeline, node, n) if timeline.info(node).created.kind != "op" else None
    return timeline.info(node).frames if step is None else timeline.stack(step.stack)


# Options, as ``lr=0.15 (was 0.5), momentum=0.9``

_GROUPS = 3
"""The most groups of parameters that a sentence mentions."""


_REDUNDANT = ("decoupled_weight_decay", "initial_lr")
"""Options that the name of an optimizer already implies, or that only a schedule reads."""


def options_text(options: Mapping[str, Option], before: Mapping[str, Option] | None = None) -> str:
    """Return the options that are on, and those that changed with their old values; empty if there are none."""
    return ", ".join(_option_words(options, before or {}))


def all_options(event: OptimizerStarted) -> str:
    """Return the options of the first groups, with differences of further ones: ``lr=0.5; group 1: lr=0.05``."""
    parts = [options_text(options_in(event.options, 0), options_in(event.before, 0))]
    count = 0
    for at, differing in list(enumerate(event.options))[1:]:
        before = dict(event.before[at]) if at < len(event.before) else {}
        if not (differing or before):
            continue
        count += 1
        if count < _GROUPS:
            here = {**dict(differing), **{name: options_in(event.options, at)[name] for name in before}}
            parts.append(f"group {at}: {options_text(here, before) or 'nothing else'}")
    if count >= _GROUPS:
        parts.append(f"{count - _GROUPS + 1} more group{'s' * (count > _GROUPS)} with others")
    return "; ".join(filter(None, parts))


def _option_words(options: Mapping[str, Option], before: Mapping[str, Option]) -> Iterator[str]:
    for name, value in options.items():
        if name in before:
            yield f"{shown(name)}={option_text(value)} (was {option_text(before[name])})"
        elif name == "lr" or (value not in (0, None, "", ()) and name not in _REDUNDANT):  # False is 0, too
            yield f"{shown(name)}={option_text(value)}"


def numbers_without_shape(value: Value | None) -> tuple[object, ...] | None:
    """Return what is stored of a value's numbers: a storage and the parameter in it may differ in shape."""
    return None if value is None else (value.data, value.stats, value.blob)


@dataclass(slots=True)
class StepEffects:
    """What the optimizer steps did to one parameter.

    `gradient` is the norm of its last gradient, which arrived at event `filled`. `largest` is the largest absolute
    element of its gradients so far. `first` is the event of the first step, and `steps` the number of steps. `moved` is
    whether a number of it has changed. It is `exact` as long as all its numbers were compared, not only their
    statistics.
    """

    gradient: float = 0.0
    largest: float = 0.0
    filled: int = 0
    first: int = 0
    steps: int = 0
    moved: bool = False
    exact: bool = True


def written_parameter(event: StorageWritten | DataSet, owners: dict[int, int]) -> int:
    """Return the parameter that was written to, 0 for anything else."""
    return owners.get(event.storage, 0) if isinstance(event, StorageWritten) else event.node


@dataclass(frozen=True, slots=True)
class Growth:
    """The sizes of a parameter before some steps and after them, as the root mean squares of its numbers."""

    before: float
    after: float

    @property
    def factor(self) -> float:
        """How many times as large it became. One that began near 0 counts as if it had had an ordinary size."""
        return self.after / max(self.before, _ORDINARY_SIZE)


_ORDINARY_SIZE = 0.1
"""A parameter that began with less counts as if it had this size: zeros have to grow."""


def growth(before: Value | None, *after: Value | None) -> Growth | None:
    """Return how a parameter grew from a value to the largest of some later ones; None if these are unknown."""
    size, sizes = rms(before), [one for value in after if (one := rms(value)) is not None]
    return Growth(size, max(sizes)) if size is not None and sizes else None


def rms(value: Value | None) -> float | None:
    """Return the root mean square of the finite numbers of a value; None if it has none, or they are unknown."""
    stats = value.statistics() if value is not None else None
    return stats.rms if stats is not None and isfinite(stats.rms) else None


def change_in_statistics(before: Stats, after: Stats, factor: float = 1.0) -> float:
    """Return the largest change of least, largest and mean number and of the rms, after `factor` has scaled the numbers
    before.

    Some element has changed by at least as much. If none of the four has changed, probably none has.
    """
    pairs = ((before.min, after.min), (before.max, after.max), (before.mean, after.mean), (before.rms, after.rms))
    return max(abs(new - factor * old) for old, new in pairs)
