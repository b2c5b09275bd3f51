"""`gviz.make_dot`: returns a graph that can be changed, shown in a notebook or written to a file, as torchviz does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gviz import argument_checks
from gviz.api.drawable import drawn
from gviz.api.module_recording import NO_INPUTS
from gviz.api.moment_argument import moment_of
from gviz.errors import refuse_unknown
from gviz.render import detail_that_fits, option_words
from gviz.render.boxes.folding import ALL, Filter
from gviz.render.boxes.graph_options import LEVELS, Level, Options
from gviz.render.figure import FIGURES, FigureName, as_figure, figure_named, page_within
from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.dot import Manner, digraph
from gviz.render.graphviz.figure_size import in_figure
from gviz.render.picture_request import ExportOptions, Part, moment_scene

if TYPE_CHECKING:
    from gviz.api.drawable import Drawable, Params


def make_dot(
    var: Drawable,
    params: Params | None = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
    *,
    at: int | str | None = None,
    options: Options | None = None,
    level: Level = "auto",
    expand: str | Sequence[str] = (),
    figure: FigureName | bool = False,
    inputs: Any = NO_INPUTS,
    backward: bool = False,
) -> Digraph:
    """Return the graph of a trace or recording at event or moment `at` (by default before the program freed it).

    Also accepts a tensor of PyTorch or gviz, whose graph is drawn; a list, tuple, mapping or dataclass of tensors; a
    module, which is called with `inputs` (a tensor, a tuple of arguments, or a dict of them), and with `backward` gets
    a backward pass from the sum of its results; a script, which is run; and a static graph: the result of gviz's
    ``jit.trace``, or its ``graph``. gviz calls a copy of a module, so your module and the inputs do not change.

    Takes the arguments of ``torchviz.make_dot``. `params` gives tensors their names, as ``model.named_parameters()``
    does; or it is the ``model``. `show_attrs` shows everything known about every node, with at most `max_attr_chars`
    characters (at least 3) per argument of an operation. `show_saved` draws the saved tensors. A tensor of the latest
    recording is drawn from that recording, with all values; in any other graph only the tensor itself and the leaves
    have values.

    The `level` selects what has a box: ``modules``, the ``calls`` in the program, or all ``nodes``. By default a
    recorded graph shows as much as fits a page. Modules that match `expand` are expanded at any level;
    so are operations on data, by the name of their result. In patterns, ``*`` stays within one part of a dotted name,
    and ``**`` crosses the dots.

    With `figure`, the graph is a figure for a paper or a slide: ``one-column`` (the same as True, 85 mm wide),
    ``two-columns`` (175 mm) or ``16:9``. A figure has no legend, caption, cursor, or numbers of nodes.
    """
    kind = figure_named(figure)
    if not isinstance(options, Options | None):
        raise argument_checks.refused("options", options, "gviz.render.boxes.graph_options.Options")
    most = max(argument_checks.whole("max_attr_chars", max_attr_chars), 3)
    full = Options(density="full", saved=show_saved, attr_chars=most, marks=True)
    drawing = options or (full if show_attrs else Options(saved=show_saved, marks=True))
    of = drawn(var, params, inputs, backward=backward)
    if not of.recorded and options is None and not show_attrs:
        drawing = replace(drawing, unrecorded=True)
    if not of.recorded and drawing.tensors is None:
        drawing = replace(drawing, tensors="line")  # most values are unknown, and a word shows that
    if of.node and drawing.graph_filter == ALL:
        drawing = replace(drawing, graph_filter=Filter(focus=of.node, ancestors=True))
    n = of.n if at is None else moment_of(of.timeline, at)
    refuse_unknown("level", level, LEVELS)
    opened = argument_checks.texts("expand", expand)
    chooses = of.recorded and options is None and not (show_attrs or show_saved)
    if level != "auto" or opened or chooses:
        page = FIGURES[kind].page if kind else detail_that_fits.PAGE
        within = page_within(kind) if kind else None
        about = detail_that_fits.LevelRequest(
            level, None, opened, measures=kind is not None, page=page, within=within, suggests=kind is None
        )
        with option_words.as_arguments():
            drawing = detail_that_fits.chosen(of.timeline, n, replace(drawing, numbered=kind is None), about)
        drawing = replace(drawing, clusters=drawing.graph_filter.calls)
    picture = moment_scene(of.timeline, n, replace(drawing, numbered=kind is None))
    if kind is None:
        # without a recording, there is no event that a caption could name
        return digraph(picture if of.recorded else replace(picture, caption=""))
    how = ExportOptions(figure=kind, part=Part(level=level, expand=opened))
    with option_words.as_arguments():
        return in_figure(digraph(as_figure(picture), Manner(how.colours)), FIGURES[kind], "svg", how)
