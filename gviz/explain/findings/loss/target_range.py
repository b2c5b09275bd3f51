"""Targets outside of the range that a loss takes: 0 and 1 instead of -1 and 1, or numbers outside of 0 to 1."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.display_names import label_at
from gviz.explain.finding import Finding
from gviz.explain.program_text import called_function
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import (
    wrapped,
)
from gviz.explain.source_frames import innermost
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number

_SLACK = 0.01
"""How far above 0 the logarithm of a probability may be: that of ``log(p + 0.001)`` is."""


_SIGNS = {
    "cosine_embedding_loss": "CosineEmbeddingLoss", "hinge_embedding_loss": "HingeEmbeddingLoss",
    "margin_ranking_loss": "MarginRankingLoss", "soft_margin_loss": "SoftMarginLoss",
}  # fmt: skip
"""Losses whose targets are 1 and -1, by function and module. A target of 0 mostly has no gradient."""

_SHARES = {
    "binary_cross_entropy": "BCELoss", "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    "multilabel_soft_margin_loss": "MultiLabelSoftMarginLoss",
}  # fmt: skip
"""Losses whose targets are from 0 to 1. Outside of it the loss has no minimum."""


def wrong_targets(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses whose targets are outside of what they take: each line once.

    A loss that autograd does not follow is left out: nothing is trained with it.
    """
    timeline, seen = survey.timeline, set[int]()
    known: dict[tuple[int, str], str] = {}
    for record in survey.nodes.values():
        created = record.created
        if created.kind != "op" or created.stack in seen or created.during[0]:
            continue
        target = _target_of(survey, record)
        if target is None or target.created.requires_grad or not target.shape:
            continue
        yield None
        name = record.op if record.op in _OF_ONE_OPERATION else _loss_called(survey, record, known)
        if name not in _SIGNS and name not in _SHARES:
            continue
        wording = _target_of_signs(survey, target) if name in _SIGNS else _target_of_shares(survey, target)
        if wording is not None:
            seen.add(created.stack)
            yield _wrong_target_finding(timeline, record, target, name, *wording)


_OF_ONE_OPERATION = {"binary_cross_entropy", "binary_cross_entropy_with_logits", "soft_margin_loss"}
"""Losses of these tables that are recorded as one operation, whose second input is the target."""


def _target_of(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the input of an operation that is the target, if the operation may be of one of these losses.

    Other losses are recorded as the operations that they consist of. PyTorch's recording adds the target to the inputs
    of the last one, which has the margin as an attribute. The built-in engine compares the target with a number
    (``cosine_embedding_loss``, ``hinge_embedding_loss``) or negates it (``margin_ranking_loss``).
    """
    inputs = [survey.nodes.get(node) for node, _ in record.created.inputs]
    if record.op in _OF_ONE_OPERATION:
        return inputs[1] if record.created.requires_grad and len(inputs) > 1 else None
    if "margin" in dict(record.created.attrs):
        return inputs[-1] if record.created.requires_grad and len(inputs) > 1 else None
    if record.op in ("eq", "ne", "neg") and inputs:
        user_op = "mul" if record.op == "neg" else "where"
        users = (survey.nodes.get(user) for user in survey.timeline.nodes.users(record.node))
        here = [user for user in users if user is not None and user.created.stack == record.created.stack]
        return inputs[0] if any(user.op == user_op and user.created.requires_grad for user in here) else None
    pair = [one for one in inputs if one is not None] if record.op == "mul" and record.created.requires_grad else []
    if len(pair) == 2 and any(one.op == "logsigmoid" for one in pair):  # multilabel_soft_margin_loss
        data = [one for one in pair if one.op != "logsigmoid" and one.created.stack != record.created.stack]
        return data[0] if data else None
    return None


def _loss_called(survey: Survey, record: NodeRecord, known: dict[tuple[int, str], str]) -> str:
    """Return the function of these tables that made a node, by the call on its line or by its module.

    `known` has the answers for the call stacks and kinds of modules so far.
    """
    scope = survey.scopes.get(record.created.scope)
    key = record.created.stack, scope.kind if scope is not None else ""
    if key not in known:
        losses = {**_SIGNS, **_SHARES}
        of_module = next((name for name, kind in losses.items() if kind == key[1]), "")
        called = "" if of_module else called_function(survey.timeline, survey.at(record))
        known[key] = of_module or (called if called in losses else "")
    return known[key]


def _target_of_signs(survey: Survey, target: NodeRecord) -> tuple[str, str, str, str] | None:
    """Return the words about a target that has zeros and ones only."""
    stats = target.value.statistics() if target.value is not None else None
    size = target.value.size if target.value is not None else 0
    if stats is None or stats.min != 0 or stats.max != 1 or abs(stats.mean * size - (size - stats.zero)) > 1e-3 * size:
        return None
    counted = f"{stats.zero} of its {size} elements are 0: the loss has no term, or no margin, for these"
    return "1 and -1", "0 and 1", counted, " * 2 - 1"


def _target_of_shares(survey: Survey, target: NodeRecord) -> tuple[str, str, str, str] | None:
    """Return the words about a target with elements below 0 or above 1."""
    stats = target.value.statistics() if target.value is not None else None
    if stats is None or not (stats.min < -_SLACK or stats.max > 1 + _SLACK):
        return None
    span = f"{number(stats.min)} .. {number(stats.max)}"
    is_of_signs = stats.min == -1 and stats.max == 1
    return "0 to 1", span, f"it is {span}: outside of 0 .. 1 the loss has no minimum", " / 2 + 0.5" * is_of_signs


def _wrong_target_finding(
    timeline: Timeline,
    record: NodeRecord,
    target: NodeRecord,
    name: str,
    takes: str,
    gets: str,
    counted: str,
    change: str,
) -> Finding:
    text = f"{name} takes targets of {takes}, but gets {gets}"
    at, named = innermost(timeline.info(record.node)), timeline.info(target.node).name
    part = Finding("target", f"{label_at(timeline, target.node)}: {counted}", target.seq, target.node)
    fix = f"give it {named or 'the target'}{change}" if change else "targets from 0 to 1, or another loss"
    edit = wrapped(timeline, at, named, change) if change and named.isidentifier() else None
    return Finding("wrong-targets", text, record.seq, record.node, (part,), fix, at, edit=edit)
