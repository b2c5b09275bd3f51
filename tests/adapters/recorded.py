"""Run a PyTorch program while it is listened to, and read what it said."""

from importlib import metadata

from gviz import emit
from gviz.events import Event, NodeCreated, OpSeen

_INSTALLED = [one.version for one in metadata.distributions(name="torch")]
RELEASE = tuple(map(int, _INSTALLED[0].split(".")[:2])) if _INSTALLED else (0, 0)
"""The release of PyTorch that is installed, as ``(2, 13)``."""


def events_of(program, wanted=None, **options) -> list[Event]:
    from gviz.adapters.pytorch.attachment import Attachment
    from gviz.adapters.recording_scope import EVERYTHING

    log: list[Event] = []
    channel = emit.Channel(log.append, **options)
    with emit.listening(channel), Attachment(channel, scope=wanted or EVERYTHING):
        kept = program()
    del kept
    return log


def of_kind(log, kind):
    return [event for event in log if isinstance(event, kind)]


def operations(log):
    """The names of the graph nodes, in order."""
    return list(named(log).values())


def named(log):
    """The names of the graph nodes by their numbers."""
    ops = {event.op: event for event in of_kind(log, OpSeen)}
    tracked = [event for event in of_kind(log, NodeCreated) if event.kind == "op" and not event.untracked]
    return {event.node: ops[event.op].grad_fn for event in tracked}
