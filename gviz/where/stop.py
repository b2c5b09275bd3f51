"""Where to stop: what follows ``break``, as it is read."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from gviz import events as e
from gviz.errors import GvizError
from gviz.source import syntax
from gviz.values.plain_text import clipped
from gviz.where.condition import Condition, condition
from gviz.where.place import Aspect, Place, changing, place, split_aspect, unreadable
from gviz.where.tensor_spelling import as_python

Kinds = tuple[type[e.Event], ...]

EVENTS: dict[str, Kinds] = {
    "forward": (e.NodeCreated,),
    "backward": (e.StepStarted,),
    "receive": (e.GradFlowed,),
    "accumulate": (e.GradAccumulated,),
    "free": (e.SavedFreed,),
    "inplace": (e.StorageWritten, e.DataSet),
    "optimizer": (e.OptimizerStarted,),
    "view": (e.NodeCreated,),
    "nan": (e.NodeCreated, e.StorageWritten, e.DataSet, e.GradFlowed, e.GradAccumulated),
    "inf": (e.NodeCreated, e.StorageWritten, e.DataSet, e.GradFlowed, e.GradAccumulated),
    "error": (e.BackwardFinished, e.Failed),
}
"""What ``on EVENT`` may name, and the events it may happen in."""

AT_A_NODE = (e.NodeCreated, e.StepStarted, e.GradAccumulated)
"""A place alone means what its nodes do: they are made, their rule runs, they accumulate."""
CALLED: tuple[type[e.BackwardStarted | e.OptimizerStarted], ...] = (e.BackwardStarted, e.OptimizerStarted)
"""What a line calls for and no node is: a backward pass, and the step of an optimizer."""
AT_A_LINE = (*AT_A_NODE, *CALLED)
"""A line is also where ``backward()`` and ``step()`` are called."""

CHANGES: dict[Aspect, Kinds] = {
    "value": e.changing("value"),
    "grad": e.changing("grad"),
}
"""What may change a value or a ``.grad``."""

_IF = re.compile(r"(?:^|\s)if(?:\s+|$)")
_CHANGE_OF = re.compile(r"change\s+\(")  # no call of a function, although Python would read it so


@dataclass(frozen=True, slots=True)
class AtPlace:
    """At what happens to the nodes of a place, or to any."""

    place: Place | None

    @property
    def kinds(self) -> Kinds:
        """The events it may stop at, as far as an event can tell."""
        return AT_A_LINE if self.place is not None and self.place.kind == "line" else AT_A_NODE


@dataclass(frozen=True, slots=True)
class OnEvent:
    """Where what a word of `EVENTS` means happens to the nodes of a place, or to any."""

    event: str
    place: Place | None

    @property
    def kinds(self) -> Kinds:
        """The events it may stop at, as far as an event can tell."""
        return EVENTS[self.event]


@dataclass(frozen=True, slots=True)
class AtChange:
    """Where the value or the ``.grad`` of a place changes."""

    aspect: Aspect
    place: Place

    @property
    def kinds(self) -> Kinds:
        """The events it may stop at, as far as an event can tell."""
        return CHANGES[self.aspect]


@dataclass(frozen=True, slots=True)
class Computed:
    """Where an expression gives another value, or, if it is to `hold`, one of its tensors changes and it is true."""

    expression: str
    holds: bool = False
    place: ClassVar[None] = None
    kinds: ClassVar[Kinds] = tuple(kind for kinds in CHANGES.values() for kind in kinds)


@dataclass(frozen=True, slots=True)
class AtFinding:
    """Where a check has found something of a kind (empty: of any), which is known of what is recorded alone."""

    kind: str
    place: Place | None
    kinds: ClassVar[Kinds] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """Where to stop: at one of these, written as `head`, if `condition` holds."""

    head: str
    at: AtPlace | OnEvent | AtChange | Computed | AtFinding
    condition: Condition | None = None

    @property
    def text(self) -> str:
        """As it is written."""
        return f"{self.head} if {self.condition.text}".strip() if self.condition is not None else self.head

    @property
    def event(self) -> str:
        """The word of ``on EVENT``; empty for any other stop."""
        return self.at.event if isinstance(self.at, OnEvent) else ""

    @property
    def once_a_call(self) -> bool:
        """Whether of a module it means where a call begins, and a pass comes to it: no condition asks the rest."""
        return self._is_at_a_place and self.at.place is not None and self.at.place.kind in ("word", "pattern")

    @property
    def once_a_run(self) -> bool:
        """Whether of a line it means where that begins to run, and a pass comes back to it, and not all its nodes."""
        return self._is_at_a_place and self.at.place is not None and self.at.place.kind == "line"

    @property
    def _is_at_a_place(self) -> bool:
        """Whether it is one of forward and backward, whatever happens there."""
        at = self.at
        at_a_node = at.event in ("forward", "backward") if isinstance(at, OnEvent) else isinstance(at, AtPlace)
        return at_a_node and self.condition is None

    @property
    def of_every_node(self) -> str:
        """``if value.max() > 3``, where a comparison knows the words of conditions alone; empty for any other stop."""
        if not isinstance(self.at, Computed) or not self.at.holds:
            return ""
        text, test = self.at.expression, self.condition
        try:
            return f"if {condition(text if test is None else f'({text}) and ({test.text})').text}"
        except GvizError:
            return ""


def stop(text: str) -> Stop:
    """Read what follows ``break``, and then ``if COND``.

    That is ``PLACE``, ``on EVENT [PLACE]``, ``change EXPR``, ``finding [KIND [PLACE]]``, or a comparison.
    """
    head, test = _split(text.strip())
    if is_comparison(head) and not _CHANGE_OF.match(head):
        return Stop(head, Computed(head, holds=True), test)
    if split_aspect(head)[1] == "grad" and " " not in head:
        head = f"change {head}"
    word, rest = _first(head)
    if word in _READERS:
        return Stop(head, _READERS[word](rest), test)
    if not head and test is None:
        raise unreadable("a place is missing")
    return Stop(head, AtPlace(_place(head)), test)


def changes(text: str) -> Stop:
    """Where something changes: ``x``, ``x.grad``, or what an expression such as ``norm(x.grad)`` gives."""
    return Stop(text, _change(text))


def _on(text: str) -> OnEvent:
    event, rest = _first(text)
    if event not in EVENTS:
        raise GvizError(f"there is no event {clipped(repr(event), 30)}", hint=", ".join(EVENTS), exit_code=2)
    if rest and not any("node" in kind.__struct_fields__ for kind in EVENTS[event]):
        raise GvizError(f"on {event} takes no place: it is about no node", hint=f"on {event}", exit_code=2)
    return OnEvent(event, _place(rest))


def _change(text: str) -> AtChange | Computed:
    if is_expression(text):
        return Computed(text.strip())
    where, aspect = changing(text)
    return AtChange(aspect, where)


def _finding(text: str) -> AtFinding:
    kind, rest = _first(text)
    return AtFinding(kind, _place(rest))


_READERS: Mapping[str, Callable[[str], OnEvent | AtChange | Computed | AtFinding]] = {
    "on": _on,
    "change": _change,
    "finding": _finding,
}
"""What stands behind the word that a stop begins with; one that begins with none of these is a place."""


def _first(text: str) -> tuple[str, str]:
    """The first word, and the rest."""
    word, *rest = text.split(maxsplit=1) or [""]
    return word, "".join(rest).strip()


def _place(text: str) -> Place | None:
    """A place to stop at, if one is named. A number alone is a line, as in gdb and pdb: nothing is called so."""
    return place(f":{text}" if text.isdecimal() else text) if text else None


def is_expression(text: str) -> bool:
    """Whether a text computes something, so that it is no PLACE: ``x * 2``, ``w[0]``, ``#4.max()``."""
    tree = _computed(text)
    return tree is not None and not isinstance(tree, ast.Name | ast.Attribute | ast.Constant)


def is_comparison(text: str) -> bool:
    """Whether a text is true or false of some moment: ``zeros(h) > 0.9``, ``any(isinf(x.grad))``."""
    return isinstance(_computed(text), ast.Compare | ast.BoolOp | ast.Call)


def _computed(text: str) -> ast.expr | None:
    try:
        return syntax.expression(as_python(text.strip())).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _split(text: str) -> tuple[str, Condition | None]:
    """What stands before the first ``if`` outside of brackets, and the condition behind it."""
    for found in _IF.finditer(text):
        before = text[: found.start()]
        if all(before.count(opening) == before.count(closing) for opening, closing in ("()", "[]", "{}")):
            return before.strip(), condition(text[found.end() :])
    return text, None
