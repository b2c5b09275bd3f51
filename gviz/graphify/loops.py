"""Loops whose rounds depend on the data: as many as there can ever be, and those that are too many change nothing."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gviz.graphify.advice import Advice, code
from gviz.graphify.condition import condition, in_words, tensors
from gviz.graphify.construct import Construct

_ROUNDS = "how often it goes round depends on the data, and a static graph has the rounds of the run that made it"
_LIMIT = "   # as many rounds as it can ever take; those that are too many change nothing"


def of_while(found: Construct, what: str) -> Advice:
    """The advice for a ``while`` whose test is read."""
    node = found.node
    if not isinstance(node, ast.While):
        return Advice(_ROUNDS, (f"for _ in range(LIMIT):{_LIMIT}",))
    test = condition(node.test)
    rounds: tuple[str, ...]
    match changes(node.body):
        case [(name, value)]:
            rounds = (f"    {name} = torch.where({test}, {code(value)}, {name})",)
        case several:
            rounds = (f"    goes_on = {test}", *_kept(several, "goes_on", "{new}", "{old}"))
    return Advice(_ROUNDS, (f"for _ in range(LIMIT):{_LIMIT}", *rounds))


def of_for(found: Construct, what: str) -> Advice:
    """The advice for a ``for`` over a range that is read, or for a comprehension over one."""
    node = found.node
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
            *_kept(changes(node.body), f"{index} < bound", "{new}", "{old}"),
        ),
    )


def cut_short(test: ast.expr, found: Construct) -> Advice:
    """The advice for ``if test: continue``."""
    loop, node = found.holder(ast.While, ast.For), found.node
    body = list(getattr(loop, "body", ()))
    rest = body[body.index(node) + 1 :] if node in body else []
    why = "which rounds are cut short depends on the data, and a static graph has those of the run that made it"
    lines = [line.strip() for line in _kept(changes(rest), "skipped", "{old}", "{new}")]
    return Advice(why, (f"skipped = {condition(test)}   # and without the if", *lines))


def ended(test: ast.expr, found: Construct) -> Advice:
    """The advice for ``if test: break``."""
    loop, node = found.holder(ast.While, ast.For), found.node
    body = list(getattr(loop, "body", ()))
    at = body.index(node) if node in body else 0
    head = f"for _ in range(LIMIT):{_LIMIT}"
    first: tuple[str, ...] = ()
    if isinstance(loop, ast.For):
        head = f"for {code(loop.target)} in {code(loop.iter)}:"
    elif isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant):
        first = (f"    done = done | ~({condition(loop.test)})",)
    before, after = (changes(part) if part else [] for part in (body[:at], body[at + 1 :]))
    return Advice(
        _ROUNDS,
        (
            "done = torch.tensor(False)",
            head,
            *first,
            *(_kept(before, "done", "{old}", "{new}") if body[:at] else ()),
            f"    done = done | ({condition(test)})",
            *(_kept(after, "done", "{old}", "{new}") if body[at + 1 :] else ()),
        ),
    )


def changes(body: Sequence[ast.stmt]) -> list[tuple[str, ast.expr]] | None:
    """The variables that a block sets, each to what, in order; None if it does anything else."""
    found: list[tuple[str, ast.expr]] = []
    for part in body:
        match part:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.append((name, tensors(value, read=False)))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                found.append((name, ast.BinOp(target, op, tensors(value, read=False))))
            case _:
                return None
    return found


def _kept(steps: list[tuple[str, ast.expr]] | None, test: str, one: str, other: str) -> tuple[str, ...]:
    """Each variable as it becomes where the round counts, and as it was where it does not."""
    if not steps:
        told = f"torch.where({test}, {one.format(new='<its new value>', old='<itself>')}, "
        return (
            f"    <each variable that the round sets> = {told}{other.format(new='<its new value>', old='<itself>')})",
        )
    return tuple(
        [
            f"    {name} = torch.where({test}, {one.format(new=code(value), old=name)}, "
            f"{other.format(new=code(value), old=name)})"
            for name, value in steps
        ]
    )
