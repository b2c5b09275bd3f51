"""Parameters that steps do not change, and parameters that several modules share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import chain, pairwise, takewhile
from math import floor, isclose, isfinite, log2
from operator import itemgetter

import numpy as np

from gviz.events import (
    DataSet,
    Event,
    GradAccumulated,
    GradSet,
    HookRan,
    NodeCreated,
    NodeFreed,
    OptimizerStarted,
    OptimizerStepped,
    RequiresGradSet,
    StepStarted,
    StorageWritten,
)
from gviz.explain.display_names import at_text, innermost, label, own_frame, titled
from gviz.explain.edit import (
    after,
    copied_state,
    keeping_none,
    made_separately,
    model_twice,
    named_type,
    straight_through,
    with_keyword,
    without_keyword,
)
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.vanishing_exploding import Waypoint, is_cancelled, path_to, vanishing
from gviz.explain.findings.zero_gradient import first_use, zeroed_at
from gviz.explain.grad_history import is_zero
from gviz.explain.hook_effects import HookEffect, hooks_of
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.parameter_updates import next_step, options_of
from gviz.explain.program_source import (
    assignment,
    called_lines,
    filled_at,
    line_text,
    receiver,
    repeated_list,
    written_name,
)
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.source.site import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number, times_text
from gviz.values.plain_text import file_line, shown
from gviz.values.value import Array, Stats, Value, capture
from gviz.values.value_text import grad, norm


@dataclass(slots=True)
class _Parameter:
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


def unchanged(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters that optimizer steps wrote, but never changed."""
    known: dict[int, _Parameter] = {}
    for seq, stepped in _updates(survey, known):
        yield None
        for one in (known[node] for node in stepped):
            one.first = one.first or seq
            one.steps += 1
    for node, one in known.items():
        if one.steps and not one.moved:
            yield None
            path = path_to(survey.timeline, node, one.filled, one.gradient)
            if not is_cancelled(path):  # a bias before a normalization has no effect
                yield _unchanged_finding(survey, node, one, path)


def _updates(survey: Survey, known: dict[int, _Parameter]) -> Iterator[tuple[int, list[int]]]:
    """Yield events; for one that ends a step, the parameters that had a gradient and that the step wrote.

    `known` gets what the steps did to each parameter. Once a parameter has changed, it is not compared again.
    """
    parameters = [survey.nodes[node] for node in survey.optimized if node in survey.nodes]
    # Parameters that share memory have events of their own.
    outputs = ((record, record.created.outputs[0]) for record in parameters)
    owners = {output.storage: record.node for record, output in outputs if output.strides is None}
    holds = {record.node: record.value for record in parameters}
    written: set[int] = set()
    for seq, event in survey.select(StorageWritten, DataSet, GradAccumulated, OptimizerStepped):
        match event:
            case StorageWritten() | DataSet() if (node := _written(event, owners)) in holds:
                one = known.setdefault(node, _Parameter())
                if not one.moved:
                    one.moved = _numbers(event.value) != _numbers(holds[node])
                    one.exact &= (event.value.data or event.value.blob) is not None
                    holds[node] = event.value
                    written.add(node)
            case GradAccumulated(node=node, part=part, value=value):
                one, total = known.setdefault(node, _Parameter()), part if value is None else value
                if not one.moved:  # the contributions of several passes may cancel each other
                    one.gradient, one.filled = norm(total) or 0.0, seq
                    one.largest = max(one.largest, _largest(total))
            case OptimizerStepped(parameters=stepped):
                yield seq, [node for node in stepped if node in written and known[node].gradient]
                written.difference_update(stepped)
                continue
        yield seq, []


def _written(event: StorageWritten | DataSet, owners: dict[int, int]) -> int:
    """Return the parameter that was written to, 0 for anything else."""
    return owners.get(event.storage, 0) if isinstance(event, StorageWritten) else event.node


def _numbers(value: Value | None) -> tuple[object, ...] | None:
    """Return the numbers without the shape: a storage and the parameter in it may differ in shape."""
    return None if value is None else (value.data, value.stats, value.blob)


def _unchanged_finding(survey: Survey, node: int, one: _Parameter, path: list[Waypoint]) -> Finding:
    timeline = survey.timeline
    steps = f"{one.steps} steps" if one.steps > 1 else "a step"
    note = "" if one.exact else "; it did not change, as far as its statistics show"
    text = titled(f"{steps} of the optimizer did not change {{}}", label(timeline, node))
    died = vanishing(timeline, path)
    size = Finding("gradient", f"its gradient was |g| {number(one.gradient)}{note}", one.filled, node)
    part = replace(died, text=f"{died.text}, at {died.where}{note}", fix="") if died is not None else size
    step, rate = timeline.event(one.first), options_of(timeline, node, one.first).get("lr")
    call = next(iter(timeline.stack(step.stack)), None) if isinstance(step, OptimizerStepped) else None
    suspected = one.steps == 1 or not one.exact  # a schedule may begin with 0
    if (replaced := _replaced(survey, node, one)) is not None:
        return replaced
    if rate == 0:
        text = titled(f"{steps} of the optimizer did not change {{}}: its learning rate is 0", label(timeline, node))
        others = step.parameters if isinstance(step, OptimizerStepped) else ()
        suspected |= any(options_of(timeline, other, one.first).get("lr") for other in others)  # its group is frozen
        fix = "use a learning rate above 0, or a schedule that does not begin with 0"
        return Finding("unchanged", text, one.first, node, (size,), fix, call, suspected=suspected)
    if (rounded := _rounded_away(survey, node, one, call)) is not None:
        return replace(rounded, suspected=suspected)
    fix = died.fix if died is not None else _LARGER_RATE
    numbers = (Number("length of the gradient", one.gradient, one.filled),)
    at = call or innermost(timeline.info(node))
    return Finding("unchanged", text, one.first, node, (part,), fix, at, numbers, suspected)


def _largest(value: Value) -> float:
    """Return the largest absolute element; 0 if no element is finite or nothing was stored."""
    stats = value.statistics()
    size = max(abs(stats.min), abs(stats.max)) if stats is not None else 0.0
    return size if isfinite(size) else 0.0


_LARGER_RATE = "use a larger learning rate: it is 0, or so small that the change rounds away"
_BITS = {"bfloat16": 8, "float16": 11}
"""The significant bits of the short dtypes."""


