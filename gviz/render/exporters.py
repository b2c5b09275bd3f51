"""Every way to write a moment of a trace to a file, in one table. Whatever is in it, the command line can write."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath

from gviz import events as e
from gviz.errors import GvizError
from gviz.render.dot import dot
from gviz.render.drawing import Picture, has_font
from gviz.render.picture import Drawn, drawn
from gviz.render.scene import Options, Scene, scene, structure
from gviz.render.svg import svg
from gviz.render.text import drawing, text
from gviz.render.theme import theme_named
from gviz.trace.timeline import Timeline


def _print_note(note: str) -> None:
    print(f"gviz: note: {note}", file=sys.stderr)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How a picture is made: its theme, the seconds Graphviz has, what is drawn, and who hears of compromises."""

    theme: str = "auto"
    timeout: float = 20.0
    drawing: Options = field(default_factory=Options)
    note: Callable[[str], None] = _print_note


@dataclass(frozen=True, slots=True)
class Exporter:
    """One format: its name, the suffixes of its files, and what writes it for moment `n` of a timeline."""

    name: str
    suffixes: tuple[str, ...]
    render: Callable[[Timeline, int, ExportOptions], str | bytes]


def moment_scene(timeline: Timeline, n: int, options: Options) -> Scene:
    """The scene of moment `n`: the whole graph of the iteration it falls into."""
    if not 0 <= n <= len(timeline):
        raise GvizError(f"there is no event {n}", hint=f"events are numbered 1 to {len(timeline)}", exit_code=2)
    if not timeline.nodes:
        raise GvizError("this trace holds no graph", why="the program made no tensors", exit_code=2)
    return scene(structure(timeline, timeline.iteration_at(n), options), timeline, timeline.at(n), tooltips=True)


def last_moment(timeline: Timeline) -> int:
    """The moment worth a picture if none is asked for: the end, before the program took its graph down."""
    n = len(timeline)
    while n > 1 and isinstance(timeline.event(n), e.NodeFreed | e.Printed | e.ScopeLeft):
        n -= 1
    return n


def _dot(timeline: Timeline, n: int, options: ExportOptions) -> str:
    return dot(moment_scene(timeline, n, options.drawing), theme_named(options.theme))


def _svg(timeline: Timeline, n: int, options: ExportOptions) -> str:
    picture = svg(moment_scene(timeline, n, options.drawing), options.theme, timeout=options.timeout)
    return _noted(picture, options).decode("utf-8")


def _text(timeline: Timeline, n: int, options: ExportOptions) -> str:
    drawn = moment_scene(timeline, n, options.drawing)
    shape = structure(timeline, timeline.iteration_at(n), options.drawing)
    return text(drawn, drawing(shape, drawn, timeline.at(n)))


def _raster(picture: Picture) -> Callable[[Timeline, int, ExportOptions], bytes]:
    def render(timeline: Timeline, n: int, options: ExportOptions) -> bytes:
        shown = moment_scene(timeline, n, options.drawing)
        done = drawn(shown, theme_named(options.theme), picture, timeout=options.timeout)
        if not has_font():
            options.note(f"this machine has no font, so the {picture} has no text; an svg is complete")
        return _noted(done, options)

    return render


def _noted(picture: Drawn, options: ExportOptions) -> bytes:
    if picture.note:
        options.note(picture.note)
    return picture.data


EXPORTERS: tuple[Exporter, ...] = (
    Exporter("svg", (".svg",), _svg),
    Exporter("dot", (".dot", ".gv"), _dot),
    Exporter("png", (".png",), _raster("png")),
    Exporter("pdf", (".pdf",), _raster("pdf")),
    Exporter("txt", (".txt",), _text),
)


def exporter_for(path: str) -> Exporter:
    """The exporter that writes files of this name, by its suffix."""
    suffix = PurePath(path).suffix.lower()
    for exporter in EXPORTERS:
        if suffix in exporter.suffixes:
            return exporter
    raise GvizError(f"cannot tell the format of {path!r}", hint=f"suffixes: {all_suffixes()}", exit_code=2)


def all_suffixes() -> str:
    """The suffixes of all files that can be written: ``.svg .dot``."""
    return " ".join(suffix for exporter in EXPORTERS for suffix in exporter.suffixes)
