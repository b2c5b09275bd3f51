"""One expression of known tensors, evaluated with PyTorch and with the engine: value, graph, gradients or error.

Statements may come before it, separated by semicolons. In it stand ``s`` (a number), ``v`` and ``w`` (3), ``x`` and
``y`` (2x3), ``m`` (3x3), ``n`` (3x4), ``b`` (2x3x4), ``c`` (2x4x5), all of which require grad; ``p`` is symmetric and
positive-definite, ``i`` and ``j`` are indices, ``k`` and ``mm`` masks of the shapes of ``v`` and ``x``.
"""

import pytest
from twin import compare

_BEFORE = """
import numpy
import torch
import torch.nn.functional as F
def data(*shape, k=1):
    size = 1
    for length in shape:
        size *= length
    flat = [((7 * i * k + 3) % 11 - 5.3) / 3 for i in range(size)]
    return torch.tensor(flat, dtype=torch.float32).reshape(shape).clone().requires_grad_()
x, y, v, w = data(2, 3), data(2, 3, k=2), data(3), data(3, k=2)
m, n, s, b, c = data(3, 3, k=4), data(3, 4), data(), data(2, 3, 4), data(2, 4, 5, k=3)
p = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]).requires_grad_()
i, j = torch.tensor([0, 2, 1]), torch.tensor([[0, 1], [1, 0]])
k, mm = torch.tensor([True, False, True]), x > 0
def differentiated(result):
    listed = [result] if isinstance(result, torch.Tensor) else list(result) if isinstance(result, (tuple, list)) else []
    total = 0
    for tensor in listed:
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
            weights = torch.arange(tensor.numel(), dtype=tensor.dtype).reshape(tensor.shape) + 1
            total = total + (tensor * tensor * weights).sum()
    if isinstance(total, torch.Tensor):
        numbers(*torch.autograd.grad(total, [x, y, v, w, m, n, s, b, c, p], allow_unused=True))
    return result
"""


def compare_expression(text):
    """Fail where value, graph, gradients or error of an expression are not PyTorch's."""
    *statements, expression = (part.strip() for part in text.split(";"))
    compare("\n".join([_BEFORE, *statements, f"attempt(lambda: differentiated(({expression})))"]), rtol=1e-4, atol=1e-5)


def cases(text):
    """The expressions of a text, one a line, as parameters of a test."""
    return [pytest.param(line, id=line) for line in text.strip().splitlines()]
