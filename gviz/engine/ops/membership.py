"""Whether elements are among others."""

from __future__ import annotations

import numpy as np

from gviz.engine.op import Op
from gviz.engine.ops.shape import run
from gviz.engine.surface import Number, front, number
from gviz.engine.tensor import Tensor

isin_op: Op = Op(
    "isin(elements, test_elements, *, invert=False)",
    grad_fn="",
    formula="whether each of elements is among test_elements",
    forward=lambda elements, test_elements, invert: np.isin(elements, test_elements, invert=invert),
    promotes=True,
    public=False,
)


@front("isin", method=False)
def isin(
    elements: Tensor | Number, test_elements: Tensor | Number, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each of `elements` is among `test_elements`."""
    for given in (elements, test_elements):
        if isinstance(given, Tensor) and given.dtype.name == "bool":
            raise RuntimeError("Unsupported input type encountered for isin(): Bool")
    if isinstance(elements, Tensor):
        tested = test_elements if isinstance(test_elements, Tensor) else number(test_elements, elements._array)
        return run(isin_op, elements, tested, invert=invert)
    if not isinstance(test_elements, Tensor):
        raise TypeError("isin(): one of elements and test_elements must be a Tensor")
    return run(isin_op, number(elements, test_elements._array), test_elements, invert=invert)
