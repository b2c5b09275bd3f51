"""The recordings that a command reports on, of a trace or of a run of the program; an error if they hold nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gviz.cli import argument_order, recording_input
from gviz.cli.program_run import Program, is_trace, record_program
from gviz.errors import GvizError
from gviz.program import rank_trace_files
from gviz.system.scratch import scratch_folder

if TYPE_CHECKING:
    from gviz.cli.recording_input import Recordings


@contextmanager
def recorded(program: Program) -> Iterator[Recordings]:
    """Yield the recordings in a trace, or run and record the program and yield that recording (see `trace_of`).

    Raises GvizError if they have neither a tensor operation nor an error.
    """
    with trace_of(program) as trace, recording_input.opened(trace) as inputs:
        if not any(timeline.nodes or timeline.failures for timeline in inputs.timelines):
            raise GvizError(
                "no tensor operation was recorded, so there is nothing to report",
                hint="the script must run the operations itself: call the function that contains them",
                exit_code=3,
            )
        yield inputs


@contextmanager
def trace_of(program: Program) -> Iterator[Path]:
    """Yield the path of a trace: the `program` itself if it is one, else the trace of a run of the program.

    The trace of a run is deleted afterwards, unless the program has an `output`. If ranks were recorded, the path is
    the folder with their traces. A signal that ended the program also ends the command, but only after the ``with``
    block, so that the command still answers from what was recorded.
    """
    name, *arguments = program.argv
    if not program.as_module and is_trace(Path(name)):
        argument_order.refuse_for_trace(name, arguments)
        yield Path(name)
        return
    with scratch_folder() as folder:
        output = program.output or folder / rank_trace_files.MAIN
        with _output_on_stderr():
            recorded = record_program(replace(program, output=output))
        try:
            yield rank_trace_files.whole(recorded.trace)
        except GvizError as error:
            error.exit_code = recorded.interrupted or error.exit_code
            raise
    if recorded.interrupted:
        raise click.exceptions.Exit(recorded.interrupted)


@contextmanager
def _output_on_stderr() -> Iterator[None]:
    """In the ``with`` block, send the standard output of child processes to standard error."""
    sys.stdout.flush()
    stdout = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
