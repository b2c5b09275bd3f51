"""The engine with nobody listening: 10,000 operations on scalars, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from benchmarks.table import Row, duration, missing
from benchmarks.timing import Program, race

OPS = 10_000
TURNS = 8


def rows() -> Iterator[Row]:
    """Against PyTorch and HIPS autograd."""
    import gviz.engine

    ours = tensor_chain(gviz.engine, ())
    for package, name, goal, other in OTHERS:
        what = "chain of 10k scalar ops, forward + backward"
        if find_spec(package) is None:
            yield missing(what, name, goal)
            continue
        mine, its = race(ours, other(), turns=TURNS)
        yield Row(what, f"{duration(mine / OPS)}/op", f"{name} {duration(its / OPS)}/op", f"{mine / its:.2f}x", goal)


def tensor_chain(torch: Any, shape: tuple[int, ...], ops: int = OPS) -> Program:
    """``h = h * w; h = h + x`` for a namespace shaped like PyTorch."""
    w = torch.full(shape, 1.0001, requires_grad=True)
    x = torch.full(shape, 0.0001, requires_grad=True)

    def run() -> None:
        h = x
        for _ in range(ops // 2):
            h = h * w
            h = h + x
        (h.sum() if shape else h).backward()
        w.grad = x.grad = None

    return run


def _pytorch() -> Program:
    import torch

    torch.set_num_threads(1)
    return tensor_chain(torch, ())


def _hips() -> Program:
    from autograd import grad

    def chain(w: Any, x: Any) -> Any:
        h = x
        for _ in range(OPS // 2):
            h = h * w
            h = h + x
        return h

    gradients = grad(chain, argnum=(0, 1))
    return lambda: gradients(1.0001, 0.0001)


OTHERS: tuple[tuple[str, str, str, Callable[[], Program]], ...] = (
    ("torch", "PyTorch", "1.0x", _pytorch),
    ("autograd", "HIPS autograd", "0.35x", _hips),
)
"""Package, what it is called, the goal, and its program."""
