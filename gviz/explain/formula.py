"""Formulas and gradient rules of operations as text, with the names and numbers of one moment.

An operation declares ``g * other`` as the rule of its input. With the program's names it reads ``g * y``, with numbers
``1 * 3``. Text in, text out: nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gviz.events import Reading
from gviz.trace.graph_state import NodeInfo
from gviz.values.number_text import number, shape_text
from gviz.values.plain_text import shown
from gviz.values.value import Value
from gviz.values.value_text import FEW, short

_NAME = re.compile(r"(?<![\w.])([^\W\d]\w*)(\.m?T\b)?")
_LOW_PRECEDENCE = re.compile(r" [-+*/@·] ")


def with_numbers(text: str, words: Mapping[str, str]) -> str:
    """`text` with every name that has a word replaced by it; a negative number gets parentheses where it needs them.

    A name that is called or has an attribute (``self.shape``) is not replaced, except a transposed one.
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


def value_word(value: Value | None, name: str) -> str:
    """How a value reads inside a formula: its number, its few elements, else its name, or its shape if it has none."""
    if value is None:
        return name
    return short(value).removeprefix("! ") if is_small(value) else name or shape_text(value.shape)


def shapes_in(text: str, values: Mapping[str, tuple[str, Value | None]]) -> str:
    """The shapes of the tensors that a formula or rule shows only by name: ``X (16,4), W (4,8)``."""
    met = [values[name] for name, _ in _NAME.findall(text) if name in values]
    large = [
        (name, value) for name, value in met if name and value is not None and value.size != 1 and not is_small(value)
    ]
    return ", ".join(dict.fromkeys(f"{name} {shape_text(value.shape)}" for name, value in large))


def named_word(value: Value | None, name: str) -> str:
    """As `word`, with the name of a small value behind it: ``3 (x)``."""
    text = value_word(value, name)
    return f"{text} ({name})" if name and value is not None and is_small(value) else text


def is_small(value: Value) -> bool:
    """Whether all elements are known and few enough to stand in a formula."""
    return value.data is not None and 0 < value.size <= FEW


def attribute_word(value: object) -> str:
    """How a non-tensor argument reads: ``2``, ``(0,)``, ``'mean'``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shown(repr(tuple(value) if isinstance(value, list) else value))
    return number(value)


# The formula and rules that fit the arguments of a call

_GRADIENT = re.compile(r"\bg\b")


def formula_text(info: NodeInfo) -> str:
    """The value of the node as text, in the names of its operation; empty where the call itself says what it is."""
    return shown(_reading(info).formula)


def rule_text(info: NodeInfo, slot: int) -> str:
    """The gradient of an input of the node as text, in the same names; empty where there is none."""
    rules = info.op.rules
    text = rules[min(slot, len(rules) - 1)] if rules else ""
    text = with_numbers(shown(text), {name: shown(word) for name, word in _reading(info).words})
    return _rule_of_part(text, slot) if text and info.op.grad_fn == "CopySlices" else text


def _rule_of_part(rule: str, slot: int) -> str:
    """The rule of a write through a view, in terms of the base of the view."""
    if not slot:
        return f"g, its part now {rule}"
    return "its part of g" if rule == "g" else _GRADIENT.sub("(its part of g)", rule)


def _reading(info: NodeInfo) -> Reading:
    op = info.op
    return next((reading for reading in op.readings if _fits(reading, info)), Reading((), op.formula))


def _fits(reading: Reading, info: NodeInfo) -> bool:
    given: Mapping[str, object] = dict(info.created.attrs)
    there = [slot for slot, (node, _) in zip(info.op.slots, info.created.inputs, strict=False) if node]
    return all(name in given and str(given[name]) == word for name, word in reading.given) and all(
        slot in there for slot in reading.beside
    )


# Arguments that are not tensors

_LEFT_OUT = {"dim": "all dims", "dims": "all dims", "correction": "1", "weight": "1", "bias": "0"}
"""What these arguments stand for where the program gave none, and None was recorded."""


def attribute_words(attributes: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The word for each argument of an op in its formula and rules."""
    return {name: _attribute_text(name, value) for name, value in attributes}


def _attribute_text(name: str, value: str) -> str:
    """A dimension by its number, as ``dim 1``: it is no factor. Dtypes and devices are no texts."""
    if name in ("dtype", "device", "source"):
        return value.strip("'")
    if value == "None":
        return _LEFT_OUT.get(name, value)
    if name in ("dim", "dims"):
        dims = value.strip("()").removesuffix(",")
        return f"dim{'s' * (',' in dims)} {dims}" if dims else _LEFT_OUT[name]
    return value
