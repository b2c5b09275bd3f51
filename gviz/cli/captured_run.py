"""The trace that a command answers from: a given one, or that of a run of a program whose output goes to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gviz.cli import argument_order, recordings
from gviz.cli.program import Program, is_trace, record_program
from gviz.errors import GvizError
from gviz.program import rank_names
from gviz.system.scratch import scratch_folder

if TYPE_CHECKING:
    from gviz.cli.recordings import Recordings


@contextmanager
def recorded(program: Program) -> Iterator[Recordings]:
    """The recordings that a name stands for, or that of a run of the program.

    `GvizError` where there is nothing in them to ask about.
    """
    with trace_of(program) as trace, recordings.opened(trace) as given:
        if not any(timeline.nodes for timeline in given.timelines):
            raise GvizError(
                "no operation on tensors was recorded, so there is nothing to say",
                hint="a script must run what is asked about: call its function",
                exit_code=3,
            )
        yield given


@contextmanager
def trace_of(program: Program) -> Iterator[Path]:
    """A trace, or that of a run of the program, which is not kept unless it has an `output`; of ranks their folder.

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
    """While it lasts, what a child process writes to standard output goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
