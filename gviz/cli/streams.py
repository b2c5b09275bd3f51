"""The standard streams of gviz itself: closed ones, full ones, ones with a small character set."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO

import click

from gviz.values.plain_text import shown


def prepare() -> None:
    """Replace closed streams, and make every character writable.

    Without standard error messages are dropped; writing to a closed standard output stays an error. A program that
    gviz starts inherits the original streams.
    """
    for number in range(3):
        _hold(number)
    if getattr(sys, "stdin", None) is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # as long as the process
    if getattr(sys, "stdout", None) is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if getattr(sys, "stderr", None) is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show(*lines: str) -> None:
    """Print escaped lines for the user on stderr; if that fails, the work continues."""
    show_raw("\n".join(map(shown, lines)) + "\n")


def show_raw(text: str) -> None:
    """Print text with cursor movements; otherwise like `show`."""
    try:
        click.echo(text, nl=False, err=True)
    except OSError:  # a full disk or a broken pipe must change neither what the command does nor its exit code
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Drop what is still in the buffer of a stream, because flushing it at exit would fail."""
    with suppress(OSError, ValueError):  # not a file at all
        number = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _hold(number: int) -> None:
    """Keep the descriptor of a closed stream from being given to the next opened file."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDONLY)  # gets the lowest free number, which is this one
