"""Data that a program made of the numbers of results: it has no history, however it was asked for."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from gviz.explain.expressions import called_name, expression, names_in
from gviz.explain.names import innermost
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values import Array

_READ = {"item", "tolist", "numpy", "float", "int"}
"""What gives the numbers of a tensor without their history: as a method, or as a function of it."""

_MOST_ELEMENTS = 64
"""So many elements of new data are compared with results, one by one."""


def is_copied(timeline: Timeline, new: NodeInfo, node: int) -> bool:
    """Whether data was made of the numbers of a node or of its results.

    That is known where its expression reads them (``h.item()``), and where its elements are theirs, to the last digit.
    """
    results = [info for info in _results(timeline, node) if info.born < new.born]
    return _reads(timeline, new, results) or _equals(timeline, new, results)


def _results(timeline: Timeline, node: int) -> Iterator[NodeInfo]:
    """A node and what was made of it, tracked."""
    seen, waiting = {node}, deque([node])
    while waiting:
        info = timeline.info(waiting.popleft())
        if info.created.requires_grad:
            yield info
            new = [user for user in timeline.nodes.users(info.node) if user not in seen]
            seen.update(new)
            waiting.extend(new)


def _reads(timeline: Timeline, new: NodeInfo, results: list[NodeInfo]) -> bool:
    """Whether the expression that made it takes the numbers of a variable that holds one of the results."""
    at = innermost(new)
    running = expression(timeline, at)
    if running is None or at is None:
        return False
    read = {
        name
        for call in ast.walk(running)
        if isinstance(call, ast.Call) and called_name(call) in _READ
        for part in ([call.func.value] if isinstance(call.func, ast.Attribute) else call.args)
        for name in names_in(part)
    }
    where = at.path, at.function
    made = [(info.name, innermost(info)) for info in results if info.name in read]
    return any(frame is not None and (frame.path, frame.function) == where for _, frame in made)


def _equals(timeline: Timeline, new: NodeInfo, results: list[NodeInfo]) -> bool:
    """Whether each element is a result of its own, and one of them of more digits than a program writes."""
    elements = _elements(timeline, new)
    if not 0 < elements.size <= _MOST_ELEMENTS or not any(map(_is_odd, elements)):
        return False
    computed = {one for info in results if info.created.kind == "op" for one in _elements(timeline, info, 1)}
    return computed.issuperset(elements.tolist())


def _elements(timeline: Timeline, info: NodeInfo, most: int = _MOST_ELEMENTS) -> Array:
    """The stored elements of the first output; none where there are more, or they are not known."""
    value = info.created.first_value
    array = timeline.array(value) if value is not None and value.size <= most else None
    return np.empty(0) if array is None or array.dtype.kind != "f" else array.ravel()


def _is_odd(element: Any) -> bool:
    return bool(np.isfinite(element)) and type(element)(f"{element:.4g}") != element
