"""The engine with nobody listening: a small network with two hidden layers, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import against_pytorch
from benchmarks.against_pytorch import filled
from benchmarks.table import Row
from benchmarks.timing import Program

BATCH, INPUTS, HIDDEN, OUTPUTS = 32, 64, 256, 10


def rows() -> Iterator[Row]:
    """Against PyTorch on one thread."""
    return against_pytorch.rows("MLP 2x256, batch 32, forward + backward", "1.3x", network, steps=50)


def network(torch: Any, steps: int) -> Program:
    """Steps without an update."""
    x, y = filled(torch, BATCH, INPUTS, seed=100), filled(torch, BATCH, OUTPUTS, seed=101)
    sizes = ((INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN, OUTPUTS), (OUTPUTS,))
    parameters = [filled(torch, *size, seed=seed, scale=0.05).requires_grad_() for seed, size in enumerate(sizes)]
    w1, b1, w2, b2, w3, b3 = parameters

    def run() -> None:
        for _ in range(steps):
            hidden = ((x @ w1 + b1).relu() @ w2 + b2).relu()
            loss = ((hidden @ w3 + b3 - y) ** 2).mean()
            loss.backward()
            for parameter in parameters:
                parameter.grad = None

    return run
