"""Runs a program and records it, for every command that takes one: its options, its process, its end, its trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

import click

from gviz.api import outputs
from gviz.cli import argument_order, recording_options, recordings, shell_quoting, signals, streams
from gviz.cli.progress import Progress
from gviz.cli.recordings import holds_traces
from gviz.cli.signals import BySignal, SignalForwarder
from gviz.cli.trace_name import TraceName
from gviz.errors import GvizError
from gviz.program import rank_names, torch_alias
from gviz.program.recording_request import WHOLE, Engine, Keeping, Order, start
from gviz.system.scratch import scratch_folder
from gviz.trace.file import lock, paths
from gviz.values.plain_text import shown

if TYPE_CHECKING:
    from gviz.cli.recordings import Recordings

_Command = TypeVar("_Command", bound=Callable[..., Any])

SUFFIX = ".gviz"
SCRIPT_CONTEXT = {"allow_interspersed_args": False}
"""Options of gviz come before the script; everything after it belongs to the script."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, and how it is recorded.

    `graph_breaks`: also record what a static graph could not hold.
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
class Recorded:
    """The trace of a program that ran, and the program's exit code.

    `interrupted` is the exit code again if a signal that gviz received ended the program, else 0.
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
    """Give a command ``[-m] SCRIPT [ARGS]...`` and the options of recording, all as one `Program`."""

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


def record_program(program: Program) -> Recorded:
    """Run a program to its end and record it, into its `output` or a new trace in the cache."""

    if program.output is not None:
        outputs.refuse_trace(program.output, Path(program.argv[0]), force=program.force)
    trace = program.output or paths.new_trace(program.argv[0])
    ran = run_recorded(order(program, trace), program.argv)
    code = ran.code
    if code and lock.writer_of(trace) != ran.process:
        if code >= 128:
            raise GvizError("nothing was recorded", exit_code=code)
        raise click.exceptions.Exit(code)  # the recording process has shown the error
    for one in (trace, *rank_names.rank_traces(trace)):
        paths.fold_file(one)
    return Recorded(trace, code, code if ran.ended_by_received else 0)


def is_left(trace: Path) -> bool:
    """Return whether there is a trace; report if there is none: no room for it, or the program deleted it."""
    if not trace.exists():
        streams.show(f"no trace is left: there is no {shown(str(trace))}")
    return trace.exists()


def to_run(program: Program, command: Sequence[str] = ("run",)) -> str:
    """Return the command line that runs a program under the debugger, or as another `command` does, recorded as this
    one.
    """
    engine = [] if program.engine == "auto" else ["--engine", program.engine]
    source = [] if program.keep_source else ["--no-source"]
    shared = ["--share"] if program.share else []
    script, *arguments = program.argv
    named = ["-m", shell_quoting.quoted(script)] if program.as_module else [shell_quoting.word(script)]
    options = map(shell_quoting.quoted, [*engine, *recording_options.as_typed(program.keeping), *shared, *source])
    return " ".join(["gviz", *command, *options, *named, *map(shell_quoting.quoted, arguments)])


def order(program: Program, trace: Path, *, live: str = "", again: bool = False) -> Order:
    """Return the request for the recording process; `again` overwrites the trace of the run before. GvizError for a
    trace.
    """
    refuse_trace(program)
    what = Order(
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
    torch_alias.refuse_pytorch_options(what)
    return what


def is_trace(path: Path) -> bool:
    """Return whether a file is a trace: by its suffix, because a file with that suffix is never run; else by its
    header.

    A folder with the traces of ranks counts as all of them.
    """
    from gviz.trace.file.format import MAGIC

    if path.suffix == SUFFIX:
        return True
    try:
        if path.is_dir():
            return holds_traces(path)
        if not path.is_file():  # reading a pipe would wait for it, and take data from it
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def refuse_trace(program: Program) -> None:
    """Raise `GvizError` for a program that is a trace, or is named as one: nothing in a trace is ever run."""
    if not program.as_module and is_trace(Path(program.argv[0])):
        name = shown(program.argv[0])
        what = "a folder with traces" if Path(program.argv[0]).is_dir() else "a trace"
        raise GvizError(f"{name} is {what}, not a program", hint=f"gviz open {name}", exit_code=2)


_SECONDS_BETWEEN_LOOKS = 0.05
_LOOKS_BETWEEN_LINES = 4
_SECONDS_TO_END = 5.0
"""The time after Ctrl+C before gviz shows what else ends the program: one that is blocked in C never handles it."""

_HOW_TO_END = "still running after Ctrl+C; Ctrl+\\ also ends a program that is blocked, and keeps what was recorded"


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
        streams.show(f"recording {argv[0]}; Ctrl+C ends it and keeps what was recorded")
    ending = _Ending()
    with signals.forward() as forwarder:
        forwarder.on_interrupt = ending.wait
        command, environment = start(order, argv)
        process = subprocess.Popen(command, env=environment, close_fds=False)  # a shell may have opened files for it
        forwarder.begin(process)
        import_module("gviz.trace.file.reader")  # needed when the program has ended; imported while it starts
        try:
            code = _wait(forwarder, Path(order.trace))
        finally:
            ending.cancel()
    if code < 0 and -code != signal.SIGINT:  # Python closes the recording before it dies of an interrupt
        end = "ended by SIGTERM" if -code == signal.SIGTERM else "killed"
        streams.show(f"the program was {end}; its last events may be missing")
    return FinishedRun(process.pid, BySignal.of(-code) if code < 0 else code, frozenset(forwarder.received))


class _Ending:
    """A hint on a terminal, shown once, about what ends a program that ignores Ctrl+C."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def wait(self) -> None:
        """Show the hint unless the program ends soon."""
        if self._timer is None and sys.stderr.isatty():
            self._timer = threading.Timer(_SECONDS_TO_END, streams.show, [_HOW_TO_END])
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        """Stop waiting, because the program has ended."""
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


@contextmanager
def recorded(program: Program) -> Iterator[Recordings]:
    """Yield the recordings that a name refers to, or that of a run of the program.

    `GvizError` where there is nothing in them to ask about.
    """
    with trace_of(program) as trace, recordings.opened(trace) as inputs:
        if not any(timeline.nodes or timeline.failures for timeline in inputs.timelines):
            raise GvizError(
                "no tensor operation was recorded, so there is nothing to report",
                hint="the script must run the operations itself: call the function that contains them",
                exit_code=3,
            )
        yield inputs


@contextmanager
def trace_of(program: Program) -> Iterator[Path]:
    """Yield a trace, or that of a run of the program, which is not kept unless it has an `output`; for ranks their
    folder.

    A signal that ended the program also ends the command, after it has answered from what was recorded.
    """
    name, *theirs = program.argv
    if not program.as_module and is_trace(Path(name)):
        argument_order.refuse_for_trace(name, theirs)
        yield Path(name)
        return
    with scratch_folder() as folder:
        own = program.output or folder / rank_names.MAIN
        with _output_on_stderr():
            recorded = record_program(replace(program, output=own))
        try:
            yield rank_names.whole(recorded.trace)
        except GvizError as error:
            error.exit_code = recorded.interrupted or error.exit_code
            raise
    if recorded.interrupted:
        raise click.exceptions.Exit(recorded.interrupted)


@contextmanager
def _output_on_stderr() -> Iterator[None]:
    """Send the standard output of child processes to standard error within the context."""
    sys.stdout.flush()
    stdout = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
