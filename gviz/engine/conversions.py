"""How Python and numpy see a tensor: as a number, a truth value, a list, an array."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, NoReturn

from gviz.engine import messages, watching
from gviz.engine.modes import thread
from gviz.engine.placement import Placement
from gviz.site import forwards
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
        if watching.watchers:
            self._read("len")
        return len(self._array)

    def __bool__(self) -> bool:
        size = self._array.size
        if size != 1:
            count = "no values" if size == 0 else "more than one value"
            raise RuntimeError(messages.AMBIGUOUS_BOOL.format(count=count))
        if watching.watchers:
            self._read("boolean")
        return bool(self._array.reshape(())[()])

    def item(self) -> Any:
        """The one element as a Python number. RuntimeError if there is not exactly one."""
        if self._array.size != 1:
            raise RuntimeError(messages.TO_SCALAR.format(size=self._array.size))
        if watching.watchers:
            self._read("number")
        return self._array.reshape(())[()].item()

    def __float__(self) -> float:
        return float(self._number("float"))

    def __int__(self) -> int:
        return int(self._number("integer"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def _warn_of_tracked(self) -> None:
        """PyTorch's warning that the number loses its history, which it does not give under `no_grad`."""
        if self.requires_grad and thread.grad_enabled:
            messages.warn_once(messages.SCALAR_OF_TRACKED)

    def _number(self, how: str) -> Any:
        if self._array.size != 1:
            if how != "integer":
                self._warn_of_tracked()
            raise ValueError(messages.TO_NUMBER)
        if watching.watchers:
            self._read(how)
        if how != "integer":
            self._warn_of_tracked()
        return self._array.reshape(())[()].item()

    def _read(self, how: str) -> None:
        """Tell the recorder of this thread that the program looks at the elements."""
        recorder = watching.recorder()
        if recorder is not None:
            recorder.read(self, how)  # type: ignore[arg-type]  # it is a `Tensor`

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iub" or self._array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self._number("index"))

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        if watching.watchers:
            self._read("list")
        return self._array.tolist()

    def numpy(self, *, force: bool = False) -> Array:
        """The array itself, sharing memory.

        RuntimeError if the tensor requires grad and operations are being recorded, unless by `force`.
        """
        if not isinstance(force, bool):
            raise TypeError(f"numpy(): argument 'force' must be bool, not {type(force).__name__}")
        if thread.grad_enabled and not force and self.requires_grad:
            raise RuntimeError(messages.NUMPY_OF_TRACKED)
        if watching.watchers:
            self._read("array")
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        return array.astype(dtype) if dtype is not None and array.dtype != dtype else array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        """The memory, as other libraries take it over. BufferError if the tensor requires grad."""
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if watching.watchers:
            self._read("array")
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __array_wrap__(self, array: Array, context: Any = None, return_scalar: bool = False) -> Tensor:
        """What numpy's functions give when they were called with a tensor: a tensor, booleans as uint8."""
        from gviz.engine.from_data import from_numpy  # built on tensors

        return from_numpy(array.astype("uint8") if array.dtype.kind == "b" else array)

    def __delitem__(self, key: Any) -> NoReturn:
        raise TypeError("Tensor does not support deleting items")

    def __contains__(self, element: object) -> bool:
        if not isinstance(element, (Conversions, bool, int, float)):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
            )
        if watching.watchers:
            self._read("number")
        return bool((self._array == (element._array if isinstance(element, Conversions) else element)).any())

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self._array.ndim else self  # type: ignore[return-value]

    @forwards
    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        if watching.watchers:
            self._read("iteration")
        return iter(self.unbind(0))

    def __dir__(self) -> list[str]:
        """Its attributes, without the names of PyTorch's that only say that the engine lacks them."""
        from gviz.engine.lacking import Lacking  # after all that a tensor has

        return [name for name in super().__dir__() if not isinstance(getattr_static(self, name, None), Lacking)]

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self._array.ndim == 0 else object.__format__(self, spec)
