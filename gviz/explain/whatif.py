"""The consequences of a changed number, in words and curves: for the debugger and the command line."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence
from functools import partial
from math import isnan, nan
from typing import TYPE_CHECKING

from rich.cells import set_cell_size

from gviz.errors import GvizError
from gviz.events import BackwardStarted, Edge
from gviz.explain.display_names import label, symbol
from gviz.query.expressions import Evaluator
from gviz.query_syntax import place as places
from gviz.rerun.change_parser import parse_change, parse_target
from gviz.source import parsing
from gviz.system.cooperative_work import LongWork, WorkProgress
from gviz.trace.graph_state import Iteration
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import clipped, file_line, shown
from gviz.values.value import Value
from gviz.values.value_text import norm, short

if TYPE_CHECKING:
    from gviz.rerun.branch import Branch, BranchView


PLACES = 3
"""The most nodes that one sentence names."""


def branch_of(timeline: Timeline, iteration: Iteration, changes: Sequence[str]) -> Branch:
    """Return the iteration as it would have been with these changes. Raises `GvizError` if it cannot be run again."""
    require_engine(timeline)
    from gviz.rerun.iteration import rerun_iteration  # imports the engine, which a viewer otherwise does not need

    evaluator = Evaluator(timeline)
    output_of, is_name = partial(_output_of, evaluator, iteration), partial(_is_name, evaluator, iteration)
    return rerun_iteration(timeline, iteration, [parse_change(text, output_of, is_name) for text in changes])


def ambiguous_names(timeline: Timeline, iteration: Iteration, changes: Sequence[str]) -> Iterator[str]:
    """Yield the node of each change, if the iteration uses several nodes of that name."""
    evaluator = Evaluator(timeline)
    targets = (parse_target(change.partition("=")[0], partial(_is_name, evaluator, iteration)) for change in changes)
    for place in dict.fromkeys(of.place for of in targets):
        first, *others = _nodes_of(evaluator, iteration, place)
        if others:
            also = ", ".join(label(timeline, node) for node in others[:PLACES])
            more = f" and {len(others) - PLACES} more" if len(others) > PLACES else ""
            yield f"{shown(place)} is {label(timeline, first)} here; also called {shown(place)}: {also}{more}."


def _is_name(evaluator: Evaluator, iteration: Iteration, text: str) -> bool:
    """Return whether the whole text is the name of a tensor by the end of an iteration, as ``parts[1]`` may be."""
    return bool(evaluator.names.called(text, iteration.end))


def _output_of(evaluator: Evaluator, iteration: Iteration, place: str) -> Edge:
    """Return the output at a place. Raises `GvizError` if there is none, or if it names several together."""
    node = _nodes_of(evaluator, iteration, place)[0]
    return node, evaluator.names.output_nr(node, place, iteration.end)


def _nodes_of(evaluator: Evaluator, iteration: Iteration, place: str) -> list[int]:
    """Return the nodes at a place that the iteration uses, in order, or else the last one made by then.

    Raises `GvizError` if there is none.
    """
    target = places.place(place)
    if target.kind == "node":
        return [evaluator.last(place, iteration.end)]
    infos = [evaluator.timeline.info(node) for node in evaluator.timeline.nodes.of(iteration)]
    named = [info.node for info in infos if info.name == place] or [info.node for info in infos if info.means(place)]
    if not named and "[" in target.word:  # an index of an index: as a pattern it would match another name
        near = evaluator.names.near(place, iteration.end)
        raise GvizError(f"there is no {clipped(place, 40)}", hint=f"did you mean {near}?" if near else "", exit_code=2)
    return named or [info.node for info in infos if target.fits(info)] or [evaluator.last(place, iteration.end)]


def require_engine(timeline: Timeline) -> None:
    """Raise GvizError unless the built-in engine made the recording: only its operations can be run again."""
    if timeline.framework != "gviz.engine":
        raise GvizError(
            f"only recordings of the built-in engine can run again; this is a trace of {shown(timeline.framework)}",
            hint="gviz run --engine builtin --values all SCRIPT (or record); "
            "its random numbers are not those of PyTorch",
            exit_code=2,
        )


# In words

_NAME, _NUMBER = 20, 24


def rerun_sentences(timeline: Timeline, iteration: Iteration) -> Iterator[str]:
    """Yield which of several iterations runs again, and the gradients that its passes add to."""
    if len(timeline.iterations) > 1:
        from gviz.compare.compared_iteration import Side

        side = Side(timeline, iteration.number)
        kept = [f"{label(timeline, node)} {short(grad, _NUMBER)}" for node, (grad, _) in side.kept.items() if grad]
        grads = f"; .grad before it: {', '.join(kept[:PLACES])}{' …' * (len(kept) > PLACES)}" if kept else ""
        yield f"iteration {iteration.number} of {timeline.iteration_count} is run again{grads}."


def untraced_number_sentences(timeline: Timeline, iteration: Iteration) -> Iterator[str]:
    """Yield that numbers outside of tensors stay as recorded, if a file that made the nodes takes some out."""
    infos = [timeline.info(node) for node in timeline.nodes.of(iteration)]
    paths = {frame.path for info in infos for frame in info.frames}
    names = {info.name.rpartition(".")[2] for info in infos if info.name}
    if any(reads_tensors(timeline.source(path) or "", names) for path in paths):
        yield "numbers taken out of tensors (`.item()`, an index, `if x:`) keep their recorded values."


def stop_sentences(timeline: Timeline, branch: Branch) -> Iterator[str]:
    """Yield a sentence for each place where the program would branch differently, or where the branch stopped."""
    yield from _decision_sentences(timeline, branch)
    places: dict[tuple[str, bool], list[int]] = {}
    for stopped in branch.stopped:
        places.setdefault((stopped.why, stopped.of_gradient), []).append(stopped.node)
    for (why, of_gradient), nodes in places.items():
        what = "gradients beyond it are not known" if of_gradient else "what follows from it is not known"
        names = ", ".join(label(timeline, node) for node in nodes[:PLACES])
        more = f" and {len(nodes) - PLACES} more" if len(nodes) > PLACES else ""
        yield f"stopped at {names}{more}: {shown(why)}; {what}."


def _decision_sentences(timeline: Timeline, branch: Branch) -> Iterator[str]:
    for decision in branch.decisions[:PLACES]:
        frames = timeline.info(decision.node).frames
        place = f" ({file_line(frames[0].path, frames[0].line)})" if frames else ""
        now = f"{label(timeline, decision.node)}{place} is {decision.now} instead of {decision.was}"
        yield f"{now}: a program that decides by it goes another way, and here the recorded way is kept."
    if len(branch.decisions) > PLACES:
        yield f"and so {len(branch.decisions) - PLACES} more."


def value_in_branch(evaluator: Evaluator, view: BranchView, text: str, n: int) -> str:
    """Return an expression's value in the branch at moment `n`. Raises `GvizError` if it cannot be computed."""
    try:
        return evaluator.evaluated(text, n, partial(view.states, n=n))
    except GvizError:
        if not view.branch.stopped:
            raise
        return "not known"


