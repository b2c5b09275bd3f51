"""A log in memory as a trace of its own."""

from __future__ import annotations

from pathlib import Path

from gviz.errors import GvizError
from gviz.trace.file.about import about
from gviz.trace.file.writer import TraceWriter
from gviz.trace.log import MemoryLog


def write(log: MemoryLog, path: Path) -> None:
    """Write a log to a new trace; GvizError if it cannot be written whole."""
    troubles: list[str] = []
    writer = TraceWriter(path, about=about(log.framework), on_trouble=troubles.append)
    for event in log.everything():
        writer.say(event)
    writer.close()
    if troubles:
        raise GvizError(f"cannot write {path}", why=troubles[0])
