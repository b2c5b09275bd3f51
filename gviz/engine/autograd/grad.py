"""Gradients as results, and backward from several roots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gviz.engine import messages
from gviz.engine.backward import backward_from, root_edges
from gviz.engine.graph_pass import Pass, as_tensor
from gviz.engine.node import Grad
from gviz.engine.tensor import Tensor, new_tensor

Tensors = Tensor | Sequence[Tensor]


def backward(
    tensors: Tensors,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Accumulate the gradients of `tensors` into the leaves of their graphs."""
    given = [grad_tensors] if isinstance(grad_tensors, Tensor) else grad_tensors
    backward_from(_listed(tensors), given, retain_graph, create_graph, inputs)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`, as results; no ``.grad`` changes.

    For an input that was not used the result is None if `allow_unused`, zeros if `materialize_grads`; otherwise that is
    a RuntimeError.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(messages.MATERIALIZE_UNUSED)
    roots, chosen = _listed(outputs), _listed(inputs)
    if not chosen:
        raise RuntimeError(messages.EMPTY_INPUTS.format(function="grad"))
    given = [grad_outputs] if isinstance(grad_outputs, Tensor) else grad_outputs
    edges, seeds = root_edges(roots, given, create_graph)
    if not all(t.requires_grad for t in chosen):
        raise RuntimeError(messages.UNTRACKED_INPUT)
    wanted = [t._edge() for t in chosen]
    retain = create_graph if retain_graph is None else retain_graph
    run = Pass(edges, seeds, retain_graph=retain, create_graph=create_graph, wanted=wanted, capture=True)
    run.run()
    captured = [run.captures.get(edge) for edge in wanted]
    unused = [index for index, gradient in enumerate(captured) if gradient is None]
    if unused and not (allow_unused or materialize_grads):
        raise RuntimeError(messages.UNUSED_INPUT.format(index=unused[0]))
    return tuple(_result(g, t, materialize_grads) for g, t in zip(captured, chosen, strict=True))


def _result(captured: Grad | None, tensor: Tensor, materialize: bool) -> Tensor | None:
    if captured is not None:
        return as_tensor(captured)
    return new_tensor(np.zeros_like(tensor._array)) if materialize else None


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """The old name for a tensor that may require grad."""
    result = data.detach()
    return result.requires_grad_(requires_grad)


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)
