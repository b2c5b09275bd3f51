"""Contributions of several uses: one parameter in several modules, how much each sent and how far they agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label
from gviz.explain.survey import Survey
from gviz.plain_text import shown


def found(survey: Survey) -> Iterator[Finding | None]:
    """Parameters that two modules of one kind use in one call of a model: tied on purpose, or by a copied reference.

    A module that is also called on its own has another path there.
    """
    timeline = survey.timeline
    for made in survey.nodes.values():
        if made.created.kind != "parameter":
            continue
        yield None
        users = [survey.nodes[node] for node in timeline.nodes.made_into.get(made.node, ()) if node in survey.nodes]
        places: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        for user in users:
            scope = survey.scopes.get(user.created.scope)
            if scope is not None:
                places[scope.kind, survey.outermost(scope.scope)].add(scope.name)
        names = next((sorted(names) for names in places.values() if len(names) > 1), None)
        if names:
            where = ", ".join(map(shown, names[:4]))
            text = f"{label(timeline, made.node)} is one parameter in {len(names)} modules ({where}): they share it"
            fix = "make each module anew, or copy.deepcopy(layer), if they were to differ (leave it if tied on purpose)"
            at = innermost(timeline.info(made.node))
            yield Finding("shared", text, made.seq, made.node, (), fix, at, suspected=True)


SHARED = Kind("shared", "suspicion", "one parameter that several modules use", find=found)
