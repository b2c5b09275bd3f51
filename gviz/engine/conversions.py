"""How Python and numpy see a tensor: as a number, a truth value, a list, an array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gviz.engine import messages
from gviz.engine.placement import Placement
from gviz.values import Array

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor


class Conversions(Placement):
    """The part of `Tensor` that reads its elements out."""

    __slots__ = ()
    _array: Array
    requires_grad: bool

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return len(self._array)

    def __bool__(self) -> bool:
        size = self._array.size
        if size != 1:
            count = "no values" if size == 0 else "more than one value"
            raise RuntimeError(messages.AMBIGUOUS_BOOL.format(count=count))
        return bool(self._array.reshape(())[()])

    def item(self) -> Any:
        """The one element as a Python number. RuntimeError if there is not exactly one."""
        if self._array.size != 1:
            raise RuntimeError(messages.TO_SCALAR.format(size=self._array.size))
        return self._array.reshape(())[()].item()

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def _number(self) -> Any:
        if self._array.size != 1:
            raise ValueError(messages.TO_NUMBER)
        return self.item()

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iub" or self._array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self._array.tolist()

    def numpy(self) -> Array:
        """The array itself, sharing memory. RuntimeError if the tensor requires grad."""
        if self.requires_grad:
            raise RuntimeError(messages.NUMPY_OF_TRACKED)
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        return array.astype(dtype) if dtype is not None and array.dtype != dtype else array.copy() if copy else array

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self._array.ndim == 0 else object.__format__(self, spec)
