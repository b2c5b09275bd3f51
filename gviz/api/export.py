"""`gviz.export`: pictures written to files, from within a program; the command line draws through it too."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from gviz import where
from gviz.api import drawable, outputs
from gviz.api.moments import moment_of
from gviz.errors import GvizError, refuse_unknown
from gviz.render.boxes.call_names import fitting_calls
from gviz.render.boxes.calls import graph_of
from gviz.render.boxes.options import DENSITIES, TENSORS, Density, Options, Tensors
from gviz.render.boxes.selection import shown_nodes
from gviz.render.exporters import Exporter, ExportOptions, exporter_for
from gviz.render.forms.series import frames, pass_moments
from gviz.render.request import Part, check_moment
from gviz.render.theme import Direction
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.words.moments import PASSES, begin_of
from gviz.words.nodes import node_at

if TYPE_CHECKING:
    from gviz.api.drawable import Drawable, Params

NUMBER = re.compile(r"%0?(\d*)d")


def export(
    of: Drawable,
    path: str | os.PathLike[str],
    *,
    at: int | str | None = None,
    style: str = "gviz",
    theme: Literal["auto", "light", "dark"] = "auto",
    labels: Density = "short",
    tensors: Tensors | None = None,
    saved: bool = False,
    direction: Direction = "auto",
    scale: float | None = None,
    modules: str | Sequence[str] = (),
    depth: int | None = None,
    node: str | int = "",
    ancestors: bool = False,
    radius: int = 0,
    only: str | Sequence[str] = (),
    moments: str = "",
    params: Params = (),
    force: bool = False,
    timeout: float = 20.0,
    note: Callable[[str], None] | None = None,
    progress: Callable[[float], object] | None = None,
) -> list[Path]:
    """Write a picture of a trace (its file, what `gviz.load` answers, a recording) or of the graph behind a tensor.

    The suffix of `path` says which kind; a folder (``frames/``) or a number in the name (``step%03d.png``) asks for one
    picture a moment. `at` is an event number or what the debugger calls a moment (``nan``, ``bwd``, ``loss``;
    without it pages open at the first event, pictures show the end),
    `moments` a range ``FIRST..LAST`` for moving pictures. `modules` closes those that fit its patterns, `depth` all
    that lie deeper; `node` with `ancestors` or a `radius`, or modules `only`, draw that part alone. `params` names
    tensors of a tensor's graph, `scale` makes pictures larger or smaller. `note` hears of compromises, `progress` how
    far a long work is, from 0 to 1. Answers the files. Raises `GvizError` where something cannot be drawn or written;
    then nothing is.
    """
    drawing = _drawing(labels, tensors, saved=saved)
    refuse_unknown("direction", direction, get_args(Direction))
    _refuse_negative(depth=depth, radius=radius, timeout=timeout)
    if scale is not None and not (scale > 0 and isfinite(scale)):
        raise GvizError(f"scale cannot be {scale}", hint="it is more than 0: 2 is twice as large", exit_code=2)
    target = os.fspath(path)
    exporter = kind_of(target)
    if moments and not (exporter.moves or is_series(target)):
        raise GvizError(f"{target} shows one moment", hint="at chooses which one; moments are for many", exit_code=2)
    refuse(target, force=force, hint=outputs.AS_ARGUMENT)
    found = drawable.drawn(of, params)
    timeline = found.timeline
    if found.node and not (node or only):
        node, ancestors = f"#{found.node}", ancestors or not radius
    opening = exporter.opens(timeline) if exporter.opens and not node else found.n
    n = opening if at is None else moment_of(timeline, at)
    options = ExportOptions(
        theme=theme,
        timeout=timeout,
        style=style,
        direction=direction,
        scale=scale,
        drawing=drawing,
        part=_part(timeline, n, Part(_patterns(modules), depth, 0, ancestors, radius, _patterns(only)), str(node)),
        moments=span(timeline, moments),
    )
    options = replace(options, note=note or options.note, progress=progress or options.progress)
    for ignored in _ignored(options, exporter):
        options.note(ignored)
    written = list(drawn(timeline, n, target, exporter, options))
    outputs.write_all(written, force=force, hint=outputs.AS_ARGUMENT)
    return [file for file, _ in written]


def _drawing(labels: Density, tensors: Tensors | None, *, saved: bool) -> Options:
    refuse_unknown("labels", labels, DENSITIES)
    if tensors is not None:
        refuse_unknown("tensors", tensors, TENSORS)
    return Options(density=labels, tensors=tensors, saved=saved, clusters=True)


def _refuse_negative(**numbers: float | None) -> None:
    for name, number in numbers.items():
        if number is not None and number < 0:
            raise GvizError(f"{name} cannot be {number}", hint="it is 0 or more", exit_code=2)


def _patterns(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _ignored(options: ExportOptions, exporter: Exporter) -> Iterator[str]:
    """What was asked for and cannot be: words that the style has of its own, the size of a text."""
    words, drawing = options.look.words, options.drawing
    for option, asked, own in (("labels", drawing.density, "density"), ("tensors", drawing.tensors, "tensors")):
        if own in words and asked not in (None, "short", words[own]):
            yield f"the style {options.style} has its own {option}: --{option} {asked} changes nothing"
    if options.scale is not None and not exporter.scales:
        yield f"{exporter.name} has no size in pixels: --scale changes nothing"


def _part(timeline: Timeline, n: int, part: Part, node: str) -> Part:
    """The part around a node; what names no node but a module means all that is in the module."""
    around = part.ancestors or part.radius
    if not node and around:
        raise GvizError("ancestors and radius need a node", exit_code=2)
    if not node:
        return part
    infos = _drawn(timeline, n)
    named = around or any(info.name == node for info in infos)
    if not named and fitting_calls(graph_of(timeline, infos), [node], within=True):
        return replace(part, only=(*part.only, node))
    return replace(part, node=node_of(timeline, node, n), radius=part.radius or int(not part.ancestors))


def _drawn(timeline: Timeline, n: int) -> Sequence[NodeInfo]:
    """The nodes in the picture of a moment, in order of creation."""
    return [*shown_nodes(timeline, timeline.iteration_at(n), optimizer=False)[0].values()]


def drawn(
    timeline: Timeline, n: int, target: str, exporter: Exporter, options: ExportOptions
) -> Iterator[tuple[Path, bytes]]:
    """The files to write and what is in them."""
    if not is_series(target):
        yield Path(target), _bytes(exporter.render(timeline, n, options))
        return
    check_moment(timeline, n)
    moments = options.moments or pass_moments(timeline, n)
    pictures: Iterable[str | bytes] = (exporter.render(timeline, one, options) for one in moments)
    if exporter.picture is not None:
        pictures = frames(timeline, moments, options, exporter.picture)
    for number, picture in enumerate(pictures, 1):
        yield numbered(target, number), _bytes(picture)


def is_series(target: str) -> bool:
    """Whether a path asks for one picture a moment."""
    return target.endswith(("/", os.sep)) or bool(NUMBER.search(Path(target).name)) or Path(target).is_dir()


def numbered(target: str, number: int) -> Path:
    """The path of one picture of a series, counted from 1: ``frames/001.svg``."""
    if target.endswith(("/", os.sep)) or Path(target).is_dir():
        return Path(target) / f"{number:03}.svg"
    name = NUMBER.sub(lambda match: f"{number:0{match[1] or 0}}", Path(target).name, count=1)
    return Path(target).with_name(name)


def kind_of(target: str) -> Exporter:
    """The exporter for a path; a folder gets SVG."""
    exporter = exporter_for(str(numbered(target, 1)) if is_series(target) else target)
    if exporter.moves and is_series(target):
        raise GvizError(f"{exporter.name} moves by itself", hint="give it a name without a number", exit_code=2)
    return exporter


def refuse(target: str, *, force: bool, source: Path | None = None, hint: str = outputs.AS_OPTION) -> None:
    """Raise `GvizError` if a path may not or cannot be written, before anything long begins."""
    if target.endswith(("/", os.sep)) and not Path(target).exists():
        outputs.refuse_folder(Path(target))
    else:
        first = numbered(target, 1) if is_series(target) else Path(target)
        outputs.refuse_picture(first, source, force=force, hint=hint)


def node_of(timeline: Timeline, place: str | int, n: int) -> int:
    """The node that a place means in the graph of a moment; of several the last."""
    node = node_at(timeline, str(place), timeline.at(n).actor)  # says what there is if nothing fits
    infos = _drawn(timeline, n)
    if any(info.node == node for info in infos):
        return node
    wanted = where.place(str(place))
    return next((info.node for info in reversed(infos) if wanted.fits(info)), node)


def span(timeline: Timeline, text: str) -> tuple[int, ...]:
    """The moments of ``FIRST..LAST``, or of one pass, from where it begins; none for an empty text."""
    if not text:
        return ()
    first, dots, last = text.partition("..")
    if not dots and text in PASSES:
        last = text
    elif not dots:
        raise GvizError(
            f"{text!r} is no range of moments", hint="write FIRST..LAST, as in 12..40, or backward", exit_code=2
        )
    end = moment_of(timeline, last or "end")
    start = begin_of(timeline, first, end) if first in PASSES else moment_of(timeline, first or "start")
    if not 0 <= start <= end <= len(timeline):
        raise GvizError(f"there are no events {start} to {end}", hint=f"1 to {len(timeline)}", exit_code=2)
    return tuple(range(start, end + 1))


def _bytes(picture: str | bytes) -> bytes:
    return picture if isinstance(picture, bytes) else picture.encode("utf-8", "backslashreplace")
