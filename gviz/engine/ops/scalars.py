"""Arithmetic with numbers as PyTorch's own composite functions do it: nodes with one edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal


def _by_number(name: str, grad_fn: str, formula: str, forward: Callable[..., Any], rule: Rule) -> Op:
    """An op on a floating-point tensor; integers become floating ones."""
    return Op(
        f"{name}(self, *, other)",
        grad_fn=grad_fn,
        formula=formula,
        forward=forward,
        rules=(rule,),
        promotes="float",
        in_place=True,
        public=False,
        examples=lambda: [Example((normal(2, 3),), {"other": 2.5})],
    )


plus = _by_number(
    "add", "AddBackward1", "self + other", lambda self, other: self + other, Rule("self", "g", lambda g: g)
)
minus = _by_number(
    "sub", "SubBackward1", "self - other", lambda self, other: self - other, Rule("self", "g", lambda g: g)
)
times = _by_number(
    "mul",
    "MulBackward1",
    "self * other",
    lambda self, other: self * other,
    Rule("self", "g * other", lambda g, other: g * other),
)
over = _by_number(
    "div",
    "DivBackward1",
    "self / other",
    lambda self, other: self / other,
    Rule("self", "g / other", lambda g, other: g / other),
)
