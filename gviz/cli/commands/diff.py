"""``gviz diff``: compares two recordings, or two iterations of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gviz.cli import shell_quoting
from gviz.cli.progress import with_progress
from gviz.errors import GvizError
from gviz.values.number_text import typed_count
from gviz.values.plain_text import clipped, shown

if TYPE_CHECKING:
    from gviz.compare.recording_comparison import Comparison
    from gviz.trace.file.reader import Trace
    from gviz.trace.timeline import Timeline

ROWS = 40
"""Rows of the table to print without ``--all``."""

_PAIR = re.compile(r"[0-9]+,[0-9]+")
"""Two iterations, given in the place of a second trace."""

_SAME, _DIFFERENT = 0, 1


@click.command("diff")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path), required=False)
@click.option("-i", "--iterations", metavar="A,B",
              help="Which iteration of A and of B, counted from 1.")  # fmt: skip
@click.option(
    "--rtol", type=click.FloatRange(min=0), help="Relative tolerance (default: by dtype, 1.3e-6 for float32)."
)
@click.option("--atol", type=click.FloatRange(min=0), help="Absolute tolerance (default: by dtype, 1e-5 for float32).")
@click.option("--exact", is_flag=True, help="Compare bit by bit, without tolerance.")
@click.option("--all", "everything", is_flag=True, help="Also print what is equal.")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="Output format.")
def command(
    a: Path,
    b: Path | None,
    iterations: str | None,
    rtol: float | None,
    atol: float | None,
    exact: bool,
    everything: bool,
    format: str,
) -> int:
    """Compare two traces, or two iterations.

    A and B are compared iteration by iteration, up to the first difference in structure, values or gradients. With
    A only, two of its iterations are compared: gviz diff train.gviz 3,7. Names and line numbers do not count. Lines
    in which the two programs differ are printed first. The exit code is 1 if something differs, else 0.

    A may be a folder with the traces of the ranks of one training run. Then only what the ranks share is compared
    (parameters, averaged gradients, buffers, the graph).
    """
    if a.is_dir() and b is None:
        return _ranks(a, format)
    if b is not None and iterations is None and _PAIR.fullmatch(str(b)) and not b.exists():
        b, iterations = None, str(b)
    from gviz.cli import json_form
    from gviz.compare.compared_iteration import Side
    from gviz.compare.recording_comparison import compare
    from gviz.compare.tolerance import EXACT, Tolerance
    from gviz.trace.timeline import read_timeline

    with ExitStack() as files:
        first = with_progress(read_timeline(files.enter_context(_opened(a))))
        second = first if b is None else with_progress(read_timeline(files.enter_context(_opened(b))))
        tolerance = EXACT if exact else Tolerance(rtol, atol)
        for one, other in _numbers(iterations, first, second):
            comparison = compare(Side(first, one), Side(second, other), tolerance)
            if comparison.differences:
                break
        ends = "" if iterations or b is None else _ends(first, second)
        if format == "json":
            numbers = [comparison.a.number, comparison.b.number]
            data = {"pairs": comparison.pairs, "differences": comparison.differences, "step": comparison.step}
            about = {"programs": comparison.programs, "unknown": comparison.unknown}
            click.echo(json_form.text(iterations=numbers, **data, **about))
        else:
            _print(comparison, a.name, (b or a).name, everything=everything)
            click.echo(ends, nl=bool(ends))
            some = "" if iterations or b is None else _shared(first, second)
            click.echo(some, nl=bool(some))
        differs = bool(comparison.differences or comparison.step or ends)
    return _DIFFERENT if differs else _SAME


def _ranks(folder: Path, format: str) -> int:
    """Compare the ranks of a training run."""
    from gviz.cli import json_form, rank_report, recording_input

    with recording_input.opened(folder) as ours:
        comparisons = rank_report.compared(ours)
        if format == "json":
            click.echo(json_form.text(**rank_report.as_data(ours, comparisons)))
        else:
            for line in rank_report.lines(ours, comparisons):
                click.echo(line)
    return _DIFFERENT if rank_report.first_of(comparisons) else _SAME


def _opened(path: Path) -> Trace:
    from gviz.trace.file.reader import open_trace

    if path.suffix == ".py" and path.is_file():
        hint = f"gviz record -o {shell_quoting.word(path.with_suffix('.gviz'))} {shell_quoting.word(path)}"
        raise GvizError(f"{shown(str(path))} is not a gviz trace: it is a program", hint=hint, exit_code=3)
    return open_trace(path)


def _numbers(text: str | None, a: Timeline, b: Timeline) -> Iterator[tuple[int, int]]:
    """Yield pairs of iterations to compare, counted from 1."""
    from gviz.compare.compared_iteration import shared_iterations

    if text is None:
        if a is b:
            first_ones = [one.number for one in a.iterations[:2]]
            yield first_ones[0], first_ones[-1] if len(first_ones) > 1 else first_ones[0] + 1
        else:
            both = shared_iterations(a, b)
            if not both:
                why = f"a has {a.missing or 'all'}; b has {b.missing or 'all'}"
                raise GvizError("the two traces have no iteration in common", why=why, hint="-i 1,512", exit_code=2)
            yield from ((number, number) for number in both)
        return
    first, _, second = text.partition(",")
    one, other = typed_count(first.strip()), typed_count(second.strip())
    if one is None or other is None:
        what = f"--iterations takes two numbers, not {clipped(text, 30)}"
        raise GvizError(what, hint="--iterations 1,2", exit_code=2)
    yield one, other


def _ends(a: Timeline, b: Timeline) -> str:
    """Report that one recording has more iterations; empty if both have the same number."""
    counts = a.iteration_count, b.iteration_count
    return "" if counts[0] == counts[1] else f"a has {counts[0]} iterations, b has {counts[1]}."


def _shared(a: Timeline, b: Timeline) -> str:
    """Return how many iterations could be compared, if one of the traces has only some of them; else empty."""
    if a.recorded_iterations is None and b.recorded_iterations is None:
        return ""
    from gviz.compare.compared_iteration import shared_iterations

    shared = shared_iterations(a, b)
    return f"{len(shared):,} of {max(a.iteration_count, b.iteration_count):,} iterations are in both traces."


def _print(comparison: Comparison, a: str, b: str, *, everything: bool) -> None:
    from gviz.render import comparison_table as text

    for line in text.summary(comparison):
        click.echo(line)
    table = list(text.rows(comparison, everything=everything))
    if not table:
        return
    click.echo(f"\n{text.heading(comparison, a, b)}")
    limit = len(table) if everything else ROWS
    for line in table[:limit]:
        click.echo(line)
    if len(table) > limit:
        click.echo(f"and {len(table) - limit} more rows (--all prints every row)")
