"""``python -m benchmarks [SUBJECT...]``: measure, and print the table."""

from __future__ import annotations

import os
import sys
from importlib import import_module

SUBJECTS = (
    "chain",
    "graph_mode",
    "mlp",
    "convnet",
    "transformer",
    "optimizers",
    "recording",
    "pytorch_programs",
    "pytorch_attached",
    "cuda",
    "million_events",
    "pictures",
    "terminal_layout",
    "key_to_repaint",
    "debugger",
    "page",
    "live_step",
    "start",
    "answers",
    "house",
)
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(subjects: list[str]) -> int:
    """Print the rows of these subjects, or of all, as they come."""
    unknown = [name for name in subjects if name not in SUBJECTS]
    if unknown:
        print(f"no subject {', '.join(unknown)}; there are {', '.join(SUBJECTS)}", file=sys.stderr)
        return 2
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # read when numpy and PyTorch are imported, below
    from benchmarks.table import HEADINGS, line, written

    print(line(HEADINGS))
    for name in subjects or SUBJECTS:
        for row in import_module(f"benchmarks.{name}").rows():
            print(written(row), flush=True)
    return 0


sys.exit(main(sys.argv[1:]))
