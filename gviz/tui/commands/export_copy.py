"""Commands that export: a picture, a number or script for the clipboard, a report about gviz."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from gviz.errors import GvizError, NotStored
from gviz.explain.display_names import label, label_at
from gviz.query.expressions import value_of
from gviz.system.crash import write_status_report
from gviz.system.files import write_whole
from gviz.trace.graph_state import OutputState
from gviz.trace.node_gradients import in_its_iteration
from gviz.trace.timeline import Timeline
from gviz.tui.commands import what_if
from gviz.tui.commands._paths import new_file
from gviz.tui.commands.expressions import MOST_ELEMENTS
from gviz.tui.language.command import Answer, FrontEnd
from gviz.tui.session import Session
from gviz.tui.session_options import Title
from gviz.values.plain_text import clipped, shown, text_of
from gviz.values.value import Value
from gviz.values.value_text import grad, short

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView

TIMEOUT = 10.0
"""Seconds that Graphviz gets while the user waits; then a simpler layout is drawn."""


def export(session: Session, path: str) -> Answer:
    """Run ``export FILE``: the current moment, or the branch of a what-if as a recording."""
    if path.endswith(what_if.SUFFIX):
        return what_if.export_branch(session, path)
    return Answer(
        tuple(f"{row}." for row in _write(session.timeline, session.cursor.position, path, session.branch_view))
    )


def _write(timeline: Timeline, n: int, path: str, view: BranchView | None) -> tuple[str, ...]:
    """Write moment `n` to a new file, in the format of its suffix; with the numbers of a what-if next to its own.

    Returns what was done, and notes about the file, each without a full stop.
    """
    from gviz.render.file_formats import exporter_for  # Graphviz is only needed here
    from gviz.render.picture_request import ExportOptions

    notes: list[str] = []
    exporter = exporter_for(path)
    options, without = ExportOptions(timeout=TIMEOUT, note=notes.append), ""
    if view is not None and view.covers(n) and not (exporter.moves or exporter.opens):
        changes = ", ".join(map(shown, view.changes))
        options = replace(options, other=partial(view.states, n=n), change=changes)
    elif view is not None:  # a what-if covers only some of the moments of a moving picture or a page
        without = "; it shows the recording without the what-if"
    picture = exporter.render(timeline, n, options)
    data = picture if isinstance(picture, bytes) else picture.encode("utf-8", "backslashreplace")
    write_new(path, data)
    return (f"wrote {shown(path)} (event {n}){without}", *(note.rstrip(".") for note in notes))


def write_new(path: str, data: bytes) -> None:
    """Write a new file as a whole. Raises GvizError if it exists or cannot be written."""
    write_whole([(new_file(path), data)])


def usual_name(title: Title, n: int) -> str:
    """Return a file name for the picture of moment `n` of a program or trace: ``train-12.svg``."""
    return f"{PurePath(title.file).stem or 'gviz'}-{n}.svg"


OF_NODE = ("value", "grad", "node", "script")
"""The words for what can be copied of the selected node."""


def copy(session: Session, text: str) -> FrontEnd | Answer:
    """Run ``copy [value|grad|node|script [FILE]|EXPR]``."""
    text = text.strip() or "value"
    if text == "node":
        return FrontEnd("copy", _line_of(session, _selected(session)))
    word, _, path = text.partition(" ")
    if word == "script":
        return _script(session, path.strip())
    if text in ("value", "grad"):
        return FrontEnd("copy", _as_python(_numbers(session, text), f"the {text}"))
    asker, position = session.cursor.asker, session.cursor.position
    return FrontEnd("copy", _as_python(value_of(session.timeline, asker.names, position, text), clipped(text, 40)))


def _script(session: Session, path: str) -> FrontEnd | Answer:
    from gviz.rerun.reproduction_script import script  # imports the engine: only on demand

    text = script(session.timeline, session.cursor.position, _selected(session))
    if not path:
        return FrontEnd("copy script", text)
    write_new(path, text.encode("utf-8", "backslashreplace"))
    return Answer((f"wrote {shown(path)}",))


def _selected(session: Session) -> int:
    if not session.cursor.selected:
        raise GvizError("no node is selected", hint="j and k select one", exit_code=2)
    return session.cursor.selected


def _numbers(session: Session, what: str) -> Any:
    """Return the value of the selected node, or its gradient as shown: ``.grad``, else the incoming gradient."""
    node = _selected(session)
    state = in_its_iteration(session.timeline, session.moment.n, session.moment.state(node))
    value = None if state is None or not state.outputs else _tensor(state.outputs[0], what)
    if value is None:
        which = label(session.timeline, node)
        raise GvizError(f"{which} has no {what} at event {session.cursor.position}", exit_code=2)
    array = session.timeline.array(value)
    if array is None:
        raise NotStored(f"the {what} of #{node}")
    return array


def _tensor(output: OutputState, what: str) -> Value | None:
    return output.value if what == "value" else output.grad if output.grad is not None else output.incoming


def _as_python(result: Any, what: str) -> str:
    """Return numbers with all their digits, to be pasted into a program; return anything else as it prints."""
    if not isinstance(result, (np.ndarray, np.generic, bool, int, float)):
        return shown(text_of(result))
    array = np.asarray(result)
    if array.size > MOST_ELEMENTS:
        raise GvizError(f"{what} has {array.size:,} elements", hint=f"copy a part, such as {what}[0]", exit_code=2)
    if not array.ndim:
        return str(array[()])
    return np.array2string(array, separator=", ", threshold=MOST_ELEMENTS, max_line_width=100, floatmode="unique")


def _line_of(session: Session, node: int) -> str:
    """Return ``#4 b = mul at demo.py:4, event 12: value -18, grad 1``."""
    state = in_its_iteration(session.timeline, session.moment.n, session.moment.state(node))
    first = state.outputs[0] if state is not None and state.outputs else None
    looks = f"value {short(first.value)}, grad {grad(_tensor(first, 'grad'))}" if first is not None else "not made yet"
    return f"{label_at(session.timeline, node)}, event {session.cursor.position}: {looks}"


def report(session: Session, _: str) -> Answer:
    """Run ``report``."""
    try:
        path = write_status_report(_facts(session))
    except OSError as trouble:
        raise GvizError("no report could be written", why=clipped(str(trouble), 80)) from None
    return Answer((f"report written to {shown(str(path))}; it contains no values, names or source of the program",))


def _facts(session: Session) -> tuple[str, ...]:
    """Return the size of the recording, as counts only."""
    timeline, (columns, rows) = session.timeline, shutil.get_terminal_size()
    settings = " ".join(f"{name}={value}" for name, value in session.settings.values.items())
    return (
        f"size {columns}x{rows}",
        f"settings {settings}",
        f"framework {timeline.framework}",
        f"recording of {len(timeline)} events, {len(timeline.nodes)} nodes, {len(timeline.iterations)} iterations, "
        f"{len(timeline.phases)} phases, {len(timeline.failures)} failures",
        f"position {session.cursor.position}, selected #{session.cursor.selected}",
        f"growing {session.cursor.growing}",
    )
