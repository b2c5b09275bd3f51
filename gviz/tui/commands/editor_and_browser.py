"""Commands that open another program: ``edit`` the user's editor, ``browse`` the recording as a page in a browser."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from gviz.errors import GvizError
from gviz.system.files import write_whole
from gviz.trace.timeline import Timeline
from gviz.tui.language.command import TerminalTask
from gviz.tui.session import Session
from gviz.values.plain_text import clipped, shown

BROWSER_SECONDS = 10.0

_GOES_BY_COLON = {"code", "codium", "cursor", "windsurf", "zed", "subl", "hx"}
"""Editors that take ``FILE:LINE``; every other one takes ``+LINE FILE``."""


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
