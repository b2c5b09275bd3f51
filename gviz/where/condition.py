"""A condition: an expression over what is so at the moment it is tested at."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from gviz.errors import GvizError
from gviz.events import OpSeen
from gviz.values.plain_text import clipped
from gviz.where import safe_expression as guarded
from gviz.where.expression_operations import FUNCTIONS

NAMES = ("value", "grad", "op", "name", "node", "module", "event", "step")
"""What a condition may ask about the moment it is tested at."""


class OpWord(str):
    """The name of an operation in a condition: as in a place any case will do, and its grad_fn means it too."""

    grad_fn = ""

    @classmethod
    def of(cls, op: OpSeen) -> OpWord:
        """That of an operation."""
        word = cls(op.name)
        word.grad_fn = op.grad_fn
        return word

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.lower() in (self.lower(), self.grad_fn.lower() or self.lower())

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def holds(told: Any) -> bool:
    """Whether what an expression gave is true: of a tensor, whether it has elements and all of them are."""
    if isinstance(told, str | dict | set):
        return bool(told)
    if isinstance(told, list | tuple):  # not by numpy, which would make each of their texts as long as the longest
        return bool(told) and all(map(holds, told))
    return bool(told) if isinstance(told, bool | np.bool_) else bool(np.size(told) and np.all(told))


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression over `NAMES`, a `gviz.where.safe_expression` compiled once; `asks` for some of them."""

    text: str
    code: CodeType
    asks: frozenset[str]

    def holds(self, moment: dict[str, Any]) -> bool:
        """Whether it is true of a moment, a dictionary that gives `NAMES`; raises whatever the expression raises."""
        return holds(guarded.evaluate(self.code, moment))


def condition(text: str) -> Condition:
    """Compile a condition; raises GvizError for what is no expression over `NAMES`.

    A condition that comes from a file must be shown and confirmed before it is given to this function.
    """
    try:
        tree = guarded.parsed(text.strip())
        words = [word.id for word in ast.walk(tree) if isinstance(word, ast.Name)]
        known = {*NAMES, *FUNCTIONS, *guarded.bound_names(tree)}
        unknown = next((word for word in words if word not in known), "")
        code = guarded.compiled(tree)
    except guarded.Refused as refusal:
        raise GvizError(f"{clipped(text, 40)} is no condition", why=str(refusal), exit_code=2) from None
    if unknown:
        names = ", ".join((*NAMES, "norm", "isnan", "np"))
        raise GvizError(f"a condition knows no {clipped(unknown, 30)}", hint=f"it knows {names}", exit_code=2)
    return Condition(text.strip(), code, frozenset(NAMES).intersection(words))
