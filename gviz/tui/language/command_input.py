"""Where the lines of the line-by-line debugger come from: the command line, a pipe, or the keyboard."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from gviz.tui.language.parser import Reader
from gviz.tui.terminal import is_terminal
from gviz.values.plain_text import shown

PROMPT = "(gviz) "
WORD_ENDS = " (,"
_CTRL_D = {">": "end", "y/n": "n"}
"""What Ctrl+D means after a sign that is not a prompt."""

Complete = Callable[[str], list[str]]
"""Returns whole lines that complete a line, the likeliest first."""


def echo_lines(commands: Iterable[str], output: TextIO) -> Iterator[str]:
    """Yield commands from options, and print them as if they were typed."""
    for text in commands:
        print(f"{PROMPT}{shown(text.strip())}", file=output)
        yield text


def input_lines(
    input: TextIO, output: TextIO, reader: Reader | None = None, complete: Complete | None = None
) -> Iterator[str]:
    """Yield lines as they are typed; a `reader` may change the prompt.

    A terminal gets history and editing, and Tab completes by `complete`.
    """

    def sign() -> str:
        return reader.sign if reader is not None else ""

    def prompt() -> str:
        return f"{sign()} " if sign() else PROMPT

    if _interactive(input):
        with _completed_by(complete):
            yield from _edited(output, prompt, sign)
        return
    while True:
        output.write(prompt())
        output.flush()
        text = _line(input)
        if not text:
            output.write("\n")
            return
        text = text.rstrip("\n")
        print(shown(text.strip()), file=output)
        yield text


def _line(input: TextIO) -> str:
    """Return the next line; empty at the end, or if the input cannot be read: a test runner may refuse."""
    try:
        return input.readline()
    except OSError:
        return ""


def _edited(output: TextIO, prompt: Callable[[], str], sign: Callable[[], str]) -> Iterator[str]:
    """Yield the lines of a user; Ctrl+D is ``quit``, as in gdb and pdb, or ends what the prompt asks for."""
    while True:
        try:
            yield builtins.input(prompt())
        except EOFError:
            meant = _CTRL_D.get(sign(), "quit")
            print(meant, file=output)
            yield meant
        except KeyboardInterrupt:
            output.write("\n")  # an unfinished line is dropped


@contextmanager
def _completed_by(complete: Complete | None) -> Iterator[None]:
    """Let Tab complete the last word of a line, if Python has readline (Windows has none)."""
    try:
        import readline  # its import gives input() history and editing
    except ImportError:
        yield
        return
    before = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(_tab(complete, readline.get_line_buffer) if complete is not None else None)
    readline.set_completer_delims(WORD_ENDS)
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before[0])
        readline.set_completer_delims(before[1])


def _tab(complete: Complete, line: Callable[[], str]) -> Callable[[str, int], str | None]:
    """Return the function that readline calls for the first, second … completion of the word."""
    completions: list[str] = []

    def complete_word(word: str, nth: int) -> str | None:
        if nth == 0:
            text = line().lstrip()
            completions[:] = [whole[len(text) - len(word) :] for whole in complete(text)]
        return completions[nth] if nth < len(completions) else None

    return complete_word


def _interactive(input: TextIO) -> bool:
    return input is sys.stdin and is_terminal(input)
