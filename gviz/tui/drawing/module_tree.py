"""The module tree of an iteration: each module with its gradient, the memory that it saves, and its time.

Each row comes with the path of its module. `gviz.tui.widgets.list_panels` uses it to choose the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gviz.explain.module_costs import COST_KINDS, CostKind, costs
from gviz.render.boxes.called_modules import Module, gradient_of, is_frozen, module_tree
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.glyphs import Glyphs
from gviz.tui.shown_graph import Folds
from gviz.tui.styled_lines import Line, bar_cells, columns, fitted, largest_of, line, wrapped
from gviz.values.number_text import count_text, number
from gviz.values.plain_text import clipped

BAR = 8
"""Cells of the bar that compares the gradients of modules."""


def module_lines(folds: Folds, moment: Moment, glyphs: Glyphs, width: int) -> Iterator[Line]:
    """Yield the module tree of the iteration at a moment."""
    for row, _ in module_rows(folds, moment, glyphs, width):
        yield row


def module_rows(folds: Folds, moment: Moment, glyphs: Glyphs, width: int) -> list[tuple[Line, str]]:
    """Return a row for each module, with its path; or one row that there is none."""
    timeline = folds.timeline
    iteration = timeline.iteration_at(moment.n)
    modules = module_tree(folds.graph(iteration))
    if not modules:
        text = "No module was called in this iteration"
        return [(row, "") for row in wrapped(line((text, "muted")), width)]
    closed = folds.collapsed(iteration)
    lengths = {module.path: gradient_of(module, moment) for module in modules}
    most = largest_of(lengths.values())
    has_costs = width >= WITH_COSTS and len(timeline.nodes.of(iteration)) <= MOST_COSTED
    grows = timeline.growing and iteration.index == timeline.iterations[-1].index
    kinds = (*(kind for kind in COST_KINDS if kind != "memory" or not grows),) if has_costs else ()
    known = [cost for kind in kinds if (cost := costs(timeline, kind, moment.n)) is not None]
    rows = []
    if known:
        heads = "".join(f"{_COST_WORDS[cost.kind]:>{COST_CELLS}}" for cost in known)
        rows.append((columns((), line((heads, "muted")), width, glyphs.cut), ""))
    for module in modules:
        left = _module_name(timeline, moment, module, glyphs, closed=module.path in closed)
        right = _gradient(module, moment, lengths[module.path], most, glyphs, has_bar=width >= 40)
        amounts = ((cost, cost.by_module.get(module.path, 0)) for cost in known)
        texts = (cost.text(amount) if amount else glyphs.nothing for cost, amount in amounts)
        right = (*right, *((glyphs.text(f"{text:>{COST_CELLS}}"), "") for text in texts))
        rows.append((columns(left, right, width, glyphs.cut), module.path))
    notes = []
    if has_costs and grows:  # every step of the program would compute the memory of the whole iteration again
        notes.append(" saved memory: shown once the iteration is complete")
    if has_costs and not any(cost.kind == "time" for cost in known):
        notes.append(" time of modules: gviz monitor SCRIPT records it")
    rows += [(columns(line((note, "muted")), (), width), "") for note in notes]
    return rows


WITH_COSTS = 64
"""The least width of the tree of modules with the memory and the time of each."""
COST_CELLS = 11
"""The cells of one of these columns."""
MOST_COSTED = 5000
"""The memory of a larger iteration is not computed while the user steps; ``gviz show TRACE memory`` has it."""
_COST_WORDS: Mapping[CostKind, str] = {"memory": "saved", "time": "time"}


def _module_name(timeline: Timeline, moment: Moment, module: Module, glyphs: Glyphs, *, closed: bool) -> Line:
    inside = moment.scope == module.path or moment.actor in module.nodes or moment.actor in module.parameters
    name = module.path.rpartition(".")[2] if module.depth else module.path
    sign = "+" if closed else "-" if len(module.nodes) > 1 else " "
    return line(
        (glyphs.now if inside else " ", "now"),
        ("  " * module.depth, ""),
        (f"{sign} ", "key"),
        (clipped(name, 30), "title"),
        (f" {clipped(module.kind, 24)}" if module.kind and module.kind != name else "", "muted"),
        (f"  {_size(timeline, module)}", "muted"),
    )


def _gradient(
    module: Module, moment: Moment, length: float | None, most: float, glyphs: Glyphs, *, has_bar: bool
) -> Line:
    """Return the length of the gradient of a module, with a bar relative to the longest one, or that it is frozen."""
    if length is not None:
        text = f"|g| {number(length, 3)}"
    elif module.parameters:
        text = "frozen" if is_frozen(module, moment) else f"|g| {glyphs.nothing}"
    else:
        text = ""
    bar = fitted(glyphs.past * bar_cells(length, most, BAR), BAR) if has_bar else ""
    return line((text, "grad"), (f" {bar}" if bar else "", "grad"))


def _size(timeline: Timeline, module: Module) -> str:
    values = (timeline.info(node).created.first_value for node in module.parameters)
    count = sum(value.size for value in values if value is not None)
    calls = f"{len(module.calls)} calls, " if len(module.calls) > 1 else ""
    return f"{calls}{len(module.nodes)} node{'' if len(module.nodes) == 1 else 's'}" + (
        f", {count_text(count)} params" if count else ""
    )
