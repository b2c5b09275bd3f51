"""The default pictures of twelve models: their size in points, their smallest text, what is collapsed.

Then SVGs of the same models by gviz, torchviz and torchview: CPU time from the finished pass to the file, and its size.

gviz draws from a recording, with values and gradients on every node; the others have neither. What they hand to a
``dot`` program is drawn here by the Graphviz that gviz draws with, because no such program need be installed.
"""

from __future__ import annotations

import importlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.against_pytorch import filled
from benchmarks.picture_models import MODELS
from benchmarks.table import Row, duration, missing

WIDTH, LENGTH, LAYERS = 64, 16, 12
PATIENCE = 60.0
"""Seconds of Graphviz that an alternative has; gviz has its usual 20, and draws more simply past them."""

Model = tuple[Any, Any]


def rows() -> Iterator[Row]:
    """How large default pictures are; then time and bytes under gviz and each alternative that is installed."""
    for name, run in MODELS.items():
        yield from default_picture(name, run)
    for what, network, goal in (
        ("SVG of an MLP 2x64", mlp, ""),
        ("SVG of a 200-step recurrent net", lambda torch: recurrent(torch, 200), "2 s"),
        (f"SVG of a {LAYERS}-layer transformer", transformer, "1 s, 1 MB"),
        ("SVG of a 2,000-step recurrent net, cells closed", lambda torch: recurrent(torch, 2000), "15 s"),
    ):
        mine = measured(what, network)
        alternatives = ("torchviz", "torchview") if "2,000" not in what else ()
        if not alternatives:
            yield Row(what, mine, goal=goal)
        for package in alternatives:
            if find_spec("torch") is None or find_spec(package) is None:
                yield missing(what, package, goal)
            else:
                yield Row(what, mine, f"{package} {theirs(package, network)}", goal=goal)


def default_picture(name: str, run: Callable[[Any], None]) -> Iterator[Row]:
    """The size of a picture that is asked for without options, its text, and in a row below what it collapses."""
    import gviz

    torch = importlib.import_module("torch" if find_spec("torch") is not None else "gviz.engine")
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        trace, picture = Path(folder) / "model.gviz", Path(folder) / "model.svg"
        torch.manual_seed(0)
        with gviz.record(trace):
            run(torch)
        start = cpu()
        gviz.export(trace, picture, note=notes.append)
        seconds, svg = cpu() - start, picture.read_text()
    size = re.search(r'<svg width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    points = f"{float(size[1]):.0f} x {float(size[2]):.0f} pt" if size else ""
    text = min(map(float, re.findall(r'font-size="([\d.]+)"', svg)))
    boxes = svg.count('class="node')
    yield Row(
        f"picture of {name}: size, boxes", f"{points}, {boxes}", f"text {text:g} pt, {duration(seconds)}", goal=PAGE
    )
    for note in notes:
        yield Row(f"  {note}", "")


PAGE = "1600x1200"


def measured(what: str, network: Callable[[Any], Model]) -> str:
    """Time and size of gviz's picture, drawn from the file of a recording."""
    import gviz
    import gviz.engine

    with tempfile.TemporaryDirectory() as folder:
        trace, picture = Path(folder) / "model.gviz", Path(folder) / "model.svg"
        with gviz.record(trace):
            model, x = network(gviz.engine)
            model(x).sum().backward()
        start = cpu()
        gviz.export(trace, picture, note=lambda _: None, depth=1 if "2,000" in what else 9)
        return outcome(cpu() - start, picture.stat().st_size)


def theirs(package: str, network: Callable[[Any], Model]) -> str:
    """Time and size of an alternative's picture, the forward pass that torchview needs included."""
    import torch

    from gviz.render.graphviz.process import TooSlowError, draw

    model, x = network(torch)
    result = model(x).sum()
    start = cpu()
    try:
        source = _torchviz(model, result) if package == "torchviz" else _torchview(model, x)
        picture = draw(source, "svg", timeout=PATIENCE)
    except TooSlowError:
        return f"no picture in {PATIENCE:g} s"
    return outcome(cpu() - start, len(picture))


def _torchviz(model: Any, result: Any) -> str:
    from torchviz import make_dot

    return str(make_dot(result, params=dict(model.named_parameters())).source)


def _torchview(model: Any, x: Any) -> str:
    from torchview import draw_graph

    return str(draw_graph(model, input_data=x, expand_nested=True).visual_graph.source)


def outcome(seconds: float, size: int) -> str:
    """``610 ms, 1.02 MB``."""
    return f"{duration(seconds)}, {size / 1e3:.0f} KB" if size < 1e6 else f"{duration(seconds)}, {size / 1e6:.2f} MB"


def cpu() -> float:
    """The CPU time of this process and of the Graphviz processes that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def mlp(torch: Any) -> Model:
    """Two hidden layers."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    return model, filled(torch, 32, 8, seed=1)


def recurrent(torch: Any, steps: int) -> Model:
    """One cell, used in every step."""
    nn = torch.nn

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.RNNCell(8, 16)

        def forward(self, x: Any) -> Any:
            h = torch.zeros(2, 16)
            for _ in range(steps):
                h = self.cell(x, h)
            return h

    return Recurrent(), filled(torch, 2, 8, seed=1)


def transformer(torch: Any) -> Model:
    """Layers of attention and an MLP, each after a layer norm."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            h = self.before_attention(x)
            scores = self.query(h) @ self.key(h).transpose(-2, -1) / WIDTH**0.5
            x = x + self.out(scores.softmax(-1) @ self.value(h))
            return x + self.down(torch.relu(self.up(self.before_mlp(x))))

    return nn.Sequential(*(Block() for _ in range(LAYERS))), filled(torch, LENGTH, WIDTH, seed=1)
