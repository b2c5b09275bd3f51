"""gviz: an interactive computation-graph visualizer and debugger.

`record` writes a trace of a ``with`` block, `mark` names a moment in it, and `iteration` makes the calls of a function
its iterations. `load` opens a trace, `why` and `check`
explain it in words, and `show` opens the debugger on it. `make_dot` draws a trace or the graph of a tensor, and
`export` writes pictures to files. Everything is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gviz import rich_representation
from gviz.version import __version__

if TYPE_CHECKING:
    from gviz.api.debug import breakpoint as breakpoint
    from gviz.api.debug import debug as debug
    from gviz.api.debug import post_mortem as post_mortem
    from gviz.api.export import export as export
    from gviz.api.make_dot import make_dot as make_dot
    from gviz.api.questions import check as check
    from gviz.api.questions import why as why
    from gviz.api.show import show as show
    from gviz.frameworks import attach as attach
    from gviz.frameworks import record as record
    from gviz.rich_representation import DebuggerFront, NotebookFront, QuestionFront
    from gviz.trace import load as load
    from gviz.trace.recording.record import iteration as iteration
    from gviz.trace.recording.record import mark as mark

_HOMES = {
    "attach": "gviz.frameworks",
    "breakpoint": "gviz.api.debug",
    "check": "gviz.api.questions",
    "debug": "gviz.api.debug",
    "export": "gviz.api.export",
    "iteration": "gviz.trace.recording.record",
    "load": "gviz.trace",
    "make_dot": "gviz.api.make_dot",
    "mark": "gviz.trace.recording.record",
    "post_mortem": "gviz.api.debug",
    "record": "gviz.frameworks",
    "show": "gviz.api.show",
    "why": "gviz.api.questions",
}
"""The public names and their home modules; type checkers read the imports above instead."""

__all__ = ["__version__", *_HOMES]


def _notebook_front() -> NotebookFront:
    from gviz.integrations import notebook

    return notebook


def _question_front() -> QuestionFront:
    from gviz.api import questions

    return questions


def _debugger_front() -> DebuggerFront:
    from gviz.api import debug

    return debug


rich_representation.register_fronts(notebook=_notebook_front, questions=_question_front, debugger=_debugger_front)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext gviz`` in a notebook: adds the cell magic ``%%gviz``."""
    from gviz.integrations.notebook import register

    register(shell)


if not TYPE_CHECKING:  # a type checker knows the names from above, and should report any other

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
