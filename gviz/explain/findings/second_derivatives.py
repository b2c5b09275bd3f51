"""Derivatives of derivatives: gradients with ``create_graph=True`` that no loss uses, sums over columns, penalties."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping

from gviz.events import BackwardStarted, GradCaptured
from gviz.explain.display_names import innermost, label, label_at, titled
from gviz.explain.edit import Edit, with_suffix
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import LOSSES_OF_PAIRS, RESHAPING
from gviz.explain.program_text import called_function, keyword_text
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.values.number_text import number, shape_text

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
        used = [user for one in results for user in _tracked_users(survey, one)]
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


def _tracked_users(survey: Survey, record: NodeRecord) -> Iterator[NodeRecord]:
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
    for user in _tracked_users(survey, record):
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


# A gradient penalty with several norms for each sample
#
# ``(gradients.norm(2, dim=1) - 1) ** 2`` is right for rows of numbers. For images (n,c,h,w) it pulls the slope at each
# pixel towards 1, so that the slope of the critic becomes far steeper. A function that gives a number for each point,
# as a distance field does, has a norm for each point: the norms are compared with the results of the function.

_NORMS = ("norm", "linalg_vector_norm", "linalg_matrix_norm", "linalg_norm", "frobenius_norm")
_DISTANCES = LOSSES_OF_PAIRS | {"sub", "rsub", "l1_loss"}
_LIMITS = frozenset({"add", "clamp", "clamp_min", "maximum"})
"""Operations that keep a root away from 0."""

_PENALTIES = frozenset({"pow", "square", "mul", "abs", "relu", "clamp", "clamp_min", "maximum", *RESHAPING})


def partial_norms(survey: Survey) -> Iterator[Finding | None]:
    """Yield norms of a gradient, compared with a constant, that are more than one for each sample: each line once."""
    passes = {event.pass_nr: event for _, event in survey.passes if event.create_graph and event.inputs}
    if not passes:
        return
    seen: set[int] = set()
    for record in survey.ops(*_NORMS, "sqrt", "pow"):
        created = record.created
        if created.stack in seen or created.during[0] or not created.requires_grad or record.value is None:
            continue
        yield None
        reduction = _norm_reduction(survey, record)
        gradient = _gradient_below(survey, reduction, passes) if reduction is not None else None
        if reduction is None or gradient is None or not gradient.shape:
            continue
        samples = max(gradient.shape[0], _outputs(survey, passes[gradient.created.during[0]]))
        if record.value.size > samples and (bound := _penalized(survey, record)) is not None:
            seen.add(created.stack)
            yield _partial_norm_finding(survey, record, reduction, gradient, samples, bound)


def _norm_reduction(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the operation that reduces a tensor to norms: the norm itself, or the sum under a root."""
    if record.op in _NORMS:
        return record
    if record.op == "pow" and dict(record.created.attrs).get("exponent") != 1 / 2:
        return None
    total = next(survey.sources(record), None)
    while total is not None and total.op in _LIMITS:
        total = next((one for one in survey.sources(total) if one.created.requires_grad), None)
    squares = next(survey.sources(total), None) if total is not None and total.op == "sum" else None
    return total if squares is not None and _is_square(squares) else None


def _is_square(record: NodeRecord) -> bool:
    inputs = record.created.inputs
    if record.op == "pow":
        return dict(record.created.attrs).get("exponent") == 2
    return record.op == "square" or (record.op == "mul" and len(inputs) == 2 and inputs[0] == inputs[1])


def _gradient_below(survey: Survey, record: NodeRecord, passes: Mapping[int, BackwardStarted]) -> NodeRecord | None:
    """Return the gradient by an input of a pass whose elements, squares or views an operation reduces."""
    one = next(survey.sources(record), None)
    while one is not None and one.created.requires_grad:
        event = passes.get(one.created.during[0])
        if event is not None:
            shapes = [survey.nodes[node].shape for node, _ in event.inputs if node in survey.nodes]
            kinds = {survey.nodes[node].created.kind for node, _ in event.inputs if node in survey.nodes}
            return one if one.shape in shapes and "parameter" not in kinds else None
        if not (_is_square(one) or one.op in RESHAPING or one.op in ("add", "abs", "contiguous", "clone")):
            return None
        one = next((source for source in survey.sources(one) if source.created.requires_grad), None)
    return None


def _outputs(survey: Survey, event: BackwardStarted) -> int:
    """Return the number of results of the function that a pass differentiates, before they were added up."""
    size = 0
    for node, _ in event.roots:
        root = survey.nodes.get(node)
        while root is not None and not root.shape:
            root = max(survey.sources(root), key=_size, default=None)
        size = max(size, _size(root) if root is not None else 0)
    return size


def _size(record: NodeRecord) -> int:
    return record.value.size if record.value is not None else 0


