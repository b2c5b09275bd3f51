"""Writes one moment of a trace as a picture, through the table of exporters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gviz.cli import outputs
from gviz.cli.debugger import moment

if TYPE_CHECKING:
    from gviz.trace.timeline import Timeline


def write_picture(trace: Path, output: Path, *, at: str | None = None, theme: str = "auto", force: bool = False) -> int:
    """Write the moment `at`, else the most telling one; give its event number."""
    from gviz.render.exporters import export
    from gviz.trace.reader import open_trace
    from gviz.trace.timeline import Timeline

    with open_trace(trace) as log:
        timeline = Timeline(log)
        n = moment(timeline, at) if at else most_telling(timeline)
        with outputs.whole_file(output, force=force) as unfinished:
            export(timeline, n, unfinished, theme=theme)
    return n


def most_telling(timeline: Timeline) -> int:
    """The program's failure, else the end of its last backward pass, else the end."""
    if timeline.failures:
        return timeline.failures[-1]
    return max((phase.end for phase in timeline.phases if phase.kind == "backward"), default=len(timeline))
