"""Parameters that steps leave as they were, and parameters that several modules share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gviz.events import DataSet, GradAccumulated, OptimizerStepped, StorageWritten
from gviz.explain.display_names import innermost, label
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.vanishing_exploding import Waypoint, is_cancelled, path_to, vanishing
from gviz.explain.recording_overview import Survey
from gviz.values.number_text import number
from gviz.values.plain_text import shown
from gviz.values.value import Value
from gviz.values.value_text import norm


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


def unchanged(survey: Survey) -> Iterator[Finding | None]:
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
            way = path_to(survey.timeline, node, one.filled, one.gradient)
            if not is_cancelled(way):  # a bias before a normalization can do nothing
                yield _unchanged_finding(survey, node, one, way)


def _updates(survey: Survey, known: dict[int, _Parameter]) -> Iterator[tuple[int, list[int]]]:
    """The events, each with the parameters that had a gradient and were written by a step that it ends.

    The result for each parameter is kept in `known`; after a parameter has moved it is not compared again.
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
    """The numbers without the shape: a memory has another shape than the parameter in it."""
    return None if value is None else (value.data, value.stats, value.blob)


def _unchanged_finding(survey: Survey, node: int, one: _Parameter, way: list[Waypoint]) -> Finding:
    timeline = survey.timeline
    often, have = (f"{one.steps} steps", "have") if one.steps > 1 else ("a step", "has")
    text = f"{often} of the optimizer {have} left {label(timeline, node)} as it was"
    text += "" if one.exact else ", as far as its statistics tell"
    died = vanishing(timeline, way)
    size = Finding("gradient", f"its gradient was |g| {number(one.gradient)}", one.filled, node)
    part = replace(died, fix="") if died is not None else size
    fix = died.fix if died is not None else "a larger learning rate: it is 0, or so small that the change rounds away"
    numbers = (Number("length of the gradient", one.gradient, one.filled),)
    at, suspected = innermost(timeline.info(node)), one.steps == 1 or not one.exact
    return Finding("unchanged", text, one.first, node, (part,), fix, at, numbers, suspected)


# One parameter in several modules


def shared(survey: Survey) -> Iterator[Finding | None]:
    """Parameters that two modules of one kind use in one call of a model: tied on purpose, or by a copied reference.

    A module that is also called on its own has another path there. One that a list has several times, as
    ``[layer] * 3`` has, is found by the paths of its parameters, too.
    """
    timeline = survey.timeline
    for made in survey.nodes.values():
        if made.created.kind != "parameter":
            continue
        yield None
        info = timeline.info(made.node)
        if names := _sharing(survey, made.node):
            text = f"is one parameter in {len(names)} modules ({_listed(names)}): they share it"
        elif names := _places((info.name, *info.also)):
            text = f"is of one module that stands {len(names)} times in a list ({_listed(names)})"
        else:
            continue
        fix = "make each module anew, or copy.deepcopy(layer), if they were to differ (leave it if tied on purpose)"
        text = f"{label(timeline, made.node)} {text}"
        yield Finding("shared", text, made.seq, made.node, (), fix, innermost(info), suspected=True)


def _sharing(survey: Survey, parameter: int) -> list[str]:
    """The modules of one kind that use a parameter in one call of a model; empty if there is only one."""
    users = [survey.nodes[node] for node in survey.timeline.nodes.made_into.get(parameter, ()) if node in survey.nodes]
    places: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for user in users:
        scope = survey.scopes.get(user.created.scope)
        if scope is not None:
            places[scope.kind, survey.outermost(scope.scope)].add(scope.name)
    return next((sorted(names) for names in places.values() if len(names) > 1), [])


def _places(paths: Sequence[str]) -> list[str]:
    """The modules of a list that hold a parameter with these paths, if the paths differ in only one index."""
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
"""Elements that two parameters have in common by no accident."""


def untied(survey: Survey) -> Iterator[Finding | None]:
    """Weights of a linear layer that begin with the numbers of an embedding's, and are trained apart from it.

    ``load_state_dict(assign=True)``, ``deepcopy`` of one of two modules and ``.to()`` of a copy untie what was one.
    """
    timeline = survey.timeline
    added = {event.node for _, event in survey.accumulated}
    words = {next(survey.sources(made)).node for made in survey.ops("embedding") if made.created.inputs[0][0] in added}
    for made in map(survey.nodes.get, added & survey.optimized if words else ()):
        yield None
        if made is None or made.created.kind != "parameter" or made.node in words or not _is_varied(made.value):
            continue
        twin = next((node for node in words if _numbers(survey.nodes[node].value) == _numbers(made.value)), 0)
        same = twin and survey.nodes[twin].shape == made.shape and twin in survey.optimized
        if not same:
            continue
        text = f"{label(timeline, made.node)} begins as a copy of {label(timeline, twin)}, and both are trained apart"
        size = f"all of its {made.value.size if made.value is not None else 0:,} elements are equal at the start"
        part = Finding("first", size, made.seq, made.node)
        fix = "tie them again after the copy: output.weight = embedding.weight, before the optimizer is made"
        yield Finding("untied", text, made.seq, made.node, (part,), fix, innermost(timeline.info(made.node)))


def _is_varied(value: Value | None) -> bool:
    """Whether a value has enough different elements that an equal value is no accident."""
    stats = value.statistics() if value is not None else None
    return value is not None and value.size >= _FEWEST and stats is not None and stats.min < stats.max
