"""``tensor.backward()`` and its several-root form: checks, roots and seeds of a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from gviz import emit
from gviz.engine import announce_pass, messages, watching
from gviz.engine.broadcasting import in_form
from gviz.engine.graph_pass import Pass, scalar_or_array
from gviz.engine.node import Edge, Grad, GradientEdge, Metadata
from gviz.engine.size import Size
from gviz.engine.tensor import Tensor, new_tensor

Place: TypeAlias = Tensor | GradientEdge
"""Where a pass starts, or what it is limited to: a tensor, or the place in the graph where its gradient arrives."""
Places: TypeAlias = Place | Sequence[Place]


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Places | dict[str, Tensor] | None = None,
) -> None:
    """Compute the gradient of this tensor with respect to the leaves of its graph, and add it to their ``.grad``.

    `gradient` has this tensor's shape; it may be left out for a one-element tensor. The graph is freed afterwards
    unless `retain_graph` (default: `create_graph`). With `create_graph` the gradients can be differentiated in turn.
    `inputs` limits the accumulation to these tensors. Raises RuntimeError as PyTorch does.
    """
    backward_from([self], gradient, retain_graph, create_graph, inputs)


def backward_from(
    roots: Sequence[Place],
    gradients: Tensor | Sequence[Tensor | None] | None,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Places | dict[str, Tensor] | None,
) -> None:
    """``torch.autograd.backward``: several roots at once."""
    chosen = None if inputs is None else places(inputs, "backward")
    seeds = make_seeds(roots, listed(gradients, len(roots)))
    retain = create_graph if retain_graph is None else retain_graph
    edges = root_edges(roots, seeds, retain_graph=retain, create_graph=create_graph)
    wanted = None if chosen is None else [_retaining(place) for place in chosen]
    if create_graph:
        messages.warn_once(messages.CREATE_GRAPH)
    if watching.watchers and (recorder := watching.recorder()) is not None:
        create_graph = True
        recorder.accumulated()
    Pass(edges, plain(seeds, edges, create_graph), retain_graph=retain, create_graph=create_graph, wanted=wanted).run()


def places(given: Places | dict[str, Tensor], function: str) -> list[Place]:
    """The argument ``inputs``, one or several, as a list. RuntimeError if there are none."""
    if isinstance(given, (Tensor, GradientEdge)):
        return [given]
    if type(given) is not dict and isinstance(given, Mapping):
        raise TypeError(messages.INPUTS_MAPPING.format(function=function, name=type(given).__name__))
    chosen: list[Place] = list(given.values() if isinstance(given, dict) else given)
    if not chosen:
        raise RuntimeError(messages.EMPTY_INPUTS.format(function=function))
    return chosen


def listed(gradients: Tensor | Sequence[Tensor | None] | None, count: int) -> list[Tensor | None]:
    """Given gradients, one or several, as a list; None for each root where none are given."""
    if gradients is None:
        return [None] * count
    return [gradients] if isinstance(gradients, Tensor) else list(gradients)


def make_seeds(roots: Sequence[Place], gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The gradients a pass starts with: ones where none is given for one number. RuntimeError where that is unclear."""
    return [_seed(root, gradient, index) for index, (root, gradient) in enumerate(zip(roots, gradients, strict=False))]


def _seed(root: Place, gradient: object, index: int) -> Tensor | None:
    shape, kind = form(root)
    if isinstance(gradient, Tensor):
        if gradient.shape != shape:
            shapes = {"grad": list(gradient.shape), "output": list(shape)}
            raise RuntimeError(messages.GRAD_SHAPE.format(index=index, **shapes))
        return gradient
    if gradient is not None:
        raise TypeError(messages.GRADIENT_KIND.format(name=type(gradient).__name__))
    if isinstance(root, Tensor) and not root.requires_grad:
        return None
    if Size(shape).numel() != 1:
        raise RuntimeError(messages.NON_SCALAR_ROOT)
    return new_tensor(np.ones(shape, kind))


def form(root: Place) -> Metadata:
    """The shape and dtype of a gradient that arrives there."""
    if isinstance(root, GradientEdge):
        return root.node.outputs[root.output_nr]
    if not isinstance(root, Tensor):
        raise AssertionError(messages.ROOT_KIND)
    return root._array.shape, root._array.dtype


def root_edges(
    roots: Sequence[Place], seeds: Sequence[Tensor | None], *, retain_graph: bool, create_graph: bool
) -> list[Edge]:
    """Where a pass starts. RuntimeError for a root without a graph, or with no seed."""
    if len(roots) != len(seeds):
        raise RuntimeError(messages.SEED_COUNT.format(roots=len(roots), seeds=len(seeds)))
    for index, root in enumerate(roots):
        if isinstance(root, Tensor) and root.grad_fn is None and not root._requires_grad:
            error = messages.UNTRACKED_ROOT.format(index=index)
            if emit.channel is not None:
                modes = {"retain_graph": retain_graph, "create_graph": create_graph}
                announce_pass.refused(emit.channel, roots, seeds, error, **modes)
            raise RuntimeError(error)
    return [edge_of(root) for root in roots]


def edge_of(place: Place) -> Edge:
    """Where the gradient of a tensor arrives, or what an edge stands for. RuntimeError for anything else."""
    if isinstance(place, Tensor):
        return place._edge()
    if not isinstance(place, GradientEdge):
        raise RuntimeError(messages.INPUT_KIND.format(name=type(place).__name__))
    return place.node, place.output_nr


def plain(seeds: Sequence[Tensor | None], edges: Sequence[Edge], create_graph: bool) -> list[Grad]:
    """Seeds as the pass has gradients, in the dtypes of their roots."""
    present = [in_form(seed, edge) for seed, edge in zip(seeds, edges, strict=True) if seed is not None]
    return present if create_graph else [scalar_or_array(seed._array) for seed in present]


def _retaining(place: Place) -> Edge:
    if isinstance(place, Tensor):
        place.retain_grad()
    return edge_of(place)
