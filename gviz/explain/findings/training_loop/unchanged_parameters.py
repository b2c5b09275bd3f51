"""Parameters that optimizer steps do not change. Their gradient vanishes, or their learning rate is too small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
from gviz.explain.findings.training_loop.steps_below_precision import largest_element, mostly_rounded_away, rounded_away
from gviz.explain.grad_history import is_zero
from gviz.explain.parameter_updates import StepEffects, numbers_without_shape, options_of, written_parameter
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import at_text, innermost
from gviz.values.number_text import number
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
    if (rounded := rounded_away(survey, node, one, call)) is not None:
        return replace(rounded, suspected=suspected)
    fix = died.fix if died is not None else _LARGER_RATE
    numbers = (Number("length of the gradient", one.gradient, one.filled),)
    at = call or innermost(timeline.info(node))
    return Finding("unchanged", text, one.first, node, (part,), fix, at, numbers, suspected)


_LARGER_RATE = "use a larger learning rate: it is 0, or so small that the change rounds away"


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
