"""`gviz.export`: writes pictures to files from within a program; the command line uses it too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gviz import argument_checks
from gviz.api import drawable, output_files
from gviz.api.export_options import Look, Manner, MomentOptions, Region, Shade, part_around, span
from gviz.api.module_recording import NO_INPUTS
from gviz.api.moment_argument import moment_of
from gviz.api.picture_path import is_series, kind_of, numbered, refuse
from gviz.errors import GvizError
from gviz.explain.module_costs import CostKind
from gviz.query.moments import end_of_own_pass
from gviz.render import option_words
from gviz.render.boxes.graph_options import Density, Level, Tensors
from gviz.render.figure import FigureName
from gviz.render.file_formats import Exporter
from gviz.render.forms.series import frames, pass_moments
from gviz.render.picture_request import ExportOptions, check_moment
from gviz.render.styles import GVIZ
from gviz.render.theme import Direction
from gviz.trace.timeline import Timeline

if TYPE_CHECKING:
    from gviz.api.drawable import Drawable, Params


def export(
    of: Drawable,
    path: str | os.PathLike[str],
    *,
    at: int | str | None = None,
    style: str = "gviz",
    theme: Shade = "auto",
    labels: Density | None = None,
    tensors: Tensors | None = None,
    saved: bool = False,
    overlay: CostKind | None = None,
    direction: Direction = "auto",
    scale: float | None = None,
    legend: bool = True,
    figure: FigureName | bool = False,
    modules: str | Sequence[str] = (),
    depth: int | None = None,
    node: str | int = "",
    ancestors: bool = False,
    radius: int = 0,
    only: str | Sequence[str] = (),
    level: Level = "auto",
    expand: str | Sequence[str] = (),
    moments: str = "",
    params: Params = (),
    inputs: Any = NO_INPUTS,
    backward: bool = False,
    force: bool = False,
    timeout: float = 20.0,
    note: Callable[[str], None] | None = None,
    progress: Callable[[float], object] | None = None,
) -> list[Path]:
    """Write a picture of a trace (its file, the result of `gviz.load`, a recording) or of the graph behind a tensor.

    Also draws the tensors in a list, tuple, mapping or dataclass, and a script, which is run. A module is called with
    `inputs`: a tensor, a tuple of arguments, or a dict of them. With `backward`, the picture also has the backward pass
    from the sum of its results. gviz draws a copy: your module and the inputs stay as they are.

    The suffix of `path` selects the format. A folder (``frames/``) or a number in the name (``step%03d.png``) writes
    one picture per moment that changes it. `at` is an event number, or a moment in the debugger's syntax (``nan``,
    ``iteration 3``, ``loss``); without it, pages open at the first event and pictures show the end. `moments` is a
    range ``FIRST..LAST`` for moving pictures, or for everything that a page contains.

    `modules` collapses the modules that match its patterns, `depth` all that are nested deeper. `node` with `ancestors`
    or a `radius`, or the modules in `only`, draw just that part. `params` names the tensors of a tensor's graph:
    ``dict(model.named_parameters())``, or the ``model``.
    `scale` makes pictures larger or smaller. Without `legend`, the meaning of the signs is not explained. `note` is
    called with compromises, `progress` with the progress of long work, from 0 to 1.

    With `figure`, the picture is a figure for a paper or a slide: ``one-column`` (the same as True, 85 mm wide),
    ``two-columns`` (175 mm) or ``16:9``. A figure has no legend, caption, cursor, or numbers of nodes; one line
    explains the letters in it. It leaves out what is made after moment `at`. Moving pictures and series can be figures.

    The `level` selects what has a box: ``modules``, the ``calls`` in the program, or all ``nodes``. By default it is as
    much as fits a page. Modules that match `expand` are expanded at any level;
    so are operations on data, by the name of their result, and the steps of a loop (``step``). In patterns, ``*`` stays
    within one part of a dotted name, and ``**`` crosses the dots: ``blocks.*`` is ``blocks.0``, and ``blocks.**`` also
    ``blocks.0.attn``.

    The `labels` select the text in a box: ``min`` is only names, ``short`` also has values and gradients, ``full`` has
    all that is known. By default it is ``short``, or less in a large graph. Labels that you request are never
    shortened.

    With `overlay`, each box shows what it costs: the ``memory`` that it saves for backward at the peak, or the ``time``
    of a module, forward and backward, in a recording of ``gviz monitor``.

    Returns the files. Raises `GvizError` if something cannot be drawn or written; then nothing is written.
    """
    look = Look(style, theme, labels, tensors, saved, direction, scale, legend, figure, overlay)
    region = Region(modules, depth, node, ancestors, radius, only, level, expand)
    manner = Manner(force, timeout, note, progress)
    with option_words.as_arguments():
        return _written(
            drawable.Source(of, params, inputs, backward), path, look, region, MomentOptions(at, moments), manner
        )


def _written(
    source: drawable.Source,
    path: str | os.PathLike[str],
    look: Look,
    region: Region,
    when: MomentOptions,
    manner: Manner,
) -> list[Path]:
    """Write the picture. Invalid arguments are refused before any long work starts."""
    options, part, place = manner.checked(look.options()), region.part(), region.place()
    target = argument_checks.new_path("path", path)
    exporter = kind_of(target, argument_checks.text("moments", when.moments))
    refuse(target, force=argument_checks.flag("force", manner.force), hint=output_files.AS_ARGUMENT)
    drawn = source.drawn()
    if drawn.node and not (place or part.only):
        place, part = f"#{drawn.node}", replace(part, ancestors=part.ancestors or not part.radius)
    stretch = span(drawn.timeline, when.moments, options.note)
    n = _moment(drawn, when.at, exporter, stretch, options.note, of_part=bool(place))
    part = part_around(drawn.timeline, n, part, place)
    if when.at is None and part.node and not (stretch or drawn.node):
        n = _end_of_pass(drawn.timeline, part.node) or n
    options = replace(options, part=part, moments=stretch)
    if when.at is None and n == drawn.n and not (drawn.node or stretch):
        _note_which(drawn.timeline, n, options.note)
    for ignored in _ignored(options, exporter):
        options.note(ignored)
    if not exporter.of_figure:
        options = replace(options, figure=None)
    written = list(_files(drawn.timeline, n, target, exporter, options))
    output_files.write_all(written, force=manner.force, hint=output_files.AS_ARGUMENT)
    return [file for file, _ in written]


def _moment(
    drawn: drawable.Drawn,
    at: int | str | None,
    exporter: Exporter,
    stretch: Sequence[int],
    note: Callable[[str], None],
    *,
    of_part: bool,
) -> int:
    """Return the requested moment; otherwise where such a file opens if it shows a whole graph, else the last useful
    one.

    Raises GvizError for a moment outside of the `stretch` of a file that opens at one of its moments.
    """
    among = stretch if exporter.opens is not None else ()
    if at is not None:
        n = moment_of(drawn.timeline, at, note)
        if among and n not in among:
            what = f"event {n} is not one of the moments {among[0]} to {among[-1]}"
            raise GvizError(what, hint="the option at chooses where among them the page opens", exit_code=2)
        return n
    if among:
        return among[-1] if of_part else among[0]
    return drawn.n if of_part or exporter.opens is None else exporter.opens(drawn.timeline)


def _end_of_pass(timeline: Timeline, node: int) -> int:
    """Return the end of the pass that started at a node if its iteration has a later pass; 0 otherwise.

    A later pass adds gradients that are not those of this loss.
    """
    end = end_of_own_pass(timeline, node)
    return end if end and end < timeline.pass_ends(timeline.iteration_of(node))[-1] else 0


def _note_which(timeline: Timeline, n: int, note: Callable[[str], None]) -> None:
    """Note which iteration is drawn, if no moment was requested and it is not the last one."""
    drawn, count = timeline.iteration_at(n).number, timeline.iteration_count
    if drawn < count:
        note(f"drawn is iteration {drawn} of {count}, the last that autograd follows; the moment end draws the last")


def _ignored(options: ExportOptions, exporter: Exporter) -> Iterator[str]:
    """Yield what was requested without effect: a style in a page, texts that the style defines, the size of a text
    file.
    """
    words, drawing = options.look.words if exporter.of_style != "nothing" else {}, options.drawing
    if options.look is not GVIZ and not (words or exporter.of_style == "look"):
        yield f"the style {options.style} has nothing for {exporter.name} and changes nothing"
    for option, value, own in (("labels", drawing.density, "density"), ("tensors", drawing.tensors, "tensors")):
        if own in words and value not in (None, "short", words[own]):
            yield f"the style {options.style} has its own {option}: {value} changes nothing"
    if options.figure and not exporter.of_figure:
        yield f"{exporter.name} is never a figure: the option figure changes nothing"
    if options.scale is not None and options.figure:
        yield "a figure has the width of its place: the scale changes nothing"
    elif options.scale is not None and not exporter.scales:
        yield f"{exporter.name} has no size in pixels: the scale changes nothing"


def _files(
    timeline: Timeline, n: int, target: str, exporter: Exporter, options: ExportOptions
) -> Iterator[tuple[Path, bytes]]:
    """Yield the files to write with their contents."""
    if not is_series(target):
        yield Path(target), _bytes(exporter.render(timeline, n, options))
        return
    check_moment(timeline, n)
    moments = options.moments or pass_moments(timeline, n)
    pictures: Iterable[str | bytes] = (exporter.render(timeline, one, options) for one in moments)
    if exporter.picture is not None:
        pictures = frames(timeline, moments, options, exporter.picture)
    number = 0
    for picture, _ in groupby(pictures):
        number += 1
        yield numbered(target, number), _bytes(picture)
    if number < len(moments):
        options.note(f"{len(moments):,} moments, {number:,} pictures: one for each visible change")


def _bytes(picture: str | bytes) -> bytes:
    return picture if isinstance(picture, bytes) else picture.encode("utf-8", "backslashreplace")
