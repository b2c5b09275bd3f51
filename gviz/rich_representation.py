"""The rich representation of gviz's objects: what a notebook shows for a tensor, a recording or a finding.

The objects are defined in low layers, and high layers draw them. So this file has a place for each of the fronts.
`gviz/__init__.py` registers them, and they are imported when the first object is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol


class NotebookFront(Protocol):
    """How objects appear in a notebook: `gviz.integrations.notebook`."""

    def bundle(self, thing: Any) -> dict[str, str]:
        """Return the MIME bundle of an object: text, and a picture if it has a graph."""

    def player(self, timeline: Any, at: int | None = None) -> Any:
        """Return the page that steps through a recording, opened at event `at` (default: the end)."""

    def play(self, timeline: Any, at: int | None = None) -> None:
        """Show that page below the cell."""

    def remark(self, text: str) -> None:
        """Write a line below the cell."""

    def hide_machinery(self) -> None:
        """Hide the kernel's frames in recordings."""


class QuestionFront(Protocol):
    """How a recording answers questions in code: `gviz.api.questions`."""

    def why(self, trace: Any, place: str, *, at: int | str | None = None) -> Any:
        """Return why a node has its value or gradient."""

    def check(self, trace: Any) -> Any:
        """Return what is wrong in the recording."""


class DebuggerFront(Protocol):
    """How the debugger opens in a program that records itself: `gviz.api.debug`."""

    def pause_monitored(self, recording: Any) -> bool:
        """Pause the program, open the debugger on its recording so far, and return whether it may pause again."""


class _Fronts:
    notebook: Callable[[], NotebookFront]
    questions: Callable[[], QuestionFront]
    debugger: Callable[[], DebuggerFront]


def register_fronts(
    *,
    notebook: Callable[[], NotebookFront],
    questions: Callable[[], QuestionFront],
    debugger: Callable[[], DebuggerFront],
) -> None:
    """Register the functions that import the fronts."""
    _Fronts.notebook, _Fronts.questions = staticmethod(notebook), staticmethod(questions)
    _Fronts.debugger = staticmethod(debugger)


def notebook_front() -> NotebookFront:
    """Return the front for notebooks, imported now."""
    return _Fronts.notebook()


def debugger_front() -> DebuggerFront:
    """Return the front for the debugger, imported now."""
    return _Fronts.debugger()


def in_notebook() -> bool:
    """Return whether this process is a notebook kernel, which shows pages and has no terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class Displayed:
    """An object that a notebook shows as a picture, or as text if it has none."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return notebook_front().bundle(self)


class Played(Displayed):
    """A recording that can be queried and stepped through."""

    __slots__ = ()

    def player(self, at: int | None = None) -> Any:
        """Return a page for a notebook that steps through the recording, opened at event `at` (default: the end)."""
        return notebook_front().player(self, at)

    def explain(self, place: str, at: int | None = None) -> Any:
        """Return why ``w.grad``, ``loss`` or ``#4`` has its value at event `at` (default: the end), as `gviz.why`
        answers.
        """
        return _Fronts.questions().why(self, place, at=at)

    def check(self) -> Any:
        """Return what is wrong or suspicious in the recording, as `gviz.check` lists it."""
        return _Fronts.questions().check(self)
