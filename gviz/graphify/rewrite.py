"""What to write instead of a construct that reads the data, composed of the program's own code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from gviz.graphify.construct import Advice, Construct, Kind, code, operand
from gviz.graphify.conversions import conversion
from gviz.graphify.tensor_code import condition, in_words, tensors


def advice(construct: Construct, what: str) -> Advice:
    """Return the advice for a construct; `what` is the recorded conversion or operation."""
    return _ADVICE[construct.kind](construct, what)


def _if(construct: Construct, what: str) -> Advice:
    why = "which side runs depends on the data, and a static graph has only the side that ran when it was made"
    node = construct.node
    match node:
        case ast.IfExp(body=a, orelse=b) if not _is_text(a) | _is_text(b):
            return Advice(why, (f"torch.where({condition(node.test)}, {_side(a)}, {_side(b)})",))
        case ast.IfExp():
            return Advice(why, (f"choose a number, and look up its meaning later: {_either(node, '1', '0')}",))
        case ast.If(body=[*_, ast.Raise()]):
            return _assert(construct, what)
        case ast.If(body=[ast.Break()], orelse=[]):
            return _break(node.test, construct)
        case ast.If(body=[ast.Continue()], orelse=[]):
            return _continue(node.test, construct)
        case ast.If(body=body, orelse=orelse) if all(isinstance(part, ast.Expr) for part in (*body, *orelse)):
            return Advice(why, (f"do this after the graph has run, which returns {condition(node.test)}",))
        case ast.If() if chosen := _chosen(node, construct):
            return Advice(why, (chosen,))
    return Advice(why, (f"compute both sides, then choose each result: {_either(node, 'of_if', 'of_else')}",))


_NO_TENSORS = (
    ast.JoinedStr, ast.Lambda, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp,
    ast.GeneratorExp,
)  # fmt: skip


def _either(node: ast.AST, one: str, other: str) -> str:
    test = condition(node.test) if isinstance(node, ast.If | ast.IfExp) else "condition"
    return f"torch.where({test}, {one}, {other})"


def _side(value: ast.expr) -> str:
    return code(tensors(value, read=False))


def _is_text(node: ast.expr) -> bool:
    """Return whether an expression is clearly neither a tensor nor a number, so that ``where`` cannot take it."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, int | float | complex)
    return isinstance(node, _NO_TENSORS)


def _match(construct: Construct, what: str) -> Advice:
    return Advice(
        "which case runs depends on the data, and a static graph has only the one that ran when it was made",
        ("compute every case, then choose each result: torch.where(test, of_case, of_others)",),
    )


def _chosen(node: ast.If, construct: Construct) -> str:
    """Return an ``if`` whose sides give one value each as one expression; empty if they do more."""
    test, other = condition(node.test), node.orelse or _following(node, construct)
    match node.body, other:
        case [ast.Return(value=ast.expr() as a)], [ast.Return(value=ast.expr() as b)] if not _is_text(a) | _is_text(b):
            return f"return torch.where({test}, {_side(a)}, {_side(b)})"
    assigned = _assigned([node])
    return f"{assigned[0]} = {assigned[1]}" if assigned else ""


def _assigned(body: Sequence[ast.stmt]) -> tuple[str, str] | None:
    """Return the one variable that a block sets, with its value; None if it does anything else."""
    match body:
        case [ast.If(test=test, body=inner, orelse=orelse)]:
            name, value = _assigned(inner) or ("", "")
            other_name, other = (_assigned(orelse) or ("", "")) if orelse else (name, name)
            return (name, f"torch.where({condition(test)}, {value}, {other})") if name and name == other_name else None
    match _assignments(body):
        case [(name, new)] if not _is_text(new):
            return name, code(new)
    return None


def _following(node: ast.If, construct: Construct) -> list[ast.stmt]:
    """Return the statement after an ``if`` whose body returns: its other side."""
    holder = construct.path[-1] if construct.path else None
    statements: list[ast.stmt] = getattr(holder, "body", [])
    if node in statements and isinstance(node.body[-1], ast.Return):
        return statements[statements.index(node) + 1 :][:1]
    return [ast.Pass()]


