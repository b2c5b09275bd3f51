"""``gviz whatif``: recomputes recorded operations with a changed number."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gviz.api import output_files
from gviz.cli import shell_quoting, streams
from gviz.cli.argument_order import OptionsAfterScript
from gviz.cli.options import GlobalOptions, at_option
from gviz.cli.program_run import Program, engine_option, is_trace
from gviz.cli.progress import with_progress
from gviz.cli.recording_input import trace_of
from gviz.cli.recording_options import ALL_VALUES
from gviz.errors import GvizError
from gviz.program.recording_request import Engine
from gviz.tui.glyphs import wants_ascii
from gviz.values.plain_text import shown

if TYPE_CHECKING:
    from gviz.explain.whatif import Curve
    from gviz.rerun.branch import Branch
    from gviz.trace.graph_state import Iteration
    from gviz.trace.timeline import Timeline

POINTS = 25
_COLUMN = 24


class _SourceAmongChanges(OptionsAfterScript):
    """Accepts the trace or script after the changes, too, as ``gviz why x.grad train.py`` does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move a source behind the changes to the front."""
        rest = super().parse_args(ctx, args)
        source, changes = ctx.params.get("source", ""), ctx.params.get("changes", ())
        if changes and not os.path.exists(source) and (os.path.isfile(changes[-1]) or "=" not in changes[-1]):
            ctx.params["source"], ctx.params["changes"] = changes[-1], (source, *changes[:-1])
        return rest


@click.command("whatif", cls=_SourceAmongChanges)
@click.argument("source", metavar="TRACE|SCRIPT")
@click.argument("changes", nargs=-1, required=True, metavar="CHANGE...")
@click.option("--show", metavar="EXPR,...", help="What to show: z, x.grad, any expression (default: all that differs).")
@at_option("A moment of the iteration to recompute")
@click.option(
    "--points", type=click.IntRange(2, 1000), default=POINTS, show_default=True, help="Number of points of a range."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write the new trace, or the curves of a range as SVG."
)
@click.option("-f", "--force", is_flag=True, help="Overwrite an existing file.")
@engine_option
@click.pass_obj
def command(
    settings: GlobalOptions,
    source: str,
    changes: tuple[str, ...],
    arguments: tuple[str, ...],
    show: str | None,
    at: str | None,
    points: int,
    output: Path | None,
    force: bool,
    engine: Engine,
) -> None:
    """Change a number and recompute what follows.

    A script is run first, by the built-in engine, which is the only one whose operations can run again. All values
    are recorded for it, and its trace is not kept. A TRACE needs gviz record --engine builtin --values all.

    CHANGE is "x = 5", "w[0, 1] = 0" or "grad z = 2". One of several may be a range, "x = -3..3", which draws
    curves. Every operation and pass of one iteration runs again, without the program: the last iteration, or that
    of --at.
    """
    from gviz.api.moment_argument import moment_of
    from gviz.explain.whatif import expressions_in
    from gviz.rerun.change_parser import sweep
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import read_timeline

    if output is not None:
        output_files.refuse_picture(output, Path(source), force=force)
        _refuse_suffix(output, is_range=any(".." in change for change in changes))
    with trace_of(_program(source, arguments, engine)) as trace, open_trace(trace) as log:
        timeline = with_progress(read_timeline(log))
        iteration = timeline.iteration_at(moment_of(timeline, at) if at else len(timeline))
        shows = expressions_in(show or "")
        ranges = [change for change in changes if list(sweep(change, points))]
        if not ranges:
            branch = _branch(timeline, iteration, changes, shows, is_trace=is_trace(Path(source)))
            if output is not None:
                _keep(branch, output, force=force)
            return
        over = _only(ranges, shows)
        drawn = _curves(timeline, iteration, changes, over, points, shows)
        if output is not None:
            _keep_curves(over, drawn, output, force=force)
        else:
            _print(over, drawn, ascii=settings.ascii or wants_ascii())


def _program(source: str, arguments: Sequence[str], engine: Engine) -> Program:
    """Return the program to record: by the built-in engine, with all values, because both are needed to run it again.

    Raises `GvizError` before a script runs if PyTorch is to run it.
    """
    if engine == "torch" and not is_trace(Path(source)):
        script = shell_quoting.word(source)
        raise GvizError(
            "only recordings of the built-in engine can run again",
            hint=f"gviz whatif {script} ... without --engine torch: the built-in engine then runs the script",
            exit_code=2,
        )
    return Program((source, *arguments), engine="builtin", keeping=ALL_VALUES)


def _branch(
    timeline: Timeline, iteration: Iteration, changes: Sequence[str], shows: Sequence[str], *, is_trace: bool
) -> Branch:
    """Run a branch and print what differs in it. Raises `GvizError` if that is not known of any number."""
    from gviz.explain.whatif import (
        UNKNOWN_OUTCOME,
        ambiguous_names,
        branch_of,
        difference_rows,
        rerun_sentences,
        stop_sentences,
        unknown_outcome,
        untraced_number_sentences,
    )

    branch = branch_of(timeline, iteration, changes)
    rows = list(difference_rows(timeline, iteration, branch))
    answer = (
        rerun_sentences(timeline, iteration),
        ambiguous_names(timeline, iteration, changes),
        stop_sentences(timeline, branch),
        _shown(timeline, branch, iteration, shows) if shows else rows,
        untraced_number_sentences(timeline, iteration),
    )
    for line in chain.from_iterable(answer):
        click.echo(line)
    if UNKNOWN_OUTCOME in rows:
        again = " ".join(f'"{change}"' for change in changes)
        command = f"gviz record --engine builtin --values all -o t.gviz SCRIPT, then gviz whatif t.gviz {again}"
        raise unknown_outcome(timeline, branch, command if is_trace else "")
    return branch


def _keep(branch: Branch, output: Path, *, force: bool) -> None:
    from gviz.system.scratch import scratch_folder

    with scratch_folder() as folder:
        branch.write(unfinished := folder / output.name)
        output_files.write_all([(output, unfinished.read_bytes())], force=force)
    streams.show(f"wrote {output}")


def _refuse_suffix(output: Path, *, is_range: bool) -> None:
    """Raise `GvizError` for a file name whose suffix does not fit what would be written."""
    if is_range != (output.suffix.lower() == ".svg"):
        what = "the curves of a range are SVG" if is_range else "only a range draws curves"
        hint = "-o curve.svg" if is_range else "-o branch.gviz; a range is x = -3..3"
        raise GvizError(f"cannot write {output}", why=what, hint=hint, exit_code=2)


def _shown(timeline: Timeline, branch: Branch, iteration: Iteration, shows: Sequence[str]) -> Iterator[str]:
    from gviz.explain.whatif import value_in_branch
    from gviz.query.expressions import Evaluator
    from gviz.rerun.branch import BranchView

    evaluator, view = Evaluator(timeline), BranchView(timeline, iteration, branch, ())
    width = max(map(len, shows))
    before = [evaluator.evaluated(text, iteration.end) for text in shows]
    yield f"{'':<{width}}  {'recorded':<{_COLUMN}} what if"
    for text, old in zip(shows, before, strict=True):
        new = value_in_branch(evaluator, view, text, iteration.end)
        yield f"{shown(text):<{width}}  {old:<{_COLUMN}} {new}".rstrip()


def _only(ranges: Sequence[str], shows: Sequence[str]) -> str:
    """Return the range, if exactly one quantity is to be drawn over it."""
    if len(ranges) != 1 or not shows:
        what = "a range needs --show, and there can be only one range"
        raise GvizError(what, hint='"x = -3..3" --show z,x.grad', exit_code=2)
    return ranges[0]


def _curves(
    timeline: Timeline, iteration: Iteration, changes: Sequence[str], over: str, points: int, shows: Sequence[str]
) -> list[Curve]:
    """Run a branch for each point of a range, and report points that failed."""
    from gviz.explain.whatif import curves
    from gviz.rerun.change_parser import sweep

    fixed = [change for change in changes if change != over]
    drawn, stopped = with_progress(curves(timeline, iteration, list(sweep(over, points)), shows, fixed))
    for line in stopped:
        click.echo(line)
    return drawn


def _print(over: str, drawn: Sequence[Curve], *, ascii: bool) -> None:
    from gviz.render.curve import text_curve

    for text, curve in drawn:
        for line in text_curve(f"{text} over {_changed(over)}", curve, ascii=ascii):
            click.echo(line)


def _keep_curves(over: str, drawn: Sequence[Curve], output: Path, *, force: bool) -> None:
    from gviz.render.curve import svg_curves

    output_files.write_all([(output, svg_curves(_changed(over), drawn).encode())], force=force)
    streams.show(f"wrote {output}")


def _changed(over: str) -> str:
    """Return the quantity that a range changes: ``x`` of ``x = -3..3``."""
    return over.partition("=")[0].strip()
