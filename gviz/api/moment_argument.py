"""The argument `at` of public functions: an event number, or a moment in words."""

from __future__ import annotations

from operator import index

from gviz.errors import GvizError
from gviz.query.moment_lookup import event_at, remark
from gviz.system import notice
from gviz.trace.timeline import Timeline


def moment_of(timeline: Timeline, at: int | str) -> int:
    """Return the event number of a moment; prints a remark about it if there is one. Raises GvizError if it is
    unknown.
    """
    if isinstance(at, str):
        _show_remark(timeline, at)
        return event_at(timeline, at)
    try:
        if isinstance(at, bool):
            raise TypeError
        return event_at(timeline, f"@{index(at)}")
    except TypeError:
        raise GvizError(
            f"at cannot be {at!r}", hint="it is an event number, or a moment in words", exit_code=2
        ) from None


_shown = set[str]()
"""The remarks that were shown: an export resolves its moment again for each picture that it tries."""


def _show_remark(timeline: Timeline, at: str) -> None:
    also = remark(timeline, at)
    if also and also not in _shown:
        _shown.add(also)
        notice.show(f"gviz: {also}")
