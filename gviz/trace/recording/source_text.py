"""The text of the program's files, read when a trace first refers to them, and a log in memory as a trace."""

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
from gviz.trace.file.writer import TraceWriter, about
from gviz.trace.log import MemoryLog
from gviz.trace.naming.bindings import LARGEST_SOURCE


def read_source(path: str) -> str | None:
    """The text of a source file, or None if it is no file, cannot be read, or is larger than any program."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_SOURCE:
            return None  # to read a pipe would wait for it, and take from it; a device may have no end
        with tokenize.open(path) as file:
            return file.read()
    except OSError:
        return _of_a_cell(path) or _in_an_archive(path)
    except (SyntaxError, ValueError):  # not text in the encoding it claims
        return None


def _of_a_cell(path: str) -> str | None:
    """The text of a notebook's cell, which is in no file: whoever runs it leaves it where tracebacks look."""
    entry = linecache.cache.get(path)
    text = "".join(entry[2]) if entry is not None and len(entry) > 1 else None
    return text if text is None or len(text) <= LARGEST_SOURCE else None


def _in_an_archive(path: str) -> str | None:
    """The text of a file within a zip file that modules are imported from, as of a zipapp."""
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
    ):  # it is gone, or its bytes are not what they were
        return None


def write(log: MemoryLog, path: Path) -> None:
    """Write a log to a new trace; GvizError if it cannot be written whole."""
    troubles: list[str] = []
    writer = TraceWriter(path, about=about(log.framework), on_trouble=troubles.append)
    for event in log.everything():
        writer.say(event)
    writer.close()
    if troubles:
        raise GvizError(f"cannot write {path}", why=troubles[0])
