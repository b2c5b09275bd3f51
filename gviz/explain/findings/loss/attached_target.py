"""Losses whose target depends on trained parameters, so that the target moves to the prediction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.loss.broadcast import ERRORS
from gviz.explain.operation_sets import LOSSES_OF_PAIRS
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import operand
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors


def attached_target(survey: Survey) -> Iterator[Finding]:
    """Yield losses whose second argument requires a gradient as well.

    A distance between two results of one model, such as those of two views of a batch, has no target.
    """
    timeline, siamese = survey.timeline, dict[int, bool]()
    yield from _swapped(survey)
    for record in survey.ops(*LOSSES_OF_PAIRS):
        pair = list(survey.sources(record))[:2]
        if len(pair) == 2 and all(source.created.requires_grad and source.created.kind == "op" for source in pair):
            if record.op in _DISTANCES and siamese.setdefault(record.created.stack, _are_alike(survey, *pair)):
                continue
            target = survey.unwrapped(pair[1])
            names = label(timeline, record.node), label(timeline, target.node)
            text = titled("{} sends a gradient into its target, {}", *names)
            part = Finding("target", f"the target is {label_at(timeline, target.node)}", target.seq, target.node)
            at = innermost(timeline.info(record.node))
            edit = operand(timeline, at, 1, ".detach()") if pair[0] is not pair[1] else None
            fix = _DETACH_TARGET
            parts = (part,)
            yield Finding("attached-target", text, record.seq, target.node, parts, fix, at, suspected=True, edit=edit)
    yield from _targets_of_divergences(survey)
    yield from _bootstrapped_targets(survey)


def _targets_of_divergences(survey: Survey) -> Iterator[Finding]:
    """Yield each ``kl_div`` of two trained distributions of different models.

    The operations that it consists of are recorded: ``xlogy(target, target) - target * input``. An input that is made
    from the target, as in a Jensen-Shannon divergence, has no other way.
    """
    timeline, siamese = survey.timeline, dict[int, bool]()
    for record in survey.ops("sub"):
        sources = {one.op: one for one in survey.sources(record)}
        entropy, product = sources.get("xlogy"), sources.get("mul")
        pair = [*survey.sources(product)] if entropy is not None and product is not None else []
        target = next(iter(survey.sources(entropy)), None) if entropy is not None else None
        inputs = [one for one in pair if target is not None and one.node != target.node]
        if target is None or len(pair) != 2 or len(inputs) != 1:
            continue
        if not all(one.created.requires_grad and one.created.kind == "op" for one in (target, inputs[0])):
            continue
        if target.node in ancestors(timeline, inputs[0].node):
            continue
        if siamese.setdefault(record.created.stack, _are_alike(survey, inputs[0], target)):
            continue
        loss = _end_of_call(survey, record)
        text = titled("{} sends a gradient into its target, {}", label(timeline, loss), label(timeline, target.node))
        part = Finding("target", f"the target is {label_at(timeline, target.node)}", target.seq, target.node)
        at = innermost(timeline.info(record.node))
        edit = operand(timeline, at, 1, ".detach()")
        yield Finding(
            "attached-target", text, record.seq, target.node, (part,), _DETACH_TARGET, at, suspected=True, edit=edit
        )


def _end_of_call(survey: Survey, record: NodeRecord) -> int:
    """Return the last node that the call of an operation made of it."""
    node = record.node
    while True:
        users = [survey.nodes[user] for user in survey.timeline.nodes.users(node) if user in survey.nodes]
        of_call = [user for user in users if user.created.stack == record.created.stack]
        if len(of_call) != 1:
            return node
        node = of_call[0].node


_DISTANCES = LOSSES_OF_PAIRS - {"binary_cross_entropy", "binary_cross_entropy_with_logits"}
"""The losses that stay the same when their arguments are swapped."""


def _are_alike(survey: Survey, one: NodeRecord, other: NodeRecord) -> bool:
    """Return whether two nodes come from the same parameters by the same tracked operations, as calls of a model do.

    A target that is computed from a result, such as ``reward + gamma * q``, has further operations, and so has the
    prediction of a further layer.
    """
    made = [_of_parameters(survey, record) for record in (one, other)]
    operations = [Counter(_SAME_HEAD.get(record.op, record.op) for record in records) for _, records in made]
    return bool(made[0][0]) and made[0][0] == made[1][0] and operations[0] == operations[1]


def _of_parameters(survey: Survey, record: NodeRecord) -> tuple[set[int], list[NodeRecord]]:
    """Return the parameters that a node comes from, and the tracked operations on them or their results.

    Operations on the input alone do not count, nor what made it without a gradient, such as the steps of an attack.
    """
    tracked = [survey.nodes[node] for node in sorted(survey.history(record.node))]
    parameters = {one.node for one in tracked if one.created.kind == "parameter"}
    behind, operations = set(parameters), list[NodeRecord]()
    for one in tracked:
        if one.created.kind == "op" and any(source in behind for source, _ in one.created.inputs):
            behind.add(one.node)
            operations.append(one)
    return parameters, operations


_SAME_HEAD = {"log_softmax": "softmax", "logsigmoid": "sigmoid"}
"""A divergence compares two results of one model, and takes the logarithm of one of them."""


def _swapped(survey: Survey) -> Iterator[Finding]:
    """Yield losses with two different arguments whose target is trained, while their input is data.

    ``kl_div`` is left out: with a trained target it is the reverse divergence, which may be intended.
    """
    timeline, ends = survey.timeline, dict[int, NodeRecord]()
    for record in survey.ops("div"):
        if "label_smoothing" in dict(record.created.attrs):
            ends.setdefault(record.created.stack, record)
    for record in survey.ops("binary_cross_entropy", "binary_cross_entropy_with_logits", "mul"):
        pair = list(survey.sources(record))[:2]
        if record.op == "mul":
            pair = _of_cross_entropy(survey, record, pair, ends.get(record.created.stack))
        if len(pair) < 2 or pair[0].created.requires_grad or not pair[1].created.requires_grad:
            continue
        text = "the target of this loss is trained and its input is data: they are swapped"
        target = f"the target is {label_at(timeline, pair[1].node)}, the input {label_at(timeline, pair[0].node)}"
        part = Finding("target", target, pair[1].seq, pair[1].node)
        at = innermost(timeline.info(record.node))
        fix = "pass the prediction first, and the target second"
        yield Finding("swapped", text, record.seq, pair[1].node, (part,), fix, at)


def _of_cross_entropy(
    survey: Survey, product: NodeRecord, pair: list[NodeRecord], end: NodeRecord | None
) -> list[NodeRecord]:
    """Return input and target of a cross_entropy with probabilities as targets, by its product; empty for another one.

    PyTorch does not record the log_softmax of data: there, the input is known from the last operation of the call,
    `end`.
    """
    of_call = [one.op == "log_softmax" and one.created.stack == product.created.stack for one in pair]
    if any(of_call):
        return sorted(pair, key=lambda one: one.op != "log_softmax")
    if len(pair) != 1 or (0, 0) not in product.created.inputs:
        return []
    data = [one for one in survey.sources(end) if not one.created.requires_grad] if end is not None else []
    return [*data[:1], *pair]


_DETACH_TARGET = "target.detach(), if the prediction is to come to the target and not the target to the prediction"


def _bootstrapped_targets(survey: Survey) -> Iterator[Finding]:
    """Yield squares of the difference of a prediction and ``reward + gamma * prediction``, if both are trained.

    The difference of two results of one model, as in a siamese network, may be intended. A target is recognized by the
    data that is added.
    """
    timeline = survey.timeline
    for record in survey.ops("sub"):
        pair = list(survey.sources(record))[:2]
        tracked = [one for one in pair if one.created.requires_grad and one.created.kind == "op"]
        targets = [one for one in pair if _adds_data(survey, survey.unwrapped(one))]
        if len(tracked) < 2 or len(targets) != 1:
            continue
        users = (survey.nodes[node] for node in timeline.nodes.users(record.node) if node in survey.nodes)
        if not any(user.op in ERRORS for user in users) or not _are_calls_of_one_model(survey, *pair):
            continue
        target = survey.unwrapped(targets[0])
        prediction = survey.unwrapped(pair[1] if targets[0] is pair[0] else pair[0])
        names = label(timeline, record.node), label(timeline, target.node)
        text = titled("{} sends a gradient into its target, {}", *names)
        same = f"the target comes from the parameters that also make {label_at(timeline, prediction.node)}"
        parts = (Finding("target", same, prediction.seq, prediction.node),)
        at, number = innermost(timeline.info(target.node)), 0 if targets[0] is pair[0] else 1
        edit = operand(timeline, survey.at(record), number, ".detach()")
        fix = _DETACH_TARGET
        yield Finding("attached-target", text, record.seq, target.node, parts, fix, at, suspected=True, edit=edit)


def _adds_data(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a node is the sum of data, with one element for each row, and a trained tensor."""
    sources = list(survey.sources(record))
    data = [one for one in sources if not one.created.requires_grad and one.created.kind != "parameter"]
    return record.op == "add" and len(sources) == 2 and len(data) == 1 and bool(data[0].shape)


def _are_calls_of_one_model(survey: Survey, one: NodeRecord, other: NodeRecord) -> bool:
    """Return whether two nodes come from the same parameters and from no common result, as two calls of a model do."""
    inputs = [{one.node, *ancestors(survey.timeline, one.node)}, {other.node, *ancestors(survey.timeline, other.node)}]
    common = [survey.nodes[node] for node in inputs[0] & inputs[1] if node in survey.nodes]
    trained = [record for record in common if record.created.requires_grad]
    return bool(trained) and all(record.created.kind != "op" for record in trained)
