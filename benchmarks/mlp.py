"""The engine with nobody listening: a small network with two hidden layers, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from benchmarks.table import Row, duration, missing
from benchmarks.timing import Program, race

BATCH, INPUTS, HIDDEN, OUTPUTS = 32, 64, 256, 10
WHAT, GOAL = "MLP 2x256, batch 32, forward + backward", "1.3x"


def rows() -> Iterator[Row]:
    """Against PyTorch on one thread."""
    if find_spec("torch") is None:
        yield missing(WHAT, "PyTorch", GOAL)
        return
    import torch

    import gviz.engine

    torch.set_num_threads(1)
    mine, its = race(network(gviz.engine), network(torch), turns=12)
    steps = 50
    yield Row(WHAT, duration(mine / steps), f"PyTorch {duration(its / steps)}", f"{mine / its:.2f}x", GOAL)


def network(torch: Any, steps: int = 50) -> Program:
    """Steps without an update, for a namespace shaped like PyTorch."""
    import numpy as np

    chance = np.random.default_rng(0)

    def random(*shape: int) -> Any:
        return torch.tensor((chance.standard_normal(shape) * 0.05).tolist())

    x, y = random(BATCH, INPUTS), random(BATCH, OUTPUTS)
    sizes = ((INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN, OUTPUTS), (OUTPUTS,))
    parameters = [random(*size).requires_grad_() for size in sizes]
    w1, b1, w2, b2, w3, b3 = parameters

    def run() -> None:
        for _ in range(steps):
            hidden = ((x @ w1 + b1).relu() @ w2 + b2).relu()
            loss = ((hidden @ w3 + b3 - y) ** 2).mean()
            loss.backward()
            for parameter in parameters:
                parameter.grad = None

    return run
