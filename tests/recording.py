"""Run a function while listening, and get the events: the shortest way from a program to a log."""

from collections.abc import Callable
from pathlib import Path

from gviz import emit
from gviz.events import Event


def events_of(program: Callable[[], object], *, limit: int = 1024) -> list[Event]:
    log: list[Event] = []
    with emit.listening(emit.Channel(log.append, limit=limit, read_source=lambda path: Path(path).read_text())):
        kept = program()  # what the program returns stays alive until the recording ends
    del kept
    return log