def _penalized(survey: Survey, record: NodeRecord) -> float | None:
    """Return the constant from which the distance of norms becomes a mean that a pass goes through."""
    for user in _tracked_users(survey, record):
        if user.op in _LIMITS and user.value is not None and user.value.size == _size(record):
            found = _penalized(survey, user)
            if found is not None:
                return found
        if user.op not in _DISTANCES:
            continue
        others = [one for one in survey.sources(user) if one.node != record.node]
        stats = others[0].value.statistics() if len(others) == 1 and others[0].value is not None else None
        if stats is None or others[0].created.requires_grad or not stats.min == stats.max > 0:
            continue
        if (end := _mean_of(survey, user)) is not None:
            roots = [node for _, event in survey.passes for node, _ in event.roots]
            if end.node in roots or end.node in ancestors(survey.timeline, *roots):
                return stats.min
    return None


def _mean_of(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the mean or sum of penalties that a distance becomes."""
    waiting, seen = [record], {record.node}
    while waiting:
        one = waiting.pop()
        if not one.shape and (one.op in ("mean", "sum") or one.op in _DISTANCES):
            return one
        for user in _tracked_users(survey, one):
            if user.node not in seen and (user.op in _PENALTIES or user.op in ("mean", "sum")):
                seen.add(user.node)
                waiting.append(user)
    return None


def _partial_norm_finding(
    survey: Survey, record: NodeRecord, reduction: NodeRecord, gradient: NodeRecord, samples: int, bound: float
) -> Finding:
    timeline, norms = survey.timeline, _size(record)
    of = "samples" if samples == gradient.shape[0] else "results"
    text = titled(
        f"a penalty takes {norms} norms of a gradient, {{}}, for {samples} {of}", label(timeline, record.node)
    )
    shapes = f"{label_at(timeline, gradient.node)} {shape_text(gradient.shape)} becomes {shape_text(record.shape)}"
    pulled = f"{shapes}: the penalty pulls the norm of each part towards {number(bound)}, and that of the whole higher"
    part = Finding("operand", pulled, gradient.seq, gradient.node)
    name = timeline.info(gradient.node).name or "gradients"
    fix = f"one norm for each sample: {name}.flatten(1).norm(2, dim=1)"
    numbers = (Number("norms", norms, record.seq),)
    edit = _flat_first(survey, reduction)
    at = survey.at(reduction)
    return Finding("partial-norm", text, record.seq, record.node, (part,), fix, at, numbers, edit=edit)


def _flat_first(survey: Survey, reduction: NodeRecord) -> Edit | None:
    """Return the edit that flattens the operand of a norm or a sum over dimension 1, or over -1 as the program says."""
    timeline, at = survey.timeline, survey.at(reduction)
    dims = dict(reduction.created.attrs).get("dim")
    dims = list(dims) if isinstance(dims, list | tuple) else [dims]
    operand = next(survey.sources(reduction), None)
    is_last = keyword_text(timeline, at, called_function(timeline, at), "dim") == "-1"
    if operand is None or len(operand.shape) < 3 or (dims != [1] and not is_last):
        return None
    while operand is not None:
        name = timeline.info(operand.node).name
        edit = with_suffix(timeline, at, name, ".flatten(1)") if name.isidentifier() else None
        if edit is not None or not (_is_square(operand) or operand.op in ("add", "abs")):
            return edit
        operand = next((one for one in survey.sources(operand) if one.created.requires_grad), None)
    return None


# A gradient of torch.func by an argument that the function does not use


def unused_arguments(survey: Survey) -> Iterator[Finding | None]:
    """Yield gradients that a transform of PyTorch has filled with zeros, as the function does not use its argument.

    A gradient of a gradient is left out: that of a linear function is 0 as it should be. So is a call with several
    arguments, which may differentiate by all of them on purpose.
    """
    timeline = survey.timeline
    leaves: dict[Frame | None, list[NodeRecord]] = {}  # those within transforms, by the program's outermost call
    for record in survey.nodes.values():
        created = record.created
        if created.kind == "leaf" and created.requires_grad and record.value is not None and not record.value.is_known:
            leaves.setdefault(next(reversed(timeline.stack(created.stack)), None), []).append(record)
    for record in survey.ops("zeros_like") if leaves else ():
        yield None
        source = next(survey.sources(record), None)
        outermost = next(reversed(timeline.stack(record.created.stack)), None)
        if source is None or leaves.get(outermost, []) != [source]:
            continue
        if timeline.nodes.users(source.node) != (record.node,):
            continue
        text = titled("{} is 0 everywhere: the function does not use its argument", label(timeline, record.node))
        part = Finding("unused", "nothing was computed from the argument, so PyTorch fills its gradient with zeros",
                       source.seq, source.node)  # fmt: skip
        fix = "use the argument in the function, or argnums= for the one that it uses"
        yield Finding("unused", text, record.seq, record.node, (part,), fix, survey.at(record), suspected=True)
