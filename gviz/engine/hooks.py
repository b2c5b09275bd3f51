"""Handles of registered hooks."""

from __future__ import annotations

from itertools import count
from typing import Any

_next_id = count().__next__


class HookHandle:
    """Takes one registration of a hook away again: ``handle.remove()``, or at the end of a ``with`` block."""

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.id = _next_id()
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook away; once is enough, twice is harmless, also where it was registered again."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()
