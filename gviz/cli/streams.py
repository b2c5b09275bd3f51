"""The standard streams as gviz itself uses them: closed ones, full ones, ones that know few characters."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO

import click

from gviz.values.plain_text import shown


def prepare() -> None:
    """Put something in the place of closed streams, and let no character be one that cannot be written.

    Without standard error there is nobody to tell anything; writing to a closed standard output stays an error. None of
    it is inherited by a program that is started: that finds the streams as they were.
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


def say(*lines: str) -> None:
    """Tell the person, in lines made harmless; where that is not possible the work goes on."""
    say_raw("\n".join(map(shown, lines)) + "\n")


def say_raw(text: str) -> None:
    """The same for text that moves the cursor."""
    try:
        click.echo(text, nl=False, err=True)
    except OSError:  # full, or nobody reads it any more: what the command does and its exit code count more
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Let what is still in the buffer of a stream go nowhere, or the interpreter would fail on it at its end."""
    with suppress(OSError, ValueError):  # not a file at all
        number = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _hold(number: int) -> None:
    """Keep the number of a closed stream from being given to the next file that is opened."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDONLY)  # gets the lowest free number, which is this one