UNKNOWN_OUTCOME = "no other number that could be run again changes; whether the rest does is not known."
"""What `difference_rows` yield if only the changed numbers are known to differ, and something could not be run."""


def unknown_outcome(timeline: Timeline, branch: Branch, record_command: str) -> GvizError:
    """Return the error for a branch that answers nothing: it had to stop before any number differed.

    `record_command` records what is needed if values were not stored.
    """
    from gviz.rerun.iteration import NOT_STORED

    missing = list(dict.fromkeys(stopped.node for stopped in branch.stopped if stopped.why == NOT_STORED))
    names = ", ".join(label(timeline, node) for node in missing[:PLACES])
    more = f" and {len(missing) - PLACES} more" if len(missing) > PLACES else ""
    why = f"the values of {names}{more} were not stored" if missing else ""
    hint = record_command if missing else ""
    return GvizError("it is not known what the change leads to", why=why, hint=hint, exit_code=2)


def difference_rows(timeline: Timeline, iteration: Iteration, branch: Branch) -> Iterator[str]:
    """Yield a row for each node whose numbers differ in the branch, old and new; a sentence if none is known to."""
    from gviz.compare.compared_iteration import Side
    from gviz.compare.recording_comparison import compare
    from gviz.compare.tolerance import SAME_NUMBERS

    before, after = Side(timeline, iteration.number), Side(Timeline(branch.log), 1)
    pairs = [(node, branch.numbers.get(node, 0)) for node in before.infos]
    comparison = compare(before, after, SAME_NUMBERS, tuple([(x, y) for x, y in pairs if y in after.infos]))
    rows: dict[int, list[str]] = {}
    for one in comparison.without_gradients(branch.unknown).differences:
        if one.kind in ("value", "gradient"):
            old, new = _as_different(one.values)
            rows.setdefault(one.pair[0], []).append(f"{one.kind} {old} -> {new}")
    if not rows and not branch.stopped:
        yield "nothing depends on it: no number changes."
    for node, changed in rows.items():
        yield f"{set_cell_size(clipped(label(timeline, node), _NAME), _NAME)} {', '.join(changed)}"
    if branch.stopped and rows.keys() <= branch.set_values:
        yield UNKNOWN_OUTCOME


def _as_different(values: tuple[Value | None, Value | None]) -> tuple[str, str]:
    """Return two values in short texts; the norms of both if there is no room for what differs."""
    old, new = [short(value, _NUMBER) if value is not None else "none" for value in values]
    lengths = [norm(value) for value in values if value is not None]
    is_alike = ("[" in old) == ("[" in new)
    if (old != new and is_alike) or len(lengths) < len(values) or None in lengths:
        return old, new
    before, after = [number(length) for length in lengths if length is not None]
    return f"norm {before}", after if before != after else f"{after} (other elements)"


# In curves: one number over a range, and the results at each point

SHOW = "--show"

Curve = tuple[str, list[tuple[float, float]]]


def expressions_in(text: str) -> list[str]:
    """Return the expressions of a list with commas, ``z,x.grad``."""
    return [part.strip() for part in text.split(",") if part.strip()]


