"""The mean of a masked loss that also counts the masked elements.

Idea. ``(loss * mask).mean()`` divides by the number of all elements, so that the loss and every gradient shrink with
the share of padding, which differs between batches. The intended mean is ``(loss * mask).sum() / mask.sum()``.

Limits. A label of 0 and 1 is not such a mask. The mask must come from a comparison of data, or must be data that ends
sequences. A mask that is made from the prediction, as in a one-sided loss, belongs to the loss.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import CARRYING_ONE_TERM, CLASS_LOSSES, JOINING_TERMS, LOSSES, SAME_NUMBERS
from gviz.explain.program_text import ProgramText, names_read
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Change, Edit, rewritten
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.value import Array

_COMPARISONS = {"ne", "lt", "le", "gt", "ge", "not_equal", "less", "less_equal", "greater", "greater_equal"}
_OF_ELEMENTS = {"kl_div", "pow", "square", "abs", *LOSSES, *CLASS_LOSSES}
"""Operations that give a loss for each element."""


def masked_mean(survey: Survey) -> Iterator[Finding | None]:
    """Yield means of a loss for each element that a mask has set to zero in part; each line once.

    Two means whose masks keep what the other leaves out, as of positive and negative samples, are the terms of a loss.
    """
    seen: set[int] = set()
    candidates: list[tuple[NodeRecord, NodeRecord, NodeRecord, tuple[int, int]]] = []
    for record in survey.ops("mean"):
        if record.created.stack in seen or not record.created.requires_grad or record.shape:
            continue
        product = survey.unwrapped(next(survey.sources(record), record))
        if product.op not in ("mul", "masked_fill"):
            continue
        yield None
        seen.add(record.created.stack)
        sources = list(survey.sources(product))
        losses = [one for one in sources if one.created.requires_grad]
        masks = [one for one in sources if not one.created.requires_grad and one.shape]
        if len(losses) == len(masks) == 1 and survey.unwrapped(losses[0]).op in _OF_ELEMENTS:
            kept = _kept_count(survey, masks[0], is_fill=product.op == "masked_fill")
            if kept is not None and _is_part_of_loss(survey, record):
                candidates.append((record, losses[0], masks[0], kept))
    counts = [kept for *_, kept in candidates]
    for record, loss, mask, (count, size) in candidates:
        if (size - count, size) not in counts:
            yield _masked_mean_finding(survey, record, loss, mask, (count, size))


def _kept_count(survey: Survey, mask: NodeRecord, *, is_fill: bool) -> tuple[int, int] | None:
    """Return how many elements a mask keeps, and of how many; None if it keeps all or none, or is no such mask."""
    value = mask.value
    stats = value.statistics() if value is not None else None
    if value is None or stats is None or stats.min != 0 or stats.max != 1 or stats.nan:
        return None
    ones = value.size - stats.zero
    if abs(stats.mean * value.size - ones) > 1e-3 * value.size:
        return None
    sources = [survey.nodes[node] for node in ancestors(survey.timeline, mask.node) if node in survey.nodes]
    if any(one.created.requires_grad or one.op in ("tril", "triu") for one in (mask, *sources)):
        return None
    array = survey.timeline.array(value)
    ends_rows = array is not None and _ends_rows(array.astype(bool) ^ is_fill)
    if not ends_rows and not any(one.op in _COMPARISONS for one in _conversions(survey, mask)):
        return None
    return (stats.zero if is_fill else ones), value.size


def _ends_rows(kept: Array) -> bool:
    """Return whether every row keeps a beginning, of at least two different lengths."""
    if kept.ndim < 2 or kept.shape[-1] < 2:
        return False
    rows = kept.reshape(-1, kept.shape[-1])
    return bool((rows[:, 1:] <= rows[:, :-1]).all()) and len(np.unique(rows.sum(axis=1))) > 1


def _conversions(survey: Survey, record: NodeRecord) -> Iterator[NodeRecord]:
    """Yield a mask, and the masks that it converts, views or combines."""
    waiting, seen = [record], {record.node}
    while waiting:
        one = waiting.pop()
        yield one
        if one.op in SAME_NUMBERS or one.op in _CONVERTING:
            waiting += [source for source in survey.sources(one) if source.node not in seen]
            seen.update(source.node for source in survey.sources(one))


_CONVERTING = {"float", "to", "type_as", "double", "half", "bool", "logical_not", "logical_and", "bitwise_and"}


def _is_part_of_loss(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a pass began at a mean, or at a sum or a multiple of it.

    A quotient by another result, such as the mean of the mask, may normalize it.
    """
    nodes, waiting, seen = survey.timeline.nodes, [record.node], {record.node}
    while waiting:
        node = waiting.pop()
        if node in survey.roots:
            return True
        for user in nodes.users(node):
            one = survey.nodes.get(user)
            if one is None or user in seen or one.op not in {*JOINING_TERMS, *CARRYING_ONE_TERM}:
                continue
            others = [source for source in survey.sources(one) if source.node not in seen]
            if one.op not in ("div", "mul") or not any(source.created.kind == "op" for source in others):
                seen.add(user)
                waiting.append(user)
    return False


def _masked_mean_finding(
    survey: Survey, record: NodeRecord, loss: NodeRecord, mask: NodeRecord, kept: tuple[int, int]
) -> Finding:
    timeline, (count, size) = survey.timeline, kept
    text = titled("{} also counts the elements that the mask sets to 0", label(timeline, record.node))
    named = label(timeline, mask.node)
    part = Finding(
        "mask", f"{named} keeps {count} of {size} elements: the loss is {number(count / size, 3)} of their mean",
        record.seq, record.node,
    )  # fmt: skip
    name = timeline.info(mask.node).name
    divisor = f"{name}.sum()" if name.isidentifier() else "mask.sum()"
    fix = f".sum() / {divisor} instead of .mean()"
    at = innermost(timeline.info(record.node))
    is_factor = next(survey.sources(record), record).op == "mul" and mask.shape == loss.shape
    edit = _divided_by_mask(timeline, at, name) if is_factor and name.isidentifier() else None
    return Finding("masked-mean", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)


# What the program's source code shows


def _divided_by_mask(timeline: Timeline, at: Frame | None, mask: str) -> Edit | None:
    """Replace ``(loss * mask).mean()`` with ``((loss * mask).sum() / mask.sum())``."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(value=product, attr="mean"), args=[], keywords=[]) if (
                    mask in names_read(product)
                ):
                    whole = text.segment(part).rpartition(".")[0]
                    return f"({whole}.sum() / {mask}.sum())"
            return None

        return known

    return rewritten(timeline, at, change)
