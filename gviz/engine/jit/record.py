"""Records one run of a function as a static graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gviz.engine import watchers
from gviz.engine.jit.graph import StaticGraph
from gviz.engine.jit.interpreter import scope
from gviz.engine.jit.recorder import GraphRecorder
from gviz.engine.jit.structure import NO_OUTPUT, Structure, flat, rebuilt
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values.value import Array


@dataclass(frozen=True, slots=True)
class Recorded:
    """A graph, what its inputs and outputs hang in, and, if kept, what each node gave at once."""

    graph: StaticGraph
    takes: Structure
    gives: Structure
    result: Any
    values: Sequence[Sequence[Array]]


def record(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    *,
    name: str,
    input_names: Sequence[str],
    parameter_names: Mapping[int, str] | None = None,
    warns: Callable[[str], None] | None = None,
    keep: bool = False,
) -> Recorded:
    """Call `function` on copies of the tensors in `args` and record what it does.

    RuntimeError for arguments or a result that are no tensors or containers of them.
    """
    tensors, takes = flat(args)
    copies = [copied(tensor) for tensor in tensors]
    recorder = GraphRecorder(name, names=parameter_names, keep=keep, warns=warns)
    for input_name, tensor in zip(input_names, copies, strict=True):
        recorder.input(input_name, tensor)
    with watchers.recording(recorder), scope(name, "tracing"):
        result = function(*rebuilt(takes, copies))
    if result is None:
        raise RuntimeError(NO_OUTPUT)
    outputs, gives = flat(result)
    if not outputs:
        raise RuntimeError(NO_OUTPUT)
    graph = recorder.graph(outputs)
    return Recorded(graph, takes, gives, result, recorder.values)


def copied(tensor: Tensor) -> Tensor:
    """A leaf like `tensor` in memory of its own."""
    copy = new_tensor(np.array(tensor._array, order="K"))
    copy._requires_grad = tensor.requires_grad
    return copy
