"""A gradient penalty that takes several norms for each sample.

Idea. ``(gradients.norm(2, dim=1) - 1) ** 2`` is right for rows of numbers. For images (n,c,h,w) it pulls the slope at
each pixel towards 1, so that the slope of the critic becomes far steeper.

Limits. A function that gives a number for each point, as a distance field does, has a norm for each point: the norms
are compared with the results of the function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gviz.events import BackwardStarted
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.custom_functions.second_derivatives import tracked_users
from gviz.explain.operation_sets import LOSSES_OF_PAIRS, RESHAPING
from gviz.explain.program_text import called_function, keyword_text
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, with_suffix
from gviz.explain.tracking import ancestors
from gviz.values.number_text import number, shape_text

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
    for user in tracked_users(survey, record):
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
        end = _mean_of(survey, user)
        if end is not None and end.node in (*survey.roots, *ancestors(survey.timeline, *survey.roots)):
            return stats.min
    return None


def _mean_of(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the mean or sum of penalties that a distance becomes."""
    waiting, seen = [record], {record.node}
    while waiting:
        one = waiting.pop()
        if not one.shape and (one.op in ("mean", "sum") or one.op in _DISTANCES):
            return one
        for user in tracked_users(survey, one):
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
