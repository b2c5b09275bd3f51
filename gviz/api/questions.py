"""The questions of the command line as functions: ``gviz.why("run.gviz", "w.grad")``, ``gviz.check("run.gviz")``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gviz.errors import GvizError

if TYPE_CHECKING:
    from gviz.explain.finding import Checked, Finding
    from gviz.trace.timeline import Timeline


def why(trace: str | os.PathLike[str] | Timeline, place: str, *, at: int | str | None = None) -> Finding:
    """Explain why a node has its value or gradient, or none, at event or moment `at` (default: the end).

    `place` is ``w.grad``, ``loss``, ``#4``, ``train.py:12``; ``error`` explains why the program failed. Raises
    GvizError for an invalid place, or one that does not exist.
    """
    if not isinstance(place, str):
        hint = "name it: 'w.grad', '#4', 'train.py:12'"
        raise GvizError(f"a place is a text, not {type(place).__name__}", hint=hint, exit_code=2)
    from gviz.api.moment_argument import moment_of
    from gviz.explain.typed_question import answers

    timeline = _timeline(trace)
    return answers(timeline, place, None if at is None else moment_of(timeline, at))[0]


def check(trace: str | os.PathLike[str] | Timeline) -> list[Checked]:
    """Return what is wrong or suspicious in a trace, most serious first."""
    from gviz.explain.check import check as checked

    return checked(_timeline(trace))


def _timeline(trace: str | os.PathLike[str] | Timeline) -> Timeline:
    from gviz.trace import load
    from gviz.trace.timeline import Timeline

    return trace if isinstance(trace, Timeline) else load(trace)
