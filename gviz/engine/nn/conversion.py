"""A module's parameters and buffers brought to another dtype, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from gviz.engine import dtypes
from gviz.engine.devices import check, say_what_cuda_means
from gviz.engine.dtypes import dtype as DType
from gviz.engine.layout import checked_format
from gviz.engine.layout import memory_format as MemoryFormat
from gviz.engine.modes import no_grad
from gviz.engine.nn.hooks import Hooked
from gviz.engine.tensor import Tensor

Convert = Callable[[Tensor], Tensor]


class Converted(Hooked):
    """The part of `Module` that changes all its tensors at once. The only device is the CPU."""

    def _apply(self, fn: Convert, recurse: bool = True) -> Self:
        """Replace the data of every parameter, of its gradient, and every buffer by what `fn` makes of it."""
        for module in self.children() if recurse else ():
            module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                _replace(parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Bring floating parameters and buffers to another dtype. Another device than the CPU is refused."""
        kwargs.pop("non_blocking", None)
        order = kwargs.pop("memory_format", None)
        if order is not None:
            checked_format("to", order)
        device, kind = kwargs.pop("device", None), kwargs.pop("dtype", None)
        for given in args:
            if isinstance(given, Tensor):
                kind = given.dtype
            elif isinstance(given, DType):
                kind = given
            elif not isinstance(given, bool):
                device = given
        if kind is not None and not kind.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={kind}")
        check(device, "to")
        return self if kind is None and order is None else self._apply(_to(kind, order))

    def type(self, dst_type: DType) -> Self:
        """Bring all parameters and buffers to another dtype."""
        return self._apply(lambda t: t.to(dst_type))

    def float(self) -> Self:
        """Bring floating parameters and buffers to float32."""
        return self._apply(_to(dtypes.float32))

    def double(self) -> Self:
        """Bring floating parameters and buffers to float64."""
        return self._apply(_to(dtypes.float64))

    def half(self) -> Self:
        """Bring floating parameters and buffers to float16."""
        return self._apply(_to(dtypes.float16))

    def cpu(self) -> Self:
        """This module: there is no other device."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Refused, unless ``cuda`` stands for the CPU: then nothing changes."""
        say_what_cuda_means()
        return self

    def share_memory(self) -> Self:
        """RuntimeError: the engine's tensors live in one process."""
        raise RuntimeError("the built-in engine's tensors live in one process; share_memory() needs PyTorch")


def _to(kind: DType | None, order: MemoryFormat | None = None) -> Convert:
    def convert(t: Tensor) -> Tensor:
        dtype = kind if t.dtype.is_floating_point else None
        converted: Tensor = t.to(dtype=dtype, memory_format=order if t.ndim in (4, 5) else None)
        return converted

    return convert


def _replace(parameter: Tensor, fn: Convert) -> None:
    """Let a tensor and its gradient have other data, and stay the same tensors."""
    for tensor in (parameter, parameter.grad):
        if tensor is None:
            continue
        with no_grad():
            applied = fn(tensor)
        if applied is not tensor:
            tensor.data = applied
