"""How the rules of an op run in a backward step, worked out once for each op, when a node of it first runs.

Most ops have one output and a rule for each of some inputs. For them a function is written out in which every rule is
called with just what it names, as ``dataclasses`` writes out ``__init__``: the calls between the parts of a general way
take longer than the arithmetic on a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gviz.engine.node import Grad, Node
from gviz.engine.rule import Call
from gviz.engine.tensor import new_tensor

if TYPE_CHECKING:
    from gviz.engine.op import Op

Vjp = Callable[[Node, Sequence[Grad | None], bool], Sequence[Grad | None]]
"""A node class's `vjp`: gradients of the inputs from those of the outputs, None where no edge wants one."""

_WRITTEN_OUT = """
def vjp(node, grads, create_graph):
    g = grads[0]
    if g is None:
        return [None] * {slots}
    {saved}
    edges = node.next_edges
    return [{parts}]
"""
_SAVED = "saved = node.saved_tensors() if create_graph else node.saved_arrays()"


def vjp_of(op: Op) -> Vjp:
    """The function that runs the op's rules for the inputs that a node has edges for."""
    if op.several or op.variadic or any(call is not None and call.is_joint for call in op.calls):
        return lambda node, grads, create_graph: _vjp(op, node, grads, create_graph)

    def first(node: Node, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        vjp = _written_out(op)
        op.node_class.vjp = vjp  # type: ignore[assignment]  # there are hundreds of ops, a program uses some
        return vjp(node, grads, create_graph)

    return first


def _written_out(op: Op) -> Vjp:
    """The text for an op whose rules each give one gradient, compiled."""
    rules = {f"rule_{slot}": call.vjp for slot, call in enumerate(op.calls) if call is not None}
    parts = [_part(slot, call, op.saved_names) for slot, call in enumerate(op.calls)]
    saved = _SAVED if op.saved_names else ""
    text = _WRITTEN_OUT.format(slots=len(parts), saved=saved, parts=", ".join(parts))
    names: dict[str, Any] = dict(rules)
    file = f"{__file__}:{op.name}"  # of the engine, and of no text that a traceback could quote
    exec(compile(text, file, "exec"), names)  # made of numbers and names of declarations alone
    vjp: Vjp = names["vjp"]
    return vjp


def _part(slot: int, call: Call | None, saved_names: Sequence[str]) -> str:
    """The gradient of one slot as an expression."""
    if call is None:
        return "None"
    given = [f"saved[{saved_names.index(n)}]" if n in saved_names else f"node.attrs[{n!r}]" for n in call.names]
    return f"None if edges[{slot}] is None else rule_{slot}({', '.join(['g', *given])})"


def _vjp(op: Op, node: Node, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
    """The general way: several outputs, list arguments, rules that share work."""
    saved: Sequence[Any] = node.saved_tensors() if create_graph else node.saved_arrays()
    g: Any = grads[0]
    if op.several:
        g = _materialized(node, grads, create_graph)
        if op.differentiable_outputs == 1:
            g = g[0]
    elif g is None:
        return [None] * len(node.next_edges)
    if op.variadic:
        (call,) = op.calls
        return list(call(g, saved, node.attrs)) if call else []
    joint: dict[Call, dict[str, Grad | None]] = {}
    parts: list[Grad | None] = []
    for slot, edge, call in zip(op.slots, node.next_edges, op.calls, strict=True):
        if edge is None or call is None:
            parts.append(None)
        elif not call.is_joint:
            parts.append(call(g, saved, node.attrs))
        else:
            if call not in joint:
                joint[call] = dict(zip(call.texts, call(g, saved, node.attrs), strict=True))
            parts.append(joint[call][slot])
    return parts


def _materialized(node: Node, grads: Sequence[Grad | None], create_graph: bool) -> list[Grad]:
    """Gradients of several outputs, zeros where nothing arrived."""
    full = []
    for g, (shape, kind) in zip(grads, node.outputs, strict=True):
        if g is None:
            g = np.zeros(shape, kind)
            g = new_tensor(g) if create_graph else g
        full.append(g)
    return full
