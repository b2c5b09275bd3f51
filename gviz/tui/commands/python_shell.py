"""The Python shell that ``python`` (or ``!``) opens from the debugger, with the numbers of the moment as variables."""

from __future__ import annotations

from bisect import bisect_right
from code import interact
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from gviz.errors import GvizError
from gviz.query.expressions import value_of
from gviz.trace.graph_state import OutputState
from gviz.tui.commands import expressions
from gviz.tui.language.command import Answer, TerminalTask
from gviz.tui.session import Session
from gviz.values.plain_text import clipped
from gviz.values.value import Array, Value

NEWEST_NODES = 1000
"""How many of the newest nodes are searched for names, which become variables of the shell."""


def python(session: Session, text: str) -> TerminalTask | Answer:
    """Run ``python`` with copies of the numbers: nothing typed there changes the recording. ``!x`` is ``print x``."""
    if text:
        return Answer((*expressions.evaluate(session.cursor.asker, text, session.cursor.position),))
    n, timeline, names = session.cursor.position, session.timeline, session.cursor.asker.names
    known = numbers(session)
    banner = (
        f"event {n}: np, {clipped(', '.join(known) or 'no names yet', 200)}\n"
        "ask('x.grad * 2') evaluates as print does. Nothing here changes the recording.\nCtrl+D: back."
    )

    def ask(text: str) -> Any:
        try:
            return value_of(timeline, names, n, text)
        except GvizError as error:
            print(*error.lines(), sep="\n")

    def leave(code: object = None) -> NoReturn:
        raise SystemExit(code)  # Python's own exit() closes standard input, which the debugger still reads

    def run() -> str:
        with suppress(SystemExit):
            interact(banner, local={**known, "np": np, "ask": ask, "exit": leave, "quit": leave}, exitmsg="")
        return "back from Python"

    return TerminalTask(run)


def numbers(session: Session) -> dict[str, Array]:
    """Return the stored values of named tensors at the current moment, as ``x``, and their gradients, as ``x_grad``.

    The gradient of a tensor without ``.grad`` is its incoming gradient.
    """
    timeline, moment = session.timeline, session.moment
    count = bisect_right(timeline.nodes, moment.n, key=timeline.nodes.born)
    nodes = timeline.nodes[max(0, count - NEWEST_NODES) : count]
    arrays: dict[str, Array] = {}
    for node, state in zip(nodes, moment.states(nodes), strict=True):
        name = timeline.info(node).name.replace(".", "_")
        if name.isidentifier() and state is not None and state.outputs:
            values = (("", state.outputs[0].value), ("_grad", _grad(state.outputs[0])))
            arrays |= {name + kind: array for kind, value in values if (array := _copy(session, value)) is not None}
    return arrays


def _grad(output: OutputState) -> Value | None:
    return output.grad if output.grad is not None else output.incoming


def _copy(session: Session, value: Value | None) -> Array | None:
    array = session.timeline.array(value) if value is not None else None
    if array is None:
        return None
    array = array.copy()
    array.flags.writeable = False
    return array
