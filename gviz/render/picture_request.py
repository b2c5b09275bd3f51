"""The request for a picture: the moment, the part of the graph, the style, and the time limit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from gviz.errors import GvizError
from gviz.explain.module_costs import costs, why_no_costs
from gviz.render.boxes.collapse_choice import collapsed_modules
from gviz.render.boxes.drawn_nodes import shown_nodes
from gviz.render.boxes.folding import ALL, Filter, fold, graph_of, named_calls, requested_nodes
from gviz.render.boxes.function_calls import has_public_names, with_calls
from gviz.render.boxes.graph_options import Level, Options
from gviz.render.boxes.graph_structure import Structure, structure
from gviz.render.figure import FIGURES, FigureName, as_figure, page_within
from gviz.render.option_words import option
from gviz.render.scene import Scene, States, scene
from gviz.render.styles import PictureStyle, style_named
from gviz.render.theme import Direction, Theme
from gviz.trace.graph_state import Iteration, NodeInfo
from gviz.trace.iteration_and_phase_ends import end_of, gradient_readings, through
from gviz.trace.stepping import no_event
from gviz.trace.timeline import Timeline


def _print_note(note: str) -> None:
    print(f"gviz: note: {note}", file=sys.stderr)


def ignore_note(_: str) -> None:
    """Ignore a note."""


def _ignore_progress(_: float) -> None:
    """Ignore progress reports."""


FEW_NODES = 60
"""In a graph with more nodes, only the nodes that autograd tracks are drawn."""

NAMED = 1500
"""In a picture with more boxes, only names are drawn."""
PICTURE_BOXES = 30_000
"""A picture with more boxes is unreadable, and most viewers cannot open it."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a graph that is drawn. Patterns are those of `named_calls`.

    * `closed`: modules that match a pattern are one box each. `depth`: calls are expanded down to this depth.
    * `node`: only the nodes within `radius` lines of this node, or with radius 0 its `ancestors`.
    * `only`: only nodes in modules that match a pattern.
    * `level`: which parts have a box. Calls that match `expand` are expanded at any level.
    """

    closed: tuple[str, ...] = ()
    depth: int | None = None
    node: int = 0
    ancestors: bool = False
    radius: int = 0
    only: tuple[str, ...] = ()
    level: Level = "auto"
    expand: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How a picture is made.

    * `theme`, `style`, `direction`, `legend`: its look. `scale`: the factor of its size (None: so that it fits).
    * `timeout`: the seconds that Graphviz has.
    * `drawing`, `part`: what is drawn. `moments`: those of a moving picture (none: the whole pass).
    * `keeps_labels`: the user requested the text in boxes, and it is not shortened.
    * `figure`: the kind of figure, for a picture without everything that is only for the debugger.
    * `columns`: the number of columns for which a figure's graph is chosen: one column has a part of its width.
    * `other`: the states of nodes in a what-if, next to the recorded ones; `change` is that what-if, for the caption.
    * `note` receives notes about compromises, `progress` receives the progress of long work (0 to 1).
    """

    theme: str = "auto"
    timeout: float = 20.0
    drawing: Options = field(default_factory=lambda: Options(clusters=True, marks=True))
    note: Callable[[str], None] = _print_note
    style: str = "gviz"
    direction: Direction = "auto"
    scale: float | None = None
    legend: bool = True
    moments: tuple[int, ...] = ()
    part: Part = field(default_factory=Part)
    progress: Callable[[float], object] = _ignore_progress
    figure: FigureName | None = None
    keeps_labels: bool = False
    columns: int = 1
    other: States | None = None
    change: str = ""

    @property
    def look(self) -> PictureStyle:
        """Return the picture style of this name."""
        return style_named(self.style)

    @property
    def colours(self) -> Theme:
        """Return the theme of the picture."""
        theme = self.look.theme(self.theme)
        plain = self.figure is not None
        return replace(theme, form=replace(theme.form, legend=self.legend and not plain, caption=not plain))


