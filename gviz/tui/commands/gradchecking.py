"""``gradcheck``: whether the gradients that a node sent on are what a small change of its inputs says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gviz.driven import Driven, Far
from gviz.errors import GvizError
from gviz.tui.language.command import Look
from gviz.tui.lines import Line, line, wrapped
from gviz.tui.session import Session


def gradcheck(session: Session, place: str) -> Driven[Look]:
    """``gradcheck [PLACE]``: the rule of a node; of a leaf the rules of all that use it."""
    timeline, cursor = session.timeline, session.cursor
    node = cursor.asker.last(place, cursor.position) if place else cursor.selected
    if not node:
        raise GvizError("no node is selected", hint="j and k select one", exit_code=2)
    from gviz.explain.gradcheck import check_node, check_rows, checkable_nodes  # they need the engine

    nodes = checkable_nodes(timeline, node)
    said: list[str] = []
    for done, one in enumerate(nodes):
        yield Far("running again: node", done, len(nodes))
        found = check_node(timeline, one, cursor.position)
        if found.refusal is not None and len(nodes) == 1:
            raise found.refusal
        said += check_rows(timeline, found)
    return Look("Gradients by differences", partial(_lines, said))


def _lines(rows: list[str], width: int) -> Iterator[Line]:
    for row in rows:
        yield from wrapped(line(row), width, 4)
