"""What the traces of the ranks of one training run are called, in the folder that holds them."""

from __future__ import annotations

RESTART = "-restart"


def trace_of(rank: int | str, again: int = 0) -> str:
    """The name of the trace of one rank, which has been started `again` so many times."""
    return f"rank{called(rank, again)}.gviz"


def called(rank: int | str, again: int | None) -> str:
    """The number of a rank, and for which time it was started again, if it was."""
    return f"{rank}{RESTART}{again}" if again else str(rank)
