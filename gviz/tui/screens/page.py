"""What every screen over the debugger is."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

Answer = TypeVar("Answer")


class Page(ModalScreen[Answer]):
    """A screen over the debugger, which leaves with an answer."""

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Leave; a page that has left already does not take with it what came behind it."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
