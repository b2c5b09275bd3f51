"""A place is how a user refers to nodes: by number, name, module, operation, or the line that created them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Literal, Protocol, get_args

from gviz import events as e
from gviz.errors import GvizError
from gviz.events.documented_operation_names import depends_on_result, documented_name, documented_names
from gviz.query_syntax.expression_names import with_items, with_paths
from gviz.source.call_stack import Frame
from gviz.values.plain_text import clipped

Aspect = Literal["value", "grad"]
"""Which part of a node: its value, or its ``.grad``."""
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)

_SIGNS = "*?["
"""The characters that make a word a pattern."""
_ITEM = re.compile(r"""\[(?:\d+|'[^']*')\]""")
"""An index that is part of a name, such as ``parts[0]`` and ``batch['x']``, and not of a pattern."""
_QUOTED = re.compile(r"""\["([^"'\\]*)"\]""")
_LINE = re.compile(r"(.*):(\d{1,18})$")


class Known(Protocol):
    """The facts of a node that a place is matched against."""

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
    @property
    def created(self) -> e.NodeCreated | None: ...


@dataclass(frozen=True, slots=True)
class Possible:
    """The same facts for a node whose final name is not known yet: `names` has every name that it may get.

    A place also refers to it by every name that its operation may have in the documentation.
    """

    node: int
    names: tuple[str, ...]
    op: e.OpSeen
    scope: str
    frames: tuple[Frame, ...]
    created: None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Nodes by number, by the line that created them, or by a word: name, module, operation, pattern, part of a
    name.
    """

    text: str
    kind: Literal["node", "line", "op", "word", "pattern", "part"]
    number: int = 0
    word: str = ""

    def fits(self, info: Known) -> bool:
        """Return whether the place refers to this node, directly or through its module."""
        return self.names(info) or self.means_module(info.scope)

    def names(self, info: Known) -> bool:
        """Return whether the place refers to this node directly."""
        match self.kind:
            case "node":
                return info.node == self.number
            case "line":
                return any(_covers(frame, self.word, self.number) for frame in info.frames)
            case "op":
                return self._names_op(info)
            case "pattern":
                return self.word in info.names or any(fnmatchcase(name, self.word) for name in info.names)
            case "word":
                return self.word in info.names or self._names_op(info)
            case "part":
                return any(map(self._is_part, (info.op.name, *_shown_names(info), info.scope, *info.names)))

    def _is_part(self, name: str) -> bool:
        """Return whether the word is a part of a name, or a pattern that the whole name matches."""
        word, name = self.word.lower(), name.lower()
        return word in name or (any(sign in word for sign in _SIGNS) and fnmatchcase(name, word))

    def means_module(self, path: str) -> bool:
        """Return whether the place refers to this module or to one around it, by full path or by a part such as
        ``fc1``.
        """
        if not self._is_pattern:
            return bool(self._module) and f".{self._module}." in f".{path}."
        return any(self._begins(own, self._module) for own in (path, path.partition(".")[2]) if own)

    def models(self, path: str) -> Iterator[str]:
        """Yield each prefix of the word that may be a variable holding the model, if the rest refers to this module.

        For ``net.fc1`` and the module ``fc1``: ``net.fc1``, then ``net``.
        """
        _, _, own = path.partition(".")
        parts = self._module.split(".") if path else []
        for length in range(len(parts), 0, -1):
            rest = ".".join(parts[length:])
            if all(map(str.isidentifier, parts[:length])) and (not rest or (own and self._begins(own, rest))):
                yield ".".join(parts[:length])

    @property
    def _module(self) -> str:
        """The path, or pattern, of the modules it may refer to: ``net.0`` for ``net[0]``."""
        return with_items(self.word) if self.kind in ("word", "pattern") else ""

    @property
    def _is_pattern(self) -> bool:
        return any(sign in self._module for sign in _SIGNS)

    def _begins(self, path: str, word: str) -> bool:
        """Return whether a path starts with a word or matches a pattern, part by part."""
        parts = path.split(".")
        if not self._is_pattern:
            return parts[: word.count(".") + 1] == word.split(".")
        return any(fnmatchcase(".".join(parts[:length]), word) for length in range(1, len(parts) + 1))

    @property
    def parameters(self) -> Iterator[tuple[str, str]]:
        """Possible pairs of a model's variable and a parameter path: ``net`` and ``0.weight``."""
        return paths_of(self.word) if self.kind == "word" else iter(())

    def calls(self, frames: Sequence[Frame]) -> bool:
        """Return whether the place is the line of a call; `frames` has the innermost first."""
        return self.kind == "line" and bool(frames) and _covers(frames[0], self.word, self.number)

    def depends_on_result(self, op: e.OpSeen) -> bool:
        """Return whether the place may refer to some nodes of an operation and not to others, by their results."""
        return self.kind in ("op", "part") and any(map(depends_on_result, (op.name, op.call)))

    def _names_op(self, info: Known) -> bool:
        """Return whether the word is the name of an operation.

        A plain word may be a module such as ``linear``. Only ``op:linear`` also means the name in the documentation.
        """
        word = self.word.lower()
        if word in (info.op.name.lower(), info.op.grad_fn.lower()):
            return True
        return self.kind == "op" and word in map(str.lower, _shown_names(info))


def _shown_names(info: Known) -> Iterator[str]:
    """Yield the names under which an operation is shown, and the call that made it under its recorded name."""
    op, created = info.op, info.created
    calls = (op.call,) if op.call and not op.more else ()
    yield from calls
    if not op.is_of_program:
        for name in (op.name, *calls):
            yield from documented_names(name) if created is None else (documented_name(name, created),)


def paths_of(word: str) -> Iterator[tuple[str, str]]:
    """Yield splits into a model's variable and a path: for ``model.net.0.bias`` first ``model`` and ``net.0.bias``."""
    parts = word.split(".")
    for length in range(1, len(parts)):
        if not parts[length - 1].isidentifier():  # a module of a sequence, which is not a variable
            return
        yield ".".join(parts[:length]), ".".join(parts[length:])


def place(text: str) -> Place:
    """Parse a PLACE. Raises GvizError if it cannot refer to anything."""
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
    path = _QUOTED.sub(r"['\1']", with_paths(text))  # in the form in which names are stored
    is_pattern = any(sign in _ITEM.sub("", path) for sign in _SIGNS)
    return Place(text, "pattern" if is_pattern else "word", word=path)


def changing(text: str) -> tuple[Place, Aspect]:
    """Parse ``x.grad`` or ``x`` into a place and the aspect that is meant."""
    stem, aspect = split_aspect(text.strip())
    return place(stem), aspect or "value"


def split_aspect(text: str) -> tuple[str, Aspect | None]:
    """Split ``net.weight.grad`` into ``net.weight`` and ``grad``; None if the text ends with no aspect."""
    stem, _, last = text.rpartition(".")
    return (stem, last) if stem and last in ASPECTS else (text, None)


def _covers(frame: Frame, path: str, line: int) -> bool:
    named = not path or frame.path == path or PurePath(frame.path).name == path
    return named and frame.line <= line <= frame.end_line


def unreadable(what: str) -> GvizError:
    """Return the error for a text that is not a PLACE."""
    return GvizError(what, hint="a place is #4, x, net.fc1, net.*, mul, op:mul or demo.py:4", exit_code=2)
