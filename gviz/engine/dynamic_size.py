"""Operations whose results have as many elements as the data say: no static graph, no fixed buffer can hold them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gviz.engine.op import Op

_NAMES = frozenset({"argwhere", "bincount", "masked_select", "nonzero", "unique", "unique_consecutive", "unique_dim"})


def is_sized_by_data(op: Op, others: Iterable[np.dtype[Any]]) -> bool:
    """Whether an operation is one; `others` are the dtypes of its operands but the first (of `index`, the masks)."""
    return op.name in _NAMES or is_by_mask(op, others)


def is_by_mask(op: Op, others: Iterable[np.dtype[Any]]) -> bool:
    """Whether it takes the elements that a mask chooses."""
    return op.name == "index" and any(dtype.kind == "b" for dtype in others)
