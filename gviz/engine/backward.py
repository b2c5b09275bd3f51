"""``tensor.backward()`` and its several-root form: checks, roots and seeds of a pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gviz.engine import messages
from gviz.engine.graph_pass import Pass, scalar_or_array
from gviz.engine.node import Edge, Grad
from gviz.engine.tensor import Tensor, new_tensor


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Compute the gradient of this tensor with respect to the leaves of its graph, and add it to their ``.grad``.

    `gradient` has this tensor's shape; it may be left out for a one-element tensor. The graph is freed afterwards
    unless `retain_graph` (default: `create_graph`). With `create_graph` the gradients can be differentiated in turn.
    `inputs` limits the accumulation to these tensors. Raises RuntimeError as PyTorch does.
    """
    backward_from([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs)


def backward_from(
    tensors: Sequence[Tensor],
    gradients: Sequence[Tensor | None] | None,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Tensor | Sequence[Tensor] | None,
) -> None:
    """``torch.autograd.backward``: several roots at once."""
    chosen = None if inputs is None else [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if chosen is not None and not chosen:
        raise RuntimeError(messages.EMPTY_INPUTS.format(function="backward"))
    roots, seeds = root_edges(tensors, gradients, create_graph)
    wanted = None if chosen is None else [_wanted_edge(t) for t in chosen]
    retain = create_graph if retain_graph is None else retain_graph
    Pass(roots, seeds, retain_graph=retain, create_graph=create_graph, wanted=wanted).run()


def _wanted_edge(tensor: Tensor) -> Edge:
    tensor.retain_grad()
    return tensor._edge()


def root_edges(
    tensors: Sequence[Tensor], gradients: Sequence[Tensor | None] | None, create_graph: bool
) -> tuple[list[Edge], list[Grad]]:
    """Where a pass starts and with which gradients; one is implied for a one-element root. RuntimeError otherwise."""
    given = [None] * len(tensors) if gradients is None else list(gradients)
    if len(given) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(given)} gradients")
    seeds: list[Grad] = []
    for index, (tensor, gradient) in enumerate(zip(tensors, given, strict=True)):
        if gradient is None:
            if tensor.requires_grad and tensor._array.size != 1:
                raise RuntimeError(messages.NON_SCALAR_ROOT)
            gradient = new_tensor(np.ones_like(tensor._array))
        elif gradient.shape != tensor.shape:
            shapes = {"grad": list(gradient.shape), "output": list(tensor.shape)}
            raise RuntimeError(messages.GRAD_SHAPE.format(index=index, **shapes))
        seeds.append(gradient if create_graph else scalar_or_array(gradient._array))
    for index, tensor in enumerate(tensors):
        if not tensor.requires_grad:
            raise RuntimeError(messages.UNTRACKED_ROOT.format(index=index))
    return [t._edge() for t in tensors], seeds
