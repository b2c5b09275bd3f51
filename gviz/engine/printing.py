"""How tensors print: as PyTorch prints them, where that matters to a reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gviz.engine import dtypes
from gviz.values import Array

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor


def tensor_text(tensor: Tensor) -> str:
    """``tensor([1., 2.], requires_grad=True)``."""
    grad_fn = tensor.grad_fn
    notes = []
    kind = tensor.dtype
    if kind not in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_):
        notes.append(f"dtype={kind}")
    if grad_fn is not None:
        notes.append(f"grad_fn=<{type(grad_fn).__name__}>")
    elif tensor.requires_grad:
        notes.append("requires_grad=True")
    head = "Parameter containing:\n" if tensor._is_parameter else ""
    body = elements(tensor._array, indent=len("tensor("))
    return f"{head}tensor({', '.join([body, *notes])})"


def elements(array: Array, indent: int) -> str:
    """The elements in brackets, four decimals, columns aligned, long axes shortened."""
    if array.size == 0:
        return str(array.tolist())
    text = _format(array)
    with np.printoptions(threshold=1000, edgeitems=3, linewidth=80 - indent):
        whole = np.array2string(array, separator=", ", formatter={"all": text}, prefix=" " * indent)
    return whole if array.ndim else text(array[()])


def _format(array: Array):  # type: ignore[no-untyped-def]  # numpy's formatter protocol is untyped
    if array.dtype.kind == "b":
        return lambda v: str(bool(v))
    if array.dtype.kind in "iu":
        width = max(len(str(v)) for v in (array.min(), array.max()))
        return lambda v: str(int(v)).rjust(width if array.ndim else 0)
    finite = array[np.isfinite(array)]
    if finite.size and (finite == np.trunc(finite)).all() and np.abs(finite).max() < 1e8:
        whole = [f"{float(v):.0f}." for v in finite.reshape(-1)]
        width = max(map(len, whole)) if array.ndim else 0
        return lambda v: (f"{float(v):.0f}." if np.isfinite(v) else _special(v)).rjust(width)
    spec = _spec(finite)
    width = max((len(format(float(v), spec)) for v in finite.reshape(-1)[:1000]), default=0) if array.ndim else 0
    return lambda v: (format(float(v), spec) if np.isfinite(v) else _special(v)).rjust(width)


def _special(v: float) -> str:
    return "nan" if np.isnan(v) else "inf" if v > 0 else "-inf"


def _spec(finite: Array) -> str:
    """Four decimals, or scientific notation where the numbers are too far apart, too large or too small."""
    sizes = np.abs(finite[finite != 0])
    if sizes.size and (sizes.max() / sizes.min() > 1000 or sizes.max() > 1e8 or sizes.min() < 1e-4):
        return ".4e"
    return ".4f"
