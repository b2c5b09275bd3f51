"""Reads source files when a trace first refers to them, and writes a log in memory to a trace."""

from __future__ import annotations

import linecache
import os
import stat
import sys
import tokenize
import zlib
from importlib.util import decode_source
from pathlib import Path
from zipimport import zipimporter

from gviz.errors import GvizError
from gviz.trace.event_log import MemoryLog
from gviz.trace.file.writer import TraceWriter, about
from gviz.trace.naming.bindings import LARGEST_SOURCE


def read_source(path: str) -> str | None:
    """Return the text of a source file, or None if it is not a file, unreadable, or too large for a program."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_SOURCE:
            return None  # reading a pipe would block and consume its data; a device may have no end
        with tokenize.open(path) as file:
            return file.read()
    except OSError:
        return _of_a_cell(path) or _in_an_archive(path)
    except (SyntaxError, ValueError):  # not text in the declared encoding
        return None


def _of_a_cell(path: str) -> str | None:
    """Return the text of a notebook cell, which has no file; notebooks store it in `linecache`."""
    entry = linecache.cache.get(path)
    text = "".join(entry[2]) if entry is not None and len(entry) > 1 else None
    return text if text is None or len(text) <= LARGEST_SOURCE else None


def _in_an_archive(path: str) -> str | None:
    """Return the text of a file in a zip file that modules are imported from, such as a zipapp."""
    importers = [it for it in sys.path_importer_cache.values() if isinstance(it, zipimporter)]
    importer = next((it for it in importers if path.startswith(it.archive + os.sep)), None)
    try:
        data = b"" if importer is None else importer.get_data(path)
        return decode_source(data) if 0 < len(data) <= LARGEST_SOURCE else None
    except (
        OSError,
        EOFError,
        SyntaxError,
        ValueError,
        ImportError,
        zlib.error,
    ):  # it is gone, or its bytes have changed
        return None


def write(log: MemoryLog, path: Path) -> None:
    """Write a log to a new trace. Raises GvizError if it cannot be written completely."""
    errors: list[str] = []
    writer = TraceWriter(path, about=about(log.framework), on_error=errors.append)
    for event in log.everything():
        writer.record(event)
    writer.close()
    if errors:
        raise GvizError(f"cannot write {path}", why=errors[0])
