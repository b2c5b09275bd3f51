"""Which ops widen their inputs to one shape before they meet element by element: backward sums there."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gviz.trace.state import NodeInfo

Shape = tuple[int, ...]

MOST_INPUTS = 8
"""No elementwise operation has more; the thousands of a stack would be looked at once for each of them."""


def widened(info: NodeInfo, shapes: Iterable[Shape | None]) -> Shape | None:
    """The shape that the inputs of an op are broadcast to (None among `shapes`: not known).

    None where they do not meet element by element: the only input, a matrix product, a result of another shape, a
    write through a view, which meets a part of it.
    """
    result = info.created.outputs[0].value if len(info.created.outputs) == 1 else None
    if result is None or not 2 <= len(info.created.inputs) <= MOST_INPUTS or _meets_otherwise(info):
        return None
    try:
        common = np.broadcast_shapes(*(shape for shape in shapes if shape is not None))
    except ValueError:
        return None
    return common if common == result.shape else None


def _meets_otherwise(info: NodeInfo) -> bool:
    return info.op.grad_fn == "CopySlices" or "@" in info.op.formula or "matmul" in info.op.name.lower()
