"""The errors that gviz shows to a user: what happened, why, what to do."""

from __future__ import annotations

from collections.abc import Iterable

KEEP_ALL = "record with --values all"
"""The hint for numbers that are missing in a recording."""


class GvizError(Exception):
    """An error with what happened, why, and what to do.

    The command line shows it as ``gviz: error: WHAT`` without a traceback; elsewhere the rest follows the traceback as
    notes. ``exit_code`` follows the command line's table: 1 output cannot be written, 2 wrong usage, 3 input missing or
    unreadable, 4 a required program or extra is missing.
    """

    def __init__(self, what: str, *, why: str = "", hint: str = "", exit_code: int = 1) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint
        self.exit_code = exit_code
        for line in self.lines()[1:]:
            self.add_note(line.strip())

    def lines(self) -> list[str]:
        """Return the lines of the message as printed."""
        lines = [f"gviz: error: {self.what}"]
        if self.why:
            lines.append(f"  {self.why}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return lines


class SystemRefusal(GvizError):
    """The system refuses to write a file for a reason that another name does not fix, such as a full disk."""


class NotStored(GvizError):
    """The recording does not contain the numbers requested, such as ``the value of #4``."""

    def __init__(self, of: str) -> None:
        super().__init__(f"{of} was not stored: {KEEP_ALL}", exit_code=2)


def did_you_mean(word: str, known: Iterable[str], otherwise: str, alike: float = 0.6) -> str:
    """Return a hint with the known word closest to `word`, or `otherwise` if none is close."""
    from difflib import get_close_matches  # slow to import, and needed only after a mistake

    near = get_close_matches(word, list(known), 1, alike)
    return f"did you mean {near[0]}?" if near else otherwise


def refuse_unknown(option: str, value: object, known: Iterable[str]) -> None:
    """Raise GvizError if the value of an option is not one of its known words."""
    words = tuple(known)
    if value not in words:
        listed = f"{option} is one of {', '.join(word or repr(word) for word in words)}"
        hint = did_you_mean(value, words, listed) if isinstance(value, str) else listed
        raise GvizError(f"{option} cannot be {value!r}", hint=hint, exit_code=2)
