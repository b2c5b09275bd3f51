"""Additions in place at an index with equal elements: ``out[rows] += x`` keeps only one term of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from gviz.events import Edge
from gviz.explain.display_names import output_label, titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, statement_instead
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.value import Value

# ``out[rows] += x`` where a row occurs twice: each element of `x` starts from the old number, and the last one wins


def duplicate_index(survey: Survey) -> Iterator[Finding | None]:
    """Yield additions at an index with equal elements, each line once: all but one of their terms are lost."""
    seen: set[int] = set()
    for record in survey.ops("index_put", "setitem", "index_copy"):
        if record.created.stack in seen or not record.created.requires_grad or len(record.created.inputs) != 3:
            continue
        yield None
        (target, _), (value, _), index = record.created.inputs
        total, written = survey.nodes.get(value), survey.nodes.get(target)
        if total is None or written is None or total.op not in ("add", "sub"):
            continue
        read = next((one for one in survey.sources(total) if one.created.inputs == ((target, 0), index)), None)
        if read is None or dict(record.created.attrs).get("accumulate"):
            continue
        if terms := _lost_terms(survey, written, index):
            seen.add(record.created.stack)
            fits = _fits_index_add(survey, total, read, index)
            yield _duplicate_finding(survey, record, index, terms, fits_index_add=fits)


def _lost_terms(survey: Survey, written: NodeRecord, index: Edge) -> str:
    """Return how many elements of an index repeat an earlier one, as ``1 term is lost``; empty if none is known to.

    Without its numbers: an index of more elements than the longest dimension has some more than once.
    """
    value = _index_value(survey, index)
    if value is None or value.dtype not in _INDICES or not written.shape:
        return ""
    array = survey.timeline.array(value)
    count = value.size - (len(np.unique(array)) if array is not None else max(written.shape))
    lost = f"{count} term is lost" if count == 1 else f"{count} terms are lost"
    return "" if count < 1 else lost if array is not None else f"at least {lost}"


def _index_value(survey: Survey, index: Edge) -> Value | None:
    record = survey.nodes.get(index[0])
    outputs = record.created.outputs if record is not None else ()
    return outputs[index[1]].value if index[1] < len(outputs) else None


def _fits_index_add(survey: Survey, total: NodeRecord, read: NodeRecord, index: Edge) -> bool:
    """Return whether ``index_add_`` does the same: for an index of one dimension, and a tensor of the rows' shape."""
    value = _index_value(survey, index)
    added = [one for one in survey.sources(total) if one is not read]
    is_tensor = len(added) == 1 and len(total.created.inputs) == 2 and added[0].shape == total.shape
    return value is not None and len(value.shape) == 1 and is_tensor


_INDICES = ("int64", "int32", "int16", "int8", "uint8")


def _duplicate_finding(survey: Survey, record: NodeRecord, index: Edge, terms: str, *, fits_index_add: bool) -> Finding:
    timeline, at = survey.timeline, survey.at(record)
    text = titled("an addition at {} loses terms: its elements repeat", output_label(timeline, *index))
    each = f"{terms}: of the terms with one index only the last is added"
    part = Finding("dropped", each, record.seq, record.node, at=at)
    fix = "out.index_add_(0, index, x), or scatter_add_, which add up all terms with one index"
    edit = indices_added(timeline, at) if fits_index_add else None
    return Finding("duplicate-index", text, record.seq, record.node, (part,), fix, at, edit=edit)


def indices_added(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``out[rows] += x`` with ``out.index_add_(0, rows, x)``."""
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.AugAssign(target=ast.Subscript(value=tensor, slice=rows), op=ast.Add() | ast.Sub() as op, value=value):
            if source is None or isinstance(rows, ast.Tuple | ast.Slice):
                return None
            tensor_text, rows_text, added = (source[0].segment(part) for part in (tensor, rows, value))
            sign = ", alpha=-1" if isinstance(op, ast.Sub) else ""
            return statement_instead(timeline, at, f"{tensor_text}.index_add_(0, {rows_text}, {added}{sign})")
    return None
