"""``gviz open``: step through a trace."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from gviz.cli import rank_report, recording_input
from gviz.cli.debugger import debug
from gviz.cli.options import GlobalOptions, StartCommands, at_option, display_options, takes_opening
from gviz.cli.trace_arguments import TraceArgument
from gviz.errors import GvizError
from gviz.source.call_stack import Frame
from gviz.trace.file import paths
from gviz.tui import terminal
from gviz.tui.session_options import SessionOptions, Title


@click.command("open")
@click.argument("trace", type=TraceArgument(), required=False)
@click.argument("other", type=TraceArgument(), required=False)
@at_option("Open at this moment", "its failure or its first event")
@click.option("--waited-for", is_flag=True, hidden=True, help="A program waits for the end of this.")
@click.option("--stack", hidden=True, default="[]", help="The call stack of that program.")
@takes_opening
@display_options
@click.pass_obj
def command(
    settings: GlobalOptions,
    trace: Path | None,
    other: Path | None,
    at: str | None,
    opening: StartCommands,
    *,
    waited_for: bool,
    stack: str,
) -> int:
    """Open the debugger on a trace.

    Without TRACE it opens the newest trace in the cache folder. With OTHER it opens with both side by side, as gviz
    diff compares them.

    TRACE may be a folder with the traces of the ranks of one training run. Then gviz prints where the ranks first
    differ in what they share (parameters, averaged gradients, buffers, the graph), and opens the rank that differs
    first next to the one it differs from.
    """
    path = trace or _newest()
    of: tuple[str, ...] = ()
    lines = opening.over_a_recording
    if path.is_dir():
        path, of, commands, own_at = _of_folder(path)
        at = at or own_at
        if not terminal.why_plain(plain=settings.plain):  # there they are on the screen already
            lines = (*lines, *commands)
    if other is not None:
        from gviz.trace.file.reader import open_trace

        with open_trace(other):  # reports a file that is not a trace before anything opens
            lines = (*lines, f"compare {other}")
    title = Title(paths.title_of(path), of)
    options = SessionOptions(title, opening=lines, waited_for=waited_for, stack=_frames(stack))
    return debug(path, settings, options, at=at)


class _Rank(NamedTuple):
    """The rank to open: its place among all ranks, the first commands, and the moment at which it opens."""

    path: Path
    of: tuple[str, ...]
    commands: tuple[str, ...] = ()
    at: str | None = None


def _of_folder(folder: Path) -> _Rank:
    """Print where ranks first differ. Return the rank that ends early, or else the first that differs, next to
    another.
    """
    with recording_input.opened(folder) as ours:
        comparisons = rank_report.compared(ours)
        for line in rank_report.lines(ours, comparisons):
            click.echo(line)
        click.echo()
        count, parted = len(ours.paths), rank_report.first_of(comparisons)
        of = (f"of {count} ranks",) if count > 1 else ()
        if parted is None or parted.parting is None:
            return _Rank(ours.paths[0], of)
        if (broken := parted.broken_off) is not None:
            return _Rank(ours.paths[broken], of, at=None if ours.ranks[broken].timeline.failures else "end")
        if parted.parting.between is None:
            return _Rank(ours.paths[parted.rank], of)
        command = f"ranks {ours.paths[parted.other]} {parted.parting.iteration}"
        return _Rank(ours.paths[parted.rank], of, (command,))


def _frames(text: str) -> tuple[Frame, ...]:
    try:
        return msgspec.json.decode(text, type=tuple[Frame, ...])
    except msgspec.MsgspecError as error:
        raise GvizError("--stack is for a program that calls gviz.breakpoint()", exit_code=2) from error


def _newest() -> Path:
    traces = paths.cached_traces()
    if not traces:
        raise GvizError("there is no trace yet", hint="gviz demo, or gviz run SCRIPT", exit_code=3)
    return traces[0]
