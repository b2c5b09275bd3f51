"""A place: nodes by number, by name or module, by operation, by the line that made them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Literal, Protocol, get_args

from gviz import events as e
from gviz.errors import GvizError
from gviz.source.site import Frame
from gviz.values.plain_text import clipped
from gviz.where.tensor_spelling import with_items, with_paths

Aspect = Literal["value", "grad"]
"""What of a node is meant: what it holds, or its ``.grad``."""
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)

_SIGNS = "*?["
"""By which a pattern is known."""
_ITEM = re.compile(r"""\[(?:\d+|'[^']*')\]""")
"""An index as a part of a name, such as ``parts[0]`` and ``batch['x']``, and not of a pattern."""
_QUOTED = re.compile(r"""\["([^"'\\]*)"\]""")
_LINE = re.compile(r"(.*):(\d{1,18})$")


class Known(Protocol):
    """What a place asks of a node."""

    @property
    def node(self) -> int: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def op(self) -> e.OpSeen: ...
    @property
    def scope(self) -> str: ...
    @property
    def frames(self) -> tuple[Frame, ...]: ...


@dataclass(frozen=True, slots=True)
class Possible:
    """A node as a place sees it, with the names that it may get."""

    node: int
    names: tuple[str, ...]
    op: e.OpSeen
    scope: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Nodes, by number, by the line that made them, or by a word: a name, a module, an operation, a pattern, a part."""

    text: str
    kind: Literal["node", "line", "op", "word", "pattern", "part"]
    number: int = 0
    word: str = ""

    def fits(self, info: Known) -> bool:
        """Whether it means this node, by itself or as one that a module makes."""
        return self.names(info) or self.means_module(info.scope)

    def names(self, info: Known) -> bool:
        """Whether it means this node by itself."""
        match self.kind:
            case "node":
                return info.node == self.number
            case "line":
                return any(_covers(frame, self.word, self.number) for frame in info.frames)
            case "op":
                return self._names_op(info.op)
            case "pattern":
                return self.word in info.names or any(fnmatchcase(name, self.word) for name in info.names)
            case "word":
                return self.word in info.names or self._names_op(info.op)
            case "part":
                return any(self.word.lower() in name.lower() for name in (info.op.name, info.scope, *info.names))

    def means_module(self, path: str) -> bool:
        """Whether it means the module of a path, or one around it: by the whole path, or a part of it as ``fc1`` is."""
        if not self._is_pattern:
            return bool(self._module) and f".{self._module}." in f".{path}."
        return any(self._begins(own, self._module) for own in (path, path.partition(".")[2]) if own)

    def models(self, path: str) -> Iterator[str]:
        """What the model of a module may be held by for the word to mean that module: ``net``, of ``net.fc1``."""
        _, _, own = path.partition(".")
        parts = self._module.split(".") if path else []
        for length in range(len(parts), 0, -1):
            rest = ".".join(parts[length:])
            if all(map(str.isidentifier, parts[:length])) and (not rest or (own and self._begins(own, rest))):
                yield ".".join(parts[:length])

    @property
    def _module(self) -> str:
        """The path, or pattern, of the modules it may mean: ``net.0`` of ``net[0]``."""
        return with_items(self.word) if self.kind in ("word", "pattern") else ""

    @property
    def _is_pattern(self) -> bool:
        return any(sign in self._module for sign in _SIGNS)

    def _begins(self, path: str, word: str) -> bool:
        """Whether a path begins with a word or fits a pattern, part by part."""
        parts = path.split(".")
        if not self._is_pattern:
            return parts[: word.count(".") + 1] == word.split(".")
        return any(fnmatchcase(".".join(parts[:length]), word) for length in range(1, len(parts) + 1))

    @property
    def parameters(self) -> Iterator[tuple[str, str]]:
        """What may hold a model, and a path in that, of a word that may be a parameter: ``net`` and ``0.weight``."""
        return paths_of(self.word) if self.kind == "word" else iter(())

    def calls(self, frames: Sequence[Frame]) -> bool:
        """Whether it is the line in which a call was made, with the innermost of its frames first."""
        return self.kind == "line" and bool(frames) and _covers(frames[0], self.word, self.number)

    def _names_op(self, op: e.OpSeen) -> bool:
        return self.word.lower() in (op.name.lower(), op.grad_fn.lower())


def paths_of(word: str) -> Iterator[tuple[str, str]]:
    """A word as what holds a model and a path in that: of ``model.net.0.bias`` first ``model`` and ``net.0.bias``."""
    parts = word.split(".")
    for length in range(1, len(parts)):
        if not parts[length - 1].isidentifier():  # a module of a sequence, which is no variable
            return
        yield ".".join(parts[:length]), ".".join(parts[length:])


def place(text: str) -> Place:
    """Read a PLACE; raises GvizError where it can mean nothing."""
    text = text.strip()
    if not text:
        raise unreadable("a place is missing")
    if text.startswith("#"):
        if not re.fullmatch(r"#\d{1,18}", text):
            raise unreadable(f"{clipped(text, 30)} is no node")
        return Place(text, "node", int(text[1:]))
    prefix, _, rest = text.partition(":")
    if prefix == "op" and rest.strip():
        return Place(text, "op", word=rest.strip())
    if at_line := _LINE.match(text):
        return Place(text, "line", int(at_line.group(2)), at_line.group(1))
    path = _QUOTED.sub(r"['\1']", with_paths(text))  # as names are written
    is_pattern = any(sign in _ITEM.sub("", path) for sign in _SIGNS)
    return Place(text, "pattern" if is_pattern else "word", word=path)


def changing(text: str) -> tuple[Place, Aspect]:
    """``x.grad`` or ``x``: whose value or gradient."""
    stem, aspect = split_aspect(text.strip())
    return place(stem), aspect or "value"


def split_aspect(text: str) -> tuple[str, Aspect | None]:
    """``net.weight.grad`` as ``net.weight`` and ``grad``; None for what names neither value nor gradient."""
    stem, _, last = text.rpartition(".")
    return (stem, last) if stem and last in ASPECTS else (text, None)


def _covers(frame: Frame, path: str, line: int) -> bool:
    named = not path or frame.path == path or PurePath(frame.path).name == path
    return named and frame.line <= line <= frame.end_line


def unreadable(what: str) -> GvizError:
    """The error for what is no PLACE."""
    return GvizError(what, hint="a place is #4, x, net.fc1, net.*, Mul, op:Mul or demo.py:4", exit_code=2)
