"""What recording costs a PyTorch program: iterations of six models on one thread, recorded and not.

The time is the processor time of the process: that of the thread which writes the trace counts, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.table import Row, duration, missing
from benchmarks.timing import Program

TURNS = 8


def rows() -> Iterator[Row]:
    """All events with lines and statistics, passes alone, as gviz records by default, and once nobody listens again."""
    try:
        import torch
    except ImportError:
        yield missing("recording PyTorch", "PyTorch", "")
        return
    torch.set_num_threads(1)
    for what, goals, make, steps in CASES:
        torch.manual_seed(0)
        plain, *others = _measured(make(torch), steps)
        for how, seconds, goal in zip(_HOW, others, (*goals, "", "1x"), strict=True):
            yield Row(f"{how}: {what}", duration(seconds), f"plain {duration(plain)}", f"{seconds / plain:.2f}x", goal)


_HOW = "recording PyTorch", "its passes alone", "with small values whole", "detached again"


def _measured(program: Program, steps: int) -> list[float]:
    """The least time of a step of the program alone, recorded in three ways, and detached again, taking turns."""
    program()
    turns = [
        (_step_time(program, steps), _recorded(program, steps), _recorded(program, steps, "backward"),
         _recorded(program, steps, keep="whole"), _step_time(program, steps))
        for _ in range(TURNS)
    ]  # fmt: skip
    return [*map(min, zip(*turns, strict=True))]


def _recorded(program: Program, steps: int, phase: str = "all", keep: str = "stats") -> float:
    import gviz

    with TemporaryDirectory() as folder, gviz.record(Path(folder) / "t.gviz", phase=phase, keep=keep) as recording:
        program()
        recording.flush()
        return _step_time(program, steps, recording.flush)


def _step_time(program: Program, steps: int, finish: Callable[[], object] = int) -> float:
    """The processor time for one step, and its part of the time to `finish`."""
    started = time.process_time()
    for _ in range(steps):
        program()
    finish()
    return (time.process_time() - started) / steps


def mlp(torch: Any) -> Program:
    """784-256-10, batch 32."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    x, labels = torch.randn(32, 784), torch.randint(10, (32,))
    return _step(model, lambda: nn.functional.cross_entropy(model(x), labels))


def recurrent(torch: Any) -> Program:
    """200 steps of width 64, batch 8, written out."""
    steps = torch.nn.ModuleList([torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)])
    x = torch.randn(200, 8, 64)

    def loss() -> Any:
        state = torch.zeros(8, 64)
        for t in range(200):
            state = torch.tanh(steps[0](x[t]) + steps[1](state))
        return state.sum()

    return _step(steps, loss)


def transformer(torch: Any) -> Program:
    """12 layers, width 256, 64 tokens."""
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
    x = torch.randn(1, 64, 256)
    return _step(model, lambda: model(x).sum())


def resnet(torch: Any) -> Program:
    """The layers of ResNet-50, two images of 224x224."""
    nn = torch.nn

    class Bottleneck(nn.Module):  # type: ignore[misc, name-defined]  # `torch` is a value here
        def __init__(self, channels: int, width: int, stride: int) -> None:
            super().__init__()
            sizes = ((channels, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1))
            self.path = nn.Sequential()
            for source, target, size, step in sizes:
                self.path.append(nn.Conv2d(source, target, size, step, size // 2, bias=False))
                self.path.append(nn.BatchNorm2d(target))
                self.path.append(nn.ReLU())
            del self.path[-1]
            same = stride == 1 and channels == 4 * width
            short = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.short = nn.Identity() if same else nn.Sequential(short, nn.BatchNorm2d(4 * width))

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.path(x) + self.short(x))

    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    stages = (64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)
    for (before, *_), (width, count, stride) in pairwise([(16, 0, 0), *stages]):
        for place in range(count):
            channels = 4 * width if place else 4 * before
            model.append(Bottleneck(channels, width, 1 if place else stride))
    model.extend([nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)])
    x, labels = torch.randn(2, 3, 224, 224), torch.tensor([1, 2])
    return _step(model, lambda: nn.functional.cross_entropy(model(x), labels))


def small_mlp(torch: Any) -> Program:
    """20-64-64-1, batch 32, with its optimizer."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    x, y = torch.randn(32, 20), torch.randn(32, 1)
    optimizer = torch.optim.Adam(model.parameters())
    return _step(model, lambda: nn.functional.mse_loss(model(x), y), optimizer)


def small_transformer(torch: Any) -> Program:
    """3 layers, width 128, 8 sequences of 32 tokens, with its optimizer."""
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    encoder, head = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(128, 10)
    model = nn.ModuleList([encoder, head])
    x, labels = torch.randn(8, 32, 128), torch.randint(10, (8,))
    optimizer = torch.optim.AdamW(model.parameters())
    return _step(model, lambda: nn.functional.cross_entropy(head(encoder(x).mean(1)), labels), optimizer)


def _step(model: Any, loss: Callable[[], Any], optimizer: Any = None) -> Program:
    def run() -> None:
        loss().backward()
        if optimizer is not None:
            optimizer.step()
        model.zero_grad()

    return run


CASES = (
    ("MLP 784-256-10, batch 32", ("6x", "2.5x"), mlp, 20),
    ("MLP 20-64-64-1 with Adam, batch 32", ("5x", ""), small_mlp, 40),
    ("recurrent net of 200 steps", ("6x", "3x"), recurrent, 1),
    ("transformer, 3 layers, width 128, with AdamW", ("2.5x", ""), small_transformer, 4),
    ("transformer, 12 layers, width 256", ("2x", "1.25x"), transformer, 1),
    ("ResNet-50, 2x3x224x224", ("1.3x", "1.1x"), resnet, 1),
)
