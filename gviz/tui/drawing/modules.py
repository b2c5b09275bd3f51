"""The module tree: a row for each module, with its class, what is in it, and the length of its gradients."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.numbers import count_text, number
from gviz.plain_text import clipped
from gviz.render.boxes.modules import Module, gradient_of, module_tree
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.folds import Folds
from gviz.tui.glyphs import Glyphs
from gviz.tui.lines import Line, columns, fitted, line, wrapped

BAR = 8
"""Cells of the bar that compares the gradients of modules, as powers of ten."""


def module_lines(folds: Folds, moment: Moment, glyphs: Glyphs, width: int) -> Iterator[Line]:
    """The tree of the iteration at a moment."""
    for row, _ in module_rows(folds, moment, glyphs, width):
        yield row


def module_rows(folds: Folds, moment: Moment, glyphs: Glyphs, width: int) -> list[tuple[Line, str]]:
    """A row for each module, and its path; one that says so where there is none."""
    timeline = folds.timeline
    iteration = timeline.iteration_at(moment.n)
    found = module_tree(folds.graph(iteration))
    if not found:
        text = "no module was called in this iteration: nn.Module makes them"
        return [(row, "") for row in wrapped(line((text, "muted")), width)]
    closed = folds.wanted(iteration).closed
    lengths = {module.path: gradient_of(module, moment) for module in found}
    most = max((length for length in lengths.values() if length), default=0.0)
    rows = []
    for module in found:
        left = _named(timeline, moment, module, glyphs, closed=module.path in closed)
        right = _gradient(module, lengths[module.path], most, glyphs, has_bar=width >= 60)
        rows.append((columns(left, right, width, glyphs.cut), module.path))
    return rows


def _named(timeline: Timeline, moment: Moment, module: Module, glyphs: Glyphs, *, closed: bool) -> Line:
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


def _gradient(module: Module, length: float | None, most: float, glyphs: Glyphs, *, has_bar: bool) -> Line:
    """How long the gradient of a module is, beside the longest."""
    text = f"|g| {number(length, 3)}" if length is not None else "|g| " + glyphs.nothing if module.parameters else ""
    bar = fitted(glyphs.past * _cells(length, most), BAR) if has_bar else ""
    return line((text, "grad"), (f" {bar}" if bar else "", "grad"))


def _cells(length: float | None, most: float) -> int:
    """How much of the bar a length fills: all for the largest, nothing for none."""
    return max(1, round(BAR * length / most)) if length and most else 0


def _size(timeline: Timeline, module: Module) -> str:
    values = (timeline.info(node).created.first_value for node in module.parameters)
    count = sum(value.size for value in values if value is not None)
    calls = f"{len(module.calls)} calls, " if len(module.calls) > 1 else ""
    return f"{calls}{len(module.nodes)} node{'' if len(module.nodes) == 1 else 's'}" + (
        f", {count_text(count)} params" if count else ""
    )
