"""What a program assigns a value to, and which part of a value each of several targets gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import KeyPath

_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Each:
    """What a loop assigns the items of a value to, one after another."""

    target: Target | None


Target = str | tuple["Target | None", ...] | Each
"""What a value is assigned to: a name, empty for one that is none, or several, with None for ``*rest``."""


def target_of(target: ast.expr) -> Target:
    """What the text of a target assigns to."""
    match target:
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            return tuple(None if isinstance(one, ast.Starred) else target_of(one) for one in targets)
    return name_of(target)


def name_of(target: ast.expr) -> str:
    """A target as its user writes it, or nothing if that is too long to be a name."""
    text = ast.unparse(target)
    return text if len(text) <= _LONGEST_NAME else ""


def name_at(target: Target | None, path: KeyPath) -> str:
    """The name that the part of a value at `path` gets; nothing where it has none of its own."""
    for place, count, _ in path:
        match target:
            case Each(target=one):
                target = one
            case tuple():
                target = _item(target, place, count)
            case _:
                return ""
    return target if isinstance(target, str) else ""


def names_in(target: Target | None) -> Iterator[str]:
    """All names of a target."""
    match target:
        case Each(target=one):
            yield from names_in(one)
        case tuple():
            for one in target:
                yield from names_in(one)
        case str() if target:
            yield target


def _item(targets: tuple[Target | None, ...], place: int, count: int) -> Target | None:
    """The target of one of so many parts; None for one among those that ``*rest`` takes."""
    if None not in targets:
        return targets[place] if count == len(targets) else None
    star = targets.index(None)
    after = place - count + len(targets)
    return targets[place] if place < star else targets[after] if star < after < len(targets) else None
