"""Where the lines of the line-by-line debugger come from: the command line, a pipe, or a person's fingers."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TextIO

from gviz.plain_text import shown
from gviz.tui.reading import Reader

PROMPT = "(gviz) "


def echoed(commands: Iterable[str], output: TextIO) -> Iterator[str]:
    """Commands that nobody types, shown as if somebody had."""
    for text in commands:
        print(f"{PROMPT}{shown(text.strip())}", file=output)
        yield text


def typed(input: TextIO, output: TextIO, reader: Reader | None = None) -> Iterator[str]:
    """Lines as they are typed, with history and editing where it is a terminal; a `reader` may ask for other signs."""

    def prompt() -> str:
        return f"{reader.sign} " if reader is not None and reader.sign else PROMPT

    if _interactive(input):
        yield from _edited(output, prompt)
        return
    while True:
        output.write(prompt())
        output.flush()
        text = input.readline()
        if not text:
            output.write("\n")
            return
        text = text.rstrip("\n")
        print(shown(text.strip()), file=output)
        yield text


def _edited(output: TextIO, prompt: Callable[[], str]) -> Iterator[str]:
    with suppress(ImportError):  # Windows has none; input() works without it
        import readline  # noqa: F401  # gives input() its line editing
    while True:
        try:
            yield builtins.input(prompt())
        except EOFError:
            output.write("\n")
            return
        except KeyboardInterrupt:
            output.write("\n")  # an unfinished line is dropped


def _interactive(input: TextIO) -> bool:
    return input is sys.stdin and input.isatty()
