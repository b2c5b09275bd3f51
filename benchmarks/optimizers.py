"""One step of every optimizer on 200,000 parameters, in one tensor and in twenty, without the passes around it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks import against_pytorch
from benchmarks.against_pytorch import filled
from benchmarks.table import Row
from benchmarks.timing import Program

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {}),
    "SGD, momentum": ("SGD", {"momentum": 0.9}),
    "Adam": ("Adam", {}),
    "AdamW": ("AdamW", {}),
    "RMSprop": ("RMSprop", {}),
    "Adagrad": ("Adagrad", {}),
    "Adadelta": ("Adadelta", {}),
    "Adamax": ("Adamax", {}),
    "NAdam": ("NAdam", {}),
    "RAdam": ("RAdam", {}),
}


def rows() -> Iterator[Row]:
    """Against PyTorch on one thread."""
    for title, (name, options) in OPTIMIZERS.items():
        for shapes in ([(200_000,)], [(100, 100)] * 20):
            what = f"a step of {title} on 200,000 parameters, {len(shapes)} tensor{'s' * (len(shapes) > 1)}"
            network = partial(stepping, name=name, options=options, shapes=shapes)
            yield from against_pytorch.rows(what, "", network, steps=20)


def stepping(torch: Any, steps: int, name: str, options: dict[str, Any], shapes: list[tuple[int, ...]]) -> Program:
    """Steps with gradients that stay as they are."""
    parameters = [filled(torch, *shape, seed=seed).requires_grad_() for seed, shape in enumerate(shapes)]
    for seed, parameter in enumerate(parameters, 100):
        parameter.grad = filled(torch, *parameter.shape, seed=seed)
    optimizer = getattr(torch.optim, name)(parameters, lr=0.01, **options)

    def run() -> None:
        for _ in range(steps):
            optimizer.step()

    return run
