"""A loss selects elements that were written without their history, as the logit of the true class.

Idea. An operation writes numbers without a gradient over some elements of a tracked tensor, and the loss selects
exactly those elements by the same indices. The loss then trains all elements except the selected ones.

Example. A margin loss computes the logits of the true classes under `no_grad`, and writes them with `index_put` into
the logits. The cross entropy still pushes the other classes away, but pulls no sample to its own class.

Limits. The written numbers must have been computed from the tensor into which they are written. The indices are
compared by the nodes from which they were made: labels, their one-hot form, and reshaped ones. What the program
detached itself may be meant, and is a note.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from gviz.events import StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import CLASS_LOSSES, ELEMENTWISE, RESHAPING, SAME_NUMBERS, SOFTMAXES
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import loses_tracking, mend, why_cut
from gviz.values.value import Stats

_WRITES = ("index_put", "scatter", "masked_scatter", "where", "add")
_CONVERSIONS = {"long", "int", "bool", "float", "double", "half", "to", "type", "type_as", "expand_as", "one_hot"}
_COMPARISONS = {"eq", "ne", "gt", "ge"}
_BETWEEN = ELEMENTWISE | RESHAPING | SOFTMAXES | {"rsub", "clamp_min", "clamp_max", "clone"}
"""Operations between the written elements and their selection."""

_LOOKUPS = {"gather", "index", "getitem", "take_along_dim"}
_FEWEST_COLUMNS = 3
_MOST_ALIKE, _MOST_NODES, _MOST_BETWEEN, _MOST_BEHIND = 2, 40, 12, 200
_NEARLY = 1e-4


@dataclass(frozen=True, slots=True)
class _Write:
    """Numbers without a gradient in place of some elements; `indices` are the nodes with the places, or a mask."""

    record: NodeRecord
    kept: NodeRecord
    values: NodeRecord
    indices: tuple[NodeRecord, ...]


def selected_without_gradient(survey: Survey) -> Iterator[Finding | None]:
    """Yield the writes of untracked numbers to just the elements that a loss selects: each line once."""
    counts, found, indices = Counter[int](), set[int](), _Indices(survey)
    for record in survey.ops(*_WRITES):
        yield None
        stack = record.created.stack
        if not record.created.requires_grad or stack in found or counts[stack] >= _MOST_ALIKE:
            continue
        write = _write(survey, record)
        if write is None:
            continue
        counts[stack] += 1
        cut = _cut(survey, write)
        selection = _selection(survey, write, indices) if cut is not None else None
        if cut is not None and selection is not None:
            found.add(stack)
            yield _finding(survey, write, cut, selection)


def _write(survey: Survey, record: NodeRecord) -> _Write | None:
    """Return what an operation writes, if it has one tracked tensor and one of untracked results."""
    if record.op == "add":
        return _mixed(survey, record)
    attrs, sources = dict(record.created.attrs), list(survey.sources(record))
    tracked = [one for one in sources if one.created.requires_grad]
    results = [one for one in sources if _is_result(one) and _is_float(one)]
    indices = tuple(one for one in sources if not _is_float(one))
    if len(tracked) != 1 or len(results) != 1 or not indices or attrs.get("accumulate") or attrs.get("reduce"):
        return None
    if record.op == "where" and (sources[1] is not results[0] or not _is_one_in_row(survey, indices[0], record.seq)):
        return None  # the elements outside of the mask
    return _Write(record, tracked[0], results[0], indices)


def _mixed(survey: Survey, record: NodeRecord) -> _Write | None:
    """Return the write of ``one_hot * values + (1 - one_hot) * logits``."""
    parts = [(one, list(survey.sources(one))) for one in survey.sources(record) if one.op == "mul"]
    if len(parts) != 2 or any(len(sources) != 2 for _, sources in parts):
        return None
    (_, one), (_, other) = sorted(parts, key=lambda part: part[0].created.requires_grad)
    if any(each.created.requires_grad for each in one) or sum(each.created.requires_grad for each in other) != 1:
        return None
    masks = [each for each in one if _is_one_in_row(survey, each, record.seq)]
    kept, rest = sorted(other, key=lambda each: not each.created.requires_grad)
    zeros, ones = _stats(survey, rest, record.seq), _stats(survey, masks[0], record.seq) if len(masks) == 1 else None
    if zeros is None or ones is None or abs(zeros.mean + ones.mean - 1) > _NEARLY:
        return None
    values = one[0] if masks[0] is one[1] else one[1]
    return _Write(record, kept, values, (masks[0],)) if _is_result(values) else None


def _is_result(record: NodeRecord) -> bool:
    return record.created.kind == "op" and not record.created.requires_grad and record.value is not None


def _is_float(record: NodeRecord) -> bool:
    return record.value is not None and "float" in record.value.dtype


def _stats(survey: Survey, record: NodeRecord, n: int) -> Stats | None:
    """Return the statistics of a tensor at event `n`: a one-hot tensor is made of zeros, and then written to."""
    value = survey.timeline.memory_value(record.node, 0, n)
    return value.statistics() if value is not None else None


def _is_one_in_row(survey: Survey, record: NodeRecord, n: int) -> bool:
    """Return whether a mask of 0 and 1 is true for one column of a row at most, of at least three columns."""
    stats = _stats(survey, record, n)
    columns = record.shape[-1] if len(record.shape) > 1 else 0
    if stats is None or columns < _FEWEST_COLUMNS or (stats.min, stats.max) != (0, 1):
        return False
    size = record.value.size if record.value is not None else 0
    return 0 < stats.mean <= 1 / columns + _NEARLY and abs(stats.mean * size - (size - stats.zero)) < 0.5


def _cut(survey: Survey, write: _Write) -> NodeRecord | None:
    """Return where the written numbers lost the history of the tensor into which they are written."""
    origins, one = {write.kept.node}, write.kept
    for _ in range(_MOST_BETWEEN):
        tracked = [source for source in survey.sources(one) if source.created.requires_grad]
        if len(tracked) != 1 or one.op not in _BETWEEN:
            break
        one = tracked[0]
        origins.add(one.node)
    if survey.optimized.isdisjoint(_history(survey, one)):
        return None
    waiting, seen = [write.values], {write.values.node}
    while waiting and len(seen) < _MOST_NODES:
        record = waiting.pop(0)
        if loses_tracking(survey.timeline, record.node) and not origins.isdisjoint(_history(survey, record)):
            return record
        for source in survey.sources(record):
            if source.node not in seen and source.created.kind == "op" and not source.created.requires_grad:
                seen.add(source.node)
                waiting.append(source)
    return None


def _history(survey: Survey, record: NodeRecord) -> Iterator[int]:
    return islice(survey.history(record.node), _MOST_BEHIND)


class _Indices:
    """The nodes that say which elements are meant: labels, and what was made of them without another choice."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._writers: defaultdict[int, list[int]] = defaultdict(list)
        for _, event in survey.select(StorageWritten):
            if len(self._writers[event.storage]) < _MOST_ALIKE and event.node in survey.nodes:
                self._writers[event.storage].append(event.node)

    def of(self, record: NodeRecord) -> set[int]:
        """Return a node of places and the nodes that it was made from."""
        waiting, seen = [record], {record.node}
        while waiting and len(seen) < _MOST_NODES:
            one = waiting.pop()
            new = [source for source in self._made_from(one) if source.node not in seen]
            seen |= {source.node for source in new}
            waiting += new
        return seen

    def _made_from(self, record: NodeRecord) -> Iterator[NodeRecord]:
        sources = list(self._survey.sources(record))
        if record.op in ("scatter", "index_put"):
            yield from (one for one in sources[1:] if not _is_float(one))
        elif record.op in SAME_NUMBERS or record.op in _CONVERSIONS:
            yield from sources[:1]
        elif record.op in _COMPARISONS:
            yield from (one for one in sources if one.value is not None and one.value.size > 1)
        for output in record.created.outputs[:1]:
            for node in self._writers.get(output.storage, ()):
                if node != record.node and self._survey.nodes[node].op in ("scatter", "index_put"):
                    yield self._survey.nodes[node]


