"""Every place that a run reached and that prevents a static graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import Event, NodeCreated, Warned
from gviz.graphify.break_recorder import CATEGORY
from gviz.graphify.construct import Advice, Construct, Kind, construct
from gviz.graphify.rewrite import advice
from gviz.source import parsing
from gviz.source.call_stack import Frame, source_lines
from gviz.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Break:
    """One place: the expression of `frame`, read `times` times, first at event `n`, with its line of code."""

    kind: Kind | None
    frame: Frame
    code: str
    advice: Advice
    n: int
    times: int


def breaks(timeline: Timeline, function: str = "") -> Iterator[Break]:
    """Yield the places in order of the run, each once; with `function`, only those within its calls."""
    seen: dict[tuple[Frame, str], list[int]] = {}
    for n, event in timeline.select([Warned]):
        if event.category != CATEGORY:
            continue
        frames = timeline.stack(event.stack)
        if frames and (not function or _is_inside(frames, function)):
            seen.setdefault((frames[0], event.message), []).append(n)
    trees: dict[str, ast.Module | None] = {}
    by_place: dict[int, Break] = {}
    for (frame, what), times in seen.items():
        tree = trees.setdefault(frame.path, _parsed(timeline.source(frame.path)))
        place = None if tree is None else construct(tree, frame, what)
        one = _break_at(timeline, place, frame, what, times)
        by_place.setdefault(id(place.node) if place is not None else times[0], one)
    yield from sorted(by_place.values(), key=lambda one: one.n)


def _break_at(timeline: Timeline, place: Construct | None, frame: Frame, what: str, times: list[int]) -> Break:
    if place is None:
        words = Advice("a value leaves the graph here", (f"the source of {frame.path} is not known",))
        return Break(None, frame, "", words, times[0], len(times))
    line = source_lines(timeline.source(frame.path) or "")[frame.line - 1].strip()
    return Break(place.kind, frame, line, advice(place, what), times[0], len(times))


def _is_inside(frames: tuple[Frame, ...], function: str) -> bool:
    return any(frame.function == function or frame.function.endswith(f".{function}") for frame in frames)


def _parsed(source: str | None) -> ast.Module | None:
    """Parse the program; it is never run."""
    try:
        return None if source is None else parsing.program(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def functions(timeline: Timeline) -> set[str]:
    """Return the functions in which the run did anything that was recorded."""
    names = {
        frame.function for _, event in timeline.select((Warned, NodeCreated)) for frame in _frames(timeline, event)
    }
    return names | {name.rpartition(".")[2] for name in names}


def _frames(timeline: Timeline, event: Event) -> tuple[Frame, ...]:
    return timeline.stack(event.stack) if isinstance(event, Warned | NodeCreated) else ()
