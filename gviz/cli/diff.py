"""``gviz diff``: two recordings, or two iterations of one, beside each other."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gviz.errors import GvizError

if TYPE_CHECKING:
    from gviz.compare.comparison import Comparison

ROWS = 40
"""Rows of the table that are printed unless all are wanted."""

_SAME, _DIFFERENT = 0, 1


@click.command("diff")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path), required=False)
@click.option("-i", "--iterations", metavar="A,B", help="Which iteration of each, from 1 (first of each; 1,2 of one).")
@click.option("--rtol", type=click.FloatRange(min=0), help="Relative tolerance (by dtype: 1.3e-6 for float32).")
@click.option("--atol", type=click.FloatRange(min=0), help="Absolute tolerance (by dtype: 1e-5 for float32).")
@click.option("--exact", is_flag=True, help="No tolerance: every bit counts.")
@click.option("--all", "everything", is_flag=True, help="Print what is equal, too.")
@click.option("--format", "kind", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
def command(
    a: Path,
    b: Path | None,
    iterations: str | None,
    rtol: float | None,
    atol: float | None,
    exact: bool,
    everything: bool,
    kind: str,
) -> int:
    """Compare two traces: structure, values, gradients, and where they part first.

    A and B are traces; with A alone two of its iterations are compared. Names and line numbers do not count. Exit code
    0 if nothing differs, 1 if something does.
    """
    from gviz.cli import json_form
    from gviz.compare.closeness import EXACT, Tolerance
    from gviz.compare.comparison import compared
    from gviz.compare.side import Side
    from gviz.trace.reader import open_trace
    from gviz.trace.timeline import Timeline

    numbers = _numbers(iterations, alone=b is None)
    with ExitStack() as files:
        first = Timeline(files.enter_context(open_trace(a)))
        second = first if b is None else Timeline(files.enter_context(open_trace(b)))
        tolerance = EXACT if exact else Tolerance(rtol, atol)
        comparison = compared(Side(first, numbers[0]), Side(second, numbers[1]), tolerance)
        if kind == "json":
            click.echo(json_form.text(pairs=comparison.pairs, differences=comparison.differences))
        else:
            _print(comparison, a.name, (b or a).name, everything)
    return _DIFFERENT if comparison.differences else _SAME


def _numbers(text: str | None, *, alone: bool) -> tuple[int, int]:
    """The iterations that are meant, counted from 1."""
    if text is None:
        return (1, 2) if alone else (1, 1)
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise GvizError(f"--iterations takes two numbers, not {text}", hint="--iterations 1,2", exit_code=2)
    return int(parts[0]), int(parts[1])


def _print(comparison: Comparison, a: str, b: str, everything: bool) -> None:
    from gviz.render import comparison as text

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
