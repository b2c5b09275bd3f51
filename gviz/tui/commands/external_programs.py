"""Commands that leave the debugger for a while: a Python shell, an editor, a browser."""

from __future__ import annotations

import os
import shlex
import subprocess
from bisect import bisect_right
from code import interact
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from gviz.errors import GvizError
from gviz.query.expressions import value_of
from gviz.system.files import write_whole
from gviz.trace.graph_state import OutputState
from gviz.trace.timeline import Timeline
from gviz.tui.commands import expressions
from gviz.tui.language.command import Answer, TerminalTask
from gviz.tui.session import Session
from gviz.values.plain_text import clipped, shown
from gviz.values.value import Array, Value

NEWEST_NODES = 1000
"""How many of the newest nodes are searched for names, which become variables of the shell."""
BROWSER_SECONDS = 10.0

_GOES_BY_COLON = {"code", "codium", "cursor", "windsurf", "zed", "subl", "hx"}
"""Editors that take ``FILE:LINE``; every other one takes ``+LINE FILE``."""


def python(session: Session, text: str) -> TerminalTask | Answer:
    """Run ``python`` with copies of the numbers: nothing typed there changes the recording. ``!x`` is ``print x``."""
    if text:
        return Answer((*expressions.evaluate(session.cursor.asker, text, session.cursor.position),))
    n, timeline, names = session.cursor.position, session.timeline, session.cursor.asker.names
    known = numbers(session)
    banner = (
        f"event {n}: np, {clipped(', '.join(known) or 'no names yet', 200)}\n"
        "ask('x.grad * 2') evaluates as print does. Nothing here changes the recording.\nCtrl+D: back."
    )

    def ask(text: str) -> Any:
        try:
            return value_of(timeline, names, n, text)
        except GvizError as error:
            print(*error.lines(), sep="\n")

    def leave(code: object = None) -> NoReturn:
        raise SystemExit(code)  # Python's own exit() closes standard input, which the debugger still reads

    def run() -> str:
        with suppress(SystemExit):
            interact(banner, local={**known, "np": np, "ask": ask, "exit": leave, "quit": leave}, exitmsg="")
        return "back from Python"

    return TerminalTask(run)


def numbers(session: Session) -> dict[str, Array]:
    """Return the stored values of named tensors at the current moment, as ``x``, and their gradients, as ``x_grad``.

    The gradient of a tensor without ``.grad`` is its incoming gradient.
    """
    timeline, moment = session.timeline, session.moment
    count = bisect_right(timeline.nodes, moment.n, key=timeline.nodes.born)
    nodes = timeline.nodes[max(0, count - NEWEST_NODES) : count]
    arrays: dict[str, Array] = {}
    for node, state in zip(nodes, moment.states(nodes), strict=True):
        name = timeline.info(node).name.replace(".", "_")
        if name.isidentifier() and state is not None and state.outputs:
            values = (("", state.outputs[0].value), ("_grad", _grad(state.outputs[0])))
            arrays |= {name + kind: array for kind, value in values if (array := _copy(session, value)) is not None}
    return arrays


def _grad(output: OutputState) -> Value | None:
    return output.grad if output.grad is not None else output.incoming


def _copy(session: Session, value: Value | None) -> Array | None:
    array = session.timeline.array(value) if value is not None else None
    if array is None:
        return None
    array = array.copy()
    array.flags.writeable = False
    return array


def edit(session: Session, place: str) -> TerminalTask:
    """Run ``edit [PLACE]`` with ``$VISUAL`` or ``$EDITOR``."""
    wish = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        editor = shlex.split(wish)
    except ValueError as error:
        raise GvizError(f"cannot start {clipped(wish, 60)}", why=str(error), hint="set EDITOR", exit_code=2) from None
    if not editor:
        raise GvizError("no editor is set", hint="EDITOR=vi gviz …", exit_code=2)
    if place:
        session.cursor.select(session.cursor.node_at(place))
    mark = session.source_mark
    if mark is None:
        raise GvizError("no source line for this event", exit_code=2)
    path, line = Path(mark.frame.path), mark.frame.line
    if not path.is_absolute() or not path.is_file():
        raise GvizError(f"there is no file {clipped(mark.frame.path, 60)} here", exit_code=2)
    return TerminalTask(lambda: _edited(editor, path, line))


def _edited(editor: list[str], path: Path, line: int) -> str:
    where = [f"{path}:{line}"] if Path(editor[0]).stem in _GOES_BY_COLON else [f"+{line}", str(path)]
    goto = ["--goto"] if Path(editor[0]).stem in ("code", "codium", "cursor", "windsurf") else []
    try:
        code = subprocess.call([*editor, *goto, *where])
    except OSError as error:
        raise GvizError(f"cannot start {shown(editor[0])}", why=error.strerror or "", hint="set EDITOR") from error
    return f"back from {shown(editor[0])}" + (f" (exit code {code})" if code else "")


def browse(session: Session, _: str) -> TerminalTask:
    """Run ``browse``: open the recording as a page with every step, in a file of its own."""
    return TerminalTask(lambda: _browsed(session.timeline, session.cursor.position))


def _browsed(timeline: Timeline, n: int) -> str:
    import tempfile
    import webbrowser

    from gviz.render.file_formats import exporter_for  # Graphviz is only needed here
    from gviz.render.picture_request import ExportOptions

    path, notes = Path(tempfile.mkdtemp(prefix="gviz-")) / "recording.html", list[str]()
    page = exporter_for(path.name).render(timeline, n, ExportOptions(timeout=BROWSER_SECONDS, note=notes.append))
    write_whole([(path, str(page).encode("utf-8", "backslashreplace"))])
    opened = webbrowser.open(f"{path.as_uri()}#e{n}")
    return "; ".join([f"{'opened' if opened else 'no browser was found for'} {path}", *notes])
