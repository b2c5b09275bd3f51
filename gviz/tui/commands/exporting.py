"""Write the moment that is looked at as a picture, for both front ends."""

from __future__ import annotations

from pathlib import PurePath

from gviz.plain_text import shown
from gviz.trace.timeline import Timeline
from gviz.tui.commands import branching
from gviz.tui.commands.files import new_file
from gviz.tui.language.command import Said
from gviz.tui.session import Session
from gviz.tui.title import Title
from gviz.whole_files import write_whole

TIMEOUT = 10.0
"""Seconds that Graphviz has while somebody waits at the screen; past them a simpler layout is drawn."""


def export(session: Session, path: str) -> Said:
    """``export FILE``: the moment that is looked at, or the branch of a what-if as a recording."""
    if path.endswith(branching.SUFFIX):
        return branching.export(session, path)
    written, *notes = _write(session.timeline, session.cursor.position, path)
    of = "; of the recording, without the what if" if session.beside is not None else ""
    return Said((f"{written}{of}.", *(f"{note}." for note in notes)))


def _write(timeline: Timeline, n: int, path: str) -> tuple[str, ...]:
    """Write moment `n` to a file that does not exist yet, in the format of its suffix; what was done, and what is to be
    said of the file, without their full stops."""
    from gviz.render.exporters import exporter_for  # Graphviz is only needed here
    from gviz.render.request import ExportOptions

    notes: list[str] = []
    exporter = exporter_for(path)
    picture = exporter.render(timeline, n, ExportOptions(timeout=TIMEOUT, note=notes.append))
    data = picture if isinstance(picture, bytes) else picture.encode("utf-8", "backslashreplace")
    write_new(path, data)
    return (f"wrote {shown(path)} (event {n})", *(note.rstrip(".") for note in notes))


def write_new(path: str, data: bytes) -> None:
    """Write a file that does not exist yet, whole; GvizError if it does, or cannot be written."""
    write_whole([(new_file(path), data)])


def usual_name(title: Title, n: int) -> str:
    """A name for the picture of moment `n` of a program or trace: ``train-12.svg``."""
    return f"{PurePath(title.file).stem or 'gviz'}-{n}.svg"
