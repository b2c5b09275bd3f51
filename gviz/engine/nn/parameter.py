"""Tensors that belong to a module and are trained."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gviz import emit
from gviz.emit import Seen
from gviz.engine import announce, dtypes, messages
from gviz.engine.tensor import Tensor, new_tensor


class Parameter(Tensor):
    """A leaf that modules list among their parameters; it requires grad unless told otherwise.

    `_named` is the announcement under which its path in a model was said.
    """

    _is_parameter: ClassVar[bool] = True
    _named: Seen | None = None

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """A parameter that shares the memory of `data`."""
        array = np.zeros(0, dtypes.get_default_dtype().numpy) if data is None else data._array
        if requires_grad and array.dtype.kind != "f":
            raise RuntimeError(messages.FACTORY_CANNOT_REQUIRE)
        parameter: Parameter = new_tensor(array, cls)  # type: ignore[assignment]  # it makes the class it is given
        if data is not None:
            parameter._counter = data._counter
        parameter._requires_grad = requires_grad
        if emit.channel is not None:
            announce.entered(emit.channel, parameter)
        return parameter
