"""The module tree of an iteration: each module with its gradient, the memory that it saves, and its time.

`module_tree` collects the modules that were called, with their nodes and parameters. `module_rows` draws them. Each row
comes with the path of its module, by which `gviz.tui.widgets.list_panels` chooses the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gviz.explain.module_costs import COST_KINDS, CostKind, costs
from gviz.render.boxes.collapsed_box import gradient_norm
from gviz.render.boxes.folding import CallGraph, ModuleCall, shared
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.glyphs import Glyphs
from gviz.tui.graph_view import Folds
from gviz.tui.styled_lines import Line, bar_cells, columns, fitted, largest_of, line, wrapped
from gviz.values.number_text import count_text, number
from gviz.values.plain_text import clipped


@dataclass(slots=True)
class Module:
    """One module: its path and class, its depth, its calls, and all its nodes and parameters."""

    path: str
    kind: str
    depth: int
    calls: set[int] = field(default_factory=set)
    nodes: list[int] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)


def module_tree(graph: CallGraph) -> list[Module]:
    """Return every module that was called, followed by the modules in it. A parameter lies where all its uses lie."""
    modules: dict[str, Module] = {}
    for node, chain in _chains(graph):
        for depth, call in enumerate(chain if not chain or not chain[0].is_data else ()):
            module = modules.setdefault(call.path, Module(call.path, call.kind, depth))
            if node in graph.loose:
                module.parameters.append(node)
            else:
                module.calls.add(call.scope)
                module.nodes.append(node)
    return sorted(modules.values(), key=lambda module: _place(modules, module.path))


def gradient_of(module: Module, moment: Moment) -> float | None:
    """Return the norm of all ``.grad`` in a module; None where there is none yet."""
    states = dict(zip(module.parameters, moment.states(module.parameters), strict=True))
    return gradient_norm(module.parameters, states)


def is_frozen(module: Module, moment: Moment) -> bool:
    """Return whether a module has parameters, and none of them requires a gradient."""
    states = moment.states(module.parameters)
    return bool(states) and all(state is not None and not state.requires_grad for state in states)


def _chains(graph: CallGraph) -> Iterator[tuple[int, tuple[ModuleCall, ...]]]:
    uses: dict[int, list[tuple[ModuleCall, ...]]] = {}
    for node in graph.nodes:
        chain = graph.calls.get(node, ())
        if node not in graph.loose:
            yield node, chain
        for source in {*graph.inputs.get(node, ())} & {*graph.loose}:
            uses.setdefault(source, []).append(chain)
    for node, chains in uses.items():
        yield node, shared(chains)


def _place(modules: Mapping[str, Module], path: str) -> tuple[int, ...]:
    """Return the sort key of a module: below the modules around it, by their first node."""
    parts = path.split(".")
    around = [".".join(parts[: end + 1]) for end in range(len(parts))]
    return tuple(modules[outer].nodes[0] for outer in around if outer in modules and modules[outer].nodes)


# ----------------------------------------------------------------------------------------------------------------------
# The rows.

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
