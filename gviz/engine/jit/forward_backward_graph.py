"""A static graph of forward and backward together (`value_and_grad`): the backward rules are operations too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gviz.engine.autograd.grad import grad
from gviz.engine.jit import notices
from gviz.engine.jit.graph_tracer import record
from gviz.engine.jit.nested_tensors import flat
from gviz.engine.jit.trace import arguments, described, parameter_names
from gviz.engine.jit.traced_function import TracedFunction
from gviz.engine.modes import enable_grad
from gviz.engine.nn.module import Module


def value_and_grad(func: Callable[..., Any], example_inputs: Any) -> TracedFunction:
    """A traced function of the same inputs that returns ``(value, gradients)``, on planned buffers.

    `func` returns one number. The gradients are a tuple: of the inputs that require grad in `example_inputs`, in order,
    then of a module's parameters that require it. Raises RuntimeError if there are none.
    """
    args = arguments(example_inputs)
    name, input_names = described(func, args)
    parameters = [p for p in func.parameters() if p.requires_grad] if isinstance(func, Module) else []

    def both(*inputs: Any) -> Any:
        targets = [tensor for tensor in flat(inputs)[0] if tensor.requires_grad] + parameters
        if not targets:
            raise RuntimeError(f"{name} has no gradients: none of its inputs and parameters requires grad")
        with enable_grad():
            value = func(*inputs)
            gradients = grad(value, targets)
        return value._alias(), tuple(gradients)

    recorded = record(
        both,
        args,
        name=f"{name}_and_grad",
        input_names=input_names,
        parameter_names=parameter_names(func),
        warns=notices.warn,
    )
    return TracedFunction(recorded.graph, recorded.takes, recorded.gives, tracked=False)
