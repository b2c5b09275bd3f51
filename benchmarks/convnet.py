"""The engine with nobody listening: a small convolutional network, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import against_pytorch
from benchmarks.against_pytorch import alike, filled
from benchmarks.table import Row
from benchmarks.timing import Program

BATCH, PIXELS, CLASSES = 16, 28, 10


def rows() -> Iterator[Row]:
    """Against PyTorch on one thread."""
    what = f"convnet 1-16-32, batch {BATCH} of {PIXELS}x{PIXELS}, forward + backward"
    return against_pytorch.rows(what, "2x", network, steps=3)


def network(torch: Any, steps: int) -> Program:
    """Steps without an update."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * (PIXELS // 4) ** 2, CLASSES),
    )
    alike(torch, model)
    images = filled(torch, BATCH, 1, PIXELS, PIXELS, seed=100)
    labels = torch.arange(BATCH) % CLASSES

    def run() -> None:
        for _ in range(steps):
            nn.functional.cross_entropy(model(images), labels).backward()
            model.zero_grad()

    return run