def _selection(survey: Survey, write: _Write, indices: _Indices) -> NodeRecord | None:
    """Return the loss, or another operation, that selects the written elements."""
    written = set[int]().union(*(indices.of(one) for one in write.indices))
    waiting, seen = [write.record], {write.record.node}
    while waiting and len(seen) < _MOST_NODES:
        record = waiting.pop(0)
        users = (survey.nodes.get(node) for node in survey.timeline.nodes.users(record.node))
        for user in users:
            if user is None or not user.created.requires_grad or user.node in seen:
                continue
            seen.add(user.node)
            sources = list(survey.sources(user))
            if user.op in CLASS_LOSSES or user.op in _LOOKUPS:
                places = [
                    one
                    for one in sources[1:]
                    if not _is_float(one) and not (one.value is not None and one.value.counts_up)
                ]
                if len(places) == 1 and not written.isdisjoint(indices.of(places[0])):
                    return user
            elif user.op in _BETWEEN and sum(one.created.requires_grad for one in sources) == 1:
                waiting.append(user)
    return None


def _finding(survey: Survey, write: _Write, cut: NodeRecord, selection: NodeRecord) -> Finding:
    timeline, info = survey.timeline, survey.timeline.info(cut.node)
    written, loss = label(timeline, write.record.node), label(timeline, selection.node)
    text = titled("the elements of {} that {} selects have no gradient", written, loss)
    values = f"{label(timeline, write.values.node)} is written into {label(timeline, write.kept.node)}"
    lost = f"{values}, and was cut at {label_at(timeline, cut.node)}: {why_cut(info)}"
    how = mend(timeline, info)
    parts = (
        Finding("cut", lost, write.record.seq, write.values.node, at=survey.at(write.record)),
        Finding("used", f"{label_at(timeline, selection.node)} selects these elements", selection.seq, selection.node),
    )
    at = how.at or innermost(info)
    suspected = not info.created.switched_off
    return Finding(
        "cut-selection",
        text,
        write.record.seq,
        write.record.node,
        parts,
        how.fix,
        at,
        suspected=suspected,
        edit=how.edit,
    )
