"""Which numbers met where an operation made a nan of two numbers that were none: ``0 * -inf``."""

from __future__ import annotations

import numpy as np

from gviz.explain.computation import computation
from gviz.numbers import number
from gviz.syntax import ARITHMETIC
from gviz.trace.timeline import Timeline
from gviz.values import Array


def met(timeline: Timeline, node: int) -> str:
    """``0 * -inf in 40 of 64 elements``; empty where the arrays were not kept, or no two numbers met."""
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
