"""What a PyTorch program pays in memory while it is recorded, and in time when the recording begins.

Each number is a new process's own: memory once used stays with a process, and what is imported stays imported.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.table import Row, duration, missing

TURNS = 1
CASES = ("transformer", "resnet")

_PROGRAM = """
import resource, sys, time
import torch
from benchmarks import pytorch_programs
torch.set_num_threads(1)
torch.manual_seed(0)
program = getattr(pytorch_programs, sys.argv[1])(torch)
program()
if sys.argv[2]:
    import gviz
    started = time.process_time()
    recording = gviz.attach(path=sys.argv[2], keep="stats")
    attached = time.process_time() - started
for _ in range(3):
    program()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, attached if sys.argv[2] else 0)
"""


def rows() -> Iterator[Row]:
    """The highest memory of four steps against those of the plain program, and the CPU time of ``gviz.attach``."""
    try:
        import torch  # noqa: F401  # only whether it is there
    except ImportError:
        yield missing("attaching to PyTorch", "PyTorch", "")
        return
    times = []
    for case in CASES:
        plain = median(_peak_and_time(case, recorded=False)[0] for _ in range(TURNS))
        measured = [_peak_and_time(case, recorded=True) for _ in range(TURNS)]
        times += [seconds for _, seconds in measured]
        peak = median(kilobytes for kilobytes, _ in measured)
        extra, alone = f"+{(peak - plain) / 1024:.0f} MB", f"plain {plain / 1024:.0f} MB"
        yield Row(f"memory with statistics: {case}", f"{peak / 1024:.0f} MB", alone, extra, "50 MB")
    yield Row("attaching to PyTorch, CPU time", duration(min(times)), goal="200 ms")


def _peak_and_time(case: str, *, recorded: bool) -> tuple[float, float]:
    """Kilobytes of resident memory at their highest, and the seconds that attaching took."""
    with TemporaryDirectory() as folder:
        trace = str(Path(folder, "t.gviz")) if recorded else ""
        command = [sys.executable, "-c", _PROGRAM, case, trace]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    peak, seconds = done.stdout.split()
    return float(peak), float(seconds)
