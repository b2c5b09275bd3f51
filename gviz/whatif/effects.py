"""What the program did besides operations and passes: it is known by its effect, and done again as far as that goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gviz import events as e
from gviz.engine.identify import is_in_place
from gviz.engine.tensor import new_tensor
from gviz.whatif.older import LET_GO

if TYPE_CHECKING:
    from gviz.whatif.rerun import Rerun


def set_grad(rerun: Rerun, n: int, event: e.GradSet) -> None:
    """Let go of a ``.grad``, or put another in its place; what wrote into its memory is an operation of its own."""
    tensor = rerun.output(event.node, event.output_nr, n)
    if tensor is None or event.how not in LET_GO:
        return
    recorded = event.value
    if recorded is None or not rerun.changed:
        tensor.grad = rerun.grad(recorded)
    else:
        tensor.grad = None
        rerun.stop(event.node, "the program assigned to its .grad, and what is not known", itself=True)
        rerun.told.lose_grad(event.node, event.output_nr, recorded)


def switch_grad(rerun: Rerun, n: int, event: e.RequiresGradSet) -> None:
    """Let a tensor require a gradient, or no longer."""
    tensor = rerun.output(event.node, 0, n)
    if tensor is not None:
        tensor.requires_grad_(event.requires_grad) if tensor.grad_fn is None else tensor.detach_()


def set_data(rerun: Rerun, n: int, event: e.DataSet) -> None:
    """Take the data that a tensor was given, or that were written to where it lies, unless the branch has them."""
    node, array = event.node, rerun.timeline.array(event.value)
    tensor = rerun.output(node, event.output_nr, n)
    if tensor is None or array is None or node in rerun.changed:
        return
    if tensor._array.shape == array.shape and np.array_equal(tensor._array, array, equal_nan=True):
        return
    rerun.stop(node, "the program assigned to its .data; the recorded value is taken")
    if tensor._array.shape == array.shape:
        tensor._array[...] = array
    else:
        tensor.data = new_tensor(np.array(array))


def replace_memory(rerun: Rerun, event: e.StorageWritten) -> None:
    """Take the numbers that were put in a tensor's memory without an operation: ``x.data = ...``."""
    node = event.node
    if is_in_place(rerun.timeline.info(node).op):
        return  # the operation wrote it, and has been run
    rerun.stop(node, "the program assigned to its .data; the recorded value is taken")
    tensor = rerun.tensors.get(node, [None])[0]
    array = rerun.timeline.array(event.value)
    if tensor is None or array is None or array.size != tensor._array.size:
        return
    if not np.array_equal(tensor._array.reshape(-1), array, equal_nan=True) and node not in rerun.changed:
        tensor._array[...] = array.reshape(tensor._array.shape)
