"""Tensors that belong to a module: parameters, which are trained, and buffers, which are not.

A module creates its parameters in three steps: `empty`, its ``reset_parameters`` with functions of ``init``, and
`begin` or `born`. In between a parameter is *unborn*: its initial values do not count as writes, and a recording sees
it once it has them.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np

from gviz import emit
from gviz.emit import Seen
from gviz.engine import dtypes, instrumentation, messages
from gviz.engine.arguments import possible
from gviz.engine.array_storage import InMemory
from gviz.engine.devices import check
from gviz.engine.dtypes import dtype as DType
from gviz.engine.memory_format import laid_out
from gviz.engine.modes import no_grad, thread
from gviz.engine.tensor import UNCOUNTED, Tensor, count_writes, new_tensor
from gviz.values.value import Array

T = TypeVar("T", bound=Tensor)


class Parameter(Tensor):
    """A leaf that modules list among their parameters; it requires grad by default.

    `_named` is the announcement under which its path in a model was recorded. `_unborn` is True while its module
    creates it.
    """

    _is_parameter: ClassVar[bool] = True
    _named: Seen | None = None
    _unborn: bool = False

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """A parameter that shares the memory of `data`."""
        array = _array_of(data)
        if requires_grad and array.dtype.kind != "f":
            raise RuntimeError(messages.FACTORY_CANNOT_REQUIRE)
        if requires_grad and data is not None and data.is_inference() and not thread.inference:
            raise RuntimeError(messages.INFERENCE_FLAG)
        parameter: Parameter = new_tensor(array, cls)  # type: ignore[assignment]  # it creates the class it is given
        if data is not None:
            parameter._counter = data._counter
        parameter._requires_grad = requires_grad
        if emit.channel is not None:
            instrumentation.entered(emit.channel, parameter, data)
        return parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            known: Parameter = memo[id(self)]
            return known
        copied = _marked(new_tensor(laid_out(self._array.copy(), [self._array])))
        copy = memo[id(self)] = type(self)(copied, self._requires_grad)
        return copy

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _parameter, (type(self), InMemory(self._array), self._requires_grad, self._own_attributes())


class Buffer(Tensor):
    """A tensor that becomes a buffer when it is assigned to a module."""

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        """A buffer that shares the memory of `data`. If `persistent`, it is part of the module's state dict."""
        array = _array_of(data)
        buffer: Buffer = new_tensor(array, cls)  # type: ignore[assignment]  # it creates the class it is given
        if data is not None:
            buffer._counter = data._counter
            buffer._requires_grad = data.requires_grad
        buffer.persistent = persistent
        return buffer


def _array_of(data: Tensor | None) -> Array:
    if data is None:
        return np.zeros(0, dtypes.get_default_dtype().numpy)
    if not isinstance(data, Tensor):
        raise AttributeError(f"'{type(data).__name__}' object has no attribute 'detach'")
    return data._array


def _parameter(cls: type[Parameter], memory: InMemory, requires_grad: bool, attributes: dict[str, Any]) -> Parameter:
    parameter = cls(new_tensor(memory.array), requires_grad)
    parameter.__dict__.update(attributes)
    return parameter


def empty(*shape: int, dtype: DType | None = None, device: Any = None, requires_grad: bool = True) -> Parameter:
    """A parameter without values; `begin` initializes it."""
    check(device, "empty")
    array = np.zeros(possible(shape), (dtype or dtypes.get_default_dtype()).numpy)
    parameter: Parameter = new_tensor(array, Parameter)  # type: ignore[assignment]  # it creates the class it is given
    parameter._requires_grad = requires_grad
    parameter._unborn = True
    return _marked(parameter)


def buffer(values: Array, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor for a module's state, in the default dtype if none is given."""
    check(device, "empty")
    return _marked(new_tensor(np.asarray(values, (dtype or dtypes.get_default_dtype()).numpy)))


def _marked(tensor: T) -> T:
    """Return a new tensor, which is an inference tensor in ``inference_mode``."""
    if thread.inference:
        tensor._counter = [UNCOUNTED]
    return tensor


def begin(module: Any) -> None:
    """Initializes a new module's own parameters, and announces them."""
    module.reset_parameters()
    born(module)


def born(module: Any) -> None:
    """Announces a new module's own parameters."""
    for parameter in module._parameters.values():
        if parameter is not None and parameter._unborn:
            del parameter._unborn
            if emit.channel is not None:
                instrumentation.entered(emit.channel, parameter)


def set_first(tensor: Tensor, values: Array) -> bool:
    """Sets the initial values of an unborn parameter. Returns False for any other tensor."""
    if not (isinstance(tensor, Parameter) and tensor._unborn):
        return False
    tensor._array[...] = values
    count_writes(tensor, 1)
    return True


def clear_grad(tensor: Tensor, set_to_none: bool) -> None:
    """Sets a tensor's gradient to None, or to zero in place."""
    grad = tensor.grad
    if grad is None:
        return
    if set_to_none:
        tensor.grad = None
        return
    if grad.grad_fn is not None:
        tensor.grad = grad.detach()
        grad = tensor.grad
    with no_grad():
        grad.zero_()
