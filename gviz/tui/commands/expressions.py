"""Commands that evaluate at a moment: expressions, watches, differences. They answer in lines of text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from gviz.errors import GvizError
from gviz.explain.display_names import label
from gviz.query.expressions import as_value, parse_expression, value_of
from gviz.system.cooperative_work import WorkProgress, parts
from gviz.trace.graph_state import NodeState
from gviz.trace.timeline import Timeline
from gviz.tui.cursor import Asker
from gviz.values.number_text import typed_count
from gviz.values.plain_text import clipped, shown, text_of
from gviz.values.value import Value
from gviz.values.value_text import kind_text, short

MOST_ROWS = 200
MOST_ELEMENTS = 10_000


def watch(asker: Asker, text: str, n: int) -> Iterator[str]:
    """Run ``watch [EXPR]``."""
    if text:
        parse_expression(text)  # its tensors may not exist yet
        asker.watched += [text] if text not in asker.watched else []
        value = dict(asker.watching(n))[text]
        yield f'watching {shown(text)} = {value} ("break change {shown(text)}" stops when it changes)'
        return
    if not asker.watched:
        yield "no watches; watch x.grad adds one"
    for number, (expression, value) in enumerate(asker.watching(n), 1):
        yield f"{number}  {shown(expression)} = {value}"


def rewatch(asker: Asker, text: str, n: int) -> Iterator[str]:
    """Run ``rewatch NUMBER EXPR``."""
    number, _, expression = text.partition(" ")
    place = typed_count(number)
    if place is None or not 0 < place <= len(asker.watched) or not expression.strip():
        raise GvizError("rewatch needs NUMBER EXPR", hint="watch lists the numbers", exit_code=2)
    parse_expression(expression.strip())
    asker.watched = [expression.strip() if at == place else known for at, known in enumerate(asker.watched, 1)]
    yield f"watching {shown(expression.strip())} = {dict(asker.watching(n))[expression.strip()]}"


def unwatch(asker: Asker, text: str, n: int) -> Iterator[str]:
    """Run ``unwatch [NUMBER]``."""
    numbers = {str(number): number for number in range(1, len(asker.watched) + 1)}
    if text and text not in numbers:
        raise GvizError(f"there is no watch {clipped(text, 20)}", hint="watch lists them", exit_code=2)
    removed = asker.watched[:] if not text else [asker.watched[numbers[text] - 1]]
    asker.watched = [] if not text else [known for at, known in enumerate(asker.watched, 1) if at != numbers[text]]
    yield f"no longer watched: {', '.join(map(shown, removed)) or 'nothing was'}"


def whatis(asker: Asker, text: str, n: int) -> Iterator[str]:
    """Run ``whatis EXPR``."""
    value = as_value(value_of(asker.timeline, asker.names, n, text))
    yield f"{shown(text)}: {'not a tensor or number' if value is None else kind_text(value)}"


def evaluate(asker: Asker, text: str, n: int) -> Iterator[str]:
    """Run ``eval EXPR``."""
    yield f"{shown(text)} = {asker.text_of(text, n)}"


def evaluate_all(asker: Asker, text: str, n: int) -> Iterator[str]:
    """Run ``pp EXPR``: every element, in rows."""
    result = value_of(asker.timeline, asker.names, n, text)
    yield f"{shown(text)} ="
    yield from (f"  {shown(row)}" for row in _rows(result)[:MOST_ROWS])


def _rows(result: object) -> list[str]:
    if not isinstance(result, np.ndarray):
        return text_of(result).splitlines()
    with np.printoptions(threshold=MOST_ELEMENTS, linewidth=100):
        return str(np.asarray(result)).splitlines()


def diff(asker: Asker, text: str, n: int) -> Iterator[str | WorkProgress]:
    """Run ``diff @A [@B]``."""
    one, other = _moments(asker.timeline, text, n)
    rows: list[str] = []
    for row in _differences(asker.timeline, one, other):
        if isinstance(row, WorkProgress):
            yield row
        else:
            rows.append(row)
        if len(rows) > MOST_ROWS:
            break
    yield f"from event {one} to event {other}:" if rows else f"events {one} and {other}: no differences"
    yield from (f"  {row}" for row in rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        yield "  and more"


def _moments(timeline: Timeline, text: str, n: int) -> tuple[int, int]:
    numbers = [number for word in text.split() if (number := typed_count(word.removeprefix("@"))) is not None]
    if not 1 <= len(numbers) == len(text.split()) <= 2 or max(numbers) > len(timeline):
        hint = f"diff @12 @20; events go to {len(timeline)}. To compare two runs: gviz diff A.gviz B.gviz"
        raise GvizError("diff needs one or two events", hint=hint, exit_code=2)
    return numbers[0], numbers[1] if len(numbers) == 2 else n


def _differences(timeline: Timeline, one: int, other: int) -> Iterator[str | WorkProgress]:
    nodes = timeline.nodes
    existing = nodes[: bisect_right(nodes, max(one, other), key=nodes.born)]
    for part in parts(existing, "comparing: node"):
        if isinstance(part, WorkProgress):
            yield part
            continue
        pairs = zip(part, timeline.at(one).states(list(part)), timeline.at(other).states(list(part)), strict=True)
        for node, before, after in pairs:
            for what, old, new in zip(("value", "grad"), _looks(before), _looks(after), strict=True):
                if old != new:
                    yield f"{label(timeline, node)}: {what} {short(old)} -> {short(new)}"


def _looks(state: NodeState | None) -> tuple[Value | None, Value | None]:
    output = state.outputs[0] if state is not None and state.outputs else None
    return (None, None) if output is None else (output.value, output.grad)
