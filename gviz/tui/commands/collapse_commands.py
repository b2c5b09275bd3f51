"""Commands that collapse and expand modules and show a part of the graph; they answer with its size."""

from __future__ import annotations

from functools import partial

from gviz.errors import GvizError, did_you_mean
from gviz.tui.drawing.module_tree import module_lines
from gviz.tui.graph_view import AUTOMATIC, GRAPH_LEVELS
from gviz.tui.language.command import Answer, View
from gviz.tui.session import Session
from gviz.values.number_text import typed_count
from gviz.values.plain_text import clipped, shown

_MOST_LINES = 999


def modules(session: Session, _: str) -> View:
    """Run ``modules``."""
    return View("Modules", partial(module_lines, session.folds, session.moment, session.glyphs), panel="modules")


def level(session: Session, name: str) -> Answer:
    """Run ``level [modules|calls|nodes|auto]``."""
    levels = {level: level for level in GRAPH_LEVELS}
    iteration = session.timeline.iteration_at(session.cursor.position)
    if name == AUTOMATIC:
        session.folds.choose_automatically()
        return _answer(session, f"level {session.folds.level_of(iteration)}, chosen automatically")
    if name and name not in levels:
        hint = did_you_mean(name, levels, f"the levels are {', '.join([*levels, AUTOMATIC])}")
        raise GvizError(f"there is no level {clipped(name, 20)}", hint=hint, exit_code=2)
    session.folds.level = levels[name] if name else session.folds.next_level(iteration)
    return _answer(session, f"level {session.folds.level}, {GRAPH_LEVELS[session.folds.level]}")


def close(session: Session, path: str) -> Answer:
    """Run ``close [MODULE|all]``."""
    if path == "all":
        session.folds.collapse_all(session.timeline.iteration_at(session.cursor.position))
        return _answer(session, "every module is collapsed")
    return _answer(session, f"{shown(session.folds.collapse(session.cursor.selected, path))} is collapsed")


def open_(session: Session, path: str) -> Answer:
    """Run ``open [MODULE|all]``."""
    if path == "all":
        session.folds.expand_all()
        return _answer(session, "every module is expanded")
    return _answer(session, f"{shown(session.folds.expand(session.cursor.selected, path))} is expanded")


def ancestors(session: Session, place: str) -> Answer:
    """Run ``ancestors [PLACE]``."""
    node = session.cursor.node_at(place)
    shown_already = session.folds.shown_part() == f"what #{node} was made from"
    session.folds.focus(0 if shown_already else _some(node), ancestors=not shown_already)
    return _answer(session, session.folds.shown_part() or "the whole graph")


def near(session: Session, text: str) -> Answer:
    """Run ``near [LINES]``."""
    radius = typed_count(text or "2")
    if radius is None or radius > _MOST_LINES:
        raise GvizError(f"near takes a number of lines, not {clipped(text, 20)}", hint="near 2", exit_code=2)
    session.folds.focus(_here(session) if radius else 0, radius=radius)
    return _answer(session, session.folds.shown_part() or "the whole graph")


def next_focus(session: Session) -> Answer:
    """Show the next part: ancestors, neighbourhood, all."""
    session.folds.next_focus(_here(session))
    return _answer(session, session.folds.shown_part() or "the whole graph")


def _some(node: int) -> int:
    if not node:
        raise GvizError("no node is selected", hint="j and k select one", exit_code=2)
    return node


def _here(session: Session) -> int:
    """Return the selected node. Raises GvizError unless it is in the graph that is shown."""
    node, iteration = _some(session.cursor.selected), session.timeline.iteration_at(session.cursor.position)
    if node not in session.timeline.nodes.of(iteration):
        raise GvizError(f"#{node} is in the graph of another iteration", hint="t goes there", exit_code=2)
    return node


def _answer(session: Session, action: str) -> Answer:
    """Return the answer: what was done, and how many boxes the graph has now."""
    folded = session.folds.folded(session.timeline.iteration_at(session.cursor.position))
    boxes = len(folded.shown) + len(folded.groups)
    hidden = f", {len(folded.groups)} of them collapsed" if folded.groups else ""
    return Answer((f"{action}: {boxes} box{'' if boxes == 1 else 'es'}{hidden}",))
