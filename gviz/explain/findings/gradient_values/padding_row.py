"""The padding row of an embedding: a row that is trained, that stands for a real token, or that is not zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.parameter_initialization import writes_all, written_at
from gviz.explain.program_text import line_text, written_name
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import (
    after,
    with_keyword,
    without_keyword,
)
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.tracking import ancestors
from gviz.trace.timeline import Timeline
from gviz.values.number_text import times_text
from gviz.values.value import Array, Value, capture
from gviz.values.value_text import grad

# Rows of an embedding that only pad the ends of sequences, and are trained all the same

_LEAST_FILLED = 3
"""The fewest padded positions in the recording."""


def padding_trained(survey: Survey) -> Iterator[Finding | None]:
    """Yield embeddings that have no padding index, but a row that only pads sequences of different lengths."""
    timeline, seen = survey.timeline, dict[int, list[NodeRecord]]()
    for record in survey.ops("embedding"):
        weight = record.created.inputs[0][0] if record.created.inputs else 0
        seen.setdefault(weight, []).append(record)
    got = {event.node: event.part for _, event in survey.accumulated}
    for weight, uses in seen.items():
        yield None
        index = dict(uses[0].created.attrs).get("padding_idx", -1)
        if weight not in got or (isinstance(index, int) and index >= 0):
            continue
        inputs = [list(survey.sources(one)) for one in uses]
        ids = [timeline.array(pair[1].value) for pair in inputs if len(pair) > 1 and pair[1].value is not None]
        row = _filling(ids)
        gradient = timeline.array(got[weight])
        if row is None or gradient is None or not gradient[row].any():
            continue
        info = timeline.info(weight)
        text = titled(f"row {row} of {{}} is trained, although it only pads sequences", label(timeline, weight))
        part = Finding(
            "share", f"its last gradient was {grad(capture(gradient[row]))}", survey.accumulated[-1][0], weight
        )
        fix = f"nn.Embedding(..., padding_idx={row}), or mask these positions before they are added up"
        at = innermost(info)
        edit = with_keyword(timeline, at, "Embedding", "padding_idx", str(row))
        yield Finding("padding-trained", text, uses[0].seq, weight, (part,), fix, at, suspected=True, edit=edit)


def _filling(batches: Sequence[Array | None]) -> int | None:
    """Return the index that only occurs in runs of different lengths at the ends of rows; None if there is none."""
    runs: set[int] = set()
    filled, endings = 0, set[int]()
    for ids in batches:
        if ids is None or ids.ndim != 2 or ids.shape[0] < 2 or ids.shape[1] < 2:
            return None
        for row in ids.tolist():
            last = row[-1]
            run = next((n for n, one in enumerate(reversed(row)) if one != last), len(row))
            if run > 1 or last in endings:
                endings.add(last)
    if len(endings) != 1:
        return None
    (index,) = endings
    for ids in batches:
        for row in ids.tolist() if ids is not None else ():
            run = next((n for n, one in enumerate(reversed(row)) if one != index), len(row))
            if index in row[: len(row) - run]:
                return None
            runs.add(run)
            filled += run
    return index if len(runs) > 1 and filled >= _LEAST_FILLED and index in (0, 1) else None


# A padding row that real data uses: it gets no gradient, so it never learns


def padding_used(survey: Survey) -> Iterator[Finding | None]:
    """Yield embeddings whose padding row is a real token: it is between other tokens, or a target of the loss.

    If it only pads, the loss should not count it as a target: ``ignore_index`` excludes it.
    """
    timeline = survey.timeline
    uses: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for record in survey.ops("embedding"):
        if record.created.requires_grad and len(uses[record.created.inputs[0][0]]) < _MOST_USES:
            uses[record.created.inputs[0][0]].append(record)
    for weight, records in uses.items():
        record, row = records[0], dict(records[0].created.attrs).get("padding_idx")
        if weight not in survey.nodes or not isinstance(row, int) or row < 0 or weight not in survey.optimized:
            continue
        yield None
        ids = next((one for one in list(survey.sources(record))[1:2]), None)
        between = _count_between(timeline.array(ids.value) if ids is not None and ids.value is not None else None, row)
        flat = _count_flat(survey, records, row) if not between else None
        target = _as_target(survey, record, row)
        if not between and flat is None and target is None:
            continue
        title = f"row {row} of {{}} never learns: it is the padding row"
        facts, at, edit = [f"index {row} is between other tokens {times_text(between)}"] * bool(between), None, None
        fix = f"remove padding_idx if index {row} is a token"
        if flat is not None:
            count, size = flat
            of = f"of {size} ids in one dimension, which have no padding"
            facts = [f"it is the index of {count} {of}" if count else f"it may be among the numbers of {size} ids"]
            title = title if count else f"row {row} of {{}} may be a real id, but it is the padding row"
            fix = f"remove padding_idx if id {row} is one of the data, or count ids from 1"
            at = innermost(timeline.info(weight))
            edit = without_keyword(timeline, at, "Embedding", "padding_idx") if count else None
        if target is not None:
            loss, counted = target
            facts.append(f"{counted} of the loss{at_text(timeline.stack(loss.created.stack))} are {row}")
            fix, edit = f"{fix}; use ignore_index={row} in the loss if it only pads", None
        stays = f"padding_idx={row} keeps its gradient at zero"
        text = titled(title, label(timeline, weight))
        part = Finding("padding", f"{stays}, but {' and '.join(facts)}", record.seq, weight)
        at = innermost(timeline.info(weight))
        yield Finding("padding-used", text, record.seq, weight, (part,), fix, at, suspected=True, edit=edit)


_MOST_USES = 20
"""The most uses of an embedding that are examined."""

_PARTS = frozenset({"select", "slice", "unbind", "view", "reshape", "flatten", "_unsafe_view", "squeeze", "split", "t"})


def _count_flat(survey: Survey, uses: list[NodeRecord], row: int) -> tuple[int, int] | None:
    """Return how often an index occurs among ids of one dimension, between others, and the number of these ids.

    None if it does not, or if the ids may be a part of padded sequences. 0 times if it may, which is not known.
    """
    found: tuple[int, int] | None = None
    for record in uses:
        ids = next((one for one in list(survey.sources(record))[1:2]), None)
        if ids is None or ids.value is None or len(ids.shape) != 1 or _is_of_sequences(survey, ids):
            return None
        array, stats = survey.timeline.array(ids.value), ids.value.statistics()
        if array is not None:
            count = int((array == row).sum()) if _count_inside((array != row)[None]) else 0
            if count and not found:
                found = count, array.size
        elif stats is not None and stats.min <= row <= stats.max and (row or stats.zero):
            found = found or (0 if row else stats.zero, ids.value.size)
    return found


def _is_of_sequences(survey: Survey, ids: NodeRecord) -> bool:
    """Return whether ids are a column, a row, or all elements of a tensor of several dimensions in its order."""
    while ids.created.kind == "op":
        sources = list(survey.sources(ids))
        if not sources:
            return False
        if len(sources) > 1 and len(sources[0].shape) == 1:
            return False  # an index of samples: they have no order
        if len(sources[0].shape) > 1 and (ids.op in _PARTS or ids.op in SAME_NUMBERS):
            return True
        if ids.op not in _PARTS and ids.op not in SAME_NUMBERS:
            return False
        ids = sources[0]
    return False


def _count_between(ids: Array | None, row: int) -> int:
    """Return how often an index has other ones before and after it in its sequence; 0 if it may only pad.

    The sequences may lie along either dimension of the indices. Indices of one dimension are not sequences, and neither
    are the rows of a table whose columns have no number in common.
    """
    if ids is None or ids.ndim != 2 or not ids.size:
        return 0
    columns = [set(column) - {row} for column in ids.T.tolist()]
    if not any(one & following for one, following in pairwise(columns)):
        return 0
    counts = [_count_inside(rows != row) for rows in (ids, ids.T)]
    return counts[0] if all(counts) else 0


def _count_inside(is_other: Array) -> int:
    """Return how many False elements of rows have True ones before and after them."""
    before = np.logical_or.accumulate(is_other, axis=1)
    after = np.logical_or.accumulate(is_other[:, ::-1], axis=1)[:, ::-1]
    return int((~is_other & before & after).sum())


def _as_target(survey: Survey, embedded: NodeRecord, row: int) -> tuple[NodeRecord, str] | None:
    """Return a loss computed from an embedding that has index `row` among its targets, and a text with their number.

    The loss must have as many classes as the embedding has rows. A loss with class weights, or one without a reduction,
    does not count: it may leave padding out.
    """
    rows, seen = survey.nodes[embedded.created.inputs[0][0]].shape[0], set[int]()
    for record in survey.ops("nll_loss", "nll_loss2d"):
        inputs, options = list(survey.sources(record)), dict(record.created.attrs)
        if (
            len(inputs) < 2
            or len(inputs[0].shape) < 2
            or inputs[0].shape[1] != rows
            or not record.created.requires_grad
        ):
            continue
        value = inputs[1].value
        leaves_out = options.get("ignore_index") == row or options.get("reduction") == "none" or len(inputs) > 2
        if value is None or leaves_out or record.created.stack in seen:
            continue
        seen.add(record.created.stack)
        array, stats = survey.timeline.array(value), value.statistics()
        of_statistics = stats.zero if stats is not None and row == 0 else 0
        count = of_statistics if array is None else int((array == row).sum())
        if count and embedded.node in ancestors(survey.timeline, record.node):
            return record, f"{count} of the {value.size} targets"
    return None


# The padding row of an embedding: it is zero, unless an initialization fills it


def padding_filled(survey: Survey) -> Iterator[Finding | None]:
    """Yield embeddings whose padding row is not zero: it gets no gradient, so it never changes.

    Frozen weights and those of ``from_pretrained`` do not count: they were trained with this row.
    """
    timeline, seen = survey.timeline, set[int]()
    for record in survey.ops("embedding"):
        weight, row = (
            record.created.inputs[0][0] if record.created.inputs else 0,
            dict(record.created.attrs).get("padding_idx"),
        )
        if weight in seen or weight not in survey.nodes or not isinstance(row, int) or row < 0:
            continue
        if not record.created.requires_grad:
            continue
        yield None
        seen.add(weight)
        if any("from_pretrained(" in line_text(timeline, frame) for frame in timeline.info(weight).frames):
            continue
        shape, value = survey.nodes[weight].shape, timeline.memory_value(weight, 0, record.seq)
        ids = next((timeline.memory_value(*edge, record.seq) for edge in record.created.inputs[1:2]), None)
        if (
            len(shape) == 2
            and shape[1]
            and not _may_be_zero(timeline, value, row, shape[1])
            and _is_among(timeline, ids, row)
        ):
            yield _filled_finding(survey, record, weight, row)


def _may_be_zero(timeline: Timeline, value: Value | None, row: int, width: int) -> bool:
    """Return whether a row may be zero: by its elements, or by the number of zeros in the whole weight."""
    array = timeline.array(value) if value is not None else None
    if array is not None:
        return not array.reshape(-1, width)[row].any()
    stats = value.statistics() if value is not None else None
    return stats is None or stats.zero >= width


def _is_among(timeline: Timeline, value: Value | None, row: int) -> bool:
    """Return whether an index is used. If the elements are not stored, only the least and the greatest are known."""
    array = timeline.array(value) if value is not None else None
    stats = value.statistics() if value is not None else None
    return bool((array == row).any()) if array is not None else stats is not None and row in (stats.min, stats.max)


def _filled_finding(survey: Survey, record: NodeRecord, weight: int, row: int) -> Finding:
    timeline, info = survey.timeline, survey.timeline.info(weight)
    at = written_at(timeline, info, writes_all) or innermost(info)
    text = titled(f"the padding row {row} of {{}} is not zero, and is never trained", label(timeline, weight))
    stays = "an initialization has filled it; padding_idx only keeps its gradient zero, so it keeps these numbers"
    part = Finding("first", stays, record.seq, weight)
    named = written_name(timeline, at)
    own, path = f".{info.name}", f".{named.removeprefix('self.')}"
    if not own.endswith(path) and not path.endswith(own):
        named = ""  # the variable of a loop, which also fills other parameters
    fix = f"set it to zero after the initialization: with torch.no_grad(): {named or 'emb.weight'}[{row}] = 0"
    edit = after(timeline, at, f"{named}.data[{row}].zero_()") if named else None
    return Finding("padding-filled", text, record.seq, weight, (part,), fix, at, suspected=True, edit=edit)
