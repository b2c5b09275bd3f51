"""``autograd.grad``, and ``autograd.backward`` from several roots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gviz import emit
from gviz.engine import messages, operation_watchers
from gviz.engine.backward import (
    Pass,
    TensorOrEdge,
    TensorsOrEdges,
    backward_from,
    edge_of,
    initial_gradients,
    list_gradients,
    list_inputs,
    make_seeds,
    metadata_of,
    root_edges,
)
from gviz.engine.instrumentation import emit_gradients
from gviz.engine.node import Edge, GradientEdge
from gviz.engine.ops.joining import stack, unbind
from gviz.engine.tensor import Tensor, new_tensor
from gviz.source.call_stack import forwards, warn

Gradients = Tensor | Sequence[Tensor | None] | None
Results = tuple[Tensor | None, ...]


def backward(
    tensors: TensorsOrEdges,
    grad_tensors: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Gradients = None,
    inputs: TensorsOrEdges | dict[str, Tensor] | None = None,
) -> None:
    """Computes the gradients of `tensors` and accumulates them into the leaves of their graphs."""
    if grad_variables is not None:
        warn(messages.GRAD_VARIABLES, FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(messages.BOTH_GRAD_VARIABLES)
        grad_tensors = grad_variables
    backward_from(_roots(tensors), grad_tensors, retain_graph, create_graph, inputs)


@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
    grad_outputs: Gradients = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    allow_unused: bool | None = ...,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> Results: ...


@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: dict[str, Tensor],
    grad_outputs: Gradients = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    allow_unused: bool | None = ...,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> dict[str, Tensor | None]: ...


@forwards
def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges | dict[str, Tensor],
    grad_outputs: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Results | dict[str, Tensor | None]:
    """Returns the gradients of `outputs` with respect to `inputs`, without changing any ``.grad``.

    For an unused input the result is None if `allow_unused`, zeros if `materialize_grads`; otherwise RuntimeError is
    raised. Returns a tuple, or a dict if `inputs` is one. With `is_grads_batched`, every row of `grad_outputs` is a
    separate gradient, and the results have as many rows.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(messages.MATERIALIZE_UNUSED)
    roots, input_list = _roots(outputs), list_inputs(inputs, "grad")
    if not only_inputs:
        warn(messages.ONLY_INPUTS, FutureWarning)
    retain = create_graph if retain_graph is None else retain_graph
    seeds = list_gradients(grad_outputs, len(roots))
    take = _batch if is_grads_batched else _gradients
    results = take(roots, input_list, seeds, retain, create_graph, bool(allow_unused or materialize_grads))
    if materialize_grads:
        results = [_materialized(*pair, create_graph) for pair in zip(results, input_list, strict=True)]
    by_input = dict(zip(inputs, results, strict=True)) if isinstance(inputs, dict) else tuple(results)
    if emit.channel is not None:
        emit_gradients(emit.channel, by_input)
    return by_input


def _gradients(
    roots: Sequence[TensorOrEdge],
    input_list: Sequence[TensorOrEdge],
    grad_outputs: Sequence[Tensor | None],
    retain_graph: bool,
    create_graph: bool,
    allow_unused: bool,
) -> list[Tensor | None]:
    seeds = make_seeds(roots, grad_outputs)
    edges = root_edges(roots, seeds, retain_graph=retain_graph, create_graph=create_graph)
    targets = [_differentiated(target) for target in input_list]
    of_operations = create_graph or operation_watchers.is_recording()
    modes = {"retain_graph": retain_graph, "create_graph": of_operations}
    values = initial_gradients(seeds, edges, of_operations)
    run = Pass(edges, values, targets=targets, capture=True, allow_unused=allow_unused, **modes)
    run.run()
    captured = [run.captures.get(edge) for edge in targets]
    if of_operations and not create_graph:
        captured = [None if gradient is None else gradient._alias() for gradient in captured]
    return captured


def _batch(
    roots: Sequence[TensorOrEdge],
    input_list: Sequence[TensorOrEdge],
    grad_outputs: Sequence[Tensor | None],
    retain_graph: bool,
    create_graph: bool,
    allow_unused: bool,
) -> list[Tensor | None]:
    """Like `_gradients`, with one pass for each row of the gradients."""
    whole = [gradient for gradient in grad_outputs if gradient is not None and gradient.ndim]
    if not grad_outputs or len(whole) < len(grad_outputs):
        raise ValueError(messages.BATCH_WITHOUT_ROWS)
    rows = [list(row) for row in zip(*map(unbind, whole), strict=True)]
    _check_rows(roots, rows[0])
    kept = [True] * (len(rows) - 1) + [retain_graph]
    results = [
        _gradients(roots, input_list, row, keep, create_graph, allow_unused)
        for row, keep in zip(rows, kept, strict=True)
    ]
    return [None if None in column else _in_order_of(column[0], stack(column)) for column in zip(*results, strict=True)]


def _in_order_of(row: Tensor, stacked: Tensor) -> Tensor:
    """Rows lie in memory one after the other, each of them in its own order; of repeated elements one is kept."""
    array, steps = row._array, row._array.strides
    span = sum((n - 1) * step for n, step in zip(array.shape, steps, strict=True)) + array.itemsize
    if not stacked.requires_grad and stacked._array.size and min(steps, default=0) >= 0:
        memory = np.empty(len(stacked) * span // array.itemsize, array.dtype)
        ordered = as_strided(memory, stacked.shape, (span, *steps))
        ordered[...] = stacked._array
        stacked._array = ordered
    return stacked


def _check_rows(roots: Sequence[TensorOrEdge], row: Sequence[Tensor]) -> None:
    for index, (root, gradient) in enumerate(zip(roots, row, strict=False)):
        shape, _ = metadata_of(root)
        if gradient.shape != shape:
            if isinstance(root, GradientEdge):
                raise RuntimeError(messages.BATCH_OF_EDGE)
            shapes = {"grad": list(gradient.shape[1:]), "output": list(shape)}  # one dimension less, as in PyTorch
            raise RuntimeError(messages.BATCH_SHAPE.format(index=index, **shapes))


def _differentiated(target: TensorOrEdge) -> Edge:
    edge = edge_of(target) if not isinstance(target, Tensor) or target.requires_grad else None
    if edge is None:
        raise RuntimeError(messages.UNTRACKED_INPUT)
    return edge


def _materialized(gradient: Tensor | None, target: TensorOrEdge, requires_grad: bool) -> Tensor:
    if gradient is not None:
        return gradient
    if not isinstance(target, Tensor):
        raise RuntimeError(messages.MATERIALIZE_EDGE)
    return new_tensor(np.zeros_like(target._array)).requires_grad_(requires_grad)


def _roots(outputs: TensorsOrEdges) -> list[TensorOrEdge]:
    return [outputs] if isinstance(outputs, (Tensor, GradientEdge)) else list(outputs)
