"""Contrastive losses that also compare each row of a batch with itself.

Idea. The similarities of n results are an n by n matrix ``z @ z.T``. A cross entropy over its rows asks which of the
others belongs to each result. The similarity of a result with itself is always the largest, so a program masks it.

Example. ``F.cross_entropy(z @ z.T / 0.1, targets)`` with normalized rows has 10 on the diagonal, and no other score can
be higher: even a perfect encoder has a loss of log(2). With ``targets = torch.arange(n)`` the target is the row itself,
and there is nothing to learn.

Limits. Only a product that reaches the loss without any other operation than a factor is seen: an operation in between
may be the mask. Only results of data count: prototypes or the rows of a codebook that are compared with each other are
pushed apart on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from gviz.events import StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import RESHAPING
from gviz.explain.program_text import target_of
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import after
from gviz.explain.tracking import ancestors
from gviz.values.number_text import shape_text

_PRODUCTS = {"mm", "matmul", "cosine_similarity"}
_TURNS = RESHAPING | {"t", "transpose", "permute", "alias"}
_FEWEST_ROWS = 4
_MOST_FACTORS = 6
_MOST_BEHIND = 2_000


def own_similarity(survey: Survey) -> Iterator[Finding | None]:
    """Yield cross entropies of a product of a tensor with its own transpose: each line once."""
    seen: set[int] = set()
    for record in survey.ops("nll_loss"):
        if record.created.stack in seen or not record.created.requires_grad:
            continue
        yield None
        inputs = list(survey.sources(record))
        shape = inputs[0].shape if len(inputs) > 1 else ()
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] < _FEWEST_ROWS:
            continue
        seen.add(record.created.stack)
        similarity = _similarity(survey, inputs[0])
        if similarity is not None and not _is_written(survey, similarity, record):
            yield _finding(survey, record, similarity, inputs[1])


def _similarity(survey: Survey, scores: NodeRecord) -> NodeRecord | None:
    """Return the product of a tensor with itself that scores are, up to a factor."""
    record = next(survey.sources(scores), None) if scores.op == "log_softmax" else None
    for _ in range(_MOST_FACTORS):
        sources = list(survey.sources(record)) if record is not None else []
        if record is None or not sources:
            return None
        if record.op in _PRODUCTS:
            first, second = (_turned(survey, one) for one in (*sources, *sources)[:2])
            is_own = first.node == second.node and first.created.kind == "op"
            is_own = is_own and _is_of_data(survey, first)
            return record if is_own and record.shape == scores.shape else None
        factors = [one for one in sources[1:] if one.shape]
        if record.op not in ("mul", "div", "to", "float") or factors:
            return None
        record = sources[0] if sources[0].shape else None
    return None


def _is_of_data(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a tensor was made from data, and not only from parameters, numbers and all rows of a table."""
    before = (survey.nodes[node] for node in islice(ancestors(survey.timeline, record.node), _MOST_BEHIND))
    given = (one for one in before if one.created.kind != "op" and not one.created.requires_grad)
    return any(one.value is not None and one.value.size > 1 and not _is_count(survey, one) for one in given)


def _is_count(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a tensor has the numbers 0, 1, 2 ... in this order: rows of a table in another order are data."""
    array = survey.timeline.array(record.value) if record.value is not None else None
    return array is not None and bool((array.ravel() == np.arange(array.size)).all())


def _is_written(survey: Survey, similarity: NodeRecord, loss: NodeRecord) -> bool:
    """Return whether the program writes to scores before the loss: it may fill the diagonal in place."""
    memories = {
        output.storage
        for node, record in survey.nodes.items()
        if similarity.seq <= record.seq < loss.seq and (node == similarity.node or record.shape == similarity.shape)
        for output in record.created.outputs
    }
    writes = survey.timeline.select((StorageWritten,), similarity.seq, loss.seq)
    return any(event.storage in memories for _, event in writes)


def _turned(survey: Survey, record: NodeRecord) -> NodeRecord:
    """Return what a transposed or reshaped tensor is made from."""
    while record.op in _TURNS and (source := next(survey.sources(record), None)) is not None:
        record = source
    return record


def _finding(survey: Survey, record: NodeRecord, similarity: NodeRecord, labels: NodeRecord) -> Finding:
    timeline, rows = survey.timeline, similarity.shape[0]
    array = timeline.array(labels.value) if labels.value is not None else None
    is_own = array is not None and array.size == rows and bool((array.ravel() == np.arange(rows)).all())
    at = survey.at(similarity)
    if is_own:
        text = titled("the target of each row of {} is the row itself", label(timeline, record.node))
        fix = "a product with the other view of the batch, z1 @ z2.T, or targets that are the partners of the rows"
        edit = None
    else:
        text = titled("each row of {} is also compared with itself", label(timeline, record.node))
        loss = survey.at(record)
        is_apart = at is not None and loss is not None and (at.path, at.line) != (loss.path, loss.line)
        name = target_of(timeline, at) if is_apart else ""
        masked = f'{name or "sim"}.masked_fill(torch.eye({rows}, dtype=torch.bool), float("-inf"))'
        fix = f"leave the diagonal out: {masked}"
        eye = f"torch.eye(len({name}), dtype=torch.bool, device={name}.device)"
        general = f'{name}.masked_fill({eye}, float("-inf"))'
        edit = after(timeline, at, f"{name} = {general}") if name else None
    highest = "no other score can be higher" if not is_own else "it is the largest score already"
    product = (
        f"{label_at(timeline, similarity.node)} {shape_text(similarity.shape)} is a product of a tensor with itself"
    )
    part = Finding("operand", f"{product}: of normalized rows, {highest}", similarity.seq, similarity.node)
    return Finding("own-similarity", text, record.seq, record.node, (part,), fix, at, edit=edit)