def _for(construct: Construct, what: str) -> Advice:
    match construct.node:
        case ast.For(iter=values) | ast.comprehension(iter=values) if what in ("list", "array"):
            return conversion(Construct("value", values, (*construct.path, construct.node)), what)
    return _for_range(construct, what)


def _assert(construct: Construct, what: str) -> Advice:
    return Advice(
        "the check reads a value, and a static graph computes without looking",
        ("check before the graph runs, or what it returns",),
    )


def _filter(construct: Construct, what: str) -> Advice:
    test = condition(construct.node) if isinstance(construct.node, ast.expr) else "condition"
    return Advice(
        "which elements are kept depends on the data, and a static graph keeps those of the run that made it",
        (f"keep every element, together with a mask: torch.where({test}, <element>, 0)",),
    )


def _index(construct: Construct, what: str) -> Advice:
    why = "the number of elements depends on the data, and every size in a static graph is fixed"
    if not isinstance(construct.node, ast.Subscript) or isinstance(construct.node.slice, ast.Tuple):
        return Advice(why, ("keep the size and use the mask: torch.where(<mask>, <tensor>, 0)",))
    x, mask = code(construct.node.value), code(construct.node.slice)
    _, own, of = what.split()
    whole = mask if own == of else f"({mask})[...{', None' * (int(of) - int(own))}]"
    flat, places = (x, f"({mask})") if own == "1" else (f"{x}.flatten(0, {int(own) - 1})", f"({mask}).flatten()")
    order = f"torch.argsort({places}.logical_not(), stable=True)"
    if _in_cat(construct):
        return Advice(why, (f"order = {order}   # those of the mask first, in their order", f"{flat}[order]"))
    return Advice(
        why,
        (
            f"torch.where({whole}, {x}, 0)               # the same size; for a mean divide by ({mask}).sum()",
            f"{flat}[{order}]   # or: those of the mask first",
        ),
    )


def _in_cat(construct: Construct) -> bool:
    call = construct.holder(ast.Call)
    return isinstance(call, ast.Call) and code(call.func).rpartition(".")[2] in ("cat", "concat", "concatenate")


def _sizes(construct: Construct, what: str) -> Advice:
    why = f"{what} gives as many elements as the data say, and every size in a static graph is fixed"
    if what in ("nonzero", "argwhere"):
        x = operand(construct.node)
        mask = code(x) if isinstance(x, ast.Compare) else f"{code(x)} != 0"
        return Advice(
            why,
            (
                f"use the mask itself: x[{mask}] = value, torch.where({mask}, a, b)",
                f"or a fixed number of places: torch.argsort(({mask}).logical_not(), stable=True)[:LIMIT]",
            ),
        )
    if what.startswith("unique"):
        values = code(operand(construct.node))
        return Advice(
            why,
            (
                f"ordered = torch.sort({values}.flatten()).values",
                "is_first = torch.cat([torch.ones(1, dtype=torch.bool), ordered[1:] != ordered[:-1]])   # a mask",
            ),
        )
    if what == "bincount":
        counted = code(operand(construct.node))
        ones = f"torch.ones_like({counted})"
        return Advice(why, (f"torch.zeros(LIMIT, dtype=torch.int64).scatter_add(0, {counted}, {ones})",))
    return Advice(why, ("keep the size and use a mask of what counts: torch.where(<mask>, <tensor>, 0)",))


# Loops whose number of iterations depends on the data: run the maximum, and let extra iterations change nothing

_ROUNDS = "how often it goes round depends on the data, and a static graph has the rounds of the run that made it"
_LIMIT = "   # as many rounds as it can ever take; those that are too many change nothing"


def _while(construct: Construct, what: str) -> Advice:
    """Return the advice for a ``while`` whose test is read."""
    node = construct.node
    if not isinstance(node, ast.While):
        return Advice(_ROUNDS, (f"for _ in range(LIMIT):{_LIMIT}",))
    test = condition(node.test)
    rounds: tuple[str, ...]
    match _assignments(node.body):
        case [(name, value)]:
            rounds = (f"    {name} = torch.where({test}, {code(value)}, {name})",)
        case several:
            rounds = (f"    goes_on = {test}", *_where_lines(several, "goes_on", "{new}", "{old}"))
    return Advice(_ROUNDS, (f"for _ in range(LIMIT):{_LIMIT}", *rounds))


