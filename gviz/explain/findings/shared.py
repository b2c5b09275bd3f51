"""Contributions of several uses: one parameter in several modules, how much each sent and how far they agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label
from gviz.explain.survey import Survey
from gviz.plain_text import shown


def found(survey: Survey) -> Iterator[Finding | None]:
    """Parameters that two modules of one kind use in one call of a model: tied on purpose, or by a copied reference.

    A module that is also called on its own has another path there. One that a list has several times, as
    ``[layer] * 3`` has, is told by its parameters too.
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
    """The modules of one kind that use a parameter in one call of a model; none if it is one alone."""
    users = [survey.nodes[node] for node in survey.timeline.nodes.made_into.get(parameter, ()) if node in survey.nodes]
    places: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for user in users:
        scope = survey.scopes.get(user.created.scope)
        if scope is not None:
            places[scope.kind, survey.outermost(scope.scope)].add(scope.name)
    return next((sorted(names) for names in places.values() if len(names) > 1), [])


def _places(paths: Sequence[str]) -> list[str]:
    """The modules of a list that a parameter with these paths is of, if the paths differ in one index alone."""
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


SHARED = Kind("shared", "suspicion", "one parameter that several modules use", find=found)