PICTURE_NAME = 44
"""The most characters of a name in a picture: most boxes have room for it. A terminal has less."""


def require_readable(boxes: int) -> None:
    """Raise `GvizError` if a picture with this many boxes is unreadable."""
    if boxes > PICTURE_BOXES:
        raise GvizError(
            f"a picture of {boxes:,} boxes cannot be read",
            hint=f"export to .txt or .dot, or a moment with a smaller graph; {option('node')} draws what is near one",
        )


def drawing(
    timeline: Timeline,
    n: int,
    options: ExportOptions,
    *,
    as_picture: bool = False,
    fits: bool = False,
    window: tuple[float, float] | None = None,
    most_work: float = inf,
    collapses_data: bool = False,
) -> Options:
    """Return the options for moment `n`: the style's options, with modules collapsed as requested or automatically.

    An unreadable picture (`as_picture`) is refused before minutes of layout. A picture that `fits` a page shows as much
    as is readable on the page, unless the user requests a part of the graph. If it is stepped through in a `window`, it
    fits there instead, and has the nodes of all its moments. Its boxes need at most the `most_work`, if that is
    possible. A picture of all nodes that `collapses_data` has one box for long data preparation. An overlay says in the
    caption what its amounts are; only modules have times.
    """
    overlay = options.drawing.overlay
    if overlay is None:
        words = _drawing(timeline, n, options, as_picture=as_picture, fits=fits, window=window, most_work=most_work)
        if collapses_data and options.part.level == "auto" and not (words.graph_filter.calls or words.remark):
            from gviz.render import detail_that_fits

            words = detail_that_fits.with_collapsed_data(timeline, timeline.iteration_at(n), words)
            if words.remark:
                options.note(words.remark)
        return words
    known = costs(timeline, overlay, n)
    if known is None:
        raise why_no_costs(timeline, overlay, n)
    if overlay == "time" and options.part.level == "auto":
        options = replace(options, part=replace(options.part, level="modules"))
    words = _drawing(timeline, n, options, as_picture=as_picture, fits=fits, window=window, most_work=most_work)
    if words.density not in ("short", "full"):
        options.note(f"the boxes have no room for the overlay {overlay}: labels short or full show it")
        return words
    return replace(words, remark=f"{words.remark}. {known.words}" if words.remark else known.words)


