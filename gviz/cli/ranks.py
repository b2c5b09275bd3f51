"""A folder with the recordings of several processes, looked at as one training run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gviz.cli.trace_name import RESTART
from gviz.errors import GvizError
from gviz.plain_text import shown

if TYPE_CHECKING:
    from gviz.compare.ranks import Parting, Rank

ROWS = 30
_BESIDE_A_TRACE = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Beside:
    """One rank (its place in the folder), the rank it is compared with, and where they part, if they do."""

    rank: int
    other: int
    parting: Parting | None

    @property
    def broken_off(self) -> int | None:
        """The rank that breaks off in an iteration first, if that is where they part."""
        if self.parting is None or self.parting.what != "end":
            return None
        there, here = self.parting.counts
        return self.rank if not there or 0 < here < there else self.other


@dataclass(frozen=True)
class Folder:
    """The recordings in a folder in the order of their numbers, and lines about what in it is none."""

    paths: tuple[Path, ...]
    ranks: tuple[Rank, ...]
    remarks: tuple[str, ...]

    def name(self, rank: int) -> str:
        """What a rank is called."""
        return shown(self.paths[rank].name)

    def compared(self) -> list[Beside]:
        """Every other rank beside the first; beside the second, if it is the first that is unlike all others."""
        first = self._beside(0)
        if len(self.ranks) > 2 and all(each.parting is not None for each in first):
            second = self._beside(1)
            if sum(each.parting is None for each in second):
                return second
        return first

    def _beside(self, other: int) -> list[Beside]:
        from gviz.compare.ranks import parting

        ranks = [rank for rank in range(len(self.ranks)) if rank != other]
        return [Beside(rank, other, parting(self.ranks[other], self.ranks[rank])) for rank in ranks]


@contextmanager
def opened(folder: Path) -> Iterator[Folder]:
    """The recordings in a folder, those that can be read. GvizError if there is none."""
    from gviz.compare.ranks import Rank
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline

    found, earlier = recordings(folder)
    with ExitStack() as files:
        read: list[tuple[Path, Rank]] = []
        remarks = list(_others(folder, found, earlier))
        trouble = None
        for path in found:
            try:
                trace = files.enter_context(open_trace(path))
                read.append((path, Rank(Timeline(trace), trace.finished)))
            except GvizError as error:
                trouble = error
                remarks.append(f"{shown(path.name)} is left out: {': '.join(filter(None, (error.what, error.why)))}")
        if trouble is not None and not read:
            raise trouble
        yield Folder(tuple(path for path, _ in read), tuple(rank for _, rank in read), tuple(remarks))


def recordings(folder: Path) -> tuple[list[Path], list[Path]]:
    """The traces of the last start of all ranks in the order of their numbers, and those of earlier ones.

    GvizError if there is none.
    """
    found = [path for path in folder.glob("*.gviz") if path.is_file()]
    if not found:
        raise GvizError(f"there is no trace in {shown(str(folder))}", exit_code=3)
    found.sort(key=lambda path: ([int(n) for n in re.findall(r"\d+", path.stem)] + [0], path.name))
    last = max(map(_start, found))
    return [path for path in found if _start(path) == last], [path for path in found if _start(path) != last]


def _start(path: Path) -> int:
    """For which time ``torchrun`` had started a rank again."""
    again = re.search(rf"{RESTART}(\d+)$", path.stem)
    return int(again[1]) if again else 0


def _others(folder: Path, found: list[Path], earlier: list[Path]) -> Iterator[str]:
    """Lines about what else is in the folder, and which rank is not."""
    numbers = [re.fullmatch(rf"rank(\d+)(?:{RESTART}\d+)?", path.stem) for path in found]
    there = {int(number[1]) for number in numbers if number}
    if len(there) == len(found) and (missing := sorted(set(range(len(found))) - there)):
        yield f"there is no trace of rank {', '.join(map(str, missing))}"
    if earlier:
        yield f"before the ranks were started again: {_few(earlier)}"
    known = {*found, *earlier}
    others = sorted(path for path in folder.iterdir() if path not in known and not path.name.endswith(_BESIDE_A_TRACE))
    if others:
        yield f"not the trace of a rank: {_few(others)}"


def _few(paths: list[Path]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return f"{', '.join(shown(path.name) for path in paths[:3])}{more}"


def lines(folder: Folder, found: list[Beside]) -> Iterator[str]:
    """The ranks, where each stops agreeing, and the two that part first beside each other."""
    from gviz.render import ranks as text

    yield from folder.remarks
    width = max(len(folder.name(rank)) for rank in range(len(folder.paths)))
    by_rank = {each.rank: each for each in found}
    for number, rank in enumerate(folder.ranks):
        ended = text.ending(rank.timeline, closed=rank.closed)
        yield f"{folder.name(number):<{width}}  {text.iterations_of(rank.timeline)}{ended and f', {ended}'}"
        if (each := by_rank.get(number)) is not None:
            yield f"{' ' * width}  {_told(folder, each)}"
    parted = first_of(found)
    if parted is not None:
        yield from _beside(folder, parted)


def _told(folder: Folder, each: Beside) -> str:
    from gviz.render import ranks as text

    if each.parting is None:
        return text.agreement(folder.ranks[each.rank].timeline, folder.name(each.other))
    return text.headline(each.parting, folder.name(each.other), folder.name(each.rank))


def _beside(folder: Folder, each: Beside) -> Iterator[str]:
    from gviz.render import comparison as table
    from gviz.render import ranks as text

    if each.parting is None:
        return
    names = folder.name(each.other), folder.name(each.rank)
    yield ""
    if len(folder.ranks) > 2:
        yield f"{names[1]} stops agreeing with {names[0]} first:"
    yield from islice(text.sentences(each.parting, *names), 1, None)
    between = each.parting.between
    if between is not None and between.shared.differences and each.parting.what != "end":
        yield ""
        yield table.heading(between.comparison, *names)
        yield from islice(table.rows(between.shared), ROWS)


def first_of(found: list[Beside]) -> Beside | None:
    """Of the ranks that stop agreeing the one that does it first."""
    parted = [(each.parting.iteration, each) for each in found if each.parting is not None]
    return min(parted, key=lambda it: it[0])[1] if parted else None


def as_data(folder: Folder, found: list[Beside]) -> dict[str, Any]:
    """The same for a program: each difference with its part of training, and whether ranks should share that."""
    from gviz.render import ranks as text

    ranks = [
        {
            "file": path.name,
            "iterations": rank.iterations,
            "events": len(rank.timeline),
            "ended": text.ending(rank.timeline, closed=rank.closed),
        }
        for path, rank in zip(folder.paths, folder.ranks, strict=True)
    ]
    return {"ranks": ranks, "remarks": folder.remarks, "compared": [_data_of(folder, each) for each in found]}


def _data_of(folder: Folder, each: Beside) -> dict[str, Any]:
    from gviz.compare.data_parallel import is_shared

    files = {"rank": folder.paths[each.rank].name, "other": folder.paths[each.other].name}
    parting = each.parting
    if parting is None:
        return {**files, "agrees": True}
    parts = parting.between.parts if parting.between is not None else ()
    differences = [{"part": part, "shared": is_shared(part), "difference": one} for part, one in parts]
    told = {"iteration": parting.iteration, "what": parting.what, "counts": parting.counts}
    return {**files, "agrees": False, **told, "first": parting.difference, "differences": differences}
