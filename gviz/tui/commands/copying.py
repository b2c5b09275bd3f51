"""The command that copies a number, as Python writes it, the line that tells of a node, or the script that makes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.errors import GvizError, NotStored
from gviz.explain.names import label, label_at
from gviz.plain_text import clipped, shown, told
from gviz.query.expressions import value_of
from gviz.trace.gradients import in_its_iteration
from gviz.trace.state import OutputState
from gviz.tui.commands.asking import MOST_ELEMENTS
from gviz.tui.commands.exporting import write_new
from gviz.tui.language.command import FrontEnd, Said
from gviz.tui.session import Session
from gviz.value_text import grad, short
from gviz.values import Value

OF_NODE = ("value", "grad", "node", "script")
"""What can be copied of the selected node by a word."""


def copy(session: Session, text: str) -> FrontEnd | Said:
    """``copy [value|grad|node|script [FILE]|EXPR]``."""
    text = text.strip() or "value"
    if text == "node":
        return FrontEnd("copy", _line_of(session, _selected(session)))
    word, _, path = text.partition(" ")
    if word == "script":
        return _script(session, path.strip())
    if text in ("value", "grad"):
        return FrontEnd("copy", _as_python(_numbers(session, text), f"the {text}"))
    asker, position = session.cursor.asker, session.cursor.position
    return FrontEnd("copy", _as_python(value_of(session.timeline, asker.names, position, text), clipped(text, 40)))


def _script(session: Session, path: str) -> FrontEnd | Said:
    from gviz.rerun.script import script  # with the engine: imported where it is asked for

    text = script(session.timeline, session.cursor.position, _selected(session))
    if not path:
        return FrontEnd("copy script", text)
    write_new(path, text.encode("utf-8", "backslashreplace"))
    return Said((f"wrote {shown(path)}",))


def _selected(session: Session) -> int:
    if not session.cursor.selected:
        raise GvizError("no node is selected", hint="j and k select one", exit_code=2)
    return session.cursor.selected


def _numbers(session: Session, what: str) -> Any:
    """The value of the selected node, or its gradient as it is shown: its ``.grad``, else what has arrived."""
    node = _selected(session)
    state = in_its_iteration(session.timeline, session.moment.n, session.moment.state(node))
    value = None if state is None or not state.outputs else _held(state.outputs[0], what)
    if value is None:
        which = label(session.timeline, node)
        raise GvizError(f"{which} has no {what} at event {session.cursor.position}", exit_code=2)
    array = session.timeline.array(value)
    if array is None:
        raise NotStored(f"the {what} of #{node}")
    return array


def _held(output: OutputState, what: str) -> Value | None:
    return output.value if what == "value" else output.grad if output.grad is not None else output.incoming


def _as_python(result: Any, what: str) -> str:
    """Numbers with all their digits, so that they can be pasted into a program; anything else as it prints."""
    if not isinstance(result, (np.ndarray, np.generic, bool, int, float)):
        return shown(told(result))
    array = np.asarray(result)
    if array.size > MOST_ELEMENTS:
        raise GvizError(f"{what} has {array.size:,} elements", hint=f"copy a part, such as {what}[0]", exit_code=2)
    if not array.ndim:
        return str(array[()])
    return np.array2string(array, separator=", ", threshold=MOST_ELEMENTS, max_line_width=100, floatmode="unique")


def _line_of(session: Session, node: int) -> str:
    """``#4 b = Mul at demo.py:4, event 12: value -18, grad 1``."""
    state = in_its_iteration(session.timeline, session.moment.n, session.moment.state(node))
    first = state.outputs[0] if state is not None and state.outputs else None
    looks = f"value {short(first.value)}, grad {grad(_held(first, 'grad'))}" if first is not None else "not made yet"
    return f"{label_at(session.timeline, node)}, event {session.cursor.position}: {looks}"