def _drawing(
    timeline: Timeline,
    n: int,
    options: ExportOptions,
    *,
    as_picture: bool,
    fits: bool,
    window: tuple[float, float] | None,
    most_work: float,
) -> Options:
    words = options.look.options(options.drawing)
    words = replace(words, numbered=words.numbered and options.figure is None, longest_name=PICTURE_NAME)
    part, iteration = options.part, timeline.iteration_at(n)
    if fits and not window and part.level != "nodes" and not part.node and words.density != "full":
        words = replace(words, passes=_is_in_pass(timeline, n))
    if not window and not part.node:  # after the end of an iteration, the user has requested readings
        # Only a figure: the boxes of other pictures stay in their places from moment to moment.
        words = replace(words, before_pass=options.figure is not None and _is_before_passes(timeline, n))
        words = replace(words, readings=n > through(timeline, iteration) or _is_reading(timeline, n))
    has_level = part.level != "auto" or bool(part.expand)
    if words.graph_filter == ALL and not part.closed and (has_level or (fits and _may_choose(part, options))):
        from gviz.render import detail_that_fits

        inside = frozenset[int]()
        if part.only:
            shown, _ = shown_nodes(
                timeline, iteration, content=words.content, passes=words.passes, readings=words.readings
            )
            inside = named_calls(graph_of(timeline, shown.values()), part.only, matches_parent=True)
        words = replace(words, graph_filter=Filter(frozenset(), part.node, part.ancestors, part.radius, inside))
        page = window or (_column_page(options.figure, options.columns) if options.figure else detail_that_fits.PAGE)
        is_column = options.columns > 1
        about = detail_that_fits.LevelRequest(
            part.level,
            part.depth,
            part.expand,
            options.colours,
            "TB" if is_column else options.direction,
            options.timeout,
            page=page,
            keeps_labels=options.keeps_labels,
            within=page_within(options.figure) if options.figure and not (window or is_column) else None,
            most_work=most_work,
            suggests=options.figure is None,
        )
        words = detail_that_fits.chosen(timeline, n, words, about)
        if as_picture:
            require_readable(detail_that_fits.count(timeline, iteration, words))
        if words.remark:
            options.note(words.remark)
        return words
    if words.graph_filter != ALL or (part == Part() and len(timeline.nodes) <= FEW_NODES):
        return words
    infos, _ = shown_nodes(timeline, iteration, content=words.content, passes=words.passes, readings=words.readings)
    if part.node and part.node not in infos:
        raise _not_drawn(timeline, part.node, n)
    if len(infos) > FEW_NODES and not (part.node or part.only):
        words = replace(words, content="followed", also=timeline.at(n).actor)
        infos = _followed(timeline, infos, iteration, words, options)
    graph = graph_of(timeline, infos.values())
    graph_filter = Filter(
        frozenset(), part.node, part.ancestors, part.radius, named_calls(graph, part.only, matches_parent=True)
    )
    subgraph = replace(graph, nodes=tuple(requested_nodes(graph, graph_filter)))
    calls = fits and not (part.node or words.density == "full")
    calls = calls and not has_public_names(timeline, infos.values())
    words = replace(
        words,
        graph_filter=replace(
            graph_filter, closed=collapsed_modules(subgraph, part.closed, part.depth, options.note), calls=calls
        ),
    )
    folded = fold(with_calls(timeline, graph, infos) if calls else graph, words.graph_filter)
    if calls and part.only and len(folded.groups) == 1:  # one call alone: the user wants to see what is in it
        words = replace(words, graph_filter=replace(words.graph_filter, calls=False))
        folded = fold(graph, words.graph_filter)
    count = len(folded.shown) + len(folded.groups)
    if as_picture:
        require_readable(count)
    if count > NAMED and words.density != "min":
        options.note(f"{count:,} boxes: drawn with names only")
        words = replace(words, density="min", tensors="line", saved=False, clusters=False)
    return words


def _column_page(figure: FigureName, columns: int) -> tuple[float, float]:
    """Return the size of a graph whose text is large enough in a figure if it is folded into columns."""
    width, height = FIGURES[figure].page
    return width / columns, height * columns


def _is_in_pass(timeline: Timeline, n: int) -> bool:
    """Return whether a node that a backward pass made acts at moment `n`."""
    actor = timeline.at(n).actor
    return bool(actor) and bool(timeline.info(actor).created.during[0])


def _is_before_passes(timeline: Timeline, n: int) -> bool:
    """Return whether moment `n` is before the passes of its iteration."""
    passes = timeline.phases_in(timeline.iteration_at(n), "backward")
    return bool(passes) and n < passes[0].start


def _is_reading(timeline: Timeline, n: int) -> bool:
    """Return whether a node that only reads gradients acts at moment `n`."""
    return timeline.at(n).actor in gradient_readings(timeline, timeline.iteration_at(n))


def _may_choose(part: Part, options: ExportOptions) -> bool:
    """Return whether the request leaves the level of the picture open."""
    is_whole = not part.node or (part.ancestors and not part.radius)
    words = options.drawing
    drawn = options.colours.form.card == "box" and words.density in ("short", "min")
    return part.depth is None and not part.only and is_whole and drawn


