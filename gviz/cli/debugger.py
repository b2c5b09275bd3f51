"""Opens the debugger: on the trace in a file, or on a program that it starts in a recording process."""

from __future__ import annotations

import queue
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gviz.api import output_files
from gviz.cli import streams
from gviz.cli.options import GlobalOptions
from gviz.cli.program_run import Program, order
from gviz.cli.progress import with_progress
from gviz.program.recording_request import start
from gviz.system.gc_pause import uncollected
from gviz.system.processes import Start
from gviz.trace.file import paths
from gviz.tui import terminal
from gviz.tui.session_options import SessionOptions
from gviz.tui.terminal import unechoed

if TYPE_CHECKING:
    from gviz.live.debugger_side import ControlledProgram, Report
    from gviz.trace.file.reader import Trace
    from gviz.trace.timeline import Timeline
    from gviz.tui.session_options import StartedProgram


def debug(
    trace: Path,
    settings: GlobalOptions,
    options: SessionOptions,
    *,
    at: str | None = None,
    commands: Iterable[str] | None = None,
) -> int:
    """Open the debugger on a trace, at the moment `at` if given; the other arguments are those of `open_debugger`."""
    with unechoed(plain=bool(terminal.why_plain(plain=settings.plain))):
        with uncollected(lasting=True):
            from gviz.api.moment_argument import moment_of
            from gviz.trace.file.reader import open_trace
            from gviz.trace.timeline import read_timeline
            from gviz.tui import open_debugger

        with open_trace(trace) as log:
            timeline = with_progress(read_timeline(log))
            if at:
                options = replace(options, at=moment_of(timeline, at))
            return open_debugger(
                timeline, options, plain=settings.plain, ascii=settings.ascii, theme=settings.theme, commands=commands
            )


def walk(trace: Path) -> None:
    """Step through a lesson from node to node to its end, line by line, without input."""
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline
    from gviz.tui import line_mode

    with open_trace(trace) as log:
        timeline = Timeline(log)
        line_mode.debug(timeline, _steps(timeline), sys.stdin, sys.stdout, SessionOptions(at=0, lesson=True))


def _steps(timeline: Timeline) -> Iterator[str]:
    from gviz.trace.stepping import next_node

    position, following = 0, next_node(timeline, 0)
    while following != position:
        yield "next"
        position, following = following, next_node(timeline, following)


class Launcher:
    """Starts one program any number of times, each time with a new trace; a trace that the user named is
    overwritten.
    """

    def __init__(self, program: Program) -> None:
        self.trace = Path()
        self._program = program
        self._runs: list[tuple[ControlledProgram, Trace]] = []
        if program.output is not None:
            output_files.refuse_trace(program.output, Path(program.argv[0]), force=program.force)

    def __call__(self, on_report: Callable[[Report], None], size: tuple[int, int]) -> StartedProgram:
        """Start the program and wait until it is ready to begin; exits with its exit code if it ends before."""
        from gviz.live.debugger_side import ControlledProgram, Ended, exit_code
        from gviz.live.protocol import Ready
        from gviz.trace.file.reader import open_trace
        from gviz.trace.timeline import Timeline
        from gviz.tui.session_options import StartedProgram

        if self._runs:
            streams.show(f"starting {self._program.argv[0]} again")
        self.trace = self._program.output or paths.new_trace(self._program.argv[0])
        first: queue.SimpleQueue[Report] = queue.SimpleQueue()
        receiver: list[Callable[[Report], None]] = [first.put]
        session = ControlledProgram(self._start, lambda report: receiver[0](report), size=size)
        try:
            while not isinstance(report := first.get(), Ready):
                if isinstance(report, Ended):
                    streams.show_raw(b"".join(session.printed).decode("utf-8", "replace").replace("\r\n", "\n"))
                    raise click.exceptions.Exit(exit_code(report))
                on_report(report)
            receiver[0] = on_report
            while not first.empty():
                on_report(first.get())
            log = open_trace(self.trace)
            self._runs.append((session, log))
            return StartedProgram(session, Timeline(log))
        except BaseException:
            session.stop()
            raise

    def leave(self, *, printed: bool) -> None:
        """Close the traces, so that each is one file, and report whether the last program is still running.

        `printed`: also prints the output of the program, unless the terminal has shown it.
        """
        for _, log in self._runs:
            log.close()
            paths.fold_file(log.path)
        session = self._runs[-1][0]
        if printed:
            _print(session)
        if session.state == "released":
            streams.show(
                f"process {session.pid} keeps running without the debugger: its output goes to the trace, and input() "
                "gets end-of-file"
            )

    def _start(self, address: str) -> Start:
        return start(order(self._program, self.trace, live=address, again=bool(self._runs)), self._program.argv)


def _print(session: ControlledProgram) -> None:
    """Print what a program wrote to its own terminal."""
    if len(session.printed) == session.printed.maxlen:
        streams.show("the program printed more before this; the trace has all of it")
    click.echo(b"".join(session.printed).decode("utf-8", "replace").replace("\r\n", "\n"), nl=False)
