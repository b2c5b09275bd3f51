"""Commands that rerun recorded operations with other numbers: ``whatif``, also over a range, ``gradcheck``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from gviz.errors import GvizError
from gviz.explain.whatif import (
    SHOW,
    Curve,
    ambiguous_names,
    branch_of,
    curves,
    default_expressions,
    difference_rows,
    expressions_in,
    require_engine,
    rerun_sentences,
    stop_sentences,
    untraced_number_sentences,
)
from gviz.render.curve import text_curve
from gviz.system.cooperative_work import LongWork, WorkProgress
from gviz.trace.graph_state import Iteration
from gviz.trace.timeline import Timeline
from gviz.tui import styled_lines
from gviz.tui.commands._paths import new_file
from gviz.tui.language.command import Answer, FrontEnd, View
from gviz.tui.session import Session
from gviz.tui.styled_lines import Line, line, wrapped
from gviz.values.plain_text import clipped, shown

SUFFIX = ".gviz"
"""The suffix of a file with a branch."""


def what_if(session: Session, text: str) -> View | Answer | LongWork[View]:
    """Run ``whatif [CHANGE]``: make one more change, and show all numbers that differ; without CHANGE show the changes.

    From then on every moment of the iteration shows both numbers, until all changes are undone. A range draws curves.
    """
    if ".." in text.partition("=")[2]:
        return sweep(session, text, _changes(session))
    changes = (*_changes(session), text) if text else _changes(session)
    return (
        _changed(session, changes) if changes else Answer(("nothing is changed; whatif x = 5 shows what would follow",))
    )


def undo(session: Session, _: str) -> View | Answer:
    """Run ``undo``: take the last change back."""
    changes = _changes(session)
    if not changes:
        return Answer(("nothing is changed",))
    if len(changes) > 1:
        return _changed(session, changes[:-1])
    session.cursor.asker.branch_view = None
    return Answer((f"undid {shown(changes[-1])}; nothing is changed",))


def _changes(session: Session) -> tuple[str, ...]:
    return () if session.branch_view is None else session.branch_view.changes


def _changed(session: Session, changes: tuple[str, ...]) -> View:
    from gviz.rerun.branch import BranchView

    timeline, iteration = session.timeline, session.timeline.iteration_at(session.cursor.position)
    branch = branch_of(timeline, iteration, changes)
    sentences = [
        *rerun_sentences(timeline, iteration),
        *ambiguous_names(timeline, iteration, changes),
        *stop_sentences(timeline, branch),
    ]
    rows = list(difference_rows(timeline, iteration, branch))
    reserves = list(untraced_number_sentences(timeline, iteration))
    session.cursor.asker.branch_view = BranchView(timeline, iteration, branch, changes)
    return View(f"What if {', '.join(map(shown, changes))}", partial(_lines, sentences, rows, reserves))


def export_branch(session: Session, path: str) -> Answer:
    """Run ``export FILE.gviz``: write the branch as a trace.

    Raises GvizError if nothing is changed or the file exists.
    """
    if session.branch_view is None:
        raise GvizError("nothing is changed", hint="whatif x = 5, then export branch.gviz", exit_code=2)
    target = new_file(path)
    session.branch_view.branch.write(target)
    return Answer((f"wrote {shown(str(target))}; gviz open {shown(str(target))} steps through it.",))


_ROW_INDENT = 21
"""Where the numbers of a row begin, below the name of its node."""


def _lines(before: Sequence[str], rows: Sequence[str], after: Sequence[str], width: int) -> Iterator[Line]:
    """Yield sentences, rows, and sentences again.

    Sentences and the first row are wrapped, because the gradient of what was changed is at its end. Other rows are cut.
    """
    for sentence in before:
        yield from styled_lines.wrapped(styled_lines.line(sentence), width)
    for row in rows[:1]:
        yield from styled_lines.wrapped(styled_lines.line(row), width, _ROW_INDENT)
    yield from (styled_lines.cut(styled_lines.line(row), width) for row in rows[1:])
    for sentence in after:
        yield from styled_lines.wrapped(styled_lines.line(sentence), width)


def set_(session: Session, text: str) -> FrontEnd | View | Answer | LongWork[View]:
    """Run ``set KEY VALUE``; ``set x = 5``, in gdb ``set var x = 5``, is ``whatif x = 5``."""
    if "=" in text:
        return what_if(session, text.removeprefix("var ").removeprefix("variable "))
    name, value = session.settings.parse(text)
    return FrontEnd("set", f"{name} {value}")


POINTS = 25
FEWEST_POINTS = 5
MOST_RUNS = 12_000
"""How many nodes are rerun while the user waits, for all points together: this takes two or three seconds."""


def sweep(session: Session, text: str, kept: Sequence[str]) -> LongWork[View]:
    """Run ``set x = -3..3 [--show EXPR,...]``: curves of a value and a gradient, on top of the `kept` changes.

    It changes nothing. Raises GvizError for an invalid range, and if too much would have to be rerun.
    """
    from gviz.rerun.change_parser import sweep

    timeline, iteration = session.timeline, session.timeline.iteration_at(session.cursor.position)
    require_engine(timeline)
    change, _, option = (part.strip() for part in text.partition(SHOW))
    points = list(sweep(change, _points(timeline, iteration, change)))
    if not points:
        branch_of(timeline, iteration, [change])  # raises the error that explains what is wrong
    what = change.partition("=")[0].strip()
    shows = expressions_in(option) or default_expressions(timeline, iteration, what)
    drawn, stopped = yield from curves(timeline, iteration, points, shows, kept)
    sentences = [
        *rerun_sentences(timeline, iteration),
        *ambiguous_names(timeline, iteration, (change,)),
        *stopped,
        *untraced_number_sentences(timeline, iteration),
        _as_svg((*kept, change), [text for text, _ in drawn]),
    ]
    title = f"What if {', '.join([clipped(each, 40) for each in (*kept, change)])}"
    return View(title, partial(_curve_lines, what, drawn, sentences, ascii=session.glyphs.ascii))


def _points(timeline: Timeline, iteration: Iteration, change: str) -> int:
    """Return how many points can be computed while the user waits."""
    nodes = len(timeline.nodes.of(iteration))
    points = min(POINTS, MOST_RUNS // max(nodes, 1))
    if points < FEWEST_POINTS:
        why = f"the iteration has {nodes} nodes, and each is run again for every point"
        hint = f'outside of the debugger: gviz whatif TRACE "{clipped(change, 40)}" {SHOW} z,x.grad'
        raise GvizError("this range would take long", why=why, hint=hint, exit_code=2)
    return points


def _as_svg(changes: Sequence[str], shows: Sequence[str]) -> str:
    quoted = " ".join([f'"{clipped(change, 40)}"' for change in changes])
    return f'as a picture: gviz whatif TRACE {quoted} {SHOW} "{clipped(",".join(shows), 40)}" -o curve.svg'


def _curve_lines(
    what: str, drawn: Sequence[Curve], sentences: Sequence[str], width: int, *, ascii: bool
) -> Iterator[Line]:
    for text, points in drawn:
        title, *rows = text_curve(f"{text} over {what}", points, ascii=ascii)
        yield styled_lines.line((title, "title"))
        yield from (styled_lines.cut(styled_lines.line((row, "value")), width) for row in rows)
        yield ()
    for sentence in sentences:
        yield from styled_lines.wrapped(styled_lines.line((sentence, "muted")), width)


def gradcheck(session: Session, place: str) -> LongWork[View]:
    """Run ``gradcheck [PLACE]``: check the backward rule of a node; for a leaf, the rules of all its users."""
    timeline, cursor = session.timeline, session.cursor
    node = cursor.asker.last(place, cursor.position) if place else cursor.selected
    if not node:
        raise GvizError("no node is selected", hint="j and k select one", exit_code=2)
    from gviz.explain.gradcheck_report import check_node, check_rows, checkable_nodes  # lazy: it imports the engine

    nodes = checkable_nodes(timeline, node)
    rows: list[str] = []
    for at, one in enumerate(nodes):
        yield WorkProgress("running again: node", at, len(nodes))
        result = check_node(timeline, one, cursor.position)
        if result.refusal is not None and len(nodes) == 1:
            raise result.refusal
        rows += check_rows(timeline, result)
    return View("Gradients by differences", partial(_check_lines, rows))


def _check_lines(rows: list[str], width: int) -> Iterator[Line]:
    for row in rows:
        yield from wrapped(line(row), width, 4)
