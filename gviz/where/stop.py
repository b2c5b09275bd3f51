"""Where to stop: what follows ``break``, as it is read."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from gviz import events as e
from gviz import syntax
from gviz.errors import GvizError
from gviz.plain_text import clipped
from gviz.where.condition import Condition, condition
from gviz.where.place import Aspect, Place, changing, place, split_aspect, unreadable
from gviz.where.spelling import as_python

EVENTS: dict[str, tuple[type[e.Event], ...]] = {
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
AT_A_LINE = (*AT_A_NODE, e.BackwardStarted)
"""A line is also where ``backward()`` is called."""

CHANGES: dict[Aspect, tuple[type[e.Event], ...]] = {
    "value": e.changing("value"),
    "grad": e.changing("grad"),
}
"""What may change a value or a ``.grad``."""

_IF = re.compile(r"(?:^|\s)if(?:\s+|$)")
_CHANGE_OF = re.compile(r"change\s+\(")  # no call of a function, although Python would read it so


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
        return f"{self.head} if {self.condition.text}".strip() if self.condition is not None else self.head

    @property
    def of_every_node(self) -> str:
        """``if value.max() > 3``, where a comparison knows the words of conditions alone; empty for any other stop."""
        test = self.condition
        text = self.expression if test is None else f"({self.expression}) and ({test.text})"
        try:
            return f"if {condition(text).text}" if self.holds else ""
        except GvizError:
            return ""

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
        return Stop(head, _place(rest) if rest.strip() else None, event, None, test)
    if words and words[0] == "change":
        return changes(words[1] if len(words) > 1 else "", head, test)
    if words and words[0] == "finding":
        kind, _, rest = (words[1] if len(words) > 1 else "").partition(" ")
        return Stop(head, _place(rest) if rest.strip() else None, condition=test, finding=kind)
    if not head and test is None:
        raise unreadable("a place is missing")
    return Stop(head, _place(head) if head else None, "", None, test)


def _place(text: str) -> Place:
    """A place to stop at. A number alone is a line, as in gdb and pdb: nothing in a program is called so."""
    return place(f":{text}" if text.strip().isdecimal() else text)


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
