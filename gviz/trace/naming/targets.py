"""What a program assigns a value to, and which part of a value each of several targets gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import KeyPath
from gviz.returned import as_taken
from gviz.trace.naming.bindings import TURN

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
    """The name that the part of a value at `path` gets: its own variable, or ``r.values``, ``r[0]`` of one it is in."""
    named, rest = _reached(target, path)
    if not isinstance(named, str) or not named or TURN in rest:
        return ""
    name = f"{named}{as_taken(rest)}"
    return name if not rest or len(name) <= _LONGEST_NAME else ""


def turns_at(target: Target | None, path: KeyPath) -> int:
    """How many variables take what is given one after another, of which the part at `path` is one; 0 for none."""
    reached, rest = _reached(target, path)
    alike = isinstance(reached, tuple) and None not in reached and rest[:1] == (TURN,)
    return len(reached) if alike and isinstance(reached, tuple) else 0


def _reached(target: Target | None, path: KeyPath) -> tuple[Target | None, KeyPath]:
    """What of a target gets the part at `path`, with what is left of the path there."""
    for depth, (place, count, _) in enumerate(path):
        match target:
            case Each(target=one):
                target = one
            case tuple() if path[depth] != TURN:
                target = _item(target, place, count)
            case _:
                return target, path[depth:]
    return target, ()


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
