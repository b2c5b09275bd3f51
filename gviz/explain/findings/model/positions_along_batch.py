"""A positional encoding along the batch: each sample gets the position of its place in the batch.

Idea. A table of positions of shape (length, 1, width) is cut to the first size of the input and added. That is right
for an input of (length, batch, width). If the attention after it looks over the other dimension, the first one is the
batch: all tokens of a sample get the same position, and another one in another batch.

Example. ``x + self.pe[:x.size(0)]``, as in PyTorch's tutorial, with ``batch_first=True``: the model cannot know the
order of the tokens.

Limits. If both sizes are equal, the dimensions cannot be distinguished. A model without attention is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import SAME_NUMBERS, WEIGHTING, is_fused_attention
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.values.number_text import shape_text

_CUTS = {"getitem", "slice", "narrow"}
_MOST_STEPS = 8
_MOST_BEHIND = 80
"""The most operations after an addition among which its attention is searched."""


def positions_along_batch(survey: Survey) -> Iterator[Finding | None]:
    """Yield the additions of positions along a dimension that the attention after them takes for the batch."""
    seen = set[int]()
    for record in survey.ops("add"):
        pair = list(survey.sources(record))[:2]
        if record.created.stack in seen or len(record.shape) != 3 or len(pair) != 2:
            continue
        yield None
        for x, positions in (pair, pair[::-1]):
            if x.shape == record.shape and _runs_along_the_first(survey, positions, x.shape):
                seen.add(record.created.stack)
                attention = _attention_behind(survey, record)
                if attention is not None and _length(survey, attention) == x.shape[1]:
                    yield _finding(survey, record, x, positions, attention)
                break


def _runs_along_the_first(survey: Survey, positions: NodeRecord, shape: tuple[int, ...]) -> bool:
    """Return whether a tensor has the first rows of a table, one for each element of the first dimension of a shape."""
    count, length, width = shape
    if positions.shape != (count, 1, width) or count == length or min(count, length) < 2:
        return False
    record: NodeRecord | None = positions
    for _ in range(_MOST_STEPS):
        if record is None or record.created.kind != "op":
            return False
        sources = list(survey.sources(record))
        if record.op == "embedding" and len(sources) > 1:
            return _counts_up(sources[1], count)
        if record.op in _CUTS and sources and sources[0].created.kind != "op":
            return sources[0].shape[:1] > (count,) and sources[0].shape[1:] == record.shape[1:]
        if record.op in _CUTS and len(sources) > 1 and _counts_up(sources[1], count):
            return True
        record = sources[0] if record.op in SAME_NUMBERS or record.op in _CUTS else None
    return False


def _counts_up(indices: NodeRecord, count: int) -> bool:
    """Return whether a tensor has the indices of the first rows of a table: 0, 1, 2 …"""
    return indices.value is not None and indices.shape == (count,) and indices.value.counts_up


def _attention_behind(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the first attention that gets a result."""
    waiting, seen = deque([record.node]), {record.node}
    while waiting and len(seen) < _MOST_BEHIND:
        for node in survey.timeline.nodes.users(waiting.popleft()):
            user = survey.nodes.get(node)
            if user is None or node in seen:
                continue
            if _length(survey, user):
                return user
            seen.add(node)
            waiting.append(node)
    return None


def _length(survey: Survey, record: NodeRecord) -> int:
    """Return how many positions an attention of a sequence with itself looks over; 0 for any other operation."""
    if record.op in WEIGHTING:
        return record.shape[-1] if len(record.shape) > 2 and record.shape[-1] == record.shape[-2] else 0
    if not is_fused_attention(record.op):
        return 0
    sizes = {one.shape[-2] for one in list(survey.sources(record))[:3] if len(one.shape) > 2}
    return sizes.pop() if len(sizes) == 1 else 0


def _finding(survey: Survey, total: NodeRecord, x: NodeRecord, positions: NodeRecord, attention: NodeRecord) -> Finding:
    timeline = survey.timeline
    text = titled("{} gives a position to each sample of the batch, not to each token", label(timeline, total.node))
    added = f"{label(timeline, positions.node)} {shape_text(positions.shape)} is added to {shape_text(x.shape)}"
    over = f"{label_at(timeline, attention.node)} looks over dimension 1, of size {x.shape[1]}"
    part = Finding("operand", f"{added}; {over}", positions.seq, positions.node, at=survey.at(attention))
    fix = f"the rows of dimension 1, as ({', '.join(map(str, (1, *x.shape[1:])))}): pe[:x.size(1)].transpose(0, 1)"
    return Finding("position-of-samples", text, total.seq, total.node, (part,), fix, survey.at(total))
