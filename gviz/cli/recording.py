"""Starts a program in a recording process of its own, and waits for its end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from gviz.cli import streams
from gviz.cli.progress import Progress
from gviz.program.order import Order, start

_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
_SECONDS_TO_END = 5.0
"""So long after Ctrl-C a program is given before it is said what else ends it: one that waits within C never hears."""

_HOW_TO_END = "the program goes on after Ctrl-C; Ctrl-\\ ends also what waits in vain, and keeps what was recorded"


def run_recorded(order: Order, argv: Sequence[str]) -> tuple[int, int]:
    """Run a program to its end while its trace is written; give its process, and its exit code as a shell would."""
    if sys.stderr.isatty():
        streams.say(f"recording {argv[0]}; Ctrl-C ends it and keeps what was recorded")
    with _signals_passed_on() as pass_to:
        command, environment = start(order, argv)
        process = subprocess.Popen(command, env=environment, close_fds=False)  # what a shell has opened for the program
        pass_to(process)
        import_module("gviz.trace.file.reader")  # while the program starts: what it leaves is read when it has ended
        code = _wait(process, Path(order.trace))
    if code < 0 and -code != signal.SIGINT:  # Python closes the recording before it dies of an interrupt
        end = "ended by SIGTERM" if -code == signal.SIGTERM else "killed"
        streams.say(f"the program was {end}; its last moments may be missing")
    return process.pid, 128 - code if code < 0 else code


class _Ending:
    """Says once on a terminal what ends a program that takes no notice of Ctrl-C."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def wait(self, number: int, frame: object) -> None:
        """Give it some time."""
        if self._timer is None and sys.stderr.isatty():
            self._timer = threading.Timer(_SECONDS_TO_END, streams.say, [_HOW_TO_END])
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        """It has ended."""
        if self._timer is not None:
            self._timer.cancel()


@contextmanager
def _signals_passed_on() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Let signals end the program, not gviz, which then still has a trace to show; gives what is told the program.

    Ctrl-C reaches the program by itself, as a member of the terminal's foreground group. A signal that is ignored, as
    under ``nohup``, stays so: a handler here would make it an ordinary one in the program.
    """
    processes: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        for process in processes:
            process.send_signal(number)
        if not processes:
            early.append(number)

    def pass_to(process: subprocess.Popen[bytes]) -> None:
        processes.append(process)
        for number in early:
            process.send_signal(number)

    ending = _Ending()
    handlers = dict.fromkeys(_PASSED_ON, pass_on) | {signal.SIGINT: ending.wait}
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield pass_to
    finally:
        ending.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(process: subprocess.Popen[bytes], trace: Path) -> int:
    # On a terminal that also shows the program's own output, a line that renews itself would garble it.
    if sys.stdout.isatty() or not sys.stderr.isatty():
        return process.wait()
    progress = Progress(trace)
    while True:
        try:
            code = process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            progress.renew()
        else:
            progress.clear()
            return code