def _followed(
    timeline: Timeline, infos: Mapping[int, NodeInfo], iteration: Iteration, words: Options, options: ExportOptions
) -> dict[int, NodeInfo]:
    """Return the nodes that are left in a large picture."""
    left, _ = shown_nodes(
        timeline, iteration, content=words.content, also=words.also, passes=words.passes, readings=words.readings
    )
    if len(left) < len(infos):
        out = f"{len(infos) - len(left):,} of {len(infos):,} nodes are left out, as they have no gradient"
        options.note(f"{out}; {option('node')} draws what is near one")
    return left


def _not_drawn(timeline: Timeline, node: int, n: int) -> GvizError:
    where, known = "", node in timeline.nodes
    if known and timeline.info(node).iteration == timeline.iteration_at(n).index:
        where = "it is part of an optimizer step, and pictures show only the new values of a step"
    elif known:
        where = f"it was made in iteration {timeline.iteration_of(node).number}; the moment #{node} draws that"
    return GvizError(f"node #{node} is not in the graph of event {n}", hint=where, exit_code=2)


def requested_scene(
    timeline: Timeline,
    n: int,
    options: ExportOptions,
    *,
    as_picture: bool = False,
    fits: bool = False,
    collapses_data: bool = False,
) -> Scene:
    """Return the scene of moment `n` as requested. Raises `GvizError` if it is unreadable `as_picture`."""
    check_moment(timeline, n)
    words = drawing(timeline, n, options, as_picture=as_picture, fits=fits, collapses_data=collapses_data)
    return scene_of(timeline, n, words, options)


def scene_of(timeline: Timeline, n: int, words: Options, options: ExportOptions) -> Scene:
    """Return the scene of moment `n` with these options of the graph, as a figure if one is requested."""
    drawn = moment_scene(timeline, n, words, options.other)
    if options.change:
        drawn = replace(drawn, caption=f"{drawn.caption}, what if {options.change}")
    if not options.figure:
        return drawn
    figure = as_figure(drawn, options.colours.form.card, whole=bool(options.part.node or options.part.only))
    return figure if options.legend else replace(figure, key=())


def moment_scene(timeline: Timeline, n: int, options: Options, other: States | None = None) -> Scene:
    """Return the scene of moment `n`: the whole graph of its iteration; with `other`, next to that of a what-if."""
    shape = moment_structure(timeline, n, options)
    return scene(shape, timeline, timeline.at(n), tooltips=len(shape.places) <= NAMED, other=other)


def moment_structure(timeline: Timeline, n: int, options: Options) -> Structure:
    """Return the boxes and lines of the iteration that contains moment `n`. Raises `GvizError` if there is none."""
    check_moment(timeline, n)
    return structure(timeline, timeline.iteration_at(n), options)


def check_moment(timeline: Timeline, n: int) -> None:
    """Raise `GvizError` if there is nothing to draw at a moment."""
    if not 0 <= n <= len(timeline):
        raise no_event(timeline, str(n))
    if not timeline.nodes:
        raise GvizError("this trace holds no graph", why="the program made no tensors", exit_code=2)


def first_moment(timeline: Timeline) -> int:
    """Return the moment where stepping begins: the first event."""
    return min(1, len(timeline))


def last_moment(timeline: Timeline) -> int:
    """Return the moment of a picture if the user requests none: the end, or the end before an evaluation.

    An evaluation is untracked computation at the end of a program with tracked computation. If an optimizer used the
    gradients, the moment is before its step: it shows the weights that produced these results, and their gradients.
    """
    if timeline.failures:
        return end_of(timeline, timeline.iterations[-1])
    return through(timeline, _last_followed(timeline))


def _last_followed(timeline: Timeline) -> Iteration:
    """Return the last iteration with a tracked result; the last iteration if there is none or no pass at all."""
    passes = any(phase.kind == "backward" for phase in timeline.phases)
    for iteration in reversed(timeline.iterations) if passes else ():
        creations = timeline.nodes.all_created(timeline.nodes.of(iteration))
        if any(created.kind == "op" and created.requires_grad for _, created in creations):
            return iteration
    return timeline.iterations[-1]
