"""Contributions of several uses: one parameter in several modules, how much each sent and how far they agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label
from gviz.explain.survey import Survey
from gviz.plain_text import shown


def found(survey: Survey) -> Iterator[Finding]:
    """Parameters that two modules of one kind use within one iteration: tied on purpose, or by a copied reference."""
    timeline = survey.timeline
    for made in survey.nodes.values():
        if made.created.kind != "parameter":
            continue
        users = [survey.nodes[node] for node in timeline.nodes.made_into.get(made.node, ()) if node in survey.nodes]
        places: defaultdict[str, set[str]] = defaultdict(set)
        for user in users:
            scope = survey.scopes.get(user.created.scope)
            if scope is not None:
                places[scope.kind].add(scope.name)
        apart = (sorted(_apart(names)) for names in places.values())
        names = next((names for names in apart if len(names) > 1), None)
        if names:
            where = ", ".join(map(shown, names[:4]))
            text = f"{label(timeline, made.node)} is one parameter in {len(names)} modules ({where}): they share it"
            fix = "make each module anew, or copy.deepcopy(layer), if they were to differ (leave it if tied on purpose)"
            at = innermost(timeline.info(made.node))
            yield Finding("shared", text, made.seq, made.node, (), fix, at, suspected=True)


def _apart(names: set[str]) -> set[str]:
    """Without those that are a part of another's model, called on its own before the model was: the same module."""
    return {name for name in names if not any(_is_part(name, other) for other in names)}


def _is_part(name: str, other: str) -> bool:
    """Whether what is called by its class, or the class of what it is in, has a path in another model that ends so."""
    (root, _, path), (model, _, whole) = name.partition("."), other.partition(".")
    return root != model and bool(whole) and f".{whole}".endswith(f".{path}" if path else "")


SHARED = Kind("shared", "warning", "one parameter that several modules use", find=found)
