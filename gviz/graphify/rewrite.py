"""What to write instead, made of the program's own code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gviz.graphify.condition import condition
from gviz.graphify.construct import Construct, Kind


@dataclass(frozen=True, slots=True)
class Advice:
    """Why it cannot be in a static graph, and lines of code (or words) that can."""

    why: str
    instead: tuple[str, ...]


def advice(found: Construct, what: str) -> Advice:
    """The advice for what stands in the way; `what` is the reading or operation that was noted."""
    return _ADVICE[found.kind](found, what)


def _if(found: Construct, what: str) -> Advice:
    why = "which side runs depends on the data, and a static graph has only the side that ran when it was made"
    node = found.node
    if isinstance(node, ast.IfExp):
        return Advice(why, (f"torch.where({condition(node.test)}, {_code(node.body)}, {_code(node.orelse)})",))
    if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
        return _assert(found, what)
    if isinstance(node, ast.If) and (chosen := _chosen(node, found)):
        return Advice(why, (chosen,))
    test = condition(node.test) if isinstance(node, ast.If) else "condition"
    return Advice(why, (f"compute both sides, then choose each result: torch.where({test}, of_if, of_else)",))


def _chosen(node: ast.If, found: Construct) -> str:
    """An ``if`` whose sides give one value each, as one expression; empty if they do more."""
    test, other = condition(node.test), node.orelse or _following(node, found)
    match node.body, other:
        case [ast.Return(value=ast.expr() as a)], [ast.Return(value=ast.expr() as b)]:
            return f"return torch.where({test}, {_code(a)}, {_code(b)})"
    assigned = _assigned(node.body)
    if assigned is None:
        return ""
    name, value = assigned
    if not node.orelse:
        return f"{name} = torch.where({test}, {value}, {name})"
    otherwise = _assigned(node.orelse)
    return f"{name} = torch.where({test}, {value}, {otherwise[1]})" if otherwise and otherwise[0] == name else ""


def _assigned(body: Sequence[ast.stmt]) -> tuple[str, str] | None:
    """The one variable that a block sets, and to what; None if it does anything else."""
    match body:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
            return name, _code(value)
        case [ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value)]:
            return name, _code(ast.BinOp(target, op, value))
    return None


def _following(node: ast.If, found: Construct) -> list[ast.stmt]:
    """The statement after an ``if`` whose body returns: its other side."""
    holder = found.path[-1] if found.path else None
    statements: list[ast.stmt] = getattr(holder, "body", [])
    if node in statements and isinstance(node.body[-1], ast.Return):
        return statements[statements.index(node) + 1 :][:1]
    return [ast.Pass()]


def _while(found: Construct, what: str) -> Advice:
    node = found.node
    name, value = (_assigned(node.body) if isinstance(node, ast.While) else None) or ("x", "next_x")
    test = condition(node.test) if isinstance(node, ast.While) else "condition"
    return Advice(
        "how often it goes round depends on the data, and a static graph has the rounds of the run that made it",
        (
            "for _ in range(LIMIT):   # as many rounds as it can ever take; those that are too many change nothing",
            f"    {name} = torch.where({test}, {value}, {name})",
        ),
    )


def _for(found: Construct, what: str) -> Advice:
    node, bound, index = found.node, "bound", "i"
    if isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
        index = node.target.id
        match node.iter:
            case ast.Call(args=[*_, last]):
                bound = _code(_operand(last))
    name, value = (_assigned(node.body) if isinstance(node, ast.For) else None) or ("x", "next_x")
    return Advice(
        "the number of rounds depends on the data, and a static graph has those of the run that made it",
        (
            f"for {index} in range(LIMIT):   # as many rounds as it can ever take",
            f"    {name} = torch.where({index} < {bound}, {value}, {name})",
        ),
    )


def _assert(found: Construct, what: str) -> Advice:
    return Advice(
        "the check reads a value, and a static graph computes without looking",
        ("check before the graph runs, or what it returns",),
    )


def _filter(found: Construct, what: str) -> Advice:
    test = condition(found.node) if isinstance(found.node, ast.expr) else "condition"
    return Advice(
        "which elements are kept depends on the data, and a static graph keeps those of the run that made it",
        (f"keep every element, with a mask beside them: torch.where({test}, element, 0.0)",),
    )


def _index(found: Construct, what: str) -> Advice:
    why = "the number of elements depends on the data, and every size in a static graph is fixed"
    if not isinstance(found.node, ast.Subscript):
        return Advice(why, ("keep the size and use the mask: torch.where(mask, x, 0.0)",))
    x, mask = _code(found.node.value), _code(found.node.slice)
    if _in_cat(found):
        order = f"order = torch.argsort(({mask}).logical_not(), stable=True)"
        return Advice(why, (f"{order}   # those of the mask first, in their order", f"{x}[order]"))
    return Advice(
        why,
        (
            f"torch.where({mask}, {x}, 0.0)               # the same size; for a mean divide by ({mask}).sum()",
            f"{x}[torch.argsort(({mask}).logical_not(), stable=True)]   # or: those of the mask first",
        ),
    )


def _in_cat(found: Construct) -> bool:
    call = found.holder(ast.Call)
    return isinstance(call, ast.Call) and _code(call.func).rpartition(".")[2] in ("cat", "concat", "concatenate")


def _sizes(found: Construct, what: str) -> Advice:
    why = f"{what} gives as many elements as the data say, and every size in a static graph is fixed"
    if what in ("nonzero", "argwhere"):
        operand = _operand(found.node)
        mask = _code(operand) if isinstance(operand, ast.Compare) else f"{_code(operand)} != 0"
        return Advice(
            why,
            (
                f"use the mask itself: x[{mask}] = value, torch.where({mask}, a, b)",
                f"or a fixed number of places: torch.argsort(({mask}).logical_not(), stable=True)[:LIMIT]",
            ),
        )
    if what.startswith("unique"):
        x = _code(_operand(found.node))
        return Advice(
            why,
            (
                f"ordered = torch.sort({x}.flatten()).values",
                "is_first = torch.cat([torch.ones(1, dtype=torch.bool), ordered[1:] != ordered[:-1]])   # a mask",
            ),
        )
    if what == "bincount":
        return Advice(why, ("torch.zeros(LIMIT).scatter_add(0, x, torch.ones_like(x, dtype=torch.float32))",))
    return Advice(why, ("keep the size and use the mask: torch.where(mask, x, 0.0)",))


def _value(found: Construct, what: str) -> Advice:
    why = f"the value leaves the graph as a Python {_PYTHON.get(what, what)}, which a static graph keeps as a constant"
    x = condition(found.node) if isinstance(found.node, ast.BoolOp) else _code(_operand(found.node))
    return Advice(why, (f"go on with the tensor {x}; return it, and read it after the graph has run",))


_PYTHON = {"boolean": "bool", "integer": "int", "number": "number", "array": "array of numpy"}
_ADVICE: dict[Kind, Callable[[Construct, str], Advice]] = {
    "if": _if,
    "while": _while,
    "for": _for,
    "assert": _assert,
    "filter": _filter,
    "index": _index,
    "sizes": _sizes,
    "value": _value,
}


def _operand(node: ast.AST) -> ast.AST:
    """The tensor of a call: ``x`` of ``x.item()``, of ``float(x)`` and of ``torch.nonzero(x)``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch")), args=[first, *_]):
            return first
        case ast.Call(func=ast.Attribute(value=value)):
            return value
        case ast.Call(args=[first, *_]):
            return first
    return node


def _code(node: ast.AST) -> str:
    return ast.unparse(node)
