"""How times are taken.

Two programs are compared by taking turns in one process, each with the least time it needed, with the garbage collector
off: what else the machine does then touches both alike or neither. CPU time is the thread's (or, where another thread
helps, the process's); wall time is used only where there is waiting.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Program = Callable[[], object]
Clock = Callable[[], float]


@contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection in this block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def timed(program: Program, clock: Clock = time.thread_time) -> float:
    """How long one run takes, the release of its result included."""
    with collector_off():
        start = clock()
        program()
        return clock() - start


def race(*programs: Program, turns: int, clock: Clock = time.thread_time) -> list[float]:
    """The least time each program needed, when they take turns; a first turn does not count."""
    best = [float("inf")] * len(programs)
    for turn in range(turns + 1):
        for number, program in enumerate(programs):
            seconds = timed(program, clock)
            if turn:
                best[number] = min(best[number], seconds)
    return best


def least(program: Program, *, turns: int, clock: Clock = time.thread_time) -> float:
    """The least time one program needed."""
    return race(program, turns=turns, clock=clock)[0]
