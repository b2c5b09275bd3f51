"""What recording costs programs on a GPU, and how often the program has to wait for it because of that.

Wall time of a training step, with the device idle before and after. Where there is no CUDA device the rows say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.table import Row, duration, missing

SECONDS = 2.0
"""About so long each way of running a program is measured, its first step not counted."""

Program = Callable[[], object]


def rows() -> Iterator[Row]:
    """Recorded as by default, and without numbers, against alone; then the copies and waits of one recorded step."""
    try:
        import torch
    except ImportError:
        yield missing("recording on a GPU", "PyTorch", "")
        return
    if not torch.cuda.is_available():
        yield Row("recording on a GPU", "", "no CUDA device")
        return
    torch.backends.cuda.matmul.allow_tf32 = True
    for what, goal, make in CASES:
        torch.manual_seed(0)
        try:
            program = make(torch)
        except ImportError:
            yield missing(f"recording on a GPU: {what}", "torchvision", goal)
            continue
        plain = _step_time(torch, program)
        for how, keep, its_goal in (("", "whole", goal), (", without numbers", "none", "")):
            seconds, waits = _recorded(torch, program, keep)
            label = f"recording on a GPU{how}: {what}"
            yield Row(label, duration(seconds), f"plain {duration(plain)}", f"{seconds / plain:.1f}x", its_goal)
        yield Row(f"waits for the device in a recorded step: {what}", str(waits), "", "", "0")


def _recorded(torch: Any, program: Program, keep: str) -> tuple[float, int]:
    """The time of a recorded step, and how many of its operations wait for the device and would not alone."""
    import gviz

    with TemporaryDirectory() as folder, gviz.record(Path(folder) / "t.gviz", keep=keep):
        program()
        seconds = _step_time(torch, program)
        waits = _waits(torch, program)
    return seconds, waits - _waits(torch, program)


def _step_time(torch: Any, program: Program) -> float:
    program()
    torch.cuda.synchronize()
    steps, started = 0, time.perf_counter()
    while steps < 3 or time.perf_counter() - started < SECONDS:
        program()
        torch.cuda.synchronize()
        steps += 1
    return (time.perf_counter() - started) / steps


def _waits(torch: Any, program: Program) -> int:
    """How many calls of CUDA in a step synchronise, or copy to the host."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        program()
    return sum(
        event.count for event in profiler.key_averages()
        if "Synchronize" in event.key or "DtoH" in event.key
    )  # fmt: skip


def _trained(torch: Any, model: Any, loss: Callable[[Any], Any]) -> Program:
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()

    return step


def _mlp(torch: Any) -> Program:
    nn = torch.nn
    x, y = torch.randn(32, 784, device="cuda"), torch.randint(0, 10, (32,), device="cuda")
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    return _trained(torch, model, lambda model: nn.functional.cross_entropy(model(x), y))


def _recurrent(torch: Any) -> Program:
    model = torch.nn.ModuleList([torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)])
    x = torch.randn(200, 8, 64, device="cuda")

    def loss(model: Any) -> Any:
        state = torch.zeros(8, 64, device="cuda")
        for at in x:
            state = torch.tanh(model[0](at) + model[1](state))
        return state.pow(2).mean()

    return _trained(torch, model, loss)


def _lstm(torch: Any) -> Program:
    x = torch.randn(32, 100, 128, device="cuda")
    model = torch.nn.LSTM(128, 256, 2, batch_first=True)
    return _trained(torch, model, lambda model: model(x)[0][:, -1].pow(2).mean())


def _transformer(torch: Any) -> Program:
    nn, width, vocabulary = torch.nn, 768, 50257
    words = torch.randint(0, vocabulary, (8, 256), device="cuda")
    layer = nn.TransformerEncoderLayer(width, 12, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
    model = nn.Sequential(nn.Embedding(vocabulary, width), encoder, nn.Linear(width, vocabulary))
    return _trained(
        torch, model, lambda model: nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
    )


def _resnet(torch: Any) -> Program:
    from torchvision.models import resnet50

    x, y = torch.randn(32, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (32,), device="cuda")
    return _trained(torch, resnet50(), lambda model: torch.nn.functional.cross_entropy(model(x), y))


CASES: tuple[tuple[str, str, Callable[[Any], Program]], ...] = (
    ("transformer 12x768, batch 8x256", "4x", _transformer),
    ("ResNet-50, batch 32", "4x", _resnet),
    ("LSTM of two layers, 100 steps", "2x", _lstm),
    ("MLP 784-256-10, batch 32", "4x", _mlp),
    ("recurrent net of 200 steps", "", _recurrent),
)
