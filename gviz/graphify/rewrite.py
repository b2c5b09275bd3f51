"""What to write instead, made of the program's own code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from gviz.graphify.advice import Advice, code, operand
from gviz.graphify.condition import condition
from gviz.graphify.construct import Construct, Kind
from gviz.graphify.left import left


def advice(found: Construct, what: str) -> Advice:
    """The advice for what stands in the way; `what` is the reading or operation that was noted."""
    return _ADVICE[found.kind](found, what)


def _if(found: Construct, what: str) -> Advice:
    why = "which side runs depends on the data, and a static graph has only the side that ran when it was made"
    node = found.node
    match node:
        case ast.IfExp(body=a, orelse=b) if not _is_text(a) | _is_text(b):
            return Advice(why, (f"torch.where({condition(node.test)}, {code(a)}, {code(b)})",))
        case ast.IfExp():
            return Advice(why, (f"choose a number, and look up what it stands for later: {_either(node, '1', '0')}",))
        case ast.If(body=[*_, ast.Raise()]):
            return _assert(found, what)
        case ast.If(body=[*_, ast.Break() | ast.Continue() as end]):
            return _ended(node, end, found)
        case ast.If(body=body, orelse=orelse) if all(isinstance(part, ast.Expr) for part in (*body, *orelse)):
            return Advice(why, (f"do this after the graph has run, which returns {condition(node.test)}",))
        case ast.If() if chosen := _chosen(node, found):
            return Advice(why, (chosen,))
    return Advice(why, (f"compute both sides, then choose each result: {_either(node, 'of_if', 'of_else')}",))


def _either(node: ast.AST, one: str, other: str) -> str:
    test = condition(node.test) if isinstance(node, ast.If | ast.IfExp) else "condition"
    return f"torch.where({test}, {one}, {other})"


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is plainly no tensor and no number, so that no ``where`` takes it."""
    return isinstance(node, ast.Constant | ast.JoinedStr | ast.Lambda | ast.Dict) and not (
        isinstance(node, ast.Constant) and isinstance(node.value, int | float | complex)
    )


def _ended(node: ast.If, end: ast.Break | ast.Continue, found: Construct) -> Advice:
    """A round that ends early, and with ``break`` the loop."""
    loop = found.holder(ast.While, ast.For)
    name = next((pair[0] for pair in map(_assigned, ([part] for part in getattr(loop, "body", ()))) if pair), "x")
    test = condition(node.test)
    if isinstance(end, ast.Continue):
        why = "which rounds are cut short depends on the data, and a static graph has those of the run that made it"
        return Advice(why, (f"{name} = torch.where({test}, {name}, next_{name})   # for all that the round sets",))
    return Advice(
        "how often it goes round depends on the data, and a static graph has the rounds of the run that made it",
        (
            "for _ in range(LIMIT):   # as many rounds as it can ever take; those that are too many change nothing",
            f"    done = done | ({test})   # before the loop: torch.tensor(False)",
            f"    {name} = torch.where(done, {name}, next_{name})   # and so all that the loop sets",
        ),
    )


def _match(found: Construct, what: str) -> Advice:
    return Advice(
        "which case runs depends on the data, and a static graph has only the one that ran when it was made",
        ("compute every case, then choose each result: torch.where(test, of_case, of_others)",),
    )


def _chosen(node: ast.If, found: Construct) -> str:
    """An ``if`` whose sides give one value each, as one expression; empty if they do more."""
    test, other = condition(node.test), node.orelse or _following(node, found)
    match node.body, other:
        case [ast.Return(value=ast.expr() as a)], [ast.Return(value=ast.expr() as b)]:
            return f"return torch.where({test}, {code(a)}, {code(b)})"
    assigned = _assigned([node])
    return f"{assigned[0]} = {assigned[1]}" if assigned else ""


def _assigned(body: Sequence[ast.stmt]) -> tuple[str, str] | None:
    """The one variable that a block sets, and to what; None if it does anything else."""
    match body:
        case [ast.If(test=test, body=inner, orelse=orelse)]:
            name, value = _assigned(inner) or ("", "")
            other_name, other = (_assigned(orelse) or ("", "")) if orelse else (name, name)
            return (name, f"torch.where({condition(test)}, {value}, {other})") if name and name == other_name else None
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
            return name, code(value)
        case [ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value)]:
            return name, code(ast.BinOp(target, op, value))
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
        index = "i" if node.target.id == "_" else node.target.id
        match node.iter:
            case ast.Call(args=[*_, last]):
                bound = code(operand(last))
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
    x, mask = code(found.node.value), code(found.node.slice)
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
    return isinstance(call, ast.Call) and code(call.func).rpartition(".")[2] in ("cat", "concat", "concatenate")


def _sizes(found: Construct, what: str) -> Advice:
    why = f"{what} gives as many elements as the data say, and every size in a static graph is fixed"
    if what in ("nonzero", "argwhere"):
        x = operand(found.node)
        mask = code(x) if isinstance(x, ast.Compare) else f"{code(x)} != 0"
        return Advice(
            why,
            (
                f"use the mask itself: x[{mask}] = value, torch.where({mask}, a, b)",
                f"or a fixed number of places: torch.argsort(({mask}).logical_not(), stable=True)[:LIMIT]",
            ),
        )
    if what.startswith("unique"):
        values = code(operand(found.node))
        return Advice(
            why,
            (
                f"ordered = torch.sort({values}.flatten()).values",
                "is_first = torch.cat([torch.ones(1, dtype=torch.bool), ordered[1:] != ordered[:-1]])   # a mask",
            ),
        )
    if what == "bincount":
        return Advice(why, ("torch.zeros(LIMIT).scatter_add(0, x, torch.ones_like(x, dtype=torch.float32))",))
    return Advice(why, ("keep the size and use the mask: torch.where(mask, x, 0.0)",))


_ADVICE: dict[Kind, Callable[[Construct, str], Advice]] = {
    "if": _if,
    "while": _while,
    "for": _for,
    "match": _match,
    "assert": _assert,
    "filter": _filter,
    "index": _index,
    "sizes": _sizes,
    "value": left,
}
