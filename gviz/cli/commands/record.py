"""``gviz record``: run a script and keep its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import click

from gviz.cli import shell_quoting, streams, trace_arguments
from gviz.cli.program_run import SCRIPT_CONTEXT, Program, has_trace, record_program, takes_program
from gviz.cli.recording_input import few
from gviz.errors import GvizError
from gviz.program import rank_trace_files
from gviz.trace.file import paths


@click.command("record", context_settings=SCRIPT_CONTEXT)
@click.option(
    "--on",
    "until",
    type=click.Choice(["nan", "inf"]),
    help="Stop recording at the first nan or inf; the script continues. Use it with --last to keep what led there.",
)
@takes_program
def command(program: Program, until: Literal["nan", "inf"] | None) -> int:
    """Run a script and keep its trace.

    The script runs as `python SCRIPT ARGS...` would run it, and gviz ends with its exit code. Options of gviz come
    before SCRIPT. Without -o the trace goes to the cache folder, where `gviz open` finds the newest.
    """
    return run_and_report(replace(program, keeping=replace(program.keeping, until=until or "")))


def run_and_report(program: Program) -> int:
    """Run a program, record it and report what was written."""
    recorded = record_program(program)
    try:
        if has_trace(recorded.trace):
            _report(recorded.trace, program.keeping.first)
    except GvizError as error:  # the program has damaged its trace, which does not make the program fail
        click.echo("\n".join(error.lines()), err=True)
    return recorded.exit_code


def _report(trace: Path, first: str) -> None:
    """Report on stderr what was written (from the mark `first` on, if there is one) and how to open it."""
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline
    from gviz.values.number_text import bytes_text

    with open_trace(trace) as log:
        count = f"{len(log):,} event{'s' * (len(log) != 1)}"
        until, cost, missing = log.meta.get("until"), _cost(log.meta), Timeline(log).missing
        finished, never_began = log.finished, first and not len(log)
    streams.show(f"wrote {trace} ({count}, {bytes_text(paths.trace_size(trace))}{cost})")
    if not finished:
        streams.show("warning: the recording broke off; what the program did afterwards is not in it")
    if never_began:
        streams.show(f"warning: nothing was recorded: the program did not reach gviz.mark({first!r})")
    if paths.log_of(trace).exists():
        streams.show(f"warning: a part of the trace is in {paths.log_of(trace).name}: keep both files together")
    if until:
        streams.show(f"the recording ended at the first {until}, in its last event")
    if missing:
        streams.show(missing)
    if ranks := rank_trace_files.rank_traces(trace):
        streams.show(f"next to it: {'1 rank' if len(ranks) == 1 else f'{len(ranks)} ranks'}, {few(ranks)}")
    whole = trace.parent if trace_arguments.is_one_of_several() else rank_trace_files.whole(trace)
    streams.show(f"open it with: gviz open {shell_quoting.word(whole)}")


def _cost(meta: Mapping[str, str]) -> str:
    """Return the share of the program's time that recording took, if it was measured."""
    from gviz.values.number_text import seconds_text

    try:
        began, ended = (datetime.fromisoformat(meta[name]) for name in ("started", "finished"))
        listening = int(meta["listening"]) / 1e9
    except (KeyError, ValueError):  # not measured, or ended before its time
        return ""
    return f"; recording took {seconds_text(listening)} of {seconds_text((ended - began).total_seconds())}"
