"""What `run`, `record`, `demo` and `export` have in common: a program becomes a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from gviz.cli import outputs, places
from gviz.cli.order import Engine, Order
from gviz.errors import GvizError

_Command = TypeVar("_Command", bound=Callable[..., Any])

SCRIPT_CONTEXT = {"allow_interspersed_args": False}
"""Options of gviz stand before the script; everything after it belongs to the script."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The trace of a program that ran, and the program's exit code."""

    trace: Path
    exit_code: int


def script_arguments(command: _Command) -> _Command:
    """Add ``[-m] SCRIPT [ARGS]...``, ``--engine``, ``-o`` and ``--force`` to a command."""
    for decorate in (
        click.argument("program", nargs=-1, type=click.UNPROCESSED, required=True, metavar="SCRIPT [ARGS]..."),
        click.option("-f", "--force", is_flag=True, help="Write over an existing trace."),
        click.option("-o", "--output", type=click.Path(path_type=Path), help="Keep the trace in this file."),
        engine_option,
        click.option("-m", "as_module", is_flag=True, help="Run a module, as python -m does."),
    ):
        command = decorate(command)
    return command


def engine_option(command: _Command) -> _Command:
    """Add ``--engine``."""
    return click.option(
        "--engine",
        type=click.Choice(["auto", "builtin", "torch"]),
        default="auto",
        help="What `import torch` means: gviz's own engine (builtin), PyTorch (torch), or the first only where PyTorch "
        "is not installed (auto).",
    )(command)


def record_program(
    program: Sequence[str], *, as_module: bool, engine: Engine, output: Path | None, force: bool = False
) -> Recorded:
    """Run a program to its end and record it, into `output` or a new trace in the cache."""
    from gviz.cli.recording import run_recorded

    if output is not None:
        outputs.refuse_existing(output, force=force)
        places.remove_trace(output)
    trace = output or places.new_trace(program[0])
    code = run_recorded(Order(str(trace.absolute()), engine=engine, as_module=as_module), program)
    if not trace.exists():
        raise NothingRecorded(code)
    return Recorded(trace, code)


def is_trace(path: Path) -> bool:
    """Whether a file is a trace, by its header and not by its name; a missing one by its name."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return path.suffix == ".gviz"


class NothingRecorded(GvizError):
    """The program could not be started or left no trace; the recording process has said why."""

    def __init__(self, code: int) -> None:
        super().__init__("nothing was recorded", exit_code=code or 1)
