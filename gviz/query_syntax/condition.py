"""A condition: an expression over the state at the moment at which it is tested."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from gviz.errors import GvizError
from gviz.events import OpSeen
from gviz.query_syntax import safe_expression as guarded
from gviz.query_syntax.expression_operations import FUNCTIONS
from gviz.values.plain_text import clipped

NAMES = ("value", "grad", "op", "name", "node", "module", "event", "step")
"""The names a condition can use."""


class OpWord(str):
    """The name of an operation in a condition. It compares case-insensitively, and also equals its grad_fn, as in a
    place.
    """

    grad_fn = ""

    @classmethod
    def of(cls, op: OpSeen) -> OpWord:
        """Return the word of an operation."""
        word = cls(op.name)
        word.grad_fn = op.grad_fn
        return word

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.lower() in (self.lower(), self.grad_fn.lower() or self.lower())

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def holds(result: Any) -> bool:
    """Return whether the result of an expression is true; a tensor is true if it has elements and all of them
    are true.
    """
    if isinstance(result, str | dict | set):
        return bool(result)
    if isinstance(result, list | tuple):  # not with numpy, which would pad each text to the length of the longest
        return bool(result) and all(map(holds, result))
    return bool(result) if isinstance(result, bool | np.bool_) else bool(np.size(result) and np.all(result))


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression over `NAMES`, compiled once by `safe_expression`; `asks` are the names it uses."""

    text: str
    code: CodeType
    asks: frozenset[str]

    def holds(self, moment: dict[str, Any]) -> bool:
        """Return whether the condition is true at a moment, a dictionary of `NAMES`. Raises what the expression
        raises.
        """
        return holds(guarded.evaluate(self.code, moment))


def condition(text: str) -> Condition:
    """Compile a condition. Raises GvizError if it is not an expression over `NAMES`.

    A condition that comes from a file must be shown and confirmed before it is passed to this function.
    """
    try:
        tree = guarded.parsed(text.strip())
        words = [word.id for word in ast.walk(tree) if isinstance(word, ast.Name)]
        known = {*NAMES, *FUNCTIONS, *guarded.bound_names(tree)}
        unknown = next((word for word in words if word not in known), "")
        code = guarded.compiled(tree)
    except guarded.RefusedExpression as refusal:
        raise GvizError(f"{clipped(text, 40)} is no condition", why=str(refusal), exit_code=2) from None
    if unknown:
        names = ", ".join((*NAMES, "norm", "isnan", "np"))
        raise GvizError(f"a condition knows no {clipped(unknown, 30)}", hint=f"it knows {names}", exit_code=2)
    return Condition(text.strip(), code, frozenset(NAMES).intersection(words))
