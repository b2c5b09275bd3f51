"""An op's formula or gradient rule with the numbers of one moment in it. Text in, text out: nothing is evaluated."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gviz.numbers import FEW, number, shape_text, short
from gviz.plain_text import shown
from gviz.values import Value

_NAME = re.compile(r"(?<![\w.])([^\W\d]\w*)(\.m?T\b)?")
_SHAPED = re.compile(r"(.*[^ ]) \(([\d,]+)\)")
_LOW_PRECEDENCE = re.compile(r" [-+*/@·] ")


def with_numbers(text: str, words: Mapping[str, str]) -> str:
    """`text` with every name that has a word replaced by it; a negative number gets parentheses where it needs them.

    A name that is called or has an attribute (``self.shape``) is not replaced, but for a transposed one.
    """

    def replace(match: re.Match[str]) -> str:
        rest = text[match.end() :]
        name, transposed = match.groups(default="")
        word = words.get(name)
        if word is None or rest.startswith(("(", ".")):
            return match.group()
        if transposed:
            return _transposed(word, transposed)
        power = rest.lstrip().startswith(("**", "^", "²", "³"))
        if word.startswith("-") and (power or text[: match.start()].endswith("-")):
            return f"({word})"
        return f"({word})" if power and _LOW_PRECEDENCE.search(word) else word

    return _NAME.sub(replace, text)


def _transposed(word: str, sign: str) -> str:
    """``X (16,4)`` and ``.T`` as ``X.T (4,16)``."""
    shaped = _SHAPED.fullmatch(word)
    if shaped is None:
        return word + sign
    *rest, rows, columns = shaped[2].rstrip(",").split(",") if "," in shaped[2].rstrip(",") else ["", shaped[2]]
    shape = ",".join([*rest, columns, rows]) if rows else columns
    return f"{shaped[1]}{sign} ({shape})"


def word(value: Value | None, name: str) -> str:
    """How a value reads inside a formula: its number, its few elements, else its name and shape."""
    if value is None:
        return name
    return short(value).removeprefix("! ") if is_small(value) else f"{name} {shape_text(value.shape)}".lstrip()


def named_word(value: Value | None, name: str) -> str:
    """As `word`, with the name of a small value behind it: ``3 (x)``."""
    text = word(value, name)
    return f"{text} ({name})" if name and value is not None and is_small(value) else text


def is_small(value: Value) -> bool:
    """Whether all elements are known and few enough to stand in a formula."""
    return value.data is not None and 0 < value.size <= FEW


def attribute_word(value: object) -> str:
    """How a non-tensor argument reads: ``2``, ``(0,)``, ``'mean'``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shown(repr(tuple(value) if isinstance(value, list) else value))
    return number(value)
