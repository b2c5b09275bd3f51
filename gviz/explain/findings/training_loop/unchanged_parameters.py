"""Parameters that optimizer steps do not change: the gradient vanishes, the rate is tiny, or the steps round away."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from gviz.events import (
    DataSet,
    GradAccumulated,
    GradSet,
    OptimizerStepped,
    StorageWritten,
)
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.gradient_values.vanishing_exploding import Waypoint, is_cancelled, path_to, vanishing
from gviz.explain.findings.training_loop.gradient_clipping import CLIPPING
from gviz.explain.grad_history import is_zero, writes_since_pass
from gviz.explain.parameter_updates import StepEffects, next_step, numbers_without_shape, options_of, written_parameter
from gviz.explain.program_text import called_function, frame_of, program_text
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import Edit, node_replaced
from gviz.explain.source_frames import at_text, innermost, own_frame
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown
from gviz.values.value import Array, Value
from gviz.values.value_text import norm


def unchanged(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters that optimizer steps wrote, but never changed."""
    known: dict[int, StepEffects] = {}
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
        yield from mostly_rounded_away(survey)


def _updates(survey: Survey, known: dict[int, StepEffects]) -> Iterator[tuple[int, list[int]]]:
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
            case StorageWritten() | DataSet() if (node := written_parameter(event, owners)) in holds:
                one = known.setdefault(node, StepEffects())
                if not one.moved:
                    one.moved = numbers_without_shape(event.value) != numbers_without_shape(holds[node])
                    one.exact &= (event.value.data or event.value.blob) is not None
                    holds[node] = event.value
                    written.add(node)
            case GradAccumulated(node=node, part=part, value=value):
                one, total = known.setdefault(node, StepEffects()), part if value is None else value
                if not one.moved:  # the contributions of several passes may cancel each other
                    one.gradient, one.filled = norm(total) or 0.0, seq
                    one.largest = max(one.largest, largest_element(total))
            case OptimizerStepped(parameters=stepped):
                yield seq, [node for node in stepped if node in written and known[node].gradient]
                written.difference_update(stepped)
                continue
        yield seq, []


def _unchanged_finding(survey: Survey, node: int, one: StepEffects, path: list[Waypoint]) -> Finding:
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
    if (shrunk := _shrunk(survey, node, one, text)) is not None:
        return replace(shrunk, suspected=suspected)
    if (rounded := rounded_away(survey, node, one, call)) is not None:
        return replace(rounded, suspected=suspected)
    fix = died.fix if died is not None else _LARGER_RATE
    numbers = (Number("length of the gradient", one.gradient, one.filled),)
    at = call or innermost(timeline.info(node))
    return Finding("unchanged", text, one.first, node, (part,), fix, at, numbers, suspected)


_LARGER_RATE = "use a larger learning rate: it is 0, or so small that the change rounds away"


_SHRUNK = 1e-3
"""The most that is left of a gradient if a write of the program counts as the reason that steps do nothing."""


def _shrunk(survey: Survey, node: int, one: StepEffects, text: str) -> Finding | None:
    """Return the finding about a clipping, or another write, that left the step almost nothing of a gradient."""
    timeline, step = survey.timeline, next_step(survey.timeline, node, one.filled)
    writes = writes_since_pass(timeline, node, step)[1] if step else []
    last = writes[-1] if writes else None
    size = norm(last.after) if last is not None and last.after is not None else None
    if last is None or not size or not one.gradient or size > _SHRUNK * one.gradient:
        return None
    name = called_function(timeline, last.at)
    is_clipping = name in CLIPPING
    what = name if is_clipping else "a line of the program"
    was = (
        f"backward made its .grad |g| {number(one.gradient)}, and {what}{at_text(last.frames)} left |g| {number(size)}"
    )
    part = Finding("gradient", was, last.seq, node)
    fix = "keep more of the gradient there: the step gets almost nothing of it"
    if is_clipping:
        fix = f"clip at a larger {'norm' if name == 'clip_grad_norm_' else 'value'}, such as 1.0: this one is tiny"
    numbers = (Number("length of the gradient", size, last.seq),)
    return Finding("unchanged", text, one.first, node, (part,), fix, last.at, numbers)


def _replaced(survey: Survey, node: int, one: StepEffects) -> Finding | None:
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


# ----------------------------------------------------------------------------------------------------------------------
# Optimizer steps that are smaller than the gaps between the numbers of float16 or bfloat16, and round away.


def largest_element(value: Value) -> float:
    """Return the largest absolute element; 0 if no element is finite or nothing was stored."""
    stats = value.statistics()
    size = max(abs(stats.min), abs(stats.max)) if stats is not None else 0.0
    return size if isfinite(size) else 0.0


_BITS = {"bfloat16": 8, "float16": 11}
"""The significant bits of the short dtypes."""


_LEAST = 1e-30


def _gaps(sizes: Array, dtype: str) -> Array:
    """Return the distance from each size to the next number of a short dtype."""
    return np.asarray(2.0 ** (np.floor(np.log2(np.maximum(sizes, _LEAST))) + 1 - _BITS[dtype]))


def _is_normalized(step: OptimizerStepped) -> bool:
    """Return whether the steps of an optimizer have about the size of its rate, whatever the gradient is."""
    return "Adam" in step.kind or step.kind == "RMSprop"


def rounded_away(survey: Survey, node: int, one: StepEffects, call: Frame | None) -> Finding | None:
    """Return the finding about a parameter of a short dtype whose steps are smaller than gaps between its numbers."""
    timeline = survey.timeline
    value, rate = survey.nodes[node].value, options_of(timeline, node, one.first).get("lr")
    if value is None or value.dtype not in _BITS or not isinstance(rate, float | int):
        return None
    largest = largest_element(value)
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


def mostly_rounded_away(survey: Survey) -> Iterator[Finding | None]:
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
