"""A folder with the recordings of several processes, opened as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from gviz.errors import GvizError
from gviz.plain_text import shown

if TYPE_CHECKING:
    from gviz.compare.ranks import Agreement
    from gviz.trace.timeline import Timeline

ROWS = 30


def recordings(folder: Path) -> list[Path]:
    """The traces in a folder, in the order of the numbers in their names. GvizError if there is none."""
    import re

    found = sorted(folder.glob("*.gviz"), key=lambda path: [int(n) for n in re.findall(r"\d+", path.stem)] + [0])
    if not found:
        raise GvizError(f"there is no trace in {folder}", exit_code=3)
    return found


class ToLookAt(NamedTuple):
    """The rank to look at, and the one that it stops agreeing with, if it does."""

    rank: Path
    other: Path | None = None


def compare(paths: Sequence[Path]) -> ToLookAt:
    """Print the ranks beside each other, and where they stop agreeing; which of them is to be looked at."""
    from gviz.compare.ranks import agreements
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline

    with ExitStack() as files:
        ranks = [Timeline(files.enter_context(open_trace(path))) for path in paths]
        for line in _listed(paths, ranks):
            click.echo(line)
        if len(ranks) == 1:
            return ToLookAt(paths[0])
        parted: Agreement | None = None
        for agreement in agreements(ranks):
            parted = parted or (agreement if agreement.first is not None else None)
            click.echo(f"iteration {agreement.iteration}: {_words(agreement, paths)}")
        if parted is None:
            return ToLookAt(paths[0])
        for line in _beside(parted, paths):
            click.echo(line)
        return ToLookAt(paths[parted.rank], paths[0])


def _listed(paths: Sequence[Path], ranks: Sequence[Timeline]) -> Iterator[str]:
    width = max(len(path.name) for path in paths)
    for path, rank in zip(paths, ranks, strict=True):
        failed = ", failed" if rank.failures else ""
        yield f"{shown(path.name):<{width}}  {len(rank.iterations)} iterations, {len(rank)} events{failed}"


def _words(agreement: Agreement, paths: Sequence[Path]) -> str:
    from gviz.explain.names import label
    from gviz.render.comparison import HELD

    first, rank = agreement.first, shown(paths[agreement.rank].name)
    if first is None:
        return f"{rank} agrees with {shown(paths[0].name)}"
    side, node = (agreement.comparison.a, 0) if first.pair[0] else (agreement.comparison.b, 1)
    what = "has other operations" if first.kind == "missing" else f"differs in {HELD.get(first.kind, first.kind)}"
    return f"{rank} {what}, first at {label(side.timeline, first.pair[node])}"


def _beside(agreement: Agreement, paths: Sequence[Path]) -> Iterator[str]:
    from itertools import islice

    from gviz.render import comparison as text

    yield ""
    yield text.heading(agreement.comparison, paths[0].name, paths[agreement.rank].name)
    yield from islice(text.rows(agreement.comparison), ROWS)
    yield ""
