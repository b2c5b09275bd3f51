"""One call of a module, recorded to be drawn: ``gviz.export(net, "net.svg", inputs=x)``.

The module stays as it was: its ``.grad``, its buffers (such as the running statistics of a batch norm), and the state
of the random number generator are restored. Inputs have the names of the parameters of ``forward``."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gviz import frameworks
from gviz.call_results import tensors_in
from gviz.errors import GvizError
from gviz.trace.recording.record import Recording, Within

NO_INPUTS: Any = object()
"""Stands for inputs that were not given."""


def is_module(thing: object) -> bool:
    """Whether an object is a module of PyTorch or of the built-in engine."""
    return any(
        kind.__name__ == "Module" and kind.__module__.startswith(("torch.nn.", "gviz.engine.nn."))
        for kind in type(thing).__mro__
    )


def recorded_call(module: Any, inputs: Any, *, backward: bool) -> tuple[Recording | Within, dict[int, str]]:
    """Record one forward of a module, and with `backward` the backward pass from the sum of its results.

    Returns the recording, and the names of the nodes of the inputs.
    """
    args, named = _arguments(inputs)
    try:
        bound = inspect.signature(module.forward).bind(*args, **named)
    except TypeError as error:
        what = f"the inputs do not fit {type(module).__name__}.forward: {error}"
        raise GvizError(what, hint="inputs=(x, mask) or inputs={'x': x, 'mask': mask}", exit_code=2) from error
    given = [(name, tensor) for name, value in bound.arguments.items() for tensor, _ in tensors_in(value)]
    with _unchanged(module), frameworks.record() as recording:
        for _, tensor in given:
            _meet(recording, tensor)
        result = module(*bound.args, **bound.kwargs)
        tensors = [tensor for tensor, _ in tensors_in(result)]
        if backward:
            _backward(module, tensors)
    nodes = {recording.node_of(tensor): name for name, tensor in given}
    return recording, {node: name for node, name in nodes.items() if node}


def _meet(recording: Recording | Within, tensor: Any) -> None:
    """Announce an input outside of the module: at its first use it would belong to an inner one."""
    if hasattr(tensor, "_seen"):  # of the built-in engine
        from gviz.engine import emission

        emission.seen(recording.channel, tensor)
    else:
        recording.meet(tensor)


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and named arguments for ``forward``."""
    if isinstance(inputs, Mapping) and all(isinstance(name, str) for name in inputs):
        return (), dict(inputs)
    return (tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)), {}


def _backward(module: Any, tensors: list[Any]) -> None:
    floating = [tensor for tensor in tensors if tensor.requires_grad]
    if not floating:
        raise GvizError(f"no result of {type(module).__name__} requires a gradient", hint="backward=False", exit_code=2)
    total = floating[0].sum()
    for tensor in floating[1:]:
        total = total + tensor.sum()
    total.backward()


@contextmanager
def _unchanged(module: Any) -> Iterator[None]:
    """Restore what a forward and a backward pass change."""
    library = sys.modules["torch" if type(module).__mro__[-2].__module__.startswith("torch.") else "gviz.engine"]
    grads = [(parameter, parameter.grad) for parameter in module.parameters()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    state = library.get_rng_state() if hasattr(library, "get_rng_state") else None
    for parameter, _ in grads:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, grad in grads:
            parameter.grad = grad
        with library.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        if state is not None:
            library.set_rng_state(state)
