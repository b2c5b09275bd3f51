"""Runs and records a program, for every command that takes a program: its options, its process, its end, its trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import click

from gviz.api import output_files
from gviz.cli import argument_order, recording_options, shell_quoting, signals, streams
from gviz.cli.progress import Progress
from gviz.cli.signals import SignalExitCode, SignalForwarder
from gviz.cli.trace_arguments import TraceName
from gviz.errors import GvizError
from gviz.program import rank_trace_files, torch_alias
from gviz.program.recording_request import WHOLE, Engine, Keeping, Order, start
from gviz.trace.file import lock, paths
from gviz.tui import terminal
from gviz.values.plain_text import shown

_Command = TypeVar("_Command", bound=Callable[..., Any])

SUFFIX = ".gviz"
SCRIPT_CONTEXT = {"allow_interspersed_args": False}
"""Options of gviz come before the script; everything after it belongs to the script."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, and how it is recorded.

    With `graph_breaks` the trace also has what a static graph could not contain.
    """

    argv: tuple[str, ...]
    as_module: bool = False
    engine: Engine = "auto"
    output: Path | None = None
    force: bool = False
    keep_source: bool = True
    share: bool = False
    keeping: Keeping = WHOLE
    graph_breaks: bool = False


@dataclass(frozen=True, slots=True)
class ProgramTrace:
    """The trace of a program that has ended, and the program's exit code.

    `interrupted` is the same exit code if the program was ended by a signal that gviz received, too, else 0.
    """

    trace: Path
    exit_code: int
    interrupted: int = 0


engine_option = click.option(
    "--engine",
    type=click.Choice(get_args(Engine)),
    default="auto",
    help="What `import torch` means: the built-in engine, PyTorch, or whichever is installed, PyTorch first (auto).",
)

_OPTIONS = (
    click.option("-m", "as_module", is_flag=True, help="Run a module, as python -m does."),
    engine_option,
    click.option("-o", "--output", type=TraceName(),
                 help="Write the trace to this file. A folder (runs/) gets one file for each rank of a training run; "
                 "under torchrun a name with {rank} in it does, too."),
    click.option("-f", "--force", is_flag=True, help="Overwrite an existing trace."),
    *recording_options.OPTIONS,
    click.option("--share", is_flag=True, help="Let the umask decide who may read the trace. "
                 "Without it only you can."),
    click.option("--no-source", is_flag=True, help="Leave the source text out of the trace."),
    click.argument("argv", nargs=-1, type=click.UNPROCESSED, required=True, metavar="SCRIPT [ARGS]..."),
)  # fmt: skip

_RECORDING = ("argv", "as_module", "engine", "output", "force", "share")


def takes_program(command: _Command) -> Callable[..., Any]:
    """Let a command take ``[-m] SCRIPT [ARGS]...`` and the options of recording: it gets them as one `Program`."""

    @wraps(command)
    def with_program(*arguments: Any, no_source: bool, **options: Any) -> Any:
        recording = {name: options.pop(name) for name in _RECORDING}
        keeping = recording_options.taken_from(options)
        if not recording["as_module"] and not is_trace(Path(recording["argv"][0])):
            argument_order.warn_of_lost_options(recording["argv"])
        return command(*arguments, Program(**recording, keep_source=not no_source, keeping=keeping), **options)

    for option in reversed(_OPTIONS):
        with_program = option(with_program)
    return with_program


def record_program(program: Program) -> ProgramTrace:
    """Run a program to its end and record it, into its `output` or a new trace in the cache."""

    if program.output is not None:
        output_files.refuse_trace(program.output, Path(program.argv[0]), force=program.force)
    trace = program.output or paths.new_trace(program.argv[0])
    run = run_recorded(order(program, trace), program.argv)
    code = run.code
    if code and lock.writer_of(trace) != run.process:
        if code >= 128:
            raise GvizError("nothing was recorded", exit_code=code)
        raise click.exceptions.Exit(code)  # the recording process has shown the error
    for one in (trace, *rank_trace_files.rank_traces(trace)):
        paths.fold_file(one)
    return ProgramTrace(trace, code, code if run.was_interrupted else 0)


def has_trace(trace: Path) -> bool:
    """Return whether a trace exists. If it does not, report it: there was no disk space, or the program deleted it."""
    if not trace.exists():
        streams.show(f"no trace is left: there is no {shown(str(trace))}")
    return trace.exists()


def command_line(program: Program, command: Sequence[str] = ("run",)) -> str:
    """Return the line that runs a program under the debugger, or by another `command`, with the same options."""
    engine = [] if program.engine == "auto" else ["--engine", program.engine]
    source = [] if program.keep_source else ["--no-source"]
    shared = ["--share"] if program.share else []
    script, *arguments = program.argv
    script_words = ["-m", shell_quoting.quoted(script)] if program.as_module else [shell_quoting.word(script)]
    options = map(shell_quoting.quoted, [*engine, *recording_options.as_typed(program.keeping), *shared, *source])
    return " ".join(["gviz", *command, *options, *script_words, *map(shell_quoting.quoted, arguments)])


def order(program: Program, trace: Path, *, live: str = "", again: bool = False) -> Order:
    """Return the request for the recording process. With `again` it overwrites the trace of the previous run.

    Raises GvizError if the program is a trace.
    """
    refuse_trace(program)
    request = Order(
        str(trace.absolute()),
        engine=program.engine,
        as_module=program.as_module,
        keep_source=program.keep_source,
        share=program.share,
        keeping=program.keeping,
        parent=os.getpid(),
        replace=again or (program.force and program.output is not None),
        live=live,
        graph_breaks=program.graph_breaks,
    )
    torch_alias.refuse_pytorch_options(request)
    return request


def is_trace(path: Path) -> bool:
    """Return whether a file is a trace: by its suffix, because gviz runs no file with that suffix, else by its header.

    A folder with the traces of ranks counts as a trace, too.
    """
    from gviz.trace.file.format import MAGIC

    if path.suffix == SUFFIX:
        return True
    try:
        if path.is_dir():
            return rank_trace_files.holds_traces(path)
        if not path.is_file():  # reading a pipe would wait for it, and take data from it
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def refuse_trace(program: Program) -> None:
    """Raise `GvizError` for a program that is a trace, or has the name of one: gviz runs nothing from a trace."""
    if not program.as_module and is_trace(Path(program.argv[0])):
        name = shown(program.argv[0])
        what = "a folder with traces" if Path(program.argv[0]).is_dir() else "a trace"
        raise GvizError(f"{name} is {what}, not a program", hint=f"gviz open {name}", exit_code=2)


_POLL_SECONDS = 0.05
_POLLS_PER_LINE = 4
_HINT_SECONDS = 5.0
"""How long after Ctrl+C gviz shows what else ends the program: a program that is blocked in C never handles Ctrl+C."""

_STOP_HINT = "still running after Ctrl+C; Ctrl+\\ also ends a program that is blocked, and keeps what was recorded"


class FinishedRun(NamedTuple):
    """A program that has ended: its process id, its exit code, and the signals that gviz received meanwhile."""

    process: int
    code: int
    received: frozenset[int]

    @property
    def was_interrupted(self) -> bool:
        """Whether the program was ended by a signal that gviz received, too."""
        return isinstance(self.code, SignalExitCode) and self.code.number in self.received


def run_recorded(order: Order, argv: Sequence[str]) -> FinishedRun:
    """Run a program to its end while its trace is written."""
    if sys.stderr.isatty():
        streams.show(f"recording {argv[0]}; Ctrl+C ends it and keeps what was recorded")
    hint = _StopHint()
    with signals.forward() as forwarder:
        forwarder.on_interrupt = hint.schedule
        command, environment = start(order, argv)
        process = subprocess.Popen(command, env=environment, close_fds=False)  # a shell may have opened files for it
        forwarder.begin(process)
        import_module("gviz.trace.file.reader")  # needed when the program has ended; imported while it starts
        try:
            code = _wait(forwarder, Path(order.trace))
        finally:
            hint.cancel()
    if code < 0 and -code != signal.SIGINT:  # Python closes the recording before it dies of an interrupt
        end = "ended by SIGTERM" if -code == signal.SIGTERM else "killed"
        streams.show(f"the program was {end}; its last events may be missing")
    return FinishedRun(process.pid, SignalExitCode.of(-code) if code < 0 else code, frozenset(forwarder.received))


class _StopHint:
    """A hint about what ends a program that ignores Ctrl+C. It is shown once, and only on a terminal."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def schedule(self) -> None:
        """Show the hint after a while, unless the program ends before."""
        if self._timer is None and sys.stderr.isatty():
            self._timer = threading.Timer(_HINT_SECONDS, streams.show, [_STOP_HINT])
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        """Do not show the hint any more: the program has ended."""
        if self._timer is not None:
            self._timer.cancel()


def _wait(forwarder: SignalForwarder, trace: Path) -> int:
    # On a terminal that also shows the program's own output, a progress line that is drawn again would garble it.
    shows_progress = sys.stderr.isatty() and not sys.stdout.isatty()
    progress, polls = Progress(trace), 0
    while (code := forwarder.wait(block=not shows_progress)) is None:
        time.sleep(_POLL_SECONDS)
        polls += 1
        if not (polls % _POLLS_PER_LINE or terminal.is_screen_taken()):
            progress.renew()
    if shows_progress:
        progress.clear()
    return code
