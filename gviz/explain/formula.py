"""Formulas and backward rules of operations as text, with the names and numbers of one moment.

An operation declares ``g * other`` as the rule of its input. With the program's names it reads ``g * y``, with numbers
``1 * 3``. Input and output are text: nothing is evaluated.
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
    """Return `text` with names replaced by their words; a negative number gets parentheses where it needs them.

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
    """Return a value as it reads in a formula: its number or few elements, or else its name, or else its shape."""
    if value is None:
        return name
    return short(value).removeprefix("! ") if is_small(value) else name or shape_text(value.shape)


def shapes_in(text: str, values: Mapping[str, tuple[str, Value | None]]) -> str:
    """Return the shapes of the tensors that a formula or rule shows only by name: ``X (16,4), W (4,8)``."""
    operands = [values[name] for name, _ in _NAME.findall(text) if name in values]
    large = [
        (name, value)
        for name, value in operands
        if name and value is not None and value.size != 1 and not is_small(value)
    ]
    return ", ".join(dict.fromkeys(f"{name} {shape_text(value.shape)}" for name, value in large))


def named_word(value: Value | None, name: str) -> str:
    """Return a value as in `value_word`, with the name of a small value after it: ``3 (x)``."""
    text = value_word(value, name)
    return f"{text} ({name})" if name and value is not None and is_small(value) else text


def is_small(value: Value) -> bool:
    """Return whether all elements are known and few enough for a formula."""
    return value.data is not None and 0 < value.size <= FEW


def attribute_word(value: object) -> str:
    """Return a non-tensor argument as text: ``2``, ``(0,)``, ``'mean'``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shown(repr(tuple(value) if isinstance(value, list) else value))
    return number(value)


# The formula and rules that fit the arguments of a call

_GRADIENT = re.compile(r"\bg\b")


def formula_text(info: NodeInfo) -> str:
    """Return the formula of the node, with the names of its operation; empty if the call itself is clear enough."""
    return shown(_reading(info).formula)


def rule_text(info: NodeInfo, slot: int) -> str:
    """Return the gradient of an input of the node as text, with the same names; empty if there is none."""
    rules = info.op.rules
    text = rules[min(slot, len(rules) - 1)] if rules else ""
    text = with_numbers(shown(text), {name: shown(word) for name, word in _reading(info).words})
    padding = dict(info.created.attrs).get("padding_idx")
    if isinstance(padding, int) and padding >= 0:
        text = text.replace(_OF_ROWS, f"{_OF_ROWS}except the padding row {padding}, ")
    return _rule_of_part(text, slot) if text and info.op.grad_fn == "CopySlices" else text


_OF_ROWS = "g added at the rows indices, "
"""The beginning of the rule of an embedding, which leaves out its padding row."""


def _rule_of_part(rule: str, slot: int) -> str:
    """Return the rule of a write through a view, in terms of the base of the view."""
    if not slot:
        return f"g, its part now {rule}"
    return "its part of g" if rule == "g" else _GRADIENT.sub("(its part of g)", rule)


def _reading(info: NodeInfo) -> Reading:
    op = info.op
    return next((reading for reading in op.readings if _fits(reading, info)), Reading((), op.formula))


def _fits(reading: Reading, info: NodeInfo) -> bool:
    attributes: Mapping[str, object] = dict(info.created.attrs)
    there = [slot for slot, (node, _) in zip(info.op.slots, info.created.inputs, strict=False) if node]
    return all(name in attributes and str(attributes[name]) == word for name, word in reading.given) and all(
        slot in there for slot in reading.beside
    )


# Arguments that are not tensors

_LEFT_OUT = {"dim": "all dims", "dims": "all dims", "correction": "1", "weight": "1", "bias": "0"}
"""The meaning of these arguments if the program did not pass them, and None was recorded."""


def attribute_words(attributes: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the word for each argument of an op in its formula and rules."""
    return {name: _attribute_text(name, value) for name, value in attributes}


def _attribute_text(name: str, value: str) -> str:
    """Return an argument as text: a dimension as ``dim 1``, because it is no factor; none for dtypes and devices."""
    if name in ("dtype", "device", "source"):
        return value.strip("'")
    if value == "None":
        return _LEFT_OUT.get(name, value)
    if name in ("dim", "dims"):
        dims = value.strip("()").removesuffix(",")
        return f"dim{'s' * (',' in dims)} {dims}" if dims else _LEFT_OUT[name]
    return value
