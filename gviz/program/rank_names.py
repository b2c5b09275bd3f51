"""What the traces of the ranks of one training run are called, in the folder that holds them."""

from __future__ import annotations

import re
from pathlib import Path

RESTART = "-restart"
OF_A_RANK = re.compile(rf"rank(\d+)(?:{RESTART}(\d+))?\.gviz")

MAIN = "main.gviz"
"""The program that starts the ranks, where no launcher has started each of them."""


def trace_of(rank: int | str, again: int = 0) -> str:
    """The name of the trace of one rank, which has been started `again` so many times."""
    return f"rank{called(rank, again)}.gviz"


def called(rank: int | str, again: int | None) -> str:
    """The number of a rank, and for which time it was started again, if it was."""
    return f"{rank}{RESTART}{again}" if again else str(rank)


def beside(trace: Path) -> list[Path]:
    """The traces of ranks that the program of a trace has started, in the order of their names; none of any other."""
    if trace.name != MAIN:
        return []
    return sorted(path for path in trace.parent.glob("rank*.gviz") if OF_A_RANK.fullmatch(path.name))


def whole(trace: Path) -> Path:
    """What holds all that was recorded: the folder where ranks are beside a trace, else the trace."""
    return trace.parent if beside(trace) else trace
