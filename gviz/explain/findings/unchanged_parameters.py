"""Parameters that optimizer steps do not change, or whose change the program undoes after each step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import isclose, isfinite

import numpy as np

from gviz.events import (
    DataSet,
    GradAccumulated,
    GradSet,
    NodeCreated,
    OptimizerStarted,
    OptimizerStepped,
    StorageWritten,
)
from gviz.explain.display_names import label, titled
from gviz.explain.edit import Edit, lines_replaced, node_replaced
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.vanishing_exploding import Waypoint, is_cancelled, path_to, vanishing
from gviz.explain.grad_history import is_zero
from gviz.explain.parameter_updates import numbers_without_shape, options_of
from gviz.explain.program_text import (
    called_lines,
    frame_of,
    program_text,
    statement_at,
    variables_of,
)
from gviz.explain.source_frames import at_text, innermost, own_frame
from gviz.explain.survey import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown
from gviz.values.value import Array, Stats, Value
from gviz.values.value_text import norm


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
    is_found = False
    for node, one in known.items():
        if one.steps and not one.moved:
            yield None
            path = path_to(survey.timeline, node, one.filled, one.gradient)
            if not is_cancelled(path):  # a bias before a normalization has no effect
                is_found = True
                yield _unchanged_finding(survey, node, one, path)
    if not is_found:
        yield from _mostly_rounded_away(survey)


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
                    one.moved = numbers_without_shape(event.value) != numbers_without_shape(holds[node])
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


_LEAST = 1e-30


def _gaps(sizes: Array, dtype: str) -> Array:
    """Return the distance from each size to the next number of a short dtype."""
    return np.asarray(2.0 ** (np.floor(np.log2(np.maximum(sizes, _LEAST))) + 1 - _BITS[dtype]))


def _is_normalized(step: OptimizerStepped) -> bool:
    """Return whether the steps of an optimizer have about the size of its rate, whatever the gradient is."""
    return "Adam" in step.kind or step.kind == "RMSprop"


def _rounded_away(survey: Survey, node: int, one: _Parameter, call: Frame | None) -> Finding | None:
    """Return the finding about a parameter of a short dtype whose steps are smaller than gaps between its numbers."""
    timeline = survey.timeline
    value, rate = survey.nodes[node].value, options_of(timeline, node, one.first).get("lr")
    if value is None or value.dtype not in _BITS or not isinstance(rate, float | int):
        return None
    largest = _largest(value)
    if not largest:
        return None
    gap = float(_gaps(np.array(largest), value.dtype))
    step = timeline.event(one.first)
    is_normalized = isinstance(step, OptimizerStepped) and _is_normalized(step)
    if not abs(rate) * (1.0 if is_normalized else one.largest) < gap / 2:
        return None
    text = titled(f"every step rounds away in {value.dtype}: {{}} does not change", label(timeline, node))
    steps = f"near {number(largest)} the numbers of {value.dtype} are {number(gap)} apart; lr is {number(rate)}"
    size = f"{steps}, and the gradient is |g| {number(one.gradient)} ({one.steps} step{'s' * (one.steps != 1)})"
    part = Finding("gradient", size, one.filled, node)
    cast = _named_type(timeline, call, value.dtype)
    fix = "keep the parameters in float32, and compute the forward in the short dtype with torch.autocast"
    at, edit = cast if cast is not None else (call, None)
    return Finding("unchanged", text, one.first, node, (part,), fix, at, edit=edit)


# Parameters of a short dtype most of whose elements no step changes
#
# An element moves only if its step is at least half the gap to the next number of its dtype: with lr=1e-4, Adam moves
# the elements of bfloat16 below 0.05, and none near 1. Only parameters whose elements are all stored are counted. An
# optimizer with stochastic rounding also moves elements by a whole gap now and then, so nearly all moved elements must
# be those with small gaps. The exceptions are elements whose second moment has underflowed: Adam moves them far.

_FEWEST_STEPS, _MOST_STEPS = 5, 200
_MOSTLY = 0.5
_EXCEPTIONS = 0.2
_OFTEN = 4.0
"""The most times the learning rate that a step of an element is expected to be."""


@dataclass(slots=True)
class _Elements:
    """The elements of a parameter of a short dtype: as they are now, which have moved, and in how many steps.

    `at` is where the program made the dtype short; None without such a line.
    """

    dtype: str
    now: Array
    moved: Array
    at: Frame | None = None
    steps: int = 0


def _mostly_rounded_away(survey: Survey) -> Iterator[Finding | None]:
    """Yield the optimizer whose steps leave most elements of its parameters of a short dtype as they were."""
    found: dict[int, _Elements] = {}
    last: tuple[int, OptimizerStepped] | None = None
    for node in survey.optimized:
        _begin(found, node, survey.nodes[node].value if node in survey.nodes else None, None)
    written: dict[int, Array] = {}
    for seq, event in survey.select(StorageWritten, DataSet, OptimizerStepped):
        match event:
            case OptimizerStepped(parameters=stepped):
                for node in stepped:
                    one, new = found.get(node), written.pop(node, None)
                    if one is not None and new is not None and one.steps < _MOST_STEPS:
                        one.moved = one.moved | (new != one.now)
                        one.now, one.steps, last = new, one.steps + 1, (seq, event)
            case StorageWritten() | DataSet() if event.node in survey.optimized:
                yield None
                array = event.value.array()
                one = found.get(event.node)
                if one is not None and array is not None and array.shape == one.now.shape:
                    written[event.node] = array
                else:
                    frames = survey.timeline.stack(event.stack) if isinstance(event, DataSet) else ()
                    _begin(found, event.node, event.value, own_frame(frames))
    counted = {node: one for node, one in found.items() if one.steps >= _FEWEST_STEPS}
    if last is not None and counted:
        finding = _rounded_finding(survey, counted, *last)
        if finding is not None:
            yield finding


def _begin(found: dict[int, _Elements], node: int, value: Value | None, at: Frame | None) -> None:
    """Keep the elements of a parameter of a short dtype, and forget those of any other."""
    found.pop(node, None)
    if value is not None and value.dtype in _BITS and (array := value.array()) is not None:
        found[node] = _Elements(value.dtype, array, np.zeros(array.shape, bool), at)


def _rounded_finding(survey: Survey, found: dict[int, _Elements], seq: int, step: OptimizerStepped) -> Finding | None:
    timeline, (node, first) = survey.timeline, next(iter(found.items()))
    rate, dtype = options_of(timeline, node, seq).get("lr"), first.dtype
    if not isinstance(rate, float | int) or not rate or not _is_normalized(step):
        return None
    alike = [one for one in found.values() if one.dtype == dtype]
    sizes = np.abs(np.concatenate([one.now.ravel() for one in alike]).astype(np.float64))
    moved = np.concatenate([one.moved.ravel() for one in alike])
    if not np.isfinite(sizes).all():
        return None
    gaps = _gaps(sizes, dtype)
    stuck = ~moved & (gaps / 2 > abs(rate))
    by_whole_gaps = moved & (gaps / 2 > _OFTEN * abs(rate))
    if stuck.mean() < _MOSTLY or by_whole_gaps.sum() > _EXCEPTIONS * moved.sum():
        return None
    of = f"{stuck.mean():.0%} of the elements in {dtype} never change"
    text = titled(f"{of}: the steps of {{}} round away", shown(step.kind))
    typical = np.argsort(sizes[stuck])[stuck.sum() // 2]
    size, gap = (float(each[stuck][typical]) for each in (sizes, gaps))
    numbers = f"near {number(size)} the numbers of {dtype} are {number(gap)} apart, and lr is {number(rate)}"
    counted = f"{sizes.size:,} elements of {len(alike)} parameters in {max(one.steps for one in alike)} steps"
    part = Finding("gradient", f"{numbers} ({counted})", seq, node)
    call = next(iter(timeline.stack(step.stack)), None)
    at = next((one.at for one in alike if one.at is not None), None)
    if at is None:
        cast = _named_type(timeline, call, dtype)
        at = cast[0] if cast is not None else call
    fix = "keep the parameters in float32, and compute the forward in the short dtype with torch.autocast"
    return Finding("unchanged", text, seq, node, (part,), fix, at, (Number("share", float(stuck.mean()), seq),))


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

_FEWEST_LIMITED = 8
"""Fewer numbers than these may be equal to the limited ones by accident."""

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
    return was.size < _FEWEST_LIMITED or bool((became.reshape(-1).clip(-limit, limit) == was.reshape(-1)).all())


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
    edit = _straight_through(timeline, at) if is_own else None
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


# What the text of the program says


def _straight_through(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``self.weight.data = round(self.weight.data)`` with a rounded copy that passes the gradient through.

    ``weight = self.weight + (round(self.weight) - self.weight).detach()`` is what the rest of the function reads then.
    """
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Assign(targets=[ast.Attribute(value=ast.Attribute() as tensor, attr="data")], value=value):
            pass
        case _:
            return None
    if source is None or not isinstance(source[1].around[-1], ast.FunctionDef):
        return None
    (text, one), function = source, source[1].around[-1]
    name, whole, variable = text.segment(tensor), text.segment(value), tensor.attr
    later = [other for other in one.block if other.lineno > one.last]
    reads = [other for other in later if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", text.segment(other))]
    if not reads or variable in variables_of(text, function) or f"{name}.data" not in whole:
        return None
    rounded = whole.replace(f"{name}.data", name)
    rows = [f"{text.indent(one)}{variable} = {name} + ({rounded} - {name}).detach()"]
    last = max(other.end_lineno or other.lineno for other in reads)
    rows += [re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w])", variable, row) for row in text.rows[one.last : last]]
    return lines_replaced(text, one.first, last, "".join(f"{row}\n" for row in rows)) if text.is_alone(one) else None


_SHORT_TYPES = {"bfloat16": "bfloat16", "half": "float16", "float16": "float16"}
"""Types of two bytes, by the attribute of a module or the method that names them."""


def _named_type(timeline: Timeline, at: Frame | None, dtype: str) -> tuple[Frame, Edit | None] | None:
    """Return the first line that names a short type, ``torch.bfloat16`` or ``.half()``, and the edit to float32."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    for one in text.statements:
        for part in one.parts(ast.Attribute):
            if _SHORT_TYPES.get(part.attr) == dtype:
                is_type = isinstance(part.value, ast.Name) and part.value.id == "torch"
                new = "torch.float32" if is_type else f"{text.segment(part.value)}.float"
                return frame_of(at, one.first, text), node_replaced(text, part, new)
    return None
