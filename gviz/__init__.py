"""gviz: an interactive computation-graph visualizer and debugger.

`record` writes a trace of what happens in a ``with`` block, `mark` names a moment of it, `load` opens a trace to ask it
questions, `why` and `check` answer them in words, `show` opens the debugger on one, `make_dot` draws one, or the graph
behind a tensor, and `export` writes pictures to files. Everything is imported when it is first used.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gviz.version import __version__

if TYPE_CHECKING:
    from gviz.digraph import make_dot
    from gviz.frameworks import attach, record
    from gviz.pictures import export
    from gviz.questions import check, why
    from gviz.trace import load
    from gviz.trace.record import mark
    from gviz.trace.timeline import Timeline
    from gviz.within import breakpoint, debug, post_mortem

__all__ = [
    "__version__", "attach", "breakpoint", "check", "debug", "export", "load", "make_dot", "mark", "post_mortem",
    "record", "show", "why",
]  # fmt: skip

_HOMES = {
    "attach": "gviz.frameworks",
    "breakpoint": "gviz.within",
    "check": "gviz.questions",
    "debug": "gviz.within",
    "export": "gviz.pictures",
    "load": "gviz.trace",
    "make_dot": "gviz.digraph",
    "mark": "gviz.trace.record",
    "post_mortem": "gviz.within",
    "record": "gviz.frameworks",
    "why": "gviz.questions",
}


def show(trace: str | os.PathLike[str] | Timeline | Any, *, at: int | None = None) -> None:
    """Open the debugger on a trace, at event `at`, else where its program failed, else at its first event.

    A tensor stands for the graph behind it, of which only the leaves have values. Without a terminal it goes line by
    line.
    """
    from gviz.cli.debugger import show as open_debugger

    open_debugger(trace, at=at)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext gviz`` in a notebook: adds the cell magic ``%%gviz``."""
    from gviz.notebook import register

    register(shell)


if not TYPE_CHECKING:  # a type checker knows the names from above, and should miss any other

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
