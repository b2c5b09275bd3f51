"""The argument `at` of public functions: an event number, or a moment in words."""

from __future__ import annotations

from collections.abc import Callable
from operator import index

from gviz.errors import GvizError
from gviz.query.moments import event_at, remark
from gviz.system import notice
from gviz.trace.timeline import Timeline


def _show(note: str) -> None:
    notice.show(f"gviz: {note}")


def moment_of(timeline: Timeline, at: int | str, note: Callable[[str], None] = _show) -> int:
    """Return the event number of a moment; gives `note` a remark about it if there is one.

    An export gives its own, which is silent where it only measures a picture. Raises GvizError if the moment is
    unknown.
    """
    if isinstance(at, str):
        if also := remark(timeline, at):
            note(also)
        return event_at(timeline, at)
    try:
        if isinstance(at, bool):
            raise TypeError
        return event_at(timeline, f"@{index(at)}")
    except TypeError:
        raise GvizError(
            f"at cannot be {at!r}", hint="it is an event number, or a moment in words", exit_code=2
        ) from None
