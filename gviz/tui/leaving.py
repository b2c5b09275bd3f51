"""What becomes of a program that waits, in one process or another, for its debugger to be left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Leaving = Literal["go on", "alone", "stop"]
"""It goes on to where it stops next, goes on and stops nowhere any more, or ends."""

EXIT_CODES: Mapping[Leaving, int] = {"go on": 0, "alone": 10, "stop": 11}
"""What a debugger in a process of its own ends with; whatever else that ends with lets the program go on."""

ACTS: Mapping[str, Leaving] = {"detach": "alone", "kill": "stop"}
"""The commands about a program that `gviz run` holds, for one that waits."""

QUESTION = "it waits: c goes on to its next stop, k on without stops, s stops it, else no"
ANSWERS: Mapping[str, Leaving] = {"c": "go on", "k": "alone", "s": "stop"}


def by_exit_code(code: int) -> Leaving:
    """How the debugger was left that ended with a code."""
    return next((leaving for leaving, known in EXIT_CODES.items() if known == code), "go on")
