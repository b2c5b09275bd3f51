"""How gviz's own objects show themselves in a notebook; who draws them is only looked up when one is shown."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

DRAWN_BY = "gviz.integrations.notebook"
ANSWERED_BY = "gviz.api.questions"
"""They may import every room, and none of those whose objects they draw, or answer for, imports them."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which shows pages and has no terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class Displayed:
    """An object that a notebook shows as a picture, and as text where there are no pictures."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        bundle: dict[str, str] = import_module(DRAWN_BY).bundle(self)
        return bundle


class Played(Displayed):
    """A recording, which can also be asked and stepped through."""

    __slots__ = ()

    def player(self, at: int | None = None) -> Any:
        """For a notebook: the page that steps through the recording, opened at event `at` (else where it ended)."""
        return import_module(DRAWN_BY).player(self, at)

    def explain(self, place: str, at: int | None = None) -> Any:
        """Why ``w.grad``, ``loss`` or ``#4`` is as it is at event `at` (else at the end), as `gviz.why` says it."""
        return import_module(ANSWERED_BY).why(self, place, at=at)

    def check(self) -> Any:
        """What is wrong or suspicious in the recording, as `gviz.check` lists it."""
        return import_module(ANSWERED_BY).check(self)
