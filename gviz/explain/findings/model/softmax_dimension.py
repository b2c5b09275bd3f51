"""A softmax over another dimension than the one over which its weights are summed."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.model.softmax_index_groups import softmax_of_other_groups
from gviz.explain.operation_sets import DROPOUTS, RESHAPING
from gviz.explain.recording_survey import NodeRecord, Survey, dimensions_named
from gviz.explain.source_edit import with_dim


def softmax_of_other_dim(survey: Survey) -> Iterator[Finding | None]:
    """Yield a softmax that is the left factor of a matrix product, and does not add up to one along its rows.

    A product sums over the last dimension of its left factor. Weights that are divided or transposed before it are
    left out, and so are those that the program also adds up along their rows: a soft assignment, as in NetVLAD. That
    of groups of rows is `softmax_of_other_groups`.
    """
    yield from softmax_of_other_groups(survey)
    seen = set[int]()
    for record in survey.ops("softmax"):
        yield None
        dim, rank = dict(record.created.attrs).get("dim"), len(record.shape)
        if not isinstance(dim, int) or rank < 2 or dim % rank == rank - 1 or record.created.stack in seen:
            continue
        if record.shape[-1] < 2 or (product := _left_of_product(survey, record)) is None:
            continue
        if _is_summed_along_rows(survey, record):
            continue
        seen.add(record.created.stack)
        timeline = survey.timeline
        text = titled(
            "{} sums to 1 over dim {}, but its product sums over the last", label(timeline, record.node), f"{dim}"
        )
        part = Finding("used", f"{label_at(timeline, product.node)} is that product", product.seq, product.node)
        at = survey.at(record)
        fix = "softmax over the dimension of what is attended to: dim=-1"
        edit = with_dim(timeline, at, "softmax", "-1")
        yield Finding("softmax-dim", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)


def _is_summed_along_rows(survey: Survey, record: NodeRecord) -> bool:
    """Return whether the program adds up a softmax over its last dimension: it does not expect a sum of one there."""
    rank = len(record.shape)
    users = (survey.nodes.get(node) for node in survey.timeline.nodes.users(record.node))
    sums = (user for user in users if user is not None and user.op in ("sum", "mean"))
    return any(rank - 1 in dimensions_named(dict(one.created.attrs).get("dim"), rank) for one in sums)


def _left_of_product(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the matrix product whose left factor is this node, at once or after a dropout or a change of its batch."""
    for node in survey.timeline.nodes.users(record.node):
        user = survey.nodes.get(node)
        if user is None or not user.created.inputs or user.created.inputs[0][0] != record.node:
            continue
        if user.op in ("matmul", "bmm", "mm"):
            return user
        keeps_rows = user.op in DROPOUTS or user.op in {*RESHAPING, "expand", "mul"}
        if keeps_rows and user.shape[-2:] == record.shape[-2:]:
            product = _left_of_product(survey, user)
            if product is not None:
                return product
    return None
