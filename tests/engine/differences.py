"""Gradients by central differences in float64: the judge of every rule."""

import numpy as np

import gviz.engine as torch
from gviz.engine.tensor import Tensor

STEP = 1e-6


def numeric_gradients(function, arrays, only):
    """The gradient of ``function(arrays)`` by each floating array that counts, one element at a time."""
    gradients = []
    for position, array in enumerate(arrays):
        if array.dtype.kind != "f" or not only[position]:
            gradients.append(None)
            continue
        gradient = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            up, down = (_moved(arrays, position, place, sign * STEP) for sign in (1, -1))
            gradient[place] = (function(up) - function(down)) / (2 * STEP)
        gradients.append(gradient)
    return gradients


def check(function, arrays, *, only=None, order=1, rtol=1e-4, atol=1e-5):
    """Compare the engine's gradients of `function` (tensors to tensors) with differences, up to `order` times over.

    `only` says of each array whether to differentiate by it; without it, by all floating ones.
    """
    only = only or [True] * len(arrays)

    def weighted(tensors):
        outputs = function(*tensors)
        outputs = [outputs] if isinstance(outputs, Tensor) else outputs
        tracked = [o for o in outputs if o.requires_grad]
        return sum((o * weights(o)).sum() for o in tracked) if tracked else None

    def value(arrays):
        total = weighted(leaves(arrays, only))
        return 0.0 if total is None else total.item()

    tensors = leaves(arrays, only)
    wanted = [t for t in tensors if t.requires_grad]
    total = weighted(tensors)
    assert total is not None, "nothing to differentiate"
    expected = [g for g in numeric_gradients(value, arrays, only) if g is not None]
    got = torch.autograd.grad(total, wanted, create_graph=order > 1, materialize_grads=True)
    for e, g in zip(expected, got, strict=True):
        np.testing.assert_allclose(g.detach().numpy(), e, rtol=rtol, atol=atol)
    if order > 1:
        check(lambda *ts: _gradients(weighted, ts), arrays, only=only, order=order - 1, rtol=1e-3, atol=1e-4)


def leaves(arrays, only=None):
    return [
        torch.tensor(a, requires_grad=a.dtype.kind == "f" and (only is None or only[i])) for i, a in enumerate(arrays)
    ]


def weights(output):
    """Fixed unequal weights, so that a gradient that forgets about its input cannot pass."""
    return torch.tensor(np.cos(np.arange(output.numel()) + 1.0).reshape(tuple(output.shape)))


def _gradients(weighted, tensors):
    wanted = [t for t in tensors if t.requires_grad]
    gradients = torch.autograd.grad(weighted(tensors), wanted, create_graph=True, materialize_grads=True)
    return [g for g in gradients if g.requires_grad] or [sum(t.sum() for t in wanted) * 0]


def _moved(arrays, position, place, step):
    moved = [a.copy() for a in arrays]
    moved[position][place] += step
    return moved
