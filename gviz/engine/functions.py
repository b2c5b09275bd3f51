"""The functions of the namespace, from the declarations. Importing this module declares every operation."""

from __future__ import annotations

from gviz.engine import backward
from gviz.engine.ops import (
    arithmetic,
    comparison,
    gathering,
    indexing,
    joining,
    loss,
    matrix,
    memory,
    pointwise,
    powers,
    questions,
    reduction,
    shape,
    strided,
)
from gviz.engine.surface import FUNCTIONS, front

DECLARED = (
    arithmetic, comparison, gathering, indexing, joining, loss, matrix, memory, pointwise, powers, questions,
    reduction, shape, strided,
)  # fmt: skip

front("backward", function=False)(backward.backward)

__all__ = sorted(FUNCTIONS)
globals().update(FUNCTIONS)
