"""A picture of a DOT text, drawn in a process with a time limit. An installed ``dot`` is never used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Literal

from gviz.errors import GvizError
from gviz.values.plain_text import clipped

Program = Literal["dot", "nop2"]
Picture = Literal["svg", "png", "pdf"]
Format = Picture | Literal["json"]

WORKER = Path(__file__).with_name("_worker.py")
NOTES = ("Fontconfig", "Warning", "Pango", "(process")


class TooSlowError(GvizError):
    """Graphviz was stopped because it exceeded its time limit."""


def draw(dot: str, picture: Format, *, program: Program = "dot", timeout: float = 20.0) -> bytes:
    """Return the picture of a DOT text.

    Raises `TooSlowError` after `timeout` seconds, and `GvizError` with Graphviz's message if it cannot draw.
    """
    return draw_all([dot], picture, program=program, timeout=timeout)[0]


def draw_all(dots: Iterable[str], picture: Format, *, program: Program = "dot", timeout: float = 20.0) -> list[bytes]:
    """Return the pictures of many DOT texts, drawn by one process. Raises as `draw` does.

    The last small layouts (``json``) are kept: gviz lays many graphs out again while it looks for the best figure.
    """
    texts = [*dots]
    if picture != "json":
        return _drawn(texts, picture, program, timeout)
    found = {text: layout for text in texts if (layout := _layouts.get((program, text)))}
    if missing := [text for text in dict.fromkeys(texts) if text not in found]:
        found |= zip(missing, _drawn(missing, picture, program, timeout), strict=True)
    for text in missing:
        if len(found[text]) <= LARGEST_LAYOUT:
            _layouts[program, text] = found[text]
    for old in [*_layouts][:-MOST_LAYOUTS]:
        _layouts.pop(old, None)
    return [found[text] for text in texts]


MOST_LAYOUTS, LARGEST_LAYOUT = 64, 1 << 18
"""How many layouts are kept, and the bytes of the largest that is."""
_layouts: dict[tuple[Program, str], bytes] = {}
"""The last layouts, by the program that made them and the DOT text."""


def _drawn(dots: Sequence[str], picture: Format, program: Program, timeout: float) -> list[bytes]:
    command = [sys.executable, "-P", str(WORKER), program, picture]  # -P: no file in this folder hides a library
    texts = "\0".join(dots).encode("utf-8")
    try:
        process = subprocess.run(command, input=texts, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        raise TooSlowError(f"Graphviz did not finish in {timeout:g} s") from error
    stderr = process.stderr.decode("utf-8", "replace")
    errors = complaints(stderr)
    if process.returncode or errors or not process.stdout:
        last = stderr.strip().rpartition("\n")[2]
        raise _failure(" ".join(errors) or last or f"its process ended with code {process.returncode}")
    return list(_pictures(process.stdout))


def _pictures(data: bytes) -> Iterator[bytes]:
    """Yield each picture; it follows a line with its size."""
    start = 0
    while start < len(data):
        end = data.index(b"\n", start) + 1
        start = end + int(data[start:end])
        yield data[end:start]


def _failure(why: str) -> GvizError:
    if "No module named 'pygraphviz'" in why:
        return GvizError("pictures need pygraphviz", hint="pip install pygraphviz, or export .dot or .txt", exit_code=4)
    return GvizError("Graphviz cannot draw this graph", why=clipped(why, 400))


def complaints(stderr: str) -> list[str]:
    """Return Graphviz's errors with the lines that follow them. Notes about fonts and sizes are no errors."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith(NOTES)]
    errors = list(dropwhile(lambda line: not line.startswith("Error"), lines))
    return list(takewhile(lambda line: not line.startswith("Traceback"), errors))


def has_font() -> bool:
    """Return whether Graphviz finds any font on this machine. Without one, PNG and PDF have no text."""
    letter, blank = (draw(f'digraph {{n [shape=plain fixedsize=true width=1 label="{text}"]}}', "png") for text in "M ")
    return letter != blank
