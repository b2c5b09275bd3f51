"""The input of a command: one recording, or a folder with those of all ranks of a training run.

`opened` reads a trace or a folder. `recorded` also takes a program, which it runs and records, and refuses recordings
that hold nothing to report.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gviz.cli import argument_order
from gviz.cli.program_run import Program, is_trace, record_program
from gviz.cli.progress import with_progress
from gviz.errors import GvizError
from gviz.program import rank_trace_files
from gviz.system.scratch import scratch_folder
from gviz.values.plain_text import shown

if TYPE_CHECKING:
    from gviz.compare.ranks import Rank
    from gviz.trace.timeline import Timeline

T = TypeVar("T")

_MOST_NAMED = 3
_SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")


@dataclass(frozen=True)
class Recordings:
    """Open recordings: that of one process, or those `in_folder` in the order of their ranks.

    The remarks are lines about other files in the folder, and about missing ranks.
    """

    paths: tuple[Path, ...]
    ranks: tuple[Rank, ...]
    remarks: tuple[str, ...] = ()
    in_folder: bool = False

    @property
    def timelines(self) -> Iterator[Timeline]:
        """The timelines, in the order of the ranks."""
        return (rank.timeline for rank in self.ranks)

    def name(self, rank: int) -> str:
        """Return the name of a rank."""
        return shown(self.paths[rank].name)

    def named(self, ranks: Sequence[int]) -> str:
        """Return a name for some of the ranks: ``all 4 ranks``, or else their names."""
        if len(ranks) == len(self.ranks) > 1:
            return f"all {len(ranks)} ranks"
        return few([self.paths[rank] for rank in ranks])


@contextmanager
def opened(path: Path) -> Iterator[Recordings]:
    """Open the recording at a path, or the readable ones in a folder. GvizError if there is none."""
    with ExitStack() as files:
        if not path.is_dir():
            yield Recordings((path,), (_rank(path, files),))
            return
        traces, earlier = in_folder(path)
        read: list[tuple[Path, Rank]] = []
        remarks = list(_others(path, traces, earlier))
        last_error = None
        for one in traces:
            try:
                read.append((one, _rank(one, files)))
            except GvizError as error:
                last_error = error
                remarks.append(f"{shown(one.name)} is left out: {': '.join(filter(None, (error.what, error.why)))}")
        if last_error is not None and not read:
            raise last_error
        paths, ranks = zip(*read, strict=True)
        yield Recordings(paths, ranks, tuple(remarks), in_folder=True)


def _rank(path: Path, files: ExitStack) -> Rank:
    from gviz.compare.ranks import Rank
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import read_timeline

    return Rank(with_progress(read_timeline(files.enter_context(open_trace(path)))))


def in_folder(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the traces of the last start of all ranks in the order of their numbers, and those of earlier starts.

    The program that started them is left out. GvizError if there is no trace.
    """
    traces = [path for path in folder.glob("*.gviz") if path.is_file()]
    traces = [path for path in traces if path.name != rank_trace_files.MAIN] or traces
    if not traces:
        raise GvizError(f"there is no trace in {shown(str(folder))}", exit_code=3)
    traces.sort(key=lambda path: ([int(n) for n in re.findall(r"\d+", path.stem)] + [0], path.name))
    last = max(map(_start, traces))
    return [path for path in traces if _start(path) == last], [path for path in traces if _start(path) != last]


def _start(path: Path) -> int:
    """Return how many times ``torchrun`` had restarted the rank."""
    rank = rank_trace_files.OF_A_RANK.fullmatch(path.name)
    return int(rank[2] or 0) if rank else 0


def _others(folder: Path, traces: list[Path], earlier: list[Path]) -> Iterator[str]:
    """Yield lines about other files in the folder, and about missing ranks."""
    numbers = [rank_trace_files.OF_A_RANK.fullmatch(path.name) for path in traces]
    there = {int(number[1]) for number in numbers if number}
    if len(there) == len(traces) and (missing := sorted(set(range(len(traces))) - there)):
        yield f"there is no trace of rank {', '.join(map(str, missing))}"
    if earlier:
        yield f"from before the ranks restarted: {few(earlier)}"
    main = folder / rank_trace_files.MAIN
    if main not in traces and main.exists():
        yield f"{rank_trace_files.MAIN} is the program that started them"
    known = {*traces, *earlier, main}
    others = sorted(path for path in folder.iterdir() if path not in known and not path.name.endswith(_SQLITE_SUFFIXES))
    if others:
        yield f"not the trace of a rank: {few(others)}"


def few(paths: Sequence[Path]) -> str:
    """Return the names of files, shortened to the first few."""
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return f"{', '.join(shown(path.name) for path in paths[:_MOST_NAMED])}{more}"


def print_answers(
    inputs: Recordings,
    format: str,
    text: Callable[[Timeline], Iterator[str]],
    data: Callable[[Timeline], dict[str, Any]],
) -> None:
    """Print the answer of each recording, as text or JSON; equal answers of several ranks once.

    A rank without an answer gets one line; GvizError if no rank has one.
    """
    from gviz.cli import json_form

    if not inputs.in_folder:
        (timeline,) = inputs.timelines
        if format == "json":
            click.echo(json_form.text(**data(timeline)))
        else:
            for line in text(timeline):
                click.echo(line)
    elif format == "json":
        answers = _answers(inputs, data)
        ranks = [
            {"file": path.name, **({"error": one.what} if isinstance(one, GvizError) else one)}
            for path, one in zip(inputs.paths, answers, strict=True)
        ]
        click.echo(json_form.text(ranks=ranks, remarks=inputs.remarks))
    else:
        for line in _by_rank(inputs, text):
            click.echo(line)


def _answers(inputs: Recordings, ask: Callable[[Timeline], T]) -> list[T | GvizError]:
    """Return the answer of each rank, or why it has none; GvizError if no rank has one."""
    answers: list[T | GvizError] = []
    for timeline in inputs.timelines:
        try:
            answers.append(ask(timeline))
        except GvizError as error:
            answers.append(error)
    if isinstance(answers[0], GvizError) and all(isinstance(one, GvizError) for one in answers):
        raise answers[0]
    return answers


def _by_rank(inputs: Recordings, text: Callable[[Timeline], Iterator[str]]) -> Iterator[str]:
    """Yield the answers, each under the names of the ranks that give it."""
    ranks_by_answer: dict[tuple[str, ...], list[int]] = {}
    for rank, answer in enumerate(_answers(inputs, lambda timeline: tuple(text(timeline)))):
        ranks_by_answer.setdefault((answer.what,) if isinstance(answer, GvizError) else answer, []).append(rank)
    yield from inputs.remarks
    gap = bool(inputs.remarks)
    for lines, ranks in ranks_by_answer.items():
        yield from [""] * gap
        gap = True
        yield f"{inputs.named(ranks)}:"
        yield from lines


# ----------------------------------------------------------------------------------------------------------------------
# The recordings that a command reports on, of a trace or of a run of the program; an error if they hold nothing.


@contextmanager
def recorded(program: Program) -> Iterator[Recordings]:
    """Yield the recordings in a trace, or run and record the program and yield that recording (see `trace_of`).

    Raises GvizError if they have neither a tensor operation nor an error.
    """
    with trace_of(program) as trace, opened(trace) as inputs:
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
