"""A trace of a million events: what an event costs to write, and how fast the file opens and seeks."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.table import Row, duration
from benchmarks.timing import least, timed
from gviz import events as e
from gviz.explain.check import check
from gviz.explain.why import why
from gviz.source.call_stack import Frame
from gviz.trace import load
from gviz.trace.file.reader import open_trace
from gviz.trace.file.writer import TraceWriter
from gviz.trace.timeline import Timeline
from gviz.values.value import capture

EVENTS = 1_000_000
NODES = 300
PARAMETERS = 20
VISIBLE = 300
SEEKS = 300


def training(record: Callable[[e.Event], None], total: int) -> int:
    """Say a training run of at least so many events: every iteration makes a chain, goes back, steps, frees."""
    value = capture(np.array([1.5, 2.5], "float32"))
    record(e.OpSeen(1, "tensor", "", (), (), ()))
    record(e.OpSeen(2, "mul", "MulBackward0", ("input", "other"), ("g * other", "g * input"), ("input", "other")))
    for line in range(1, 40):
        record(e.StackSeen(line, (Frame("train.py", "<module>", line, line, 0, 4),)))
    count = 0

    def event(one: e.Event) -> None:
        nonlocal count
        count += 1
        record(one)

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


def rows() -> Iterator[Row]:
    """Of one recording, closed and as a kill would have left it."""
    with TemporaryDirectory() as folder:
        closed, killed = Path(folder, "closed.gviz"), Path(folder, "killed.gviz")
        yield from written(closed, killed)
        opening = least(lambda: load(closed).at(EVENTS // 2), turns=5)
        yield Row("opening it, to any moment", duration(opening), goal="100 ms")
        yield Row("opening it after a kill, to its last event", duration(timed(lambda: last(killed))), goal="at once")
        yield Row("opening it after a kill, to any moment", duration(timed(lambda: load(killed).at(EVENTS // 2))))
        yield from seeks(load(closed))
        yield from questions(closed)


def written(closed: Path, killed: Path) -> Iterator[Row]:
    """Record, and copy the file before it is closed."""
    silent = timed(lambda: training(lambda event: None, EVENTS), time.process_time)
    writer = TraceWriter(closed, about={"gviz": "benchmark"}, on_error=print)

    def write() -> None:
        training(writer.record, EVENTS)
        writer.flush()

    spoken = timed(write, time.process_time)
    yield Row("writing a million events, the program's part off", f"{duration((spoken - silent) / EVENTS)}/event")
    for end in ("", "-wal"):
        shutil.copy(f"{closed}{end}", f"{killed}{end}")
    yield Row("closing the file", duration(timed(writer.close, time.process_time)))
    yield Row("its size", f"{closed.stat().st_size / EVENTS:.0f} B/event")


def last(path: Path) -> e.Event:
    """The last event of a trace."""
    trace = open_trace(path)
    return trace.event(len(trace))


def questions(path: Path) -> Iterator[Row]:
    """What it costs to ask why, and to look for everything that is wrong, of a trace just opened."""
    middle = EVENTS // 2

    def why_gradient() -> object:
        timeline = load(path)
        return why(timeline, timeline.at(middle), 1, "grad")

    yield Row("why a gradient is what it is", duration(least(why_gradient, turns=3)), goal="200 ms")
    yield Row("checking it for everything", duration(timed(lambda: check(load(path)))), goal="5 s")


def seeks(timeline: Timeline) -> Iterator[Row]:
    """What it costs to ask for the state of all nodes in sight at some moment."""
    draw = random.Random(1)
    middle = timeline.iterations[len(timeline.iterations) // 2]
    visible = timeline.nodes.of(middle)[:VISIBLE]

    def seek(low: int, high: int) -> None:
        timeline.at(draw.randint(low, high)).states(visible)

    def visit() -> None:
        iteration = draw.choice(timeline.iterations)
        nodes = timeline.nodes.of(iteration)[:VISIBLE]
        timeline.at(draw.randint(iteration.start, iteration.end)).states(nodes)

    anywhere = [timed(lambda: seek(0, len(timeline))) for _ in range(SEEKS)]
    near = [timed(lambda: seek(middle.start, middle.end)) for _ in range(SEEKS)]
    elsewhere = [timed(visit) for _ in range(50)]
    yield Row(f"seeking in it, {VISIBLE} nodes in sight", duration(median(anywhere)), goal="1 ms")
    yield Row("seeking within the iteration in sight", duration(median(near)), goal="1 ms")
    yield Row(f"going to {VISIBLE} nodes not seen before", duration(median(elsewhere)))