def default_expressions(timeline: Timeline, iteration: Iteration, what: str) -> list[str]:
    """Return the default expressions: the result of the iteration, and the gradient of the changed tensor.

    Raises `GvizError` if a gradient is changed, and if there is neither.
    """
    evaluator = Evaluator(timeline)
    root = _root(timeline, iteration)
    name = symbol(timeline, root) if root else ""
    result = name if name and evaluator.last(name, iteration.end) == root else f"#{root}"
    of = parse_target(what, partial(_is_name, evaluator, iteration))
    texts = () if of.of_gradient or not root else (result, f"{of.place}.grad{of.index}")
    shows = [text for text in (_as_one_number(evaluator, text, iteration.end) for text in texts) if text]
    if not shows:
        raise GvizError("it is not clear what to draw", hint=f"{clipped(what, 40)} = -3..3 {SHOW} x.grad", exit_code=2)
    return shows


def curves(
    timeline: Timeline,
    iteration: Iteration,
    points: Sequence[tuple[float, str]],
    shows: Sequence[str],
    kept: Sequence[str] = (),
) -> LongWork[tuple[list[Curve], list[str]]]:
    """Return the points of each expression, and the sentences about the first branch that stopped or went another way.

    A point is nan if its branch had to stop before it. Raises `GvizError` for an expression that is more than one
    number.
    """
    from gviz.rerun.branch import BranchView  # imports the engine, which a viewer otherwise does not need

    _require_one_number(timeline, iteration, shows)
    evaluator, end = Evaluator(timeline), iteration.end
    drawn: dict[str, list[tuple[float, float]]] = {text: [] for text in shows}
    why: list[str] = []
    for count, (x, change) in enumerate(points):
        yield WorkProgress("running again: point", count, len(points))
        branch = branch_of(timeline, iteration, [*kept, change])
        states = partial(BranchView(timeline, iteration, branch, (*kept, change)).states, n=end)
        for text, curve in drawn.items():
            try:
                y = evaluator.number(text, end, states)
            except GvizError:
                if not branch.stopped:
                    raise
                y = nan
            curve.append((x, y))
            if (isnan(y) or branch.decisions) and not why:
                why = list(stop_sentences(timeline, branch))
    return list(drawn.items()), why


def _root(timeline: Timeline, iteration: Iteration) -> int:
    """Return where the last backward pass of an iteration began, or else its last node; 0 if there is none."""
    started = timeline.select([BackwardStarted], max(iteration.start, 1), iteration.end + 1)
    roots = [event.roots[0][0] for _, event in started if event.roots]
    return roots[-1] if roots else max(timeline.nodes.of(iteration), default=0)


def _as_one_number(evaluator: Evaluator, text: str, n: int) -> str:
    """Return the expression, or its sum if it has several elements; empty if it has none."""
    try:
        count = evaluator.elements(text, n)
    except GvizError:
        return ""
    return text if count == 1 else f"({text}).sum()" if count else ""


def _require_one_number(timeline: Timeline, iteration: Iteration, shows: Sequence[str]) -> None:
    """Raise `GvizError` for an expression that is more than one number."""
    evaluator = Evaluator(timeline)
    for text in shows:
        if evaluator.elements(text, iteration.end) > 1:
            raise GvizError(f"{text} is more than one number", hint=f"({text}).sum() is one", exit_code=2)


# What the program's source code shows


# Where the program takes numbers out of tensors, or branches by a tensor

_METHODS = frozenset({"argmax", "argmin", "argsort", "item", "numpy", "tolist"})
_FUNCTIONS = frozenset({"asarray", "bool", "float", "index", "int"})


def reads_tensors(source: str, names: Container[str]) -> bool:
    """Return whether it may: by ``.item()``, ``float``, ``if loss:``, ``range(n)``; `names` are those of tensors.

    A branch by a comparison is an operation, and needs no guess. True for a text that is not valid Python.
    """
    try:
        tree = parsing.program(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return any(_takes_out(node) or _is_read(node, names) for node in ast.walk(tree))


def _takes_out(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _METHODS | {"asarray", "index"}
        case ast.Call(func=ast.Name(id=name)):
            return name in _FUNCTIONS
    return False


def _is_read(node: ast.AST, names: Container[str]) -> bool:
    return any(_names_one(test, names) for test in _truths(node))


def _truths(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions whose truth a program tests, or up to which it counts."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test) | ast.IfExp(test=test):
            yield test
        case ast.UnaryOp(op=ast.Not(), operand=test) | ast.Match(subject=test):
            yield test
        case ast.BoolOp(values=tests) | ast.comprehension(ifs=tests):
            yield from tests
        case ast.Call(func=ast.Name(id="range"), args=tests):
            yield from tests


def _names_one(test: ast.expr, names: Container[str]) -> bool:
    """Return whether a test that is no comparison is of one of the tensors."""
    match test:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in names
        case ast.Call(func=ast.Attribute(value=value)) | ast.Subscript(value=value):
            return _names_one(value, names)
        case ast.BinOp(left=left, right=right):
            return _names_one(left, names) or _names_one(right, names)
    return False