def _for_range(construct: Construct, what: str) -> Advice:
    """Return the advice for a ``for`` over a range that is read, or for a comprehension over one."""
    node = construct.node
    why = "the number of rounds depends on the data, and a static graph has those of the run that made it"
    match node:
        case ast.For(target=ast.Name(id=index), iter=ast.Call(func=ast.Name(id="range"), args=[bound])):
            start = ""
        case ast.For(target=ast.Name(id=index), iter=ast.Call(func=ast.Name(id="range"), args=[first, bound])):
            start = f"{code(first if isinstance(first, ast.Constant) else in_words(first, 'a constant'))}, "
        case _:
            words = "make the tensor LIMIT long, and keep a mask of what counts: torch.arange(LIMIT) < count"
            return Advice(why, (words,))
    index = "i" if index == "_" else index
    return Advice(
        why,
        (
            f"bound = {code(tensors(bound))}",
            f"for {index} in range({start}LIMIT):   # as many rounds as it can ever take",
            *_where_lines(_assignments(node.body), f"{index} < bound", "{new}", "{old}"),
        ),
    )


def _continue(test: ast.expr, construct: Construct) -> Advice:
    """Return the advice for ``if test: continue``."""
    loop, node = construct.holder(ast.While, ast.For), construct.node
    body = list(getattr(loop, "body", ()))
    rest = body[body.index(node) + 1 :] if node in body else []
    why = "which rounds are cut short depends on the data, and a static graph has those of the run that made it"
    lines = [line.strip() for line in _where_lines(_assignments(rest), "skipped", "{old}", "{new}")]
    return Advice(why, (f"skipped = {condition(test)}   # and without the if", *lines))


def _break(test: ast.expr, construct: Construct) -> Advice:
    """Return the advice for ``if test: break``."""
    loop, node = construct.holder(ast.While, ast.For), construct.node
    body = list(getattr(loop, "body", ()))
    at = body.index(node) if node in body else 0
    head = f"for _ in range(LIMIT):{_LIMIT}"
    first: tuple[str, ...] = ()
    if isinstance(loop, ast.For):
        head = f"for {code(loop.target)} in {code(loop.iter)}:"
    elif isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant):
        first = (f"    done = done | ~({condition(loop.test)})",)
    before, after = (_assignments(part) if part else [] for part in (body[:at], body[at + 1 :]))
    return Advice(
        _ROUNDS,
        (
            "done = torch.tensor(False)",
            head,
            *first,
            *(_where_lines(before, "done", "{old}", "{new}") if body[:at] else ()),
            f"    done = done | ({condition(test)})",
            *(_where_lines(after, "done", "{old}", "{new}") if body[at + 1 :] else ()),
        ),
    )


def _assignments(body: Sequence[ast.stmt]) -> list[tuple[str, ast.expr]] | None:
    """Return the variables that a block sets with their values, in order; None if it does anything else."""
    assignments: list[tuple[str, ast.expr]] = []
    for part in body:
        match part:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                assignments.append((name, tensors(value, read=False)))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                assignments.append((name, ast.BinOp(target, op, tensors(value, read=False))))
            case _:
                return None
    return assignments


def _where_lines(steps: list[tuple[str, ast.expr]] | None, test: str, one: str, other: str) -> tuple[str, ...]:
    """Return lines that set each variable to its new value if the iteration counts, and keep it otherwise."""
    if not steps:
        call = f"torch.where({test}, {one.format(new='<its new value>', old='<itself>')}, "
        return (
            f"    <each variable that the round sets> = {call}{other.format(new='<its new value>', old='<itself>')})",
        )
    return tuple(
        [
            f"    {name} = torch.where({test}, {one.format(new=code(value), old=name)}, "
            f"{other.format(new=code(value), old=name)})"
            for name, value in steps
        ]
    )


_ADVICE: dict[Kind, Callable[[Construct, str], Advice]] = {
    "if": _if,
    "while": _while,
    "for": _for,
    "match": _match,
    "assert": _assert,
    "filter": _filter,
    "index": _index,
    "sizes": _sizes,
    "value": conversion,
}
