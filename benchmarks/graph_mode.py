"""The same program eager, traced and captured: forward, and forward with backward, on the engine alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from benchmarks.table import Row, duration
from benchmarks.timing import Program, race

SHAPES: tuple[tuple[tuple[int, ...], int, str], ...] = (
    ((), 2000, "scalars"),
    ((100,), 2000, "100 elements"),
    ((1000, 1000), 20, "1000x1000"),
)
TURNS = 8


def rows() -> Iterator[Row]:
    """Per operation, beside the engine's own eager mode."""
    import gviz.engine as torch

    for shape, ops, what in SHAPES:
        goals = ("0.4x", "0.5x") if len(shape) < 2 else ("1.0x", "1.0x")
        x, w = (torch.full(shape, value) for value in (0.5, 0.999))
        eager = _forward(torch, x, w, ops)
        ways = {"traced": _traced(torch, x, w, ops), "captured": _captured(x, w, ops)}
        yield from _compared(f"chain of {ops} ops on {what}, forward", eager, ways, ops, goals[0])
        both = _both(torch, x, w, ops)
        planned = {"traced": _traced_both(torch, x, w, ops)}
        yield from _compared(f"chain of {ops} ops on {what}, forward + backward", both, planned, ops, goals[1])


def _compared(what: str, eager: Program, ways: dict[str, Program], ops: int, goal: str) -> Iterator[Row]:
    base, *others = race(eager, *ways.values(), turns=TURNS)
    for name, seconds in zip(ways, others, strict=True):
        own, its = f"{name} {duration(seconds / ops)}", f"eager {duration(base / ops)}/op"
        yield Row(what, own, its, f"{seconds / base:.2f}x", goal)


def _chain(x: Any, w: Any, ops: int) -> Any:
    h = x
    for _ in range(ops // 2):
        h = h * w
        h = h + x
    return h


def _forward(torch: Any, x: Any, w: Any, ops: int) -> Program:
    def run() -> None:
        with torch.no_grad():
            _chain(x, w, ops)

    return run


def _traced(torch: Any, x: Any, w: Any, ops: int) -> Program:
    traced = torch.jit.trace(lambda x, w: _chain(x, w, ops), (x, w), check_trace=False)
    return lambda: traced(x, w)


def _captured(x: Any, w: Any, ops: int) -> Program:
    from gviz.engine import graphs

    graph = graphs.Graph()
    with graphs.capture(graph):
        result = _chain(x, w, ops)

    def run() -> Any:
        graph.replay()
        return result  # held, as by whoever wants to read it

    return run


def _both(torch: Any, x: Any, w: Any, ops: int) -> Program:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()

    def run() -> None:
        torch.autograd.grad(_chain(x, w, ops).sum(), (x, w))

    return run


def _traced_both(torch: Any, x: Any, w: Any, ops: int) -> Program:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = torch.jit.value_and_grad(lambda x, w: _chain(x, w, ops).sum(), (x, w))
    return lambda: traced(x, w)
