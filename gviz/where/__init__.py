"""What users write to say where: places, kinds of events, conditions; and breakpoints made of them.

#4            a node                 demo.py:4     what a line made, and a pass it began
x, net.fc1    by name or module      net.*         by a pattern
Mul           an operation           op:Mul        the same, where a name is in the way

x if value > 3                       stop at the nodes called x whose value is greater than 3
on accumulate                        stop whenever a gradient is accumulated
on nan net.*                         stop where a nan appears in a module
change x.grad                        stop when the gradient of x changes
change norm(x.grad) > 3              stop when an expression gives something else
zeros(h) > 0.9                       stop at every new value of h, or of its gradient, for which this holds
finding vanishing net.*              stop where a check has found something, of this kind, about these nodes
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePath
from types import CodeType
from typing import Any, Literal, Protocol

import numpy as np

from gviz import events as e
from gviz.errors import GvizError
from gviz.plain_text import clipped
from gviz.site import Frame
from gviz.where import guarded
from gviz.where.guarded import Numbers as Numbers

EVENTS: dict[str, tuple[type[e.Event], ...]] = {
    "forward": (e.NodeCreated,),
    "backward": (e.StepStarted,),
    "accumulate": (e.GradAccumulated,),
    "free": (e.SavedFreed,),
    "inplace": (e.StorageWritten,),
    "optimizer": (e.OptimizerStarted,),
    "view": (e.NodeCreated,),
    "nan": (e.NodeCreated, e.StorageWritten, e.GradFlowed, e.GradAccumulated),
    "inf": (e.NodeCreated, e.StorageWritten, e.GradFlowed, e.GradAccumulated),
    "error": (e.BackwardFinished, e.Failed),
}
"""What ``on EVENT`` may name, and the events it may happen in."""

AT_A_NODE = (e.NodeCreated, e.StepStarted, e.GradAccumulated)
"""A place alone means what its nodes do: they are made, their rule runs, they accumulate."""
AT_A_LINE = (*AT_A_NODE, e.BackwardStarted)
"""A line is also where ``backward()`` is called."""

Aspect = Literal["value", "grad"]
CHANGES: dict[Aspect, tuple[type[e.Event], ...]] = {
    "value": e.changing("value"),
    "grad": e.changing("grad"),
}
"""What may change a value or a ``.grad``."""

NAMES = ("value", "grad", "op", "name", "node", "module", "event", "step")
"""What a condition may ask about the moment it is tested at."""


_LINE = re.compile(r"(.*):(\d{1,18})$")
_NODE = re.compile(r"#\d{1,18}\b")
_IF = re.compile(r"(?:^|\s)if(?:\s+|$)")
_CHANGE_OF = re.compile(r"change\s+\(")  # no call of a function, although Python would read it so


class Known(Protocol):
    """What a place asks of a node."""

    @property
    def node(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def op(self) -> e.OpSeen: ...
    @property
    def scope(self) -> str: ...
    @property
    def frames(self) -> tuple[Frame, ...]: ...


@dataclass(frozen=True, slots=True)
class Possible:
    """A node as a place sees it, with the name that it may get."""

    node: int
    name: str
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
        """Whether it means this node."""
        match self.kind:
            case "node":
                return info.node == self.number
            case "line":
                return any(_covers(frame, self.word, self.number) for frame in info.frames)
            case "op":
                return self._names_op(info.op)
            case "pattern":
                return any(fnmatchcase(name, self.word) for name in (info.name, info.scope) if name)
            case "word":
                return self.word in (info.name, info.scope) or self._names_op(info.op)
            case "part":
                return any(self.word.lower() in name.lower() for name in (info.name, info.op.name, info.scope))

    def calls(self, frames: Sequence[Frame]) -> bool:
        """Whether it is the line in which a call was made, with the innermost of its frames first."""
        return self.kind == "line" and bool(frames) and _covers(frames[0], self.word, self.number)

    def _names_op(self, op: e.OpSeen) -> bool:
        return self.word.lower() in (op.name.lower(), op.grad_fn.lower())


def holds(told: Any) -> bool:
    """Whether what an expression gave is true: of a tensor, whether it has elements and all of them are."""
    return bool(told) if isinstance(told, bool | np.bool_) else bool(np.size(told) and np.all(told))


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression over `NAMES` in the language of `gviz.where.guarded`, compiled once."""

    text: str
    code: CodeType

    def holds(self, moment: dict[str, Any]) -> bool:
        """Whether it is true of a moment, a dictionary that gives `NAMES`; raises whatever the expression raises."""
        return holds(guarded.evaluate(self.code, moment))


@dataclass(frozen=True, slots=True)
class Stop:
    """Where to stop: at what happens to `place` (None: anywhere), of the kinds of `event`, if `condition` holds.

    `change` limits it to what changes a value or gradient of the place. With an `expression` it is where the value of
    that becomes another, or, if it is to `hold`, where one of its tensors does and it is true. With a `finding` it is
    where a check has found something of that kind (empty: of any), which is known of what is recorded alone.
    """

    head: str
    place: Place | None = None
    event: str = ""
    change: Aspect | None = None
    condition: Condition | None = None
    expression: str = ""
    holds: bool = False
    finding: str | None = None

    @property
    def text(self) -> str:
        """As it is written."""
        return self.head + (f" if {self.condition.text}" if self.condition is not None else "")

    @property
    def kinds(self) -> tuple[type[e.Event], ...]:
        """The events it may stop at, as far as an event can tell."""
        if self.finding is not None:
            return ()
        if self.expression:
            return tuple(kind for kinds in CHANGES.values() for kind in kinds)
        if self.change is not None:
            return CHANGES[self.change]
        if self.event:
            return EVENTS[self.event]
        return AT_A_LINE if self.place is not None and self.place.kind == "line" else AT_A_NODE


