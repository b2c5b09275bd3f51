"""The command that writes a report about gviz for those who mend it: versions, terminal, sizes, and no value."""

from __future__ import annotations

import shutil

from gviz.crash import write_asked_for
from gviz.errors import GvizError
from gviz.plain_text import clipped, shown
from gviz.tui.language.command import Said
from gviz.tui.session import Session


def report(session: Session, _: str) -> Said:
    """``report``."""
    try:
        path = write_asked_for(_facts(session))
    except OSError as trouble:
        raise GvizError("no report could be written", why=clipped(str(trouble), 80)) from None
    return Said((f"report written to {shown(str(path))}; it has no values, names or source of the program",))


def _facts(session: Session) -> tuple[str, ...]:
    """What the recording is like, told by counts alone."""
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
