"""Starts a program in a recording process of its own, and waits for its end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from gviz.cli import signals, streams
from gviz.cli.progress import Progress
from gviz.cli.signals import BySignal, SignalForwarder
from gviz.program.recording_request import Order, start

_SECONDS_BETWEEN_LOOKS = 0.05
_LOOKS_BETWEEN_LINES = 4
_SECONDS_TO_END = 5.0
"""So long after Ctrl-C a program is given before it is said what else ends it: one that waits within C never hears."""

_HOW_TO_END = "the program goes on after Ctrl-C; Ctrl-\\ ends also what waits in vain, and keeps what was recorded"


class FinishedRun(NamedTuple):
    """A program that has ended: its process id, its exit code, and the signals that gviz received meanwhile."""

    process: int
    code: int
    received: frozenset[int]

    @property
    def ended_by_received(self) -> bool:
        """Whether a signal ended the program that gviz received, too."""
        return isinstance(self.code, BySignal) and self.code.number in self.received


def run_recorded(order: Order, argv: Sequence[str]) -> FinishedRun:
    """Run a program to its end while its trace is written."""
    if sys.stderr.isatty():
        streams.say(f"recording {argv[0]}; Ctrl-C ends it and keeps what was recorded")
    ending = _Ending()
    with signals.forward() as forwarder:
        forwarder.on_interrupt = ending.wait
        command, environment = start(order, argv)
        process = subprocess.Popen(command, env=environment, close_fds=False)  # what a shell has opened for the program
        forwarder.begin(process)
        import_module("gviz.trace.file.reader")  # while the program starts: what it leaves is read when it has ended
        try:
            code = _wait(forwarder, Path(order.trace))
        finally:
            ending.cancel()
    if code < 0 and -code != signal.SIGINT:  # Python closes the recording before it dies of an interrupt
        end = "ended by SIGTERM" if -code == signal.SIGTERM else "killed"
        streams.say(f"the program was {end}; its last moments may be missing")
    return FinishedRun(process.pid, BySignal.of(-code) if code < 0 else code, frozenset(forwarder.received))


class _Ending:
    """Says once on a terminal what ends a program that takes no notice of Ctrl-C."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def wait(self) -> None:
        """Give it some time."""
        if self._timer is None and sys.stderr.isatty():
            self._timer = threading.Timer(_SECONDS_TO_END, streams.say, [_HOW_TO_END])
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        """It has ended."""
        if self._timer is not None:
            self._timer.cancel()


def _wait(forwarder: SignalForwarder, trace: Path) -> int:
    # On a terminal that also shows the program's own output, a line that renews itself would garble it.
    shows = sys.stderr.isatty() and not sys.stdout.isatty()
    progress, looks = Progress(trace), 0
    while (code := forwarder.wait(patient=not shows)) is None:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        looks += 1
        if not looks % _LOOKS_BETWEEN_LINES:
            progress.renew()
    if shows:
        progress.clear()
    return code