def _rounded_away(survey: Survey, node: int, one: _Parameter, call: Frame | None) -> Finding | None:
    """Return the finding about a parameter of a short dtype whose steps are smaller than gaps between its numbers."""
    timeline = survey.timeline
    value, rate = survey.nodes[node].value, options_of(timeline, node, one.first).get("lr")
    if value is None or value.dtype not in _BITS or not isinstance(rate, float | int):
        return None
    largest = _largest(value)
    if not largest:
        return None
    gap = 2.0 ** (floor(log2(largest)) + 1 - _BITS[value.dtype])
    step = timeline.event(one.first)
    # the step of Adam and its kin has about the size of the rate, whatever the gradient is
    is_normalized = isinstance(step, OptimizerStepped) and ("Adam" in step.kind or step.kind == "RMSprop")
    if not abs(rate) * (1.0 if is_normalized else one.largest) < gap / 2:
        return None
    text = titled(f"every step rounds away in {value.dtype}: {{}} does not change", label(timeline, node))
    steps = f"near {number(largest)} the numbers of {value.dtype} are {number(gap)} apart; lr is {number(rate)}"
    size = f"{steps}, and the gradient is |g| {number(one.gradient)} ({one.steps} step{'s' * (one.steps != 1)})"
    part = Finding("gradient", size, one.filled, node)
    cast = named_type(timeline, call, value.dtype)
    fix = "keep the parameters in float32, and compute the forward in the short dtype with torch.autocast"
    at, edit = cast if cast is not None else (call, None)
    return Finding("unchanged", text, one.first, node, (part,), fix, at, edit=edit)


def _replaced(survey: Survey, node: int, one: _Parameter) -> Finding | None:
    """Return the finding about a gradient that the program itself set to zero between the pass and the step."""
    timeline = survey.timeline
    sets = [(seq, event) for seq, event in survey.select(GradSet) if event.node == node and one.filled < seq]
    steps = [seq for seq, event in survey.select(OptimizerStepped) if node in event.parameters and seq > one.filled]
    last = next((pair for pair in reversed(sets) if steps and pair[0] < steps[0]), None)
    if last is None or not is_zero(last[1].value):
        return None
    seq, event = last
    frames = timeline.stack(event.stack)
    text = titled("steps do not change {}: its .grad was set to 0", label(timeline, node))
    was = f"after backward its .grad was |g| {number(one.gradient)}; then it was set to 0{at_text(frames)}"
    size = Finding("gradient", was, one.filled, node)
    fix = "keep the gradient that backward computed, or set .grad = None before backward"
    return Finding("unchanged", text, seq, node, (size,), fix, frames[0] if frames else None)


# Steps that the program undoes: before the next one it writes the old numbers back
#
# ``self.weight.data = round(self.weight.data)`` in each forward: a step moves the weight by less than half the distance
# of two levels, and the next forward puts it back. The numbers right before a step are then those from before the last
# one, all of them. Weights that a clamp holds at its limits do not count, and neither does a program that uses the new
# numbers before it restores the old ones, as first-order meta-learning and a rejected step do.

_FEWEST_UNDONE = 4


@dataclass(slots=True)
class _Undone:
    """A parameter's numbers before and after its last step, and by which write of the program they were undone."""

    now: Value | None
    before: Value | None = None
    after: Value | None = None
    stepped: int = 0
    write: tuple[int, StorageWritten | DataSet] | None = None
    steps: int = 0
    last_step: int = 0
    undone: list[tuple[int, StorageWritten | DataSet]] = field(default_factory=list)
    change: float = 0.0


