"""How an op's formula and rules read with the arguments that are no tensors, and without those that were not given."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LEFT_OUT = {"dim": "all dims", "dims": "all dims", "correction": "1", "weight": "1", "bias": "0"}
"""What these arguments stand for where the program gave none, and None was recorded."""

_POWERS = re.compile(r"\(sum of (\|\w+\|)\*\*(p|ord)\)\*\*\(1 / (?:p|ord)\)")
_BOUND = re.compile(r",? at (?:least|most) (\w+)")
_EXTREME = {"inf": "the largest", "-inf": "the smallest"}
_OF_EVERY_ELEMENT = "'fro'"
"""The norm of Frobenius: the 2-norm of all elements."""


def attribute_words(attributes: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The word for each argument of an op in its formula and rules."""
    return {name: _attribute(name, value) for name, value in attributes}


def _attribute(name: str, value: str) -> str:
    """A dimension by its number, as ``dim 1``: it is no factor."""
    if value == "None":
        return _LEFT_OUT.get(name, value)
    if name in ("dim", "dims"):
        dims = value.strip("()").removesuffix(",")
        return f"dim{'s' * (',' in dims)} {dims}" if dims else _LEFT_OUT[name]
    return "2" if name in ("p", "ord") and value == _OF_EVERY_ELEMENT else value


def formula_with(formula: str, given: Mapping[str, str]) -> str:
    """A formula for these arguments: a norm by what it is, a bound only where there is one.

    Empty for the norm of a matrix that is none of its elements: then the call itself says what it is.
    """
    formula = _BOUND.sub(lambda bound: "" if given.get(bound[1]) == "None" else bound[0], formula)
    powers = _POWERS.search(formula)
    power = given.get(powers[2], "") if powers is not None else ""
    if powers is None or not power.startswith("'"):
        return _POWERS.sub(f"{_EXTREME[power]} \\1", formula) if power in _EXTREME else formula
    return formula if power == _OF_EVERY_ELEMENT else ""
