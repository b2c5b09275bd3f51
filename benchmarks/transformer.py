"""The engine with nobody listening: two transformer blocks, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import against_pytorch
from benchmarks.against_pytorch import alike, filled
from benchmarks.table import Row
from benchmarks.timing import Program

BATCH, LENGTH, WIDTH, HEADS = 8, 32, 64, 4


def rows() -> Iterator[Row]:
    """Against PyTorch on one thread."""
    what = f"2 transformer blocks, width {WIDTH}, {HEADS} heads, batch {BATCH}x{LENGTH}, forward + backward"
    return against_pytorch.rows(what, "2x", network, steps=5)


def network(torch: Any, steps: int) -> Program:
    """Steps without an update; attention written out, as in a tutorial."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.joint, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x: Any) -> Any:
            x = x + self.out(self.attention(self.before_attention(x)))
            return x + self.mlp(self.before_mlp(x))

        def attention(self, x: Any) -> Any:
            split = [
                part.view(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)
                for part in self.joint(x).chunk(3, dim=-1)
            ]
            query, key, value = split
            scores = query @ key.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
            return (scores.softmax(-1) @ value).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)

    model = alike(torch, nn.Sequential(Block(), Block()))
    x = filled(torch, BATCH, LENGTH, WIDTH, seed=100)

    def run() -> None:
        for _ in range(steps):
            model(x).pow(2).mean().backward()
            model.zero_grad()

    return run
