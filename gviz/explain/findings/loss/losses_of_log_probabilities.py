"""Losses of log-probabilities (nll_loss, ctc_loss, kl_div) that get scores, probabilities or another dimension.

Idea. The logarithm of a probability is never above 0. The result of a layer or of a softmax is no logarithm of one, and
training with it makes the scores of the targets larger without an end.

Limits. Numbers above 0 are right where the loss picks one number of each row, as ``gather`` does:

* energies and scores, if another term of the loss has the logarithm of their normalizer: ``nll_loss(-e, y) + log_z``
* log densities, which are above 0 where a density is above 1
* numbers that are reported, and sent no gradient

So only the result of a layer, of a parameter or of a softmax counts, scores only if no other term of the loss uses
them, and only if the loss is a weighted sum of what is picked: ``-log(-nll_loss(p, y, reduction="none"))`` is right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import (
    CARRYING_ONE_TERM,
    DROPOUTS,
    JOINING_TERMS,
    SAME_NUMBERS,
    SOFTMAXES,
    SQUASHING,
    ZERO_GRADIENT_REGIONS,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import renamed_call, with_dim
from gviz.explain.source_frames import innermost
from gviz.values.number_text import number

_LOSSES = ("nll_loss", "nll_loss2d", "ctc_loss", "kl_div")
_PROBABILITIES = {"softmax", "sigmoid"}
_ROWS = {"getitem", "index", "index_select", "slice", "clone", "contiguous"}
_LAYERS = {"linear", "addmm", "convolution", "conv1d", "conv2d", "conv3d", "embedding"}
_PRODUCTS = {"mm", "matmul", "bmm", "baddbmm"}
_BEHIND_LAYERS = SAME_NUMBERS | DROPOUTS | ZERO_GRADIENT_REGIONS | SQUASHING | {
    "leaky_relu", "elu", "selu", "silu", "gelu", "softplus", "flatten", "mean", "avg_pool2d", "adaptive_avg_pool2d",
    "mul", "div", "add",
}  # fmt: skip
"""What a model may do with the result of its last layer. All of them keep one score for each class."""

_MOST_BEHIND, _MOST_AFTER = 12, 2_000
_SLACK = 0.01
"""How far above 0 the logarithm of a probability may be: that of ``log(p + 0.001)`` is."""


def no_log_probabilities(survey: Survey) -> Iterator[Finding]:
    """Yield losses whose input is above 0 somewhere, or sums to one along another dimension than the classes."""
    for record in survey.ops(*_LOSSES):
        first = next(survey.sources(record), None)
        finding = (
            (_too_great(survey, record, first) or _wrong_dimension(survey, record, first))
            if first is not None
            else None
        )
        if finding is not None:
            yield finding
    yield from _kl_of_probabilities(survey)


def _kl_of_probabilities(survey: Survey) -> Iterator[Finding]:
    """Yield ``kl_div`` whose first argument has probabilities. The operations that it consists of are recorded."""
    yield from _cross_terms(survey)
    products = _by_line(survey.ops("mul"))
    for record in survey.ops("div", "mean", "sum", "sub"):
        if "log_target" not in dict(record.created.attrs):
            continue
        for product in products.get(record.created.stack, ()):
            if not product.seq < record.seq:
                continue
            tracked = [one for one in survey.sources(product) if one.created.requires_grad]
            is_input = len(tracked) == 1 and not _is_kl_target(survey, tracked[0], record)
            finding = _too_great(survey, record, tracked[0]) if is_input else None
            if finding is not None:
                yield finding
                break


def _is_kl_target(survey: Survey, record: NodeRecord, end: NodeRecord) -> bool:
    """Return whether a node is the target of the ``kl_div`` that ends with another node: of its ``xlogy``, too."""
    users = (survey.nodes[node] for node in survey.timeline.nodes.users(record.node) if node in survey.nodes)
    return any(user.op == "xlogy" and user.created.stack == end.created.stack for user in users)


def _by_line(nodes: Iterable[NodeRecord]) -> dict[int, list[NodeRecord]]:
    """Return nodes by the call that made them, in order."""
    lines: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for record in nodes:
        lines[record.created.stack].append(record)
    return lines


def _cross_terms(survey: Survey) -> Iterator[Finding]:
    """Yield the same on the built-in engine: ``xlogy(target, target) - target * input``."""
    of_line = _by_line(survey.nodes.values()) if survey.by_op.get("xlogy") else {}
    for record in survey.ops("sub"):
        pair = list(survey.sources(record))[:2]
        if [one.op for one in pair] != ["xlogy", "mul"]:
            continue
        targets = {node for node, _ in pair[0].created.inputs}
        inputs = [one for one in survey.sources(pair[1]) if one.node not in targets]
        if len(targets) == len(inputs) == 1 and inputs[0].created.requires_grad:
            line = of_line[record.created.stack]
            finding = _too_great(survey, max(line, key=lambda one: one.seq), inputs[0])
            if finding is not None and not any("log_target" in dict(one.created.attrs) for one in line):
                yield finding


def _too_great(survey: Survey, record: NodeRecord, first: NodeRecord) -> Finding | None:
    stats = first.value.statistics() if first.value is not None else None
    if stats is None or not stats.max > _SLACK:  # nan: no element is finite
        return None
    before, loss = survey.unwrapped(first), label(survey.timeline, record.node)
    scores = [] if before.op in _PROBABILITIES else _scores(survey, first)
    if (before.op not in _PROBABILITIES and not scores) or not _is_trained(survey, record, scores):
        return None
    names = loss, label(survey.timeline, before.node)
    if before.op in _PROBABILITIES:
        text = titled("{} takes log-probabilities, but {} has probabilities", *names)
        fix = f"log_softmax in the place of {before.op}{_instead(record, ', or cross_entropy of what went into it')}"
    else:
        text = titled("{} takes log-probabilities, but {} has numbers above 0", *names)
        fix = f"log_softmax before it{_instead(record, ', or cross_entropy, which takes scores as they are')}"
    most = f"{label_at(survey.timeline, before.node)} reaches {number(stats.max)}, and no such logarithm is above 0"
    part = Finding("operand", most, first.seq, first.node, at=innermost(survey.timeline.info(before.node)))
    finding = _log_probability_finding(survey, record, text, part, fix)
    return replace(finding, edit=renamed_call(survey.timeline, survey.at(before), "softmax", "log_softmax"))


def _scores(survey: Survey, first: NodeRecord) -> list[NodeRecord]:
    """Return the nodes from a layer or a parameter to its scores; nothing if they may be anything else than scores."""
    chain = [first]
    while len(chain) < _MOST_BEHIND:
        record, sources = chain[-1], list(survey.sources(chain[-1]))
        tracked = [one for one in sources if one.created.requires_grad]
        if record.created.kind == "parameter" or (record.created.kind == "leaf" and record.created.requires_grad):
            return chain
        if record.op in _LAYERS or (record.op in _PRODUCTS and any(_is_parameter(survey, one) for one in sources)):
            return chain
        if record.op == "add":  # a layer written by hand adds its bias
            tracked = [one for one in tracked if not _is_parameter(survey, one)]
        factors = [one for one in sources if one not in tracked]
        if record.op not in _BEHIND_LAYERS or len(tracked) != 1:
            return []
        if record.op in ("mul", "div") and not all(_is_weight(one) for one in factors):
            return []
        if record.op == "add" and not all(_is_parameter(survey, one) for one in factors):
            return []
        chain.append(tracked[0])
    return []


def _is_parameter(survey: Survey, record: NodeRecord) -> bool:
    created = survey.unwrapped(record).created
    return created.kind != "op" and created.requires_grad


def _is_weight(factor: NodeRecord) -> bool:
    """Return whether a factor is one number, a temperature, or one for each row, an advantage."""
    return not factor.shape or factor.shape[-1:] == (1,)


def _is_trained(survey: Survey, record: NodeRecord, scores: Collection[NodeRecord]) -> bool:
    """Return whether a pass goes through a loss whose picked numbers are added up, and no other term uses its scores.

    Such a term may be the logarithm of their normalizer.
    """
    roots = survey.roots
    if not _reaches(survey, [record], roots, CARRYING_ONE_TERM - {"neg"} | JOINING_TERMS):
        return False
    chain = {one.node for one in scores if one.created.kind == "op"}
    users = {user for node in chain for user in survey.timeline.nodes.users(node)} - chain - {record.node}
    others = [survey.nodes[user] for user in users if user in survey.nodes]
    return not _reaches(survey, [one for one in others if one.created.stack != record.created.stack], roots)


def _reaches(
    survey: Survey, start: Iterable[NodeRecord], roots: Collection[int], through: Collection[str] | None = None
) -> bool:
    """Return whether nodes are used for the root of a pass, by some operations only or any but losses of this kind."""
    waiting = [one for one in start if one.created.requires_grad and (through is not None or one.op not in _LOSSES)]
    seen = {one.node for one in waiting}
    calls = {one.created.stack for one in waiting}  # ctc_loss itself replaces infinities by 0, and takes a mean
    while waiting and len(seen) < _MOST_AFTER:
        record = waiting.pop()
        if record.node in roots:
            return True
        for user in survey.timeline.nodes.users(record.node):
            one = survey.nodes.get(user)
            if one is None or user in seen or not one.created.requires_grad:
                continue
            if one.op in through or one.created.stack in calls if through is not None else one.op not in _LOSSES:
                seen.add(user)
                waiting.append(one)
    return False


def _instead(record: NodeRecord, loss: str) -> str:
    """Return another loss that takes this input; empty for ctc_loss and kl_div, which have no such alternative."""
    return "" if record.op in ("ctc_loss", "kl_div") else loss


def _wrong_dimension(survey: Survey, record: NodeRecord, first: NodeRecord) -> Finding | None:
    first = _of_rows(survey, first)
    before = _of_rows(survey, next(survey.sources(first), first)) if first.op == "log" else first
    rank, dim = len(before.shape), dict(before.created.attrs).get("dim")
    if record.op in ("ctc_loss", "kl_div") or before.op not in SOFTMAXES or not rank or not isinstance(dim, int):
        return None
    classes, dim, timeline = min(1, rank - 1), dim % rank, survey.timeline
    if dim == classes:
        return None
    text = titled(f"{{}} has its classes in dimension {classes}, but gets those of {dim}", label(timeline, record.node))
    cause = f"{label_at(timeline, before.node)} makes probabilities that add up to 1 along dimension {dim}"
    at = survey.at(before)
    part = Finding("operand", cause, before.seq, before.node, at=at)
    edit = with_dim(timeline, at, before.op, str(classes))
    finding = _log_probability_finding(survey, record, text, part, f"{before.op}(..., dim={classes})")
    return replace(finding, at=at or finding.at, edit=edit)


def _of_rows(survey: Survey, record: NodeRecord) -> NodeRecord:
    """Return the node whose rows or copy a node is, with the same dimensions."""
    source = next(survey.sources(record), None) if record.op in _ROWS else None
    if source is None or len(source.shape) != len(record.shape):
        return record
    return _of_rows(survey, source)


def _log_probability_finding(survey: Survey, record: NodeRecord, text: str, part: Finding, fix: str) -> Finding:
    at = innermost(survey.timeline.info(record.node))
    return Finding("no-log-probabilities", text, record.seq, record.node, (part,), fix, at)
