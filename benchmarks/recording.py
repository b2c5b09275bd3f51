"""What recording to a trace file costs the program, everything written but the closing of the file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.chain import tensor_chain
from benchmarks.table import Row, duration
from benchmarks.timing import Program, timed

CASES = ((10_000, (), "10k scalar ops", "4x"), (1_000, (10_000,), "1k ops on 10k-element vectors", "1.8x"))
TURNS = 5


def rows() -> Iterator[Row]:
    """Recorded against not recorded."""
    import gviz.engine

    for ops, shape, words, goal in CASES:
        program = tensor_chain(gviz.engine, shape, ops)
        plain, recorded = float("inf"), float("inf")
        with TemporaryDirectory() as folder:
            for turn in range(TURNS):
                plain = min(plain, timed(program, time.process_time))
                recorded = min(recorded, _recorded(program, Path(folder) / f"{turn}.gviz"))
        yield Row(
            f"recording {words}, forward + backward",
            f"{duration(recorded / ops)}/op",
            f"unrecorded {duration(plain / ops)}/op",
            f"{recorded / plain:.2f}x",
            goal,
        )


def _recorded(program: Program, path: Path) -> float:
    from gviz.trace.recording.record import record

    with record(path) as recording:

        def written() -> None:
            program()
            recording.flush()

        return timed(written, time.process_time)
