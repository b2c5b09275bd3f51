"""Where to stop: the parsed argument of ``break``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from gviz import events as e
from gviz.errors import GvizError
from gviz.query_syntax.condition import Condition, condition
from gviz.query_syntax.expression_names import as_python
from gviz.query_syntax.place import Aspect, Place, changing, place, split_aspect, unreadable
from gviz.source import parsing
from gviz.values.plain_text import clipped

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
"""The words of ``on EVENT``, and the events in which they can happen."""

AT_A_NODE = (e.NodeCreated, e.StepStarted, e.GradAccumulated)
"""The events at which a place without an event stops: a node is created, its backward rule runs, it accumulates."""
CALLED: tuple[type[e.BackwardStarted | e.OptimizerStarted], ...] = (e.BackwardStarted, e.OptimizerStarted)
"""What a line can start besides nodes: a backward pass, and an optimizer step."""
AT_A_LINE = (*AT_A_NODE, *CALLED)
"""A line also stops where ``backward()`` and ``step()`` are called."""

CHANGES: dict[Aspect, Kinds] = {
    "value": e.changing(*e.VALUE),
    "grad": e.changing("grad"),
}
"""The events that can change a value or a ``.grad``."""

_IF = re.compile(r"(?:^|\s)if(?:\s+|$)")
_CHANGE_OF = re.compile(r"change\s+\(")  # not a function call, although Python would read it as one


@dataclass(frozen=True, slots=True)
class AtPlace:
    """At the events of a place's nodes, or of any node."""

    place: Place | None

    @property
    def kinds(self) -> Kinds:
        """The events at which it may stop, judged by their class."""
        return AT_A_LINE if self.place is not None and self.place.kind == "line" else AT_A_NODE


@dataclass(frozen=True, slots=True)
class OnEvent:
    """At the events of a word in `EVENTS`, for the nodes of a place or any node."""

    event: str
    place: Place | None

    @property
    def kinds(self) -> Kinds:
        """The events at which it may stop, judged by their class."""
        return EVENTS[self.event]


@dataclass(frozen=True, slots=True)
class AtChange:
    """Where the value or the ``.grad`` of a place changes."""

    aspect: Aspect
    place: Place

    @property
    def kinds(self) -> Kinds:
        """The events at which it may stop, judged by their class."""
        return CHANGES[self.aspect]


@dataclass(frozen=True, slots=True)
class AtExpression:
    """Where the value of an expression changes or, with `holds`, where one of its tensors changes and it is true."""

    expression: str
    holds: bool = False
    place: ClassVar[None] = None
    kinds: ClassVar[Kinds] = tuple(kind for kinds in CHANGES.values() for kind in kinds)


@dataclass(frozen=True, slots=True)
class AtFinding:
    """At a finding of a kind (empty: any kind). Only possible in a recording."""

    kind: str
    place: Place | None
    kinds: ClassVar[Kinds] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """Where to stop: at `at`, written as `head`, if `condition` is true."""

    head: str
    at: AtPlace | OnEvent | AtChange | AtExpression | AtFinding
    condition: Condition | None = None

    @property
    def text(self) -> str:
        """The stop as the user writes it."""
        return f"{self.head} if {self.condition.text}".strip() if self.condition is not None else self.head

    @property
    def event(self) -> str:
        """The word of ``on EVENT``; empty for any other stop."""
        return self.at.event if isinstance(self.at, OnEvent) else ""

    @property
    def once_a_call(self) -> bool:
        """Whether it stops once per module call, and where a pass reaches the call. True for a module without
        condition.
        """
        return self._is_at_a_place and self.at.place is not None and self.at.place.kind in ("word", "pattern")

    @property
    def once_a_run(self) -> bool:
        """Whether it stops once per run of a line, and where a pass reaches it, rather than at all of its nodes."""
        return self._is_at_a_place and self.at.place is not None and self.at.place.kind == "line"

    @property
    def _is_at_a_place(self) -> bool:
        """Whether it stops at forward or backward, without further conditions."""
        at = self.at
        at_a_node = at.event in ("forward", "backward") if isinstance(at, OnEvent) else isinstance(at, AtPlace)
        return at_a_node and self.condition is None

    @property
    def of_every_node(self) -> str:
        """``if value.max() > 3``, if a comparison uses only condition words; empty for any other stop."""
        if not isinstance(self.at, AtExpression) or not self.at.holds:
            return ""
        text, test = self.at.expression, self.condition
        try:
            return f"if {condition(text if test is None else f'({text}) and ({test.text})').text}"
        except GvizError:
            return ""


