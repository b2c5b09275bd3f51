"""Parameters of a module that is being made: they get their first values before anybody is told about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz import emit
from gviz.engine import announce, dtypes
from gviz.engine.arguments import possible
from gviz.engine.devices import check
from gviz.engine.dtypes import dtype as DType
from gviz.engine.nn.parameter import Parameter
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array


def empty(*shape: int, dtype: DType | None = None, device: Any = None, requires_grad: bool = True) -> Parameter:
    """A parameter without values yet, to be given them by `begin`."""
    check(device, "empty")
    array = np.zeros(possible(shape), (dtype or dtypes.get_default_dtype()).numpy)
    parameter: Parameter = new_tensor(array, Parameter)  # type: ignore[assignment]  # it makes the class it is given
    parameter._requires_grad = requires_grad
    parameter._unborn = True
    return parameter


def buffer(values: Array, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor for a module's state, of floating dtype unless told otherwise."""
    check(device, "empty")
    return new_tensor(np.asarray(values, (dtype or dtypes.get_default_dtype()).numpy))


def begin(module: Any) -> None:
    """Give a new module's own parameters their first values, and tell about them as they then are."""
    module.reset_parameters()
    born(module)


def born(module: Any) -> None:
    """Tell about a new module's own parameters."""
    for parameter in module._parameters.values():
        if parameter is not None and parameter._unborn:
            del parameter._unborn
            if emit.channel is not None:
                announce.entered(emit.channel, parameter)


def set_first(tensor: Tensor, values: Array) -> bool:
    """Write the first values of a parameter that is being made; whether it was one."""
    if not (isinstance(tensor, Parameter) and tensor._unborn):
        return False
    tensor._array[...] = values
    tensor._counter[0] += 1
    return True
