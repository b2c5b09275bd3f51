"""One network in two namespaces: the engine's and PyTorch's on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from benchmarks.table import Row, duration, missing
from benchmarks.timing import Program, race


def rows(what: str, goal: str, network: Callable[[Any, int], Program], *, steps: int, turns: int = 12) -> Iterator[Row]:
    """`network` gets a namespace shaped like ``torch`` and a number of steps, and gives the program that does them."""
    if find_spec("torch") is None:
        yield missing(what, "PyTorch", goal)
        return
    import torch

    import gviz.engine

    torch.set_num_threads(1)
    mine, its = race(network(gviz.engine, steps), network(torch, steps), turns=turns)
    yield Row(what, duration(mine / steps), f"PyTorch {duration(its / steps)}", f"{mine / its:.2f}x", goal)


def filled(torch: Any, *shape: int, seed: int, scale: float = 1.0) -> Any:
    """A tensor of normal random numbers, the same in both namespaces."""
    import numpy as np

    return torch.from_numpy((np.random.default_rng(seed).standard_normal(shape) * scale).astype("float32"))


def alike(torch: Any, module: Any) -> Any:
    """The module with the same parameters in both namespaces."""
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(filled(torch, *parameter.shape, seed=seed, scale=0.05))
    return module
