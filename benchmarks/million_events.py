"""A trace of a million events: what an event costs to write, and how fast the file opens and seeks.

Thread CPU time, because other programs on the machine should not count. Run: python benchmarks/million_events.py [EVENTS]
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gviz import events as e
from gviz.site import Frame
from gviz.trace import load
from gviz.trace.writer import TraceWriter
from gviz.values import capture

NODES = 300
PARAMETERS = 20
VISIBLE = 300


def training(say: Callable[[e.Event], None], total: int) -> int:
    """Say a training run of at least so many events: every iteration makes a chain, goes back, steps, frees."""
    value = capture(np.array([1.5, 2.5], "float32"))
    say(e.OpSeen(1, "tensor", "", (), (), ()))
    say(e.OpSeen(2, "mul", "MulBackward0", ("input", "other"), ("g * other", "g * input"), ("input", "other")))
    for line in range(1, 40):
        say(e.StackSeen(line, (Frame("train.py", "<module>", line, line, 0, 4),)))
    count = 0

    def event(one: e.Event) -> None:
        nonlocal count
        count += 1
        say(one)

    def node(number: int, kind: e.NodeKind, op: int, inputs: tuple[e.Edge, ...]) -> None:
        output = e.Output(value, number)
        event(e.NodeCreated(number, op, kind, inputs, (output,), (), True, "", 1 + number % 39, 0))

    parameters = range(1, PARAMETERS + 1)
    for parameter in parameters:
        node(parameter, "parameter", 1, ())
    made, passes = PARAMETERS, 0
    while count < total:
        chain = range(made + 1, made + NODES + 1)
        sources = [1, *chain[:-1]]
        for i, number in enumerate(chain):
            node(number, "op", 2, ((sources[i], 0), (parameters[i % PARAMETERS], 0)))
        made, passes = chain[-1], passes + 1
        event(e.BackwardStarted(passes, ((made, 0),), (value,), False, False, (), 3))
        for i, number in reversed(list(enumerate(chain))):
            event(e.StepStarted(passes, number, (value,)))
            event(e.GradFlowed(passes, number, 0, sources[i], 0, value))
            event(e.GradFlowed(passes, number, 1, parameters[i % PARAMETERS], 0, value, value))
            event(e.SavedFreed(number))
            event(e.StepFinished(passes, number))
        for parameter in parameters:
            event(e.GradAccumulated(passes, parameter, value, value))
        event(e.BackwardFinished(passes))
        for parameter in parameters:
            event(e.StorageWritten(parameter, parameter, passes, value))
        event(e.OptimizerStepped("SGD", tuple(parameters), 3))
        for number in chain:
            event(e.NodeFreed(number))
    return count


def cost(action: Callable[[], object], repeat: int = 1) -> float:
    """The median CPU time of an action, in seconds."""
    times = []
    for _ in range(repeat):
        before = time.thread_time()
        action()
        times.append(time.thread_time() - before)
    return sorted(times)[repeat // 2]


def main() -> None:
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.gviz"
        silent = cost(lambda: training(lambda event: None, total))
        before = time.process_time()
        writer = TraceWriter(path, about={"gviz": "benchmark"}, on_trouble=print)
        count = training(writer.say, total)
        writer.flush()
        print(
            f"write    {(time.process_time() - before - silent) / count * 1e6:8.2f} µs an event, the program's part off"
        )
        killed = Path(folder) / "killed.gviz"
        for end in ("", "-wal"):
            Path(f"{killed}{end}").write_bytes(Path(f"{path}{end}").read_bytes())
        print(f"close    {cost(writer.close):8.2f} s")
        print(
            f"size     {path.stat().st_size / count:8.1f} bytes an event; {killed.stat().st_size / count:.1f} without index"
        )
        print(f"open     {cost(lambda: load(path), 5) * 1e3:8.1f} ms; killed: {cost(lambda: load(killed)):.2f} s")
        seeks(path)


def seeks(path: Path) -> None:
    """What it costs to ask for the state of all visible nodes at some moment."""
    timeline, draw = load(path), random.Random(1)
    middle = timeline.iterations[len(timeline.iterations) // 2]
    visible = timeline.nodes_of(middle)[:VISIBLE]

    def seek(low: int, high: int) -> None:
        timeline.at(draw.randint(low, high)).states(visible)

    def visit() -> None:
        iteration = draw.choice(timeline.iterations)
        nodes = timeline.nodes_of(iteration)[:VISIBLE]
        timeline.at(draw.randint(iteration.start, iteration.end)).states(nodes)

    first = cost(lambda: seek(middle.end, middle.end))
    print(f"seek     {cost(lambda: seek(0, len(timeline)), 301) * 1e3:8.2f} ms anywhere, {VISIBLE} visible nodes")
    print(f"         {cost(lambda: seek(middle.start, middle.end), 301) * 1e3:8.2f} ms within their iteration")
    print(
        f"         {first * 1e3:8.2f} ms the first time ever; {cost(visit, 51) * 1e3:.2f} ms when all are other nodes each time"
    )


if __name__ == "__main__":
    main()
