"""How tensors are written in expressions, and what may follow one: ``#4``, ``0.weight`` of a sequence, ``.max()``."""

from __future__ import annotations

import re

_METHODS = """
abs all any argmax argmin argsort astype clip copy cumprod cumsum diagonal dot flatten item max mean min nonzero
norm prod ptp ravel round sort squeeze std sum trace transpose var count endswith find index isdigit lower
lstrip rstrip split startswith strip upper
"""
METHODS = frozenset(_METHODS.split())
"""The methods that an expression may call on a tensor, a text or a list."""

_FACTS = """
T dtype imag ndim real shape size itemsize nbytes
"""
FACTS = frozenset(_FACTS.split())
"""The attributes of a tensor that an expression may read."""

_WRITTEN = re.compile(
    r"""("[^"]*"|'[^']*')|\#(?P<node>\d{1,18})\b|(?<![\w.\])])(?P<path>(?:\d+\.)*[A-Za-z_]\w*(?:\.\w+)*)""", re.VERBOSE
)
"""Strings (left unchanged), a node's number, or a path in which a module may be a number."""

_INDEX = re.compile(r"""\[(?:(\d+)|'(\w+)'|"(\w+)")\]""")
_OF_A_TENSOR = "|".join(sorted({*METHODS, *FACTS, "grad", "value"}))
_ITEMS_OF_MODULES = re.compile(rf"(?<!\])(?:{_INDEX.pattern})+(?=\.(?!(?:{_OF_A_TENSOR})\b)\w)")
"""The ``[1][0]`` in ``net[1][0].weight``: what follows is not a tensor method."""

_FLOAT = re.compile(r"\d+\.[eEjJ]\d*$")
_NODE = re.compile(r"node_(\d{1,18})_$")
_ITEM = re.compile(r"item_(\d+)_$")


def as_python(text: str) -> str:
    """Replace what is not valid Python in an expression by names."""
    return _WRITTEN.sub(_named, with_paths(text))


def with_paths(text: str) -> str:
    """Write indexed modules as one path: ``net[0].weight`` as ``net.0.weight``."""
    return _ITEMS_OF_MODULES.sub(lambda match: with_items(match[0]), text)


def with_items(text: str) -> str:
    """Same for a text that may be a module itself: ``net[0]`` as ``net.0``."""
    return _INDEX.sub(lambda one: f".{one[1] or one[2] or one[3]}", text)


def as_written(name: str) -> str:
    """Return a part of a path as the user writes it."""
    return _ITEM.sub(r"\1", name)


def node_of(name: str) -> int:
    """Return the node that a placeholder name refers to, 0 for any other name."""
    match = _NODE.match(name)
    return int(match.group(1)) if match else 0


def _named(match: re.Match[str]) -> str:
    if match["node"]:
        return f"node_{match['node']}_"
    path = match["path"]
    if not path or _FLOAT.match(path):
        return match.group()
    return ".".join(f"item_{part}_" if part.isdecimal() else part for part in path.split("."))
