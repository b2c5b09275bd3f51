"""Makes any text from a program safe to show in a terminal, a picture or a log."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable

_PATH = re.compile(r"\w+(\.\w+){2,}")
"""The start of a text that names a nested parameter, module or attribute."""


def shown(text: str, *, lines: bool = False) -> str:
    """Return the text with everything invisible written as a visible escape (``\\x1b``, ``\\u202e``, ``\\n``).

    Control characters, escape sequences, direction marks, zero-width characters and lone surrogates have no effect
    any more; letters of every script stay. With `lines`, line ends are kept.
    """
    if text.isprintable():
        return text
    if lines and "\n" in text:
        return "\n".join(shown(line) for line in text.replace("\r\n", "\n").split("\n"))
    return "".join(map(_visible, text))


def shown_json(document: str) -> str:
    """Return a JSON document with invisible characters written as JSON escapes; it parses to the same data.

    ``"a\\u202eb"`` cannot reverse the line in which a terminal or a code review shows it. Line ends are kept.
    """
    if document.replace("\n", "").isprintable():
        return document
    return "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in document)


def text_of(thing: object) -> str:
    """Return the text of an object or exception of the user, or its type if that fails."""
    try:
        return str(thing) or type(thing).__name__
    except Exception:
        return f"<{type(thing).__name__}>"


def clipped(text: str, width: int) -> str:
    """Return the safe text in at most `width` characters; a longer one ends with ``…``."""
    plain = shown(text)
    return plain if len(plain) <= width else plain[: max(width - 1, 0)] + "…"


def clipped_name(name: str, width: int) -> str:
    """Return the safe name in at most `width` characters: a path loses its beginning first, then any name its end."""
    return clipped(without_beginning(shown(name), width), width)


def without_beginning(text: str, width: int, ellipsis: str = "…", length: Callable[[str], int] = len) -> str:
    """Shorten the path ``encoder.0.attention.out.weight`` at the start of a text to ``…attention.out.weight``.

    The end of a path distinguishes the parameters of a model. Two parts of it always stay, even if the text is then
    wider than `width`, as measured by `length`.
    """
    rest = text.removeprefix(ellipsis)
    while length(text) > width and _PATH.match(rest):
        rest = rest.partition(".")[2]
        text = ellipsis + rest
    return text


def abridged(text: str, width: int) -> str:
    """Return the safe text in at most `width` characters; the middle of a longer one becomes ``…``."""
    plain = shown(text)
    half = (width - 1) // 2
    return plain if len(plain) <= width else f"{plain[: width - 1 - half]}…{plain[len(plain) - half :]}"


def file_name(path: str) -> str:
    """Return the name of a program's file without folders, whichever system wrote the path."""
    return shown(path.rpartition("/")[2].rpartition("\\")[2])


def file_line(path: str, line: int) -> str:
    """Format a line of a program: ``demo.py:4``."""
    return f"{file_name(path)}:{line}"


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    if unicodedata.category(character) == "Zs":
        return " "  # wide and no-break spaces
    return character.encode("unicode_escape").decode("ascii")
