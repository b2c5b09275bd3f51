"""Attention without a causal mask in a model that is to predict the next token of its own input.

Idea. If the label of each position is the token that the model gets at the next position, attention over all positions
lets it copy the label. `shifted_labels` finds where the labels come from. Attention between the indices and the loss is
reported if its scores come from the same indices, are a square of the length of the sequence, and hide nothing.

Example. ``TransformerEncoder(layer, 2)(src)`` without ``mask``, and ``targets = data[1:]`` for ``src = data[:-1]``.

Limits. Scores to which a mask or bias was added are reported only if their softmax is known to hide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.loss.shifted_labels import Origins, TokenPair, losses_of_tokens, token_pairs
from gviz.explain.operation_sets import SAME_NUMBERS, WEIGHTED_SUMS, WEIGHTING, is_fused_attention
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.values.number_text import shape_text

_MOST_NODES, _MOST_STEPS = 20_000, 8
_VISIBLE = 1e-12
"""The weight in a softmax from which on a position is not hidden."""


def no_causal_mask(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses whose labels are the next tokens of the model's input, which its attention sees: each line once."""
    origins = Origins(survey)
    for records in losses_of_tokens(survey) if any(map(_is_attention, survey.by_op)) else ():
        first: tuple[TokenPair, NodeRecord] | None = None
        for pair in token_pairs(survey, records, origins):
            yield None
            attention = _open_attention(survey, pair) if pair is not None and pair.shift == 1 else None
            if pair is None or attention is None:
                break
            first = first or (pair, attention)
        else:
            if first is not None:
                yield _finding(survey, *first, len(records))


def _is_attention(op: str) -> bool:
    return op in WEIGHTING or is_fused_attention(op)


def _open_attention(survey: Survey, pair: TokenPair) -> NodeRecord | None:
    """Return the first attention of a loss over all positions of the indices that have its labels; None without one."""
    found = None
    for node in islice(ancestors(survey.timeline, pair.loss.node), _MOST_NODES):
        record = survey.nodes.get(node)
        if record is None or not _is_attention(record.op):
            continue
        keys = _open_keys(survey, record, pair.length)
        if keys is not None and pair.lookup.node in {keys.node, *ancestors(survey.timeline, keys.node)}:
            found = record
    return found


def _open_keys(survey: Survey, record: NodeRecord, length: int) -> NodeRecord | None:
    """Return the keys of an attention of a sequence with itself that hides no position; None for any other softmax."""
    inputs = list(survey.sources(record))
    if record.op not in WEIGHTING:
        is_open = len(record.created.inputs) == 3 and not dict(record.created.attrs).get("is_causal")
        is_square = len(inputs) == 3 and len({one.shape[-2:-1] for one in inputs}) == 1
        return inputs[1] if is_open and is_square and inputs[1].shape[-2] == length else None
    if record.shape[-2:] != (length, length):
        return None
    is_plain, scores = True, inputs[0] if inputs else None
    for _ in range(_MOST_STEPS):
        if scores is None or scores.op in WEIGHTED_SUMS:
            break
        sources = list(survey.sources(scores))
        tracked = [one for one in sources if one.created.requires_grad]
        is_scaled = scores.op in ("mul", "div") and all(not one.shape for one in sources if one not in tracked)
        is_plain = is_plain and (scores.op in SAME_NUMBERS or is_scaled)
        scores = tracked[0] if tracked else None
    operands = list(survey.sources(scores)) if scores is not None else []
    stats = record.stats
    hides_nothing = stats is not None and not stats.zero and not stats.nan and stats.min > _VISIBLE
    return operands[1] if len(operands) == 2 and (hides_nothing if stats is not None else is_plain) else None


def _finding(survey: Survey, pair: TokenPair, attention: NodeRecord, count: int) -> Finding:
    timeline = survey.timeline
    text = titled(
        "the model sees its labels, as no causal mask hides later tokens: {}", label(timeline, pair.loss.node)
    )
    indices = pair.indices.record
    means = f"each label is the token one place later in {label_at(timeline, indices.node)}"
    part = Finding("target", means, indices.seq, indices.node, at=survey.at(pair.lookup))
    over = f"{label_at(timeline, attention.node)} is over all positions {shape_text(attention.shape)}"
    seen = Finding("mask", over, attention.seq, attention.node, at=survey.at(attention))
    fix = "a causal mask, such as generate_square_subsequent_mask(length) or is_causal=True"
    numbers = (Number("passes", count),)
    return Finding(
        "no-causal-mask", text, attention.seq, attention.node, (part, seen), fix, survey.at(attention), numbers
    )