def stop(text: str) -> Stop:
    """Parse the argument of ``break``, followed by ``if COND``.

    It is ``PLACE``, ``on EVENT [PLACE]``, ``change EXPR``, ``finding [KIND [PLACE]]``, or a comparison.
    """
    head, test = _split(text.strip())
    if is_comparison(head) and not _CHANGE_OF.match(head):
        return Stop(head, AtExpression(head, holds=True), test)
    if split_aspect(head)[1] == "grad" and " " not in head:
        head = f"change {head}"
    word, rest = _first(head)
    if word in _READERS:
        return Stop(head, _READERS[word](rest), test)
    if not head and test is None:
        raise unreadable("a place is missing")
    return Stop(head, AtPlace(_place(head)), test)


def changes(text: str) -> Stop:
    """Parse what changes: ``x``, ``x.grad``, or an expression such as ``norm(x.grad)``."""
    return Stop(text, _change(text))


def _on(text: str) -> OnEvent:
    event, rest = _first(text)
    if event not in EVENTS:
        raise GvizError(f"there is no event {clipped(repr(event), 30)}", hint=", ".join(EVENTS), exit_code=2)
    if rest and not any("node" in kind.__struct_fields__ for kind in EVENTS[event]):
        raise GvizError(f"on {event} takes no place: it is about no node", hint=f"on {event}", exit_code=2)
    return OnEvent(event, _place(rest))


def _change(text: str) -> AtChange | AtExpression:
    if is_expression(text):
        return AtExpression(text.strip())
    where, aspect = changing(text)
    return AtChange(aspect, where)


def _finding(text: str) -> AtFinding:
    kind, rest = _first(text)
    return AtFinding(kind, _place(rest))


_READERS: Mapping[str, Callable[[str], OnEvent | AtChange | AtExpression | AtFinding]] = {
    "on": _on,
    "change": _change,
    "finding": _finding,
}
"""Parsers for the text after the first word of a stop; a stop with any other first word is a place."""


def _first(text: str) -> tuple[str, str]:
    """Split a text into its first word and the rest."""
    word, *rest = text.split(maxsplit=1) or [""]
    return word, "".join(rest).strip()


def _place(text: str) -> Place | None:
    """Parse an optional place. A bare number is a line, as in gdb and pdb."""
    return place(f":{text}" if text.isdecimal() else text) if text else None


def is_expression(text: str) -> bool:
    """Return whether a text computes something, and is therefore not a PLACE: ``x * 2``, ``w[0]``, ``#4.max()``."""
    tree = _computed(text)
    return tree is not None and not isinstance(tree, ast.Name | ast.Attribute | ast.Constant)


def is_comparison(text: str) -> bool:
    """Return whether a text is a condition: ``zeros(h) > 0.9``, ``any(isinf(x.grad))``."""
    return isinstance(_computed(text), ast.Compare | ast.BoolOp | ast.Call)


def _computed(text: str) -> ast.expr | None:
    try:
        return parsing.expression(as_python(text.strip())).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _split(text: str) -> tuple[str, Condition | None]:
    """Split a text at the first ``if`` outside of brackets into the part before it and the condition after it."""
    for match in _IF.finditer(text):
        before = text[: match.start()]
        if all(before.count(opening) == before.count(closing) for opening, closing in ("()", "[]", "{}")):
            return before.strip(), condition(text[match.end() :])
    return text, None
