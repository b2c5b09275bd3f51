"""A parameter that its optimizer has left as it was, though it had a gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gviz.events import DataSet, GradAccumulated, OptimizerStepped, StorageWritten
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.along import Waypoint, cancels, died_out, way_to
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label
from gviz.explain.survey import Survey
from gviz.numbers import number
from gviz.value_text import norm
from gviz.values import Value


@dataclass(slots=True)
class _Parameter:
    """What the steps did to one parameter: the length of its gradient, the event of the first step, and how many.

    It is `exact` as long as all its numbers were compared, not their statistics.
    """

    gradient: float = 0.0
    filled: int = 0
    first: int = 0
    steps: int = 0
    moved: bool = False
    exact: bool = True


def found(survey: Survey) -> Iterator[Finding | None]:
    """Parameters that were written by every step, always with the numbers they had before."""
    known: dict[int, _Parameter] = {}
    for seq, stepped in _updates(survey, known):
        yield None
        for one in (known[node] for node in stepped):
            one.first = one.first or seq
            one.steps += 1
    for node, one in known.items():
        if one.steps and not one.moved:
            yield None
            way = way_to(survey.timeline, node, one.filled, one.gradient)
            if not cancels(way):  # a bias before a normalization can do nothing
                yield _finding(survey, node, one, way)


def _updates(survey: Survey, known: dict[int, _Parameter]) -> Iterator[tuple[int, list[int]]]:
    """The events, each with the parameters that had a gradient and were written by a step that it ends.

    What became of a parameter is noted in `known`, until it has moved: nothing is asked of it then.
    """
    parameters = [survey.nodes[node] for node in survey.optimized if node in survey.nodes]
    alone = ((made, made.created.outputs[0]) for made in parameters)  # those that share a memory are told one by one
    owners = {output.storage: made.node for made, output in alone if output.strides is None}
    holds = {made.node: made.value for made in parameters}
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
            case GradAccumulated(node=node, part=part):
                one = known.setdefault(node, _Parameter())
                if not one.moved:
                    one.gradient, one.filled = norm(part) or 0.0, seq
            case OptimizerStepped(parameters=stepped):
                yield seq, [node for node in stepped if node in written and known[node].gradient]
                written.difference_update(stepped)
                continue
        yield seq, []


def _written(event: StorageWritten | DataSet, owners: dict[int, int]) -> int:
    """The parameter that was written to, 0 for anything else."""
    return owners.get(event.storage, 0) if isinstance(event, StorageWritten) else event.node


def _numbers(value: Value | None) -> tuple[object, ...] | None:
    """What is known of the elements; memory has no shape, or another one than the parameter that lies in it."""
    return None if value is None else (value.data, value.stats, value.blob)


def _finding(survey: Survey, node: int, one: _Parameter, way: list[Waypoint]) -> Finding:
    timeline = survey.timeline
    often, have = (f"{one.steps} steps", "have") if one.steps > 1 else ("a step", "has")
    text = f"{often} of the optimizer {have} left {label(timeline, node)} as it was"
    text += "" if one.exact else ", as far as its statistics tell"
    died = died_out(timeline, way)
    size = Finding("gradient", f"its gradient was |g| {number(one.gradient)}", one.filled, node)
    part = replace(died, fix="") if died is not None else size
    fix = died.fix if died is not None else "a larger learning rate: it is 0, or so small that the change rounds away"
    numbers = (Number("length of the gradient", one.gradient, one.filled),)
    at, suspected = innermost(timeline.info(node)), one.steps == 1 or not one.exact
    return Finding("unchanged", text, one.first, node, (part,), fix, at, numbers, suspected)


UNCHANGED = Kind("unchanged", "warning", "a parameter that steps with a gradient have not moved", find=found)
