"""Handles of registered hooks."""

from __future__ import annotations

from typing import Any


class HookHandle:
    """Takes a hook away again: ``handle.remove()``, or at the end of a ``with`` block."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks = hooks
        self._hook = hook

    def remove(self) -> None:
        """Take the hook away; once is enough, twice is harmless."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()
