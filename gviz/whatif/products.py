"""What a recorded operation makes of other gradients than the recorded one: its rule is linear in what arrives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gviz import emit
from gviz.engine.autograd import grad
from gviz.engine.modes import enable_grad
from gviz.engine.tensor import Tensor, new_tensor
from gviz.errors import GvizError
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values import Array
from gviz.whatif import operations
from gviz.whatif.functions import forward_of
from gviz.whatif.inputs import inputs_of
from gviz.whatif.own_forward import given_twice, refusal


def pulled(timeline: Timeline, info: NodeInfo, arriving: Sequence[Mapping[int, Array]]) -> list[dict[int, Array]]:
    """For each of several gradients, by output of the node: what goes to each input, by slot, in float64.

    GvizError for an operation that cannot be run on its own, or whose numbers were not stored.
    """
    forward, arrays = forward_of(timeline, info), inputs_of(timeline, info)
    if given_twice(info):
        raise refusal(info, "it was given one tensor twice, and which of them its forward used is not recorded")
    with emit.silence(), enable_grad():
        leaves = [_leaf(array) for array in arrays]
        try:
            gave = forward([leaf.clone() for leaf in leaves])
            outputs = dict(zip(range(len(gave)) if forward.outputs is None else forward.outputs, gave, strict=True))
            return [_back(outputs, leaves, grads) for grads in arriving]
        except operations.FAILURES as error:
            raise GvizError(f"{info.op.name} cannot be run on its own", why=str(error), exit_code=2) from None


def _leaf(array: Array) -> Tensor:
    tensor = new_tensor(np.array(array))
    return tensor.requires_grad_() if array.dtype.kind == "f" else tensor


def _back(outputs: Mapping[int, Tensor], leaves: Sequence[Tensor], grads: Mapping[int, Array]) -> dict[int, Array]:
    """What the rule sends to every input that a gradient can reach."""
    arrived = {nr: array for nr, array in grads.items() if nr in outputs and outputs[nr].requires_grad}
    wanted = [slot for slot, leaf in enumerate(leaves) if leaf.requires_grad]
    if not arrived or not wanted:
        return {}
    sent = grad(
        [outputs[nr] for nr in arrived],
        [leaves[slot] for slot in wanted],
        [new_tensor(array.reshape(outputs[nr]._array.shape)) for nr, array in arrived.items()],
        retain_graph=True,
        allow_unused=True,
    )
    return {slot: one._array for slot, one in zip(wanted, sent, strict=True) if one is not None}
