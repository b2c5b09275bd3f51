"""Writes one moment of a trace as a picture, through the table of exporters."""

from __future__ import annotations

from pathlib import Path

from gviz.cli import outputs
from gviz.cli.debugger import moment


def write_picture(
    trace: Path, output: Path, *, at: str | None = None, theme: str = "auto", force: bool = False
) -> None:
    """Write the moment `at`, else the last one before the program took its graph down."""
    from gviz.render.exporters import ExportOptions, exporter_for, last_moment
    from gviz.trace.reader import open_trace
    from gviz.trace.timeline import Timeline

    exporter = exporter_for(str(output))
    with open_trace(trace) as log:
        timeline = Timeline(log)
        n = moment(timeline, at) if at else last_moment(timeline)
        picture = exporter.render(timeline, n, ExportOptions(theme=theme))
    with outputs.whole_file(output, force=force) as unfinished:
        unfinished.write_bytes(picture if isinstance(picture, bytes) else picture.encode("utf-8", "backslashreplace"))
