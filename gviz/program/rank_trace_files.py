"""The file names of the ranks' traces of one training run, in the folder that holds them."""

from __future__ import annotations

import re
from pathlib import Path

RESTART = "-restart"
OF_A_RANK = re.compile(rf"rank(\d+)(?:{RESTART}(\d+))?\.gviz")

MAIN = "main.gviz"
"""The trace of the program that starts the ranks, unless a launcher starts each of them."""


def trace_of(rank: int | str, again: int = 0) -> str:
    """Return the file name of the trace of a rank, which has been restarted `again` times."""
    return f"rank{called(rank, again)}.gviz"


def called(rank: int | str, again: int | None) -> str:
    """Return the label of a rank: its number and, if restarted, the number of the restart."""
    return f"{rank}{RESTART}{again}" if again else str(rank)


def rank_traces(trace: Path) -> list[Path]:
    """Return the traces of ranks that a trace's program has started, sorted by name; [] for any other trace."""
    if trace.name != MAIN:
        return []
    return sorted(path for path in trace.parent.glob("rank*.gviz") if OF_A_RANK.fullmatch(path.name))


def whole(trace: Path) -> Path:
    """Return the folder if there are ranks next to a trace, otherwise the trace."""
    return trace.parent if rank_traces(trace) else trace


def holds_traces(path: Path) -> bool:
    """Return whether a path is a folder with traces, and not one that Python runs as a program."""
    return path.is_dir() and not (path / "__main__.py").exists() and any(path.glob("*.gviz"))
