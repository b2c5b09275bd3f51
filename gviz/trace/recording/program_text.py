"""The text of the program's files, as it is when a trace begins to refer to them."""

from __future__ import annotations

import linecache
import os
import tokenize

from gviz.trace.bindings import LARGEST_SOURCE


def read_source(path: str) -> str | None:
    """The text of a source file, or None if it cannot be read or is larger than any program."""
    try:
        if os.path.getsize(path) > LARGEST_SOURCE:
            return None
        with tokenize.open(path) as file:
            return file.read()
    except OSError:
        return _of_a_cell(path)
    except (SyntaxError, ValueError):  # not text in the encoding it claims
        return None


def _of_a_cell(path: str) -> str | None:
    """The text of a notebook's cell, which is in no file: whoever runs it leaves it where tracebacks look."""
    entry = linecache.cache.get(path)
    return "".join(entry[2]) if entry is not None and len(entry) > 1 else None
