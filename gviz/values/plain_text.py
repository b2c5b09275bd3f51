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
    """Return the safe text in at most `width` characters; a longer one ends with one ``…``."""
    plain = shown(text)
    return plain if len(plain) <= width else plain[: max(width - 1, 0)].rstrip("…") + "…"


def clipped_name(name: str, width: int) -> str:
    """Return the safe name in at most `width` characters: a path loses its beginning first, then any name its middle.

    ``encoder.0.attention.out.weight`` becomes ``…attention.out.weight``. The name may be followed by its operation, as
    in `abridged_label`.
    """
    return abridged_label(without_beginning(shown(name), width), width)


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


def abridged(text: str, width: int, ellipsis: str = "…") -> str:
    """Return the safe text in at most `width` characters; the middle of a longer one becomes ``…``.

    A name is cut where its parts begin, and its last parts stay whole: ``discriminator.0.bias`` becomes
    ``discr….0.bias``, and ``scale_of_the_attention_block`` becomes ``scale…_attention_block``. If the last part is too
    long for that, both ends of the text have the same length.
    """
    plain = shown(text)
    if len(plain) <= width:
        return plain
    room = width - len(ellipsis)
    starts = [match.start() for match in _PART.finditer(plain)]
    least = min(starts[0] if starts else 0, max(room // 8, 1))
    if plain.startswith(ellipsis):
        least = -len(ellipsis)  # the beginning is cut already
    start = next((start for start in starts if len(plain) - start <= room - least), None)
    if start is None:
        half = room // 2
        return f"{plain[: room - half]}{ellipsis}{plain[len(plain) - half :]}"
    if least < 0:
        return f"{ellipsis}{plain[start + 1 :]}"
    head = plain[: room - (len(plain) - start)]
    whole = max((one for one in (*starts, start) if len(head) - MOST_LOST <= one <= len(head)), default=len(head))
    return f"{head[:whole]}{ellipsis}{plain[start:]}"


_PART = re.compile(r"(?<=\w)[._ ](?=\w)")
"""Where the next part of a name begins."""

MOST_LOST = 3
"""How many characters of the beginning of a name are given up for the beginning of whole parts."""


def abridged_label(text: str, width: int, ellipsis: str = "…") -> str:
    """Return the label of a node, ``#4 loss = mean``, in at most `width` characters.

    The number stays. A long operation loses its middle, next to a long name it is left out.
    """
    plain = shown(text)
    if len(plain) <= width:
        return plain
    match = _LABEL.fullmatch(plain)
    number, name, operation = match.groups("") if match else ("", plain, "")
    room = width - len(number)
    if room < 2:
        return abridged(plain, width, ellipsis)
    left = room - len(name) - len(" = ")
    if operation and left >= min(len(operation), LEAST_OPERATION):
        return f"{number}{name} = {abridged(operation, left, ellipsis)}"
    left = room - len(operation) - len(" = ")
    if operation and len(operation) <= LEAST_OPERATION and left >= min(len(name), LEAST_NAME):
        return f"{number}{abridged(name, left, ellipsis)} = {operation}"
    return f"{number}{abridged(name, room, ellipsis)}"


_LABEL = re.compile(r"((?:[^=#]* of )?#\d+ )?(.+?)(?: = (.+))?")
"""An output of a node, the number of the node, its name or names, and its operation."""

LEAST_NAME, LEAST_OPERATION = 8, 12
"""The fewest characters of a name that is abridged next to an operation, and of an operation next to a name."""


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
