"""Derivatives of derivatives: gradients with ``create_graph=True`` that no loss uses, sums over columns, and zeros.

A gradient penalty is a loss of a first derivative, and has a file of its own: `gradient_penalty`.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice

from gviz.events import BackwardStarted, GradCaptured
from gviz.explain.backward_passes import start_of_pass
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import frame_of, line_text, program_text
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, node_replaced
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame

# Gradients that the program can differentiate again, and does not: the adapted weights of an inner loop, thrown away


def idle_graph(survey: Survey) -> Iterator[Finding | None]:
    """Yield calls of `autograd.grad` with ``create_graph=True`` whose gradients make tensors that no pass goes through.

    Passes of the call itself do not count: each turn of an inner loop differentiates the weights of the turn before.
    """
    timeline = survey.timeline
    calls: defaultdict[tuple[str, int], list[BackwardStarted]] = defaultdict(list)
    others: list[BackwardStarted] = []
    for _, event in survey.passes:
        at = next(iter(timeline.stack(event.stack)), None)
        if event.create_graph and event.inputs and at is not None:
            calls[at.path, at.line].append(event)
        else:
            others.append(event)
    trains = {event.pass_nr for _, event in survey.accumulated if event.node in survey.optimized}
    last = next((event for event in reversed(others) if event.pass_nr in trains), None)
    if last is None:
        return
    nodes_by_pass = _nodes_by_pass(survey) if calls else {}
    for place, passes in calls.items():
        yield None
        elsewhere = (event for other, events in calls.items() if other != place for event in events)
        roots = [node for event in (*others, *elsewhere) for node, _ in event.roots]
        reached = {*roots, *ancestors(timeline, *roots)}
        results = [one for event in passes for one in nodes_by_pass.get(event.pass_nr, ())]
        used = [user for one in results for user in tracked_users(survey, one)]
        if used and not any(one.node in reached for one in (*results, *used)):
            yield _idle_finding(survey, passes[-1], used[-1], last)


def _nodes_by_pass(survey: Survey) -> dict[int, list[NodeRecord]]:
    """Return the tracked nodes that each pass made: its rules, and the sums of what arrived by several ways.

    PyTorch adds these up between the rules, with the line that called the pass.
    """
    nodes_by_pass: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    started: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for seq, event in survey.passes:
        started[event.stack].append((seq, event.pass_nr))
    for record in survey.nodes.values():
        pass_nr = record.created.during[0]
        if not pass_nr and record.op == "add" and record.created.stack in started:
            before = bisect_left(started[record.created.stack], (record.seq, 0))
            pass_nr = started[record.created.stack][before - 1][1] if before else 0
        if pass_nr and record.created.requires_grad:
            nodes_by_pass[pass_nr].append(record)
    return nodes_by_pass


def tracked_users(survey: Survey, record: NodeRecord) -> Iterator[NodeRecord]:
    """Yield the tracked results that the program itself made from a node."""
    users = (survey.nodes[node] for node in survey.timeline.nodes.users(record.node) if node in survey.nodes)
    return (user for user in users if user.created.requires_grad and not user.created.during[0])


def _idle_finding(survey: Survey, call: BackwardStarted, used: NodeRecord, last: BackwardStarted) -> Finding:
    timeline, (root, _) = survey.timeline, last.roots[0]
    at = next(iter(timeline.stack(call.stack)), None)
    text = "no loss depends on these gradients, which have a graph of their own"
    there = innermost(timeline.info(root))
    unused = f"{label_at(timeline, used.node)} is made from them, and {label_at(timeline, root)} does not use it"
    part = Finding("elsewhere", unused, used.seq, used.node, at=there)
    fix = "compute the loss with what is made from them, as functional_call(model, adapted, ...) does"
    fix = f"{fix}; else leave create_graph=True out"
    return Finding("idle-graph", text, used.seq, used.node, (part,), fix, at, suspected=True)


# A second derivative of ``du.sum()``: each column of it has the mixed derivatives of all columns

_COLUMNS = ("getitem", "index", "index_select", "select", "slice", "narrow", "unbind", "split", "chunk")


def cross_derivatives(survey: Survey) -> Iterator[Finding]:
    """Yield derivatives of the sum of a whole gradient by the same tensor, if the program reads their columns.

    The sum over rows is harmless where each row is a sample. The sum over columns adds up all mixed derivatives. Where
    the first result has a number for each element, as a function of each element has, there are none.
    """
    timeline = survey.timeline
    captured = {(event.pass_nr, event.node) for _, event in survey.select(GradCaptured)}
    passes = {event.pass_nr: event for _, event in survey.passes}
    calls: set[int] = set()
    nodes_by_pass = _nodes_by_pass(survey) if len(captured) > 1 else {}
    pass_of = {record.node: nr for nr, records in nodes_by_pass.items() for record in records}
    for event in passes.values():
        total = survey.nodes.get(event.roots[0][0]) if len(event.roots) == 1 and event.inputs else None
        gradient = total if _is_summed_by_ones(event) else None
        if total is not None and _is_whole_sum(total):
            gradient = next(survey.sources(total), None)
        first = passes.get(pass_of.get(gradient.node, 0)) if gradient is not None else None
        if total is None or gradient is None or first is None or event.stack in calls:
            continue
        points = [node for node, _ in event.inputs if {(first.pass_nr, node), (event.pass_nr, node)} <= captured]
        shape = gradient.shape
        if len(shape) < 2 or shape[-1] < 2 or not any(survey.nodes[node].shape == shape for node in points):
            continue
        if _is_by_element(survey, first, shape):
            continue
        column = next(
            (one for second in nodes_by_pass.get(event.pass_nr, ()) for one in _columns(survey, second, shape)), None
        )
        if column is not None:
            calls.add(event.stack)
            at = survey.at(total) if total is not gradient else next(iter(timeline.stack(event.stack)), None)
            yield _cross_finding(survey, total, gradient, column, at)


def _is_whole_sum(record: NodeRecord) -> bool:
    return record.op == "sum" and record.created.kind == "op" and not record.shape


def _is_summed_by_ones(event: BackwardStarted) -> bool:
    """Return whether a pass begins with ones for each element, as ``grad_outputs=torch.ones_like(du)`` has them."""
    stats = event.seeds[0].statistics() if len(event.seeds) == 1 and event.seeds[0].shape else None
    return stats is not None and stats.min == stats.max == 1 and not stats.nan


def _is_by_element(survey: Survey, first: BackwardStarted, shape: tuple[int, ...]) -> bool:
    """Return whether the function that was differentiated first has a term for each element of its input.

    Then no derivative mixes two columns. Dimensions of one element do not count, nor do sums of these terms.
    """
    root = survey.nodes.get(first.roots[0][0])
    while root is not None and root.op in ("sum", "mean"):
        root = next(survey.sources(root), None)
    return root is None or [size for size in root.shape if size > 1] == [size for size in shape if size > 1]


def _columns(survey: Survey, record: NodeRecord, shape: tuple[int, ...]) -> Iterator[NodeRecord]:
    """Yield the parts of the last dimension that the program takes from a result of a pass, and the sums over it."""
    if record.shape != shape:
        return
    for user in tracked_users(survey, record):
        is_column = user.op in _COLUMNS and user.shape != shape and user.shape[-1:] != shape[-1:]
        if is_column or (user.op == "sum" and user.shape in (shape[:-1], (*shape[:-1], 1))):
            yield user


def _cross_finding(
    survey: Survey, total: NodeRecord, gradient: NodeRecord, column: NodeRecord, at: Frame | None
) -> Finding:
    timeline, columns = survey.timeline, gradient.shape[-1]
    text = titled(f"{{}} is part of a derivative that mixes {columns} columns", label(timeline, column.node))
    by = label_at(timeline, total.node) if total is not gradient else "grad_outputs= of ones"
    adds = f"{by} adds up the {columns} columns of {label(timeline, gradient.node)} first"
    part = Finding("sum", f"{adds}: column i has the sum over j of the derivatives by i and j", total.seq, total.node)
    fix = "one column at a time: autograd.grad(du[:, 0].sum(), x, create_graph=True)[0][:, 0]"
    return Finding("cross-derivatives", text, column.seq, column.node, (part,), fix, at, suspected=True)


# A second derivative that is always 0: a network of relu is linear piece by piece


def flat_derivatives(survey: Survey) -> Iterator[Finding | None]:
    """Yield calls that differentiate a derivative of a network of relus again by its input, and always get zeros.

    A physics-informed network with relu has no curvature: a term such as ``u_xx`` is 0 whatever the parameters are.
    """
    captured: defaultdict[int, list[GradCaptured]] = defaultdict(list)
    for _, result in survey.select(GradCaptured):
        captured[result.pass_nr].append(result)
    passes = {event.pass_nr: event for _, event in survey.passes}
    if not any(event.create_graph and event.inputs for event in passes.values()):
        return
    pass_of = {record.node: nr for nr, records in _nodes_by_pass(survey).items() for record in records}
    calls: defaultdict[int, list[tuple[BackwardStarted, BackwardStarted | None]]] = defaultdict(list)
    for event in passes.values():
        if event.inputs and len(event.roots) == 1:
            yield None
            first = passes.get(_differentiated(survey, event.roots[0][0], pass_of))
            results = captured[event.pass_nr]
            is_flat = first is not None and bool(results) and all(_is_zero(one) for one in results)
            calls[event.stack].append((event, first if is_flat else None))
    for pairs in calls.values():
        flat = [(event, first) for event, first in pairs if first is not None]
        if len(flat) == len(pairs) >= _FEWEST_FLAT:
            second, first = flat[0]
            bend = _piecewise(survey, first)
            if bend is not None and _by_the_input(survey, second, bend):
                yield _flat_finding(survey, second, bend, len(flat))


_FEWEST_FLAT = 2
_MOST_BEHIND = 2_000
_PIECEWISE = ("relu", "leaky_relu", "relu6", "prelu", "rrelu", "hardtanh", "threshold", "clamp_min", "clamp")
_MOST_FACTORS = 4


def _differentiated(survey: Survey, node: int, pass_of: Mapping[int, int]) -> int:
    """Return the pass whose result a node is, or is the sum or a part of; 0 for any other node."""
    record = survey.nodes.get(node)
    for _ in range(_MOST_FACTORS):
        if record is None or record.node in pass_of:
            break
        tracked = [one for one in survey.sources(record) if one.created.requires_grad]
        record = tracked[0] if len(tracked) == 1 else None
    return pass_of.get(record.node, 0) if record is not None else 0


def _is_zero(event: GradCaptured) -> bool:
    stats = event.value.statistics()
    return stats is not None and stats.min == stats.max == 0 and not stats.nan


def _piecewise(survey: Survey, first: BackwardStarted) -> NodeRecord | None:
    """Return the first function of the network that is linear piece by piece, if it has no other activations."""
    found = None
    for node in islice(ancestors(survey.timeline, first.roots[0][0]), _MOST_BEHIND):
        record = survey.nodes.get(node)
        if record is not None and record.op in _PIECEWISE and record.created.requires_grad:
            found = record
        elif record is not None and record.op in _SMOOTH:
            return None
    return found


_SMOOTH = ("tanh", "sigmoid", "silu", "gelu", "softplus", "sin", "cos", "exp", "elu", "selu", "celu", "mish")


def _by_the_input(survey: Survey, second: BackwardStarted, bend: NodeRecord) -> bool:
    """Return whether a pass differentiates by what goes into a function: by a tensor, and not by weights."""
    before = {*islice(ancestors(survey.timeline, bend.node), _MOST_BEHIND)}
    records = [survey.nodes[node] for node, _ in second.inputs if node in survey.nodes]
    return all(record.node in before and record.created.kind != "parameter" for record in records)


def _flat_finding(survey: Survey, second: BackwardStarted, bend: NodeRecord, count: int) -> Finding:
    timeline = survey.timeline
    call = next(iter(timeline.stack(second.stack)), None)
    by = label(timeline, second.inputs[0][0])
    text = titled("the second derivative by {} is always 0: {} has no curvature", by, label(timeline, bend.node))
    start = start_of_pass(timeline, second.pass_nr)
    line = f"{line_text(timeline, call)} gives zeros in all {count} calls" if call else f"zeros in all {count} calls"
    part = Finding("zeros", line, start, second.inputs[0][0], at=call)
    at, edit = _named_activation(survey, bend) or (survey.at(bend), None)
    fix = "a smooth activation, such as Tanh, SiLU or a sine: relu is linear piece by piece"
    return Finding("flat-derivative", text, start, second.inputs[0][0], (part,), fix, at, edit=edit)


def _named_activation(survey: Survey, bend: NodeRecord) -> tuple[Frame, Edit | None] | None:
    """Return where the program names an activation's module, ``nn.ReLU``, and the edit to Tanh if it is one place.

    Of several places it is the first, if the activation ran as a module of that name.
    """
    at, scope = survey.at(bend), survey.scopes.get(bend.created.scope)
    text = program_text(survey.timeline, at) if at is not None else None
    name = {"relu": "ReLU", "leaky_relu": "LeakyReLU", "relu6": "ReLU6", "hardtanh": "Hardtanh"}.get(bend.op)
    if text is None or name is None or at is None:
        return None
    parts = [
        (one, part)
        for one in text.statements
        for part in one.parts(ast.Attribute)
        if part.attr == name and isinstance(part.value, ast.Name)
    ]
    if not parts or (len(parts) > 1 and (scope is None or scope.kind != name)):
        return None
    _, part = parts[0]
    if len(parts) > 1:
        return frame_of(at, part.lineno, text), None
    calls = {id(call.func): call for one, _ in parts for call in one.parts(ast.Call)}
    call = calls.get(id(part))
    tanh = f"{text.segment(part.value)}.Tanh"
    edit = node_replaced(text, call, f"{tanh}()") if call is not None else node_replaced(text, part, tanh)
    return (frame_of(at, part.lineno, text), edit) if edit is not None else None
