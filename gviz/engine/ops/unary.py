"""Short declarations for functions of one tensor, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine.apply import zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import spaced
from gviz.values import Array

Examples = Callable[[], Sequence[Example]]


def on(*arrays: Callable[..., Array]) -> Examples:
    """Examples of one tensor each, in two shapes, drawn from each of the generators."""
    return lambda: [Example((make(*shape),), {}) for make in arrays for shape in ((), (2, 3))]


def smooth(
    name: str, grad_fn: str, forward: Callable[..., Any], derivative: str, vjp: Callable[..., Any], examples: Examples
) -> Op:
    """A differentiable function, also in place, of floating numbers; integers become such first."""
    return Op(
        f"{name}(self)",
        grad_fn=grad_fn,
        formula=f"{name}(self)",
        forward=forward,
        rules=(Rule("self", derivative, vjp),),
        promotes="float",
        in_place=True,
        examples=examples,
    )


def stepwise(name: str, grad_fn: str, formula: str, forward: Callable[..., Any]) -> Op:
    """A function that is constant between its steps, also in place: its gradient is zero."""
    return Op(
        f"{name}(self)",
        grad_fn=grad_fn,
        formula=formula,
        forward=forward,
        rules=(Rule("self", "0", nothing),),
        in_place=True,
        examples=on(spaced),
    )


def nothing(g: Any) -> Any:
    """The gradient where nothing depends on the input: zeros, even where `g` is infinite."""
    return zeros(g, np.shape(g) if isinstance(g, np.generic) else g.shape)
