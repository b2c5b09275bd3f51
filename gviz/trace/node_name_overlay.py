"""A log with additional node names that the recording does not have."""

from __future__ import annotations

from collections.abc import Mapping

from gviz.events import Named
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.event_log import EventLog, MemoryLog


def with_names(log: EventLog, names: Mapping[int, str]) -> MemoryLog:
    """Return a copy of a log in memory, with these node names appended. Large arrays keep only their statistics."""
    copy = MemoryLog([*log.ops.values(), *log.stacks.definitions()])
    copy.framework = log.framework
    copy.sources |= log.sources
    for _, event in log.select(1, len(log) + 1, KIND_NUMBERS.values()):
        copy.append(event)
    for node, name in names.items():
        copy.append(Named(node, name))
    return copy
