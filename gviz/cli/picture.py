"""Writes one moment of a trace as a picture, through the table of exporters."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gviz.cli import outputs, streams
from gviz.cli.debugger import moment

SECONDS_OF_SILENCE = 1.0


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
        with _patience(f"drawing {len(timeline.nodes):,} nodes as {exporter.name}; Ctrl-C gives up"):
            picture = exporter.render(timeline, n, ExportOptions(theme=theme))
    with outputs.whole_file(output, force=force) as unfinished:
        unfinished.write_bytes(picture if isinstance(picture, bytes) else picture.encode("utf-8", "backslashreplace"))


@contextmanager
def _patience(what: str) -> Iterator[None]:
    """Say on a terminal what is going on, if it takes long."""
    timer = threading.Timer(SECONDS_OF_SILENCE, streams.say, [what])
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
