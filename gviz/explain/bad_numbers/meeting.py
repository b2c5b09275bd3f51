"""Which numbers met where an operation made a nan of numbers that were none: ``0 * -inf``, a row of -inf alone."""

from __future__ import annotations

import numpy as np

from gviz.explain.computation import computation
from gviz.explain.operations import SOFTMAXES
from gviz.numbers import number
from gviz.syntax import ARITHMETIC
from gviz.trace.timeline import Timeline
from gviz.values import Array


def met(timeline: Timeline, node: int) -> str:
    """``0 * -inf in 40 of 64 elements``; empty where the arrays were not kept, or no two numbers met."""
    if timeline.info(node).op.base_name in SOFTMAXES:
        return _hidden(timeline, node)
    return _pairs(timeline, node)


def _hidden(timeline: Timeline, node: int) -> str:
    """``scores[2, 0, :] is all -inf, as are 4 more``: the rows of which a softmax can make nothing but nan."""
    (given, *_), dim = computation(timeline, node).operands, dict(timeline.info(node).created.attrs).get("dim")
    array = timeline.array(given.value) if given.value is not None else None
    if array is None or array.dtype.kind != "f" or not isinstance(dim, int) or not -array.ndim <= dim < array.ndim:
        return ""
    rows = np.argwhere(np.isneginf(array).all(axis=dim, keepdims=True))
    if not len(rows):
        return ""
    place = [str(int(at)) for at in rows[0]]
    place[dim] = ":"
    more = {0: "", 1: ", as is 1 more"}.get(len(rows) - 1, f", as are {len(rows) - 1:,} more")
    return f"{given.name}[{', '.join(place)}] is all -inf{more}"


def _pairs(timeline: Timeline, node: int) -> str:
    how = computation(timeline, node)
    sign = ARITHMETIC.get(timeline.info(node).op.base_name, "")
    values = [*(operand.value for operand in how.operands), how.result]
    arrays = [timeline.array(value) if value is not None else None for value in values]
    known = [array for array in arrays if array is not None and array.dtype.kind == "f"]
    if not sign or not len(known) == len(arrays) == 3:
        return ""
    left, right, result = np.broadcast_arrays(*known)
    born = np.isnan(result) & ~np.isnan(left) & ~np.isnan(right)
    count = int(born.sum())
    if not count:
        return ""
    pair = f" {sign} ".join((_alike(left[born]), _alike(right[born])))
    return f"{pair} in {count} of {result.size} elements" if result.size > 1 else pair


def _alike(array: Array) -> str:
    """The one number that all elements are, else how far they reach."""
    least, most = array.min(), array.max()
    return number(float(least)) if least == most else f"{number(float(least))} .. {number(float(most))}"
