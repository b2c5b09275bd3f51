"""An op's formula or gradient rule with the numbers of one moment in it. Text in, text out: nothing is evaluated."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gviz.numbers import number, shape_text
from gviz.plain_text import shown
from gviz.value_text import FEW, short
from gviz.values import Value

_NAME = re.compile(r"(?<![\w.])([^\W\d]\w*)(\.m?T\b)?")
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
            return word + transposed
        power = rest.lstrip().startswith(("**", "^", "²", "³"))
        if word.startswith("-") and (power or text[: match.start()].endswith("-")):
            return f"({word})"
        return f"({word})" if power and _LOW_PRECEDENCE.search(word) else word

    return _NAME.sub(replace, text)


def word(value: Value | None, name: str) -> str:
    """How a value reads inside a formula: its number, its few elements, else its name, or its shape if it has none."""
    if value is None:
        return name
    return short(value).removeprefix("! ") if is_small(value) else name or shape_text(value.shape)


def shapes_in(text: str, values: Mapping[str, tuple[str, Value | None]]) -> str:
    """The shapes of what stands in a formula or rule by its name alone: ``X (16,4), W (4,8)``; `values` are named."""
    met = [values[name] for name, _ in _NAME.findall(text) if name in values]
    large = [
        (name, value) for name, value in met if name and value is not None and value.size != 1 and not is_small(value)
    ]
    return ", ".join(dict.fromkeys(f"{name} {shape_text(value.shape)}" for name, value in large))


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