def place(text: str) -> Place:
    """Read a PLACE; raises GvizError where it can mean nothing."""
    text = text.strip()
    if not text:
        raise _unreadable("a place is missing")
    if text.startswith("#"):
        if not re.fullmatch(r"#\d{1,18}", text):
            raise _unreadable(f"{clipped(text, 30)} is no node")
        return Place(text, "node", int(text[1:]))
    prefix, _, rest = text.partition(":")
    if prefix == "op" and rest.strip():
        return Place(text, "op", word=rest.strip())
    if at_line := _LINE.match(text):
        return Place(text, "line", int(at_line.group(2)), at_line.group(1))
    return Place(text, "pattern" if any(sign in text for sign in "*?[") else "word", word=text)


def stop(text: str) -> Stop:
    """Read what follows ``break``, and then ``if COND``.

    That is ``PLACE``, ``on EVENT [PLACE]``, ``change EXPR``, ``finding [KIND [PLACE]]``, or a comparison.
    """
    text = text.strip()
    head, test = _split(text)
    if is_comparison(head) and not _CHANGE_OF.match(head):
        return Stop(head, condition=test, expression=head, holds=True)
    if split_aspect(head)[1] == "grad" and " " not in head:
        head = f"change {head}"
    words = head.split(maxsplit=1)
    if words and words[0] == "on":
        event, _, rest = (words[1] if len(words) > 1 else "").partition(" ")
        if event not in EVENTS:
            raise GvizError(f"there is no event {clipped(repr(event), 30)}", hint=", ".join(EVENTS), exit_code=2)
        if rest.strip() and not any("node" in kind.__struct_fields__ for kind in EVENTS[event]):
            raise GvizError(f"on {event} takes no place: it is about no node", hint=f"on {event}", exit_code=2)
        return Stop(head, place(rest) if rest.strip() else None, event, None, test)
    if words and words[0] == "change":
        return changes(words[1] if len(words) > 1 else "", head, test)
    if words and words[0] == "finding":
        kind, _, rest = (words[1] if len(words) > 1 else "").partition(" ")
        return Stop(head, place(rest) if rest.strip() else None, condition=test, finding=kind)
    if not head and test is None:
        raise _unreadable("a place is missing")
    return Stop(head, place(head) if head else None, "", None, test)


def changes(text: str, head: str = "", test: Condition | None = None) -> Stop:
    """Where something changes: ``x``, ``x.grad``, or what an expression such as ``norm(x.grad)`` gives."""
    if is_expression(text):
        return Stop(head or text, condition=test, expression=text.strip())
    where, aspect = changing(text)
    return Stop(head or text, where, "", aspect, test)


def is_expression(text: str) -> bool:
    """Whether a text computes something, so that it is no PLACE: ``x * 2``, ``w[0]``, ``#4.max()``."""
    tree = _computed(text)
    return tree is not None and not isinstance(tree, ast.Name | ast.Attribute | ast.Constant)


def is_comparison(text: str) -> bool:
    """Whether a text is true or false of some moment: ``zeros(h) > 0.9``, ``any(isinf(x.grad))``."""
    return isinstance(_computed(text), ast.Compare | ast.BoolOp | ast.Call)


def _computed(text: str) -> ast.expr | None:
    try:
        return ast.parse(_NODE.sub("node", text.strip()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def changing(text: str) -> tuple[Place, Aspect]:
    """``x.grad`` or ``x``: whose value or gradient."""
    stem, aspect = split_aspect(text.strip())
    return place(stem), aspect or "value"


def split_aspect(text: str) -> tuple[str, Aspect | None]:
    """``net.weight.grad`` as ``net.weight`` and ``grad``; None for what names neither value nor gradient."""
    stem, _, last = text.rpartition(".")
    return (stem, last) if stem and last in CHANGES else (text, None)


def condition(text: str) -> Condition:
    """Compile a condition; raises GvizError for what is no expression over `NAMES`.

    A condition that comes from a file must be shown and confirmed before it is given to this function.
    """
    try:
        tree = guarded.parsed(text.strip())
        known = {*NAMES, *guarded.FUNCTIONS, *guarded.bound_names(tree)}
        unknown = next((word.id for word in ast.walk(tree) if isinstance(word, ast.Name) and word.id not in known), "")
        code = guarded.compiled(tree)
    except guarded.Refused as refusal:
        raise GvizError(f"{clipped(text, 40)} is no condition", why=str(refusal), exit_code=2) from None
    if unknown:
        names = ", ".join((*NAMES, "norm", "isnan", "np"))
        raise GvizError(f"a condition knows no {clipped(unknown, 30)}", hint=f"it knows {names}", exit_code=2)
    return Condition(text.strip(), code)


def _split(text: str) -> tuple[str, Condition | None]:
    """What stands before the first ``if`` outside of brackets, and the condition behind it."""
    for found in _IF.finditer(text):
        before = text[: found.start()]
        if all(before.count(opening) == before.count(closing) for opening, closing in ("()", "[]", "{}")):
            return before.strip(), condition(text[found.end() :])
    return text, None


def _covers(frame: Frame, path: str, line: int) -> bool:
    named = not path or frame.path == path or PurePath(frame.path).name == path
    return named and frame.line <= line <= frame.end_line


def _unreadable(what: str) -> GvizError:
    return GvizError(what, hint="a place is #4, x, net.fc1, net.*, Mul, op:Mul or demo.py:4", exit_code=2)