def undone_steps(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters whose numbers before a step are, in most iterations, those from before the step before it."""
    timeline = survey.timeline
    parameters = [survey.nodes[node] for node in survey.optimized if node in survey.nodes]
    owners = {out.storage: one.node for one in parameters for out in one.created.outputs[:1] if out.strides is None}
    known = {one.node: _Undone(one.value) for one in parameters}
    of_step, started, running = dict[int, tuple[int, ...]](), dict[int, int](), 0
    for seq, event in timeline.select((OptimizerStarted, OptimizerStepped)):
        if isinstance(event, OptimizerStarted):
            started[event.stack] = seq
        elif isinstance(event, OptimizerStepped):
            of_step[started.pop(event.stack, 0)] = event.parameters
    for seq, event in timeline.select((StorageWritten, DataSet, OptimizerStarted, OptimizerStepped)):
        yield None
        match event:
            case StorageWritten() | DataSet() if (node := _written(event, owners)) in known:
                known[node].now = event.value
                known[node].write = None if running else (seq, event)
            case OptimizerStarted():
                running = seq
                for node in of_step.get(seq, ()):
                    if node in known:
                        _compare(survey, node, known[node])
            case OptimizerStepped(parameters=stepped):
                running = 0
                for one in (known[node] for node in stepped if node in known):
                    one.after, one.stepped, one.last_step, one.steps = one.now, seq, seq, one.steps + 1
    for node, one in known.items():
        if len(one.undone) >= max(_FEWEST_UNDONE, one.steps / 2):
            yield _undone_finding(survey, node, one)


def _compare(survey: Survey, node: int, one: _Undone) -> None:
    """Note whether the numbers before a step that begins are those from before the last step, and why."""
    timeline = survey.timeline
    if one.stepped and one.write is not None and one.now is not None and not _is_alike(timeline, one.after, one.before):
        written = one.write
        is_back = _is_alike(timeline, one.now, one.before) and not _is_limited(timeline, one.before, one.after)
        if is_back and not _is_used_between(survey, node, one.stepped, written):
            one.undone.append(written)
            one.change = max(one.change, _distance(timeline, one.before, one.after))
    one.before, one.stepped, one.write = one.now, 0, None


def _is_alike(timeline: Timeline, one: Value | None, other: Value | None) -> bool:
    """Return whether two values have the same numbers, as far as they are known; the shape does not matter."""
    if one is None or other is None or one.size != other.size:
        return False
    arrays = timeline.array(one), timeline.array(other)
    if arrays[0] is not None and arrays[1] is not None:
        return bool((arrays[0].reshape(-1) == arrays[1].reshape(-1)).all())  # 0 is -0
    stats = one.statistics(), other.statistics()
    if stats[0] is None or stats[1] is None:
        return False
    same = (stats[0].min, stats[0].max, stats[0].zero) == (stats[1].min, stats[1].max, stats[1].zero)
    close = (isclose(was, now, rel_tol=1e-6) for was, now in zip(_means(stats[0]), _means(stats[1]), strict=True))
    return same and all(close)


def _means(stats: Stats) -> tuple[float, float]:
    return stats.mean, stats.rms


def _is_limited(timeline: Timeline, before: Value | None, after: Value | None) -> bool:
    """Return whether a clamp at the largest number would bring the old numbers back, or may do so."""
    was, became = (timeline.array(value) if value is not None else None for value in (before, after))
    if was is None or became is None:
        stats = before.statistics() if before is not None else None
        return stats is None or isclose(stats.rms, max(abs(stats.min), abs(stats.max)), rel_tol=1e-5)
    limit = np.abs(was).max(initial=0)
    return was.size < _FEWEST or bool((became.reshape(-1).clip(-limit, limit) == was.reshape(-1)).all())


def _distance(timeline: Timeline, before: Value | None, after: Value | None) -> float:
    was, became = (timeline.array(value) if value is not None else None for value in (before, after))
    return float(np.abs(became.reshape(-1) - was.reshape(-1)).max()) if was is not None and became is not None else 0.0


def _is_used_between(survey: Survey, node: int, stepped: int, written: tuple[int, StorageWritten | DataSet]) -> bool:
    """Return whether an operation between a step and a write used the new numbers, other than to compute the write."""
    timeline, (until, event) = survey.timeline, written
    source = _source_of(survey, until, event)
    origins = {source.node, *ancestors(timeline, source.node)} if source is not None else set[int]()
    waiting, count = [node], 0
    while waiting and count < _MOST_USERS:
        for user in timeline.nodes.users(waiting.pop()):
            record = survey.nodes.get(user)
            if record is None or not stepped < record.seq < until or record.node in origins:
                continue
            if record.op not in ("detach", "data") or record.created.requires_grad:
                return True
            waiting.append(user)
            count += 1
    return False


_MOST_USERS = 1000


def _source_of(survey: Survey, seq: int, event: StorageWritten | DataSet) -> NodeRecord | None:
    """Return the operation whose result a write brought: the one that wrote, or that computed what was assigned."""
    writer = survey.nodes.get(event.writer if isinstance(event, DataSet) else event.node)
    if writer is not None and writer.created.kind == "op":
        return writer
    made = (survey.timeline.event(one) for one in range(seq - 1, max(seq - _NEAR, 0), -1))
    same = (
        one.node
        for one in made
        if isinstance(one, NodeCreated) and _is_alike(survey.timeline, one.first_value, event.value)
    )
    return survey.nodes.get(next(same, 0))


_NEAR = 20
"""The events before an assignment to ``.data`` among which its value was computed."""


def _undone_finding(survey: Survey, node: int, one: _Undone) -> Finding:
    timeline, (seq, write) = survey.timeline, one.undone[-1]
    source = _source_of(survey, seq, write)
    frames = timeline.stack(write.stack) if isinstance(write, DataSet) and write.stack else ()
    at = own_frame(frames) or (survey.at(source) if source is not None else None)
    text = titled(f"{{}} gets its old numbers back after {len(one.undone)} of {one.steps} steps", label(timeline, node))
    moved = f"a step moved it by up to {number(one.change)}, and then" if one.change else "a step moved it, and then"
    back = f"{moved} the program wrote the numbers from before the step"
    part = Finding("write", back, seq, node)
    is_own = source is not None and node in ancestors(timeline, source.node)
    edit = straight_through(timeline, at) if is_own else None
    fix = "do not write these numbers back, or write them before the training only"
    if is_own:
        fix = "keep the exact weight, and compute with a rounded copy: w + (rounded - w).detach()"
    numbers = (Number("undone steps", len(one.undone), seq), Number("steps", one.steps))
    if at is None:  # a copy of a tensor that is no part of the graph
        step = timeline.event(one.last_step)
        line = own_frame(timeline.stack(step.stack)) if isinstance(step, OptimizerStepped) else None
        lines = list(called_lines(timeline, line, "load_state_dict")) or list(called_lines(timeline, line, "copy_"))
        at = lines[0] if len(lines) == 1 else innermost(timeline.info(node))
    return Finding("undone-steps", text, seq, node, (part,), fix, at, numbers, edit=edit)


# One parameter in several modules


# Parameters that are frozen, and that an optimizer moves all the same

_FEWEST_MOVES = 2


@dataclass(slots=True)
class _Frozen:
    """A frozen parameter: its numbers, whether its ``.grad`` was set to zeros since, and the steps that moved it."""

    numbers: tuple[object, ...] | None
    is_cleared: bool = False
    has_moved: bool = False
    moves: list[tuple[int, OptimizerStepped]] = field(default_factory=list)


def frozen_moved(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first frozen parameter that an optimizer moves by momentum or weight decay, with a count of the others.

    ``zero_grad(set_to_none=False)`` leaves zeros in ``.grad``, and a step only skips parameters whose ``.grad`` is
    None. A step after the freezing may still use a gradient that came before. It does not count.
    """
    timeline, frozen, cleared = survey.timeline, dict[int, _Frozen](), None
    owners = {out.storage: node for node in survey.optimized for out in survey.nodes[node].created.outputs[:1]}
    freezing = timeline.select((RequiresGradSet,))
    others = survey.select(StorageWritten, GradSet, GradAccumulated, OptimizerStepped)
    for seq, event in merge(freezing, others, key=itemgetter(0)):
        yield None
        match event:
            case RequiresGradSet(node=node, requires_grad=False) if node in survey.optimized:
                frozen[node] = _Frozen(_numbers(timeline.memory_value(node, 0, seq)))
            case RequiresGradSet(node=node) | GradAccumulated(node=node):
                frozen.pop(node, None)
            case GradSet(node=node, how="zero") if node in frozen:
                frozen[node].is_cleared, cleared = True, event
            case StorageWritten(storage=storage) if owners.get(storage) in frozen:
                one, now = frozen[owners[storage]], _numbers(event.value)
                one.has_moved, one.numbers = one.has_moved or now != one.numbers, now
            case OptimizerStepped(parameters=stepped):
                for node in frozen.keys() & set(stepped):
                    one = frozen[node]
                    if one.has_moved and one.is_cleared:
                        one.moves.append((seq, event))
                    one.has_moved = False
    moved = {node: one.moves for node, one in frozen.items() if len(one.moves) >= _FEWEST_MOVES}
    if moved and cleared is not None:
        yield _frozen_finding(survey, moved, cleared)


def _frozen_finding(survey: Survey, moved: dict[int, list[tuple[int, OptimizerStepped]]], cleared: GradSet) -> Finding:
    timeline, node = survey.timeline, min(moved)
    (seq, step), *later = moved[node]
    others = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
    text = titled(f"{step.kind} moves {{}}{others} in {len(later) + 1} steps, though frozen", label(timeline, node))
    options = options_of(timeline, node, seq)
    acting = [f"{name} {options[name]}" for name in ("momentum", "weight_decay", "betas") if options.get(name)]
    frames = timeline.stack(cleared.stack)
    moves = " and ".join(acting) or "its state"
    what = f"its .grad is not None but zeros{at_text(frames)}, so the step moves it by {moves}"
    part = Finding("gradient", what, seq, node)
    fix = "zero_grad(set_to_none=True), or an optimizer that has only the trained parameters"
    at = frames[0] if frames else innermost(timeline.info(node))
    numbers = (Number("steps", len(later) + 1, seq),)
    return Finding("frozen-moved", text, seq, node, (part,), fix, at, numbers, edit=keeping_none(timeline, at))


def shared(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters that two modules of one kind use in one call of a model.

    They may be tied on purpose, or because a reference was copied. A module that the program also calls directly, not
    through the model, has another path there. A module that a list contains several times, as in ``[layer] * 3``, is
    found by the paths of its parameters.
    """
    timeline = survey.timeline
    repeated: defaultdict[tuple[str, ...], list[NodeRecord]] = defaultdict(list)
    for record in survey.nodes.values():
        if record.created.kind != "parameter":
            continue
        yield None
        info = timeline.info(record.node)
        if names := _sharing(survey, record.node):
            text = titled(f"{{}} is one parameter in {len(names)} modules", label(timeline, record.node))
            part = Finding("modules", f"they share it: {_listed(names)}", record.seq, record.node)
            yield Finding("shared", text, record.seq, record.node, (part,), _ANEW, innermost(info), suspected=True)
        elif names := _places((info.name, *info.also)):
            repeated[tuple(names)].append(record)
    for places, parameters in repeated.items():
        yield _repeated_finding(survey, places, parameters)


_ANEW = "if they should differ, create each module separately, or use copy.deepcopy(layer)"


def _repeated_finding(survey: Survey, names: Sequence[str], parameters: Sequence[NodeRecord]) -> Finding:
    """Return the finding about a module that a list contains several times, at the line that created the module."""
    timeline, first = survey.timeline, parameters[0]
    which = "{} belongs" if len(parameters) == 1 else f"{{}} and {len(parameters) - 1} more belong"
    where = f"its places: {_listed(names)}"
    part = Finding("modules", where, first.seq, first.node)
    kind = next((scope.kind for scope in survey.scopes.values() if f".{scope.name}".endswith(f".{names[0]}")), "")
    frames = _common_frames([timeline.info(record.node).frames for record in parameters])
    inside = [place for place, frame in enumerate(frames) if kind and frame.function == f"{kind}.__init__"]
    at = next(iter(frames[max(inside, default=-1) + 1 :]), innermost(timeline.info(first.node)))
    text = titled(f"{which} to one module that a list contains {times_text(len(names))}", label(timeline, first.node))
    attribute = next((word for word in reversed(names[0].split(".")) if not word.isdecimal()), "")
    repeated = repeated_list(timeline, at, attribute)
    edit = made_separately(timeline, repeated) if repeated is not None else None
    return Finding("shared", text, first.seq, first.node, (part,), _ANEW, repeated or at, suspected=True, edit=edit)


def _common_frames(stacks: Sequence[tuple[Frame, ...]]) -> list[Frame]:
    """Return the outermost frames that all call stacks share, the innermost of them first."""
    common = takewhile(lambda frames: len({*frames}) == 1, zip(*map(reversed, stacks), strict=False))
    return [frames[0] for frames in common][::-1]


def _sharing(survey: Survey, parameter: int) -> list[str]:
    """Return the modules of one kind that use a parameter in one call of a model; empty if there is only one."""
    users = [
        survey.nodes[node] for node in survey.timeline.nodes.users_by_node.get(parameter, ()) if node in survey.nodes
    ]
    places: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for user in users:
        scope = survey.scopes.get(user.created.scope)
        if scope is not None:
            places[scope.kind, survey.outermost(scope.scope)].add(scope.name)
    return next((sorted(names) for names in places.values() if len(names) > 1), [])


def _places(paths: Sequence[str]) -> list[str]:
    """Return the modules of a list that have a parameter with these paths, if the paths differ in only one index."""
    first, *others = (path.split(".") for path in paths)
    for at, part in enumerate(first):
        if part.isdecimal():
            same = [other for other in others if [*other[:at], part, *other[at + 1 :]] == first]
            indices = [other[at] for other in same if other[at].isdecimal()]
            if indices:
                return [".".join([*first[:at], index]) for index in (part, *indices)]
    return []


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:4]))


# Two parameters that begin as one: an embedding and the layer over its words, no longer tied

_FEWEST = 8
"""Two parameters with at least this number of equal elements are not equal by accident."""


def untied(survey: Survey) -> Iterator[Finding | None]:
    """Yield weights that begin as a copy of an embedding's weight, but are trained separately.

    They were tied once: ``load_state_dict(assign=True)``, ``deepcopy`` of one of two modules and ``.to()`` of a copy
    break the tie.
    """
    timeline = survey.timeline
    added = {event.node for _, event in survey.accumulated}
    words = {
        next(survey.sources(record)).node for record in survey.ops("embedding") if record.created.inputs[0][0] in added
    }
    for record in map(survey.nodes.get, added & survey.optimized if words else ()):
        yield None
        if record is None or record.created.kind != "parameter" or record.node in words or not _is_varied(record.value):
            continue
        twin = next((node for node in words if _numbers(survey.nodes[node].value) == _numbers(record.value)), 0)
        same = twin and survey.nodes[twin].shape == record.shape and twin in survey.optimized
        if not same:
            continue
        names = label(timeline, record.node), label(timeline, twin)
        text = titled("{} begins as a copy of {}, but is trained separately", *names)
        size = f"all of its {record.value.size if record.value is not None else 0:,} elements are equal at the start"
        part = Finding("first", size, record.seq, record.node)
        fix = "tie them again after the copy: output.weight = embedding.weight, before you create the optimizer"
        places = [innermost(timeline.info(node)) for node in (record.node, twin)]
        at = max((one for one in places if one is not None), key=lambda one: one.line, default=None)  # the copy
        yield Finding("untied", text, record.seq, record.node, (part,), fix, at)


def _is_varied(value: Value | None) -> bool:
    """Return whether a value has enough different elements that another one is not equal to it by accident."""
    stats = value.statistics() if value is not None else None
    return value is not None and value.size >= _FEWEST and stats is not None and stats.min < stats.max


# Units that begin equal and stay equal: equal rows of a weight, with equal gradients


def same_units(survey: Survey) -> Iterator[Finding | None]:
    """Yield weights whose rows are all equal, and get equal gradients in every pass: all units stay the same."""
    timeline = survey.timeline
    parts: defaultdict[int, list[GradAccumulated]] = defaultdict(list)
    for _, event in survey.accumulated:
        parts[event.node].append(event)
    for node, events in parts.items():
        yield None
        record = survey.nodes.get(node)
        if record is None or record.created.kind == "op" or len(record.shape) < 2 or min(record.shape[:2]) < 2:
            continue
        used = first_use(timeline, node)
        state = timeline.at(used.born if used is not None else record.seq).state(node)
        value = state.outputs[0].value if state is not None else None
        alike = _has_equal_rows(timeline, value) and all(_has_equal_rows(timeline, one.part) for one in events)
        if not alike or is_zero(events[0].part) or is_zero(value):  # zeros with equal gradients diverge later
            continue
        count = record.shape[0]
        text = titled(f"all {count} rows of {{}} are equal, and so are their gradients", label(timeline, node))
        times = f"{len(events)} passes" if len(events) > 1 else "1 pass"
        stay = f"in {times} every row got the same gradient, so all units stay equal"
        size = Finding("first", stay, survey.accumulated[0][0], node)
        fix = "initialize it with random numbers, nn.init.kaiming_uniform_(weight), instead of a constant"
        made = innermost(timeline.info(node))
        at = zeroed_at(timeline, timeline.info(node)) or _filled_at(timeline, made) or made
        yield Finding("same-units", text, record.seq, node, (size,), fix, at)


def _filled_at(timeline: Timeline, at: Frame | None) -> Frame | None:
    """Return the only line of a program that fills weights with a constant: ``nn.init.constant_(m.weight, 0.05)``."""
    lines = (line for line in called_lines(timeline, at, *_FILLING) if "weight" in line_text(timeline, line))
    first, second = next(lines, None), next(lines, None)
    return first if second is None else None


_FILLING = ("constant_", "ones_", "fill_")


def _has_equal_rows(timeline: Timeline, value: Value | None) -> bool:
    array = timeline.array(value) if value is not None else None
    return array is not None and array.ndim > 1 and bool(np.allclose(array, array[:1], rtol=1e-5, atol=1e-12))


# Rows of an embedding that only pad the ends of sequences, and are trained all the same

_LEAST_FILLED = 3
"""The fewest padded positions in the recording."""


def padding_trained(survey: Survey) -> Iterator[Finding | None]:
    """Yield embeddings that have no padding index, but a row that only pads sequences of different lengths."""
    timeline, seen = survey.timeline, dict[int, list[NodeRecord]]()
    for record in survey.ops("embedding"):
        weight = record.created.inputs[0][0] if record.created.inputs else 0
        seen.setdefault(weight, []).append(record)
    got = {event.node: event.part for _, event in survey.accumulated}
    for weight, uses in seen.items():
        yield None
        index = dict(uses[0].created.attrs).get("padding_idx", -1)
        if weight not in got or (isinstance(index, int) and index >= 0):
            continue
        inputs = [list(survey.sources(one)) for one in uses]
        ids = [timeline.array(pair[1].value) for pair in inputs if len(pair) > 1 and pair[1].value is not None]
        row = _filling(ids)
        gradient = timeline.array(got[weight])
        if row is None or gradient is None or not gradient[row].any():
            continue
        info = timeline.info(weight)
        text = titled(f"row {row} of {{}} is trained, although it only pads sequences", label(timeline, weight))
        part = Finding(
            "share", f"its last gradient was {grad(capture(gradient[row]))}", survey.accumulated[-1][0], weight
        )
        fix = f"nn.Embedding(..., padding_idx={row}), or mask these positions before they are added up"
        at = innermost(info)
        edit = with_keyword(timeline, at, "Embedding", "padding_idx", str(row))
        yield Finding("padding-trained", text, uses[0].seq, weight, (part,), fix, at, suspected=True, edit=edit)


def _filling(batches: Sequence[Array | None]) -> int | None:
    """Return the index that only occurs in runs of different lengths at the ends of rows; None if there is none."""
    runs: set[int] = set()
    filled, endings = 0, set[int]()
    for ids in batches:
        if ids is None or ids.ndim != 2 or ids.shape[0] < 2 or ids.shape[1] < 2:
            return None
        for row in ids.tolist():
            last = row[-1]
            run = next((n for n, one in enumerate(reversed(row)) if one != last), len(row))
            if run > 1 or last in endings:
                endings.add(last)
    if len(endings) != 1:
        return None
    (index,) = endings
    for ids in batches:
        for row in ids.tolist() if ids is not None else ():
            run = next((n for n, one in enumerate(reversed(row)) if one != index), len(row))
            if index in row[: len(row) - run]:
                return None
            runs.add(run)
            filled += run
    return index if len(runs) > 1 and filled >= _LEAST_FILLED and index in (0, 1) else None


# A padding row that real data uses: it gets no gradient, so it never learns


def padding_used(survey: Survey) -> Iterator[Finding | None]:
    """Yield embeddings whose padding row is a real token: it is between other tokens, or a target of the loss.

    If it only pads, the loss should not count it as a target: ``ignore_index`` excludes it.
    """
    timeline = survey.timeline
    uses: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for record in survey.ops("embedding"):
        if record.created.requires_grad and len(uses[record.created.inputs[0][0]]) < _MOST_USES:
            uses[record.created.inputs[0][0]].append(record)
    for weight, records in uses.items():
        record, row = records[0], dict(records[0].created.attrs).get("padding_idx")
        if weight not in survey.nodes or not isinstance(row, int) or row < 0 or weight not in survey.optimized:
            continue
        yield None
        ids = next((one for one in list(survey.sources(record))[1:2]), None)
        between = _count_between(timeline.array(ids.value) if ids is not None and ids.value is not None else None, row)
        flat = _count_flat(survey, records, row) if not between else None
        target = _as_target(survey, record, row)
        if not between and flat is None and target is None:
            continue
        title = f"row {row} of {{}} never learns: it is the padding row"
        facts, at, edit = [f"index {row} is between other tokens {times_text(between)}"] * bool(between), None, None
        fix = f"remove padding_idx if index {row} is a token"
        if flat is not None:
            count, size = flat
            of = f"of {size} ids in one dimension, which have no padding"
            facts = [f"it is the index of {count} {of}" if count else f"it may be among the numbers of {size} ids"]
            title = title if count else f"row {row} of {{}} may be a real id, but it is the padding row"
            fix = f"remove padding_idx if id {row} is one of the data, or count ids from 1"
            at = innermost(timeline.info(weight))
            edit = without_keyword(timeline, at, "Embedding", "padding_idx") if count else None
        if target is not None:
            loss, counted = target
            facts.append(f"{counted} of the loss{at_text(timeline.stack(loss.created.stack))} are {row}")
            fix, edit = f"{fix}; use ignore_index={row} in the loss if it only pads", None
        stays = f"padding_idx={row} keeps its gradient at zero"
        text = titled(title, label(timeline, weight))
        part = Finding("padding", f"{stays}, but {' and '.join(facts)}", record.seq, weight)
        at = innermost(timeline.info(weight))
        yield Finding("padding-used", text, record.seq, weight, (part,), fix, at, suspected=True, edit=edit)


_MOST_USES = 20
"""The most uses of an embedding that are examined."""

_PARTS = frozenset({"select", "slice", "unbind", "view", "reshape", "flatten", "_unsafe_view", "squeeze", "split", "t"})


def _count_flat(survey: Survey, uses: list[NodeRecord], row: int) -> tuple[int, int] | None:
    """Return how often an index occurs among ids of one dimension, between others, and the number of these ids.

    None if it does not, or if the ids may be a part of padded sequences. 0 times if it may, which is not known.
    """
    found: tuple[int, int] | None = None
    for record in uses:
        ids = next((one for one in list(survey.sources(record))[1:2]), None)
        if ids is None or ids.value is None or len(ids.shape) != 1 or _is_of_sequences(survey, ids):
            return None
        array, stats = survey.timeline.array(ids.value), ids.value.statistics()
        if array is not None:
            count = int((array == row).sum()) if _count_inside((array != row)[None]) else 0
            if count and not found:
                found = count, array.size
        elif stats is not None and stats.min <= row <= stats.max and (row or stats.zero):
            found = found or (0 if row else stats.zero, ids.value.size)
    return found


def _is_of_sequences(survey: Survey, ids: NodeRecord) -> bool:
    """Return whether ids are a column, a row, or all elements of a tensor of several dimensions in its order."""
    while ids.created.kind == "op":
        sources = list(survey.sources(ids))
        if not sources:
            return False
        if len(sources) > 1 and len(sources[0].shape) == 1:
            return False  # an index of samples: they have no order
        if len(sources[0].shape) > 1 and (ids.op in _PARTS or ids.op in SAME_NUMBERS):
            return True
        if ids.op not in _PARTS and ids.op not in SAME_NUMBERS:
            return False
        ids = sources[0]
    return False


def _count_between(ids: Array | None, row: int) -> int:
    """Return how often an index has other ones before and after it in its sequence; 0 if it may only pad.

    The sequences may lie along either dimension of the indices. Indices of one dimension are not sequences, and neither
    are the rows of a table whose columns have no number in common.
    """
    if ids is None or ids.ndim != 2 or not ids.size:
        return 0
    columns = [set(column) - {row} for column in ids.T.tolist()]
    if not any(one & following for one, following in pairwise(columns)):
        return 0
    counts = [_count_inside(rows != row) for rows in (ids, ids.T)]
    return counts[0] if all(counts) else 0


def _count_inside(is_other: Array) -> int:
    """Return how many False elements of rows have True ones before and after them."""
    before = np.logical_or.accumulate(is_other, axis=1)
    after = np.logical_or.accumulate(is_other[:, ::-1], axis=1)[:, ::-1]
    return int((~is_other & before & after).sum())


def _as_target(survey: Survey, embedded: NodeRecord, row: int) -> tuple[NodeRecord, str] | None:
    """Return a loss computed from an embedding that has index `row` among its targets, and a text with their number.

    The loss must have as many classes as the embedding has rows. A loss with class weights, or one without a reduction,
    does not count: it may leave padding out.
    """
    rows, seen = survey.nodes[embedded.created.inputs[0][0]].shape[0], set[int]()
    for record in survey.ops("nll_loss", "nll_loss2d"):
        inputs, options = list(survey.sources(record)), dict(record.created.attrs)
        if (
            len(inputs) < 2
            or len(inputs[0].shape) < 2
            or inputs[0].shape[1] != rows
            or not record.created.requires_grad
        ):
            continue
        value = inputs[1].value
        leaves_out = options.get("ignore_index") == row or options.get("reduction") == "none" or len(inputs) > 2
        if value is None or leaves_out or record.created.stack in seen:
            continue
        seen.add(record.created.stack)
        array, stats = survey.timeline.array(value), value.statistics()
        of_statistics = stats.zero if stats is not None and row == 0 else 0
        count = of_statistics if array is None else int((array == row).sum())
        if count and embedded.node in ancestors(survey.timeline, record.node):
            return record, f"{count} of the {value.size} targets"
    return None


# The padding row of an embedding: it is zero, unless an initialization fills it


def padding_filled(survey: Survey) -> Iterator[Finding | None]:
    """Yield embeddings whose padding row is not zero: it gets no gradient, so it never changes.

    Frozen weights and those of ``from_pretrained`` do not count: they were trained with this row.
    """
    timeline, seen = survey.timeline, set[int]()
    for record in survey.ops("embedding"):
        weight, row = (
            record.created.inputs[0][0] if record.created.inputs else 0,
            dict(record.created.attrs).get("padding_idx"),
        )
        if weight in seen or weight not in survey.nodes or not isinstance(row, int) or row < 0:
            continue
        if not record.created.requires_grad:
            continue
        yield None
        seen.add(weight)
        if any("from_pretrained(" in line_text(timeline, frame) for frame in timeline.info(weight).frames):
            continue
        shape, value = survey.nodes[weight].shape, timeline.memory_value(weight, 0, record.seq)
        ids = next((timeline.memory_value(*edge, record.seq) for edge in record.created.inputs[1:2]), None)
        if (
            len(shape) == 2
            and shape[1]
            and not _may_be_zero(timeline, value, row, shape[1])
            and _is_among(timeline, ids, row)
        ):
            yield _filled_finding(survey, record, weight, row)


def _may_be_zero(timeline: Timeline, value: Value | None, row: int, width: int) -> bool:
    """Return whether a row may be zero: by its elements, or by the number of zeros in the whole weight."""
    array = timeline.array(value) if value is not None else None
    if array is not None:
        return not array.reshape(-1, width)[row].any()
    stats = value.statistics() if value is not None else None
    return stats is None or stats.zero >= width


def _is_among(timeline: Timeline, value: Value | None, row: int) -> bool:
    """Return whether an index is used. If the elements are not stored, only the least and the greatest are known."""
    array = timeline.array(value) if value is not None else None
    stats = value.statistics() if value is not None else None
    return bool((array == row).any()) if array is not None else stats is not None and row in (stats.min, stats.max)


def _filled_finding(survey: Survey, record: NodeRecord, weight: int, row: int) -> Finding:
    timeline, info = survey.timeline, survey.timeline.info(weight)
    at = zeroed_at(timeline, info) or filled_at(timeline, innermost(info), info.name) or innermost(info)
    text = titled(f"the padding row {row} of {{}} is not zero, and is never trained", label(timeline, weight))
    stays = "an initialization has filled it; padding_idx only keeps its gradient zero, so it keeps these numbers"
    part = Finding("first", stays, record.seq, weight)
    named = written_name(timeline, at)
    if named.rpartition(".")[2] != info.name.rpartition(".")[2]:
        named = ""  # the variable of a loop, which also fills other parameters
    fix = f"set it to zero after the initialization: with torch.no_grad(): {named or 'emb.weight'}[{row}] = 0"
    edit = after(timeline, at, f"{named}.data[{row}].zero_()") if named else None
    return Finding("padding-filled", text, record.seq, weight, (part,), fix, at, suspected=True, edit=edit)


# Elements whose gradient a hook sets to zero, but which weight decay still shrinks


def decayed(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters with a hook that zeroes a part of the gradient, if the optimizer decays all elements."""
    timeline, seen = survey.timeline, set[int]()
    for seq, ran in timeline.select((HookRan,)):
        if ran.when != "tensor" or ran.value is None or ran.node in seen or ran.node not in survey.optimized:
            continue
        yield None
        seen.add(ran.node)
        effects = hooks_of(timeline, ran.node, ran.output_nr, ran.pass_nr, seq)
        effect = next((one for one in effects if one.seq == seq), None)
        lost = _zeroed(effect.before, effect.after) if effect is not None else 0
        step = next_step(timeline, ran.node, seq)
        decay = options_of(timeline, ran.node, step).get("weight_decay") if step else None
        if effect is not None and lost and isinstance(decay, float | int) and decay:
            yield _decayed_finding(timeline, effect, lost, step, decay)


def _zeroed(before: Value | None, after: Value | None) -> int:
    """Return how many more zeros a gradient has after a hook; 0 if the hook has set all of it to zero."""
    stats = [value.statistics() if value is not None else None for value in (before, after)]
    if stats[0] is None or stats[1] is None or after is None or stats[1].zero == after.size:
        return 0
    return max(0, stats[1].zero - stats[0].zero)


def _decayed_finding(timeline: Timeline, effect: HookEffect, lost: int, step: int, decay: float) -> Finding:
    node, event = effect.ran.node, timeline.event(step)
    frames = timeline.stack(event.stack) if isinstance(event, OptimizerStepped) else ()
    call = frames[0] if frames else None
    construction = assignment(timeline, call, receiver(timeline, call, "step"))
    kind = event.kind if isinstance(event, OptimizerStepped) else ""
    text = titled("weight decay changes the elements of {} that its hook freezes", label(timeline, node))
    zeroed = f"the hook {shown(effect.ran.name)} makes {lost:,} of its gradients zero{effect.registered(timeline)}"
    part = Finding("hook", f"{zeroed}, but {shown(kind)} has weight_decay={number(decay)}", effect.seq, node)
    fix = "use weight_decay=0 for this parameter, in a group of its own, or write the old rows back after the step"
    edit = with_keyword(timeline, construction, kind, "weight_decay", "0.0")
    return Finding("decayed", text, step, node, (part,), fix, construction or call, suspected=True, edit=edit)


# Replicas: parameters that get the same gradient, and have different values

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
        if None not in values and _numbers(values[0]) != _numbers(values[1]) and pair <= survey.optimized:
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


# Copies onto their own memory: of a state that was saved by reference and restored later, or of a model onto itself


@dataclass(frozen=True, slots=True)
class _CopyOntoItself:
    """A copy whose source and destination are the same memory, and how often other operations wrote to it since.

    Writes to the source itself, ``state[key].mul_(0.9)``, do not count: the program knows what they change.
    """

    record: NodeRecord
    source: NodeRecord
    writes: int


def restored_onto_itself(survey: Survey) -> Iterator[Finding | None]:
    """Yield saved states that share the memory of what they are copied back to, and so have changed with it.

    ``best = net.state_dict()`` has no copies. A state that nothing was written to since is restored in vain, too, but
    nothing is lost.
    """
    timeline, saved = survey.timeline, dict[int, list[_CopyOntoItself]]()
    for record, one in _copies(survey):
        yield None
        if one is not None and one.writes and len(set(record.created.inputs)) > 1:
            saved.setdefault(one.source.created.stack, []).append(one)
    for copies in saved.values():
        record, source, writes = copies[0].record, copies[0].source, copies[0].writes
        at, owner = innermost(timeline.info(source.node)), record.created.inputs[0][0]
        text = titled("the state saved here is the memory of {} itself, not a copy", label(timeline, owner))
        times = f"{writes} later write{'s' * (writes != 1)} changed it, too"
        part = Finding("write", f"{times}; {_place_of(survey, record)} copies it onto itself", record.seq, owner,
                       at=survey.at(record))  # fmt: skip
        count = len({one.record.created.inputs[0][0] for one in copies})
        others = (Finding("more", f"so it is for {count} tensors of this state", record.seq),) * (count > 1)
        model = receiver(timeline, at, "state_dict")
        fix = f"copy.deepcopy({model}.state_dict())" if model else "copy.deepcopy() of the state"
        fix = f"{fix}, or a clone() of each tensor"
        edit = copied_state(timeline, at)
        yield Finding("saved-by-reference", text, record.seq, owner, (part, *others), fix, at, edit=edit)


def copied_onto_itself(survey: Survey) -> Iterator[Finding | None]:
    """Yield calls that only copy tensors onto themselves, in several iterations: a target network never follows.

    A call that also copies something else, as a state with a few new entries, does not count. Neither does a single
    iteration: a program may load the state that it has just saved.
    """
    timeline, calls = survey.timeline, defaultdict[int, list[_CopyOntoItself | None]](list)
    for record, one in _copies(survey):
        yield None
        calls[record.created.stack].append(one if one is not None and not one.writes else None)
    for stack, copies in calls.items():
        vain = [one.record for one in copies if one is not None]
        seqs: defaultdict[int, list[int]] = defaultdict(list)
        for record in vain:
            seqs[timeline.iteration_at(record.seq).index].append(record.seq)
        if not stack or len(vain) < len(copies) or len(seqs) < _FEWEST_VAIN:
            continue
        if not any(_is_written_otherwise(survey, each[0], each[-1]) for each in seqs.values()):
            yield _in_vain_finding(survey, vain, len(seqs))


def _is_written_otherwise(survey: Survey, first: int, last: int) -> bool:
    """Return whether a call that copies from one event to another also writes numbers of an unknown origin.

    Copies from tensors that are no part of the graph are recorded as writes of the parameter itself.
    """
    events: list[Event] = [survey.timeline.event(seq) for seq in range(first, last)]
    for seqs in (range(first - 1, 0, -1), range(last + 1, survey.end + 1)):
        following = (survey.timeline.event(seq) for seq in seqs)
        events += takewhile(lambda event: isinstance(event, NodeCreated | NodeFreed | StorageWritten), following)
    writers = (survey.nodes.get(event.node) for event in events if isinstance(event, StorageWritten))
    return any(writer is not None and writer.created.kind != "op" for writer in writers)


_FEWEST_VAIN = 2
"""The fewest iterations in which a call copies tensors onto themselves."""


def _copies(survey: Survey) -> Iterator[tuple[NodeRecord, _CopyOntoItself | None]]:
    """Yield each copy of a tensor to another, with what is known of it if both are the same memory."""
    # By storage and line: versions that copies made there. Parameters that share memory are restored several times.
    copied: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for record in survey.ops("copy"):
        output = record.created.outputs[0]
        versions = copied[output.storage, _place_of(survey, record)]
        versions.append(output.version)
        pair = [survey.nodes.get(node) for node, _ in record.created.inputs]
        if len(pair) != 2 or pair[0] is None or pair[1] is None:
            yield record, None
            continue
        target, source = pair[0], pair[1]
        if _memory_of(target) is None or _memory_of(target) != _memory_of(source):
            yield record, None
            continue
        made = dict(source.created.attrs).get("made_at_version", source.created.outputs[0].version)
        if source is target:
            made = output.version - 1
        if isinstance(made, int):
            writes = output.version - 1 - made - sum(made < one < output.version for one in versions)
            is_known = writes > 0 and _is_written_through(survey, source, record)
            yield record, None if is_known else _CopyOntoItself(record, source, max(writes, 0))


def _is_written_through(survey: Survey, source: NodeRecord, record: NodeRecord) -> bool:
    """Return whether an operation before a copy wrote to the memory of its source through the source itself."""
    users = (survey.nodes[user] for user in survey.timeline.nodes.users(source.node) if user in survey.nodes)
    memory = source.created.outputs[0].storage
    return any(
        user.created.inputs[0][0] == source.node
        and user.created.outputs[0].storage == memory
        and user.created.outputs[0].version > source.created.outputs[0].version
        for user in users
        if user.seq < record.seq and user.created.outputs
    )


def _in_vain_finding(survey: Survey, copies: Sequence[NodeRecord], iterations: int) -> Finding:
    timeline, first = survey.timeline, copies[0]
    owners = list(dict.fromkeys(_owner_of(survey, record) for record in copies))
    more = f" and {len(owners) - 1} more are copied onto themselves" if len(owners) > 1 else " is copied onto itself"
    text = titled(f"{{}}{more} in {iterations} iterations", label(timeline, owners[0]))
    memory = f"source and destination are the same memory: {len(copies):,} copies changed nothing"
    part = Finding("write", memory, first.seq, owners[0])
    pairs = (one for frame in timeline.stack(first.created.stack) if (one := model_twice(timeline, frame)) is not None)
    pair = next(pairs, None)
    at = pair.at if pair is not None else survey.at(first)
    numbers = (Number("copies", len(copies)), Number("iterations", iterations))
    source, edit = "", None
    if pair is not None:
        source = _other_model(survey, owners, pair.name)
        edit = pair.replaced(source) if source else None
        fix = f"copy the model that is trained, and not {pair.name} itself"
        fix = edit.new.splitlines()[pair.at.line - edit.line].strip() if edit is not None else fix
    else:
        target, *others = receiver(timeline, at, "load_state_dict"), receiver(timeline, at, "state_dict")
        fix = "make one of the two models a copy: copy.deepcopy(model)"
        if target and others[0]:
            fix = f"{target} and {others[0]} are one model: make one of them a copy.deepcopy() of the other"
    return Finding("copied-onto-itself", text, first.seq, owners[0], (part,), fix, at, numbers, edit=edit)


def _owner_of(survey: Survey, record: NodeRecord) -> int:
    """Return the tensor whose memory a copy writes to, not a view of it."""
    node = record.created.inputs[0][0]
    while (one := survey.nodes.get(node)) is not None and one.op in ("data", "detach") and one.created.inputs:
        node = one.created.inputs[0][0]
    return node


def _other_model(survey: Survey, owners: Sequence[int], name: str) -> str:
    """Return the only trained model whose parameters have the names and shapes of others, as the program calls it.

    `name` is what the program calls the model of the others: ``self.target``. Both must be attributes of one object.
    """
    timeline = survey.timeline
    paths, last = [timeline.info(node).name for node in owners], name.rpartition(".")[2]
    before = name.removesuffix(last)
    prefixes = {path[: place + len(last)] for path in paths if (place := f".{path}.".find(f".{last}.")) >= 0}
    if len(prefixes) != 1 or not all(path.startswith(f"{next(iter(prefixes))}.") for path in paths):
        return ""
    (prefix,) = prefixes
    outer = prefix.removesuffix(last)
    shapes = {(path.removeprefix(prefix), survey.nodes[node].shape) for path, node in zip(paths, owners, strict=True)}
    others: defaultdict[str, set[tuple[str, tuple[int, ...]]]] = defaultdict(set)
    for node in survey.optimized - {*owners}:
        path = timeline.info(node).name
        if path.startswith(outer):
            model = path.removeprefix(outer).partition(".")[0]
            others[model].add((path.removeprefix(outer + model), survey.nodes[node].shape))
    alike = [model for model, parameters in others.items() if parameters and parameters <= shapes]
    return f"{before}{alike[0]}" if len(alike) == 1 and alike[0].isidentifier() else ""


def _place_of(survey: Survey, record: NodeRecord) -> str:
    at = survey.at(record)
    return file_line(at.path, at.line) if at is not None else "the program"


def _memory_of(record: NodeRecord) -> tuple[int, int, tuple[int, ...]] | None:
    """Return the storage, the offset and the shape of a tensor."""
    output = next(iter(record.created.outputs), None)
    return (output.storage, output.offset, record.shape) if output is not None and output.storage else None
