"""Labels of tokens two places after the input: the model learns to predict the token after the next one.

Idea. A model of tokens gets the tokens up to a place and predicts the next one, so either its input or its labels are
shifted by one. If the data does that and the loss does it again, the label at place t is the token that the model gets
at t + 2. The recording shows which elements of the memory were copied to the indices of the embedding, to the
labels and to the rows of the logits. So no elements need to be known.

Example. ``decoder_input_ids = shift_right(labels)``, and a loss of ``logits[:, :-1]`` and ``labels[:, 1:]``.

Limits. Batches that a data loader makes outside of the recording are compared by their elements, if these are known.
A program that has another loss with the next token, or with one further away, predicts several tokens on purpose.
Labels that are two places later by one shift may be meant, so that is a note. So are labels that are shifted twice,
if there is another loss over the same classes, whose labels the recording does not show.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from gviz.events import Output
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import CLASS_LOSSES
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.values.value import Array

_CALLS = 3
"""The calls of a loss on a line that are compared."""

_FEWEST, _MOST = 8, 1 << 20
"""The fewest and the most tokens that are compared."""

_MOST_NODES = 20_000
_SHIFTS = (-1, 0, 1, 2, 3)
_IN_ORDER = frozenset(
    {"clone", "contiguous", "view", "reshape", "_unsafe_view", "_reshape_alias", "flatten", "to", "long", "int",
     "alias", "masked_fill", "unsqueeze", "squeeze", "float", "detach", "getitem"}
)  # fmt: skip
"""Operations whose result has the elements of the input in their order, if both are of one size."""

_LESS = 34
"""A place is the number of a memory and an element of it, in one number."""


@dataclass(frozen=True, slots=True)
class _Tensor:
    """One output of a node."""

    record: NodeRecord
    output: int

    @property
    def made(self) -> Output:
        """The output as it was made."""
        return self.record.created.outputs[self.output]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape; that of a scalar if it is unknown."""
        return self.made.value.shape if self.made.value is not None else ()

    @property
    def size(self) -> int:
        """The number of its elements; 0 if it is unknown."""
        return self.made.value.size if self.made.value is not None else 0

    def is_in_order(self, elements: Array) -> bool:
        """Return whether some places in its memory are the elements of these numbers."""
        step, steps = 1, list[int]()
        for size in reversed(self.shape):
            steps.insert(0, step)
            step *= size
        strides = self.made.strides if self.made.strides is not None else steps
        is_dense = all(size == 1 or one == at for size, one, at in zip(self.shape, strides, steps, strict=True))
        return (
            is_dense
            and not self.made.offset
            and len(elements) > 0
            and 0 <= elements.min() <= elements.max() < self.size
        )


@dataclass(frozen=True, slots=True)
class TokenPair:
    """A loss whose labels were found in the indices that an embedding gets, `shift` places later.

    `length` is the number of places in a sequence of indices.
    """

    loss: NodeRecord
    labels: _Tensor
    indices: _Tensor
    lookup: NodeRecord
    shift: int
    length: int


def losses_of_tokens(survey: Survey) -> list[list[NodeRecord]]:
    """Return the losses of each line that may compare tokens; empty if nothing looks up tokens."""
    by_line: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for record in survey.ops(*CLASS_LOSSES) if survey.by_op.get("embedding") else ():
        if record.created.requires_grad and not record.created.during[0]:
            by_line[record.created.stack].append(record)
    return list(by_line.values())


def token_pairs(survey: Survey, losses: Sequence[NodeRecord], origins: Origins) -> Iterator[TokenPair | None]:
    """Yield the labels and indices of the first losses of a line; None for a loss without them."""
    return (_pair(survey, record, origins) for record in losses[:_CALLS])


def predicts_earlier_tokens(survey: Survey) -> bool:
    """Return whether labels are tokens before those that the model gets, as for a language model from right to left."""
    return min(shifts_of_labels(survey) or {0}) < 0


def shifts_of_labels(survey: Survey) -> set[int] | None:
    """Return how many places after the tokens that the model gets its labels are, if they are tokens of the input.

    None if no loss compares classes, or if the model gets no tokens.
    """
    losses = losses_of_tokens(survey)
    origins = Origins(survey)
    pairs = (pair for records in losses for pair in token_pairs(survey, records, origins))
    return {pair.shift for pair in pairs if pair is not None} if losses else None


def shifted_twice(survey: Survey) -> Iterator[Finding | None]:
    """Yield the losses whose labels are always the token two places after the one that the model gets."""
    origins, pairs, others = Origins(survey), list[list[TokenPair]](), list[NodeRecord]()
    for records in losses_of_tokens(survey):
        found = []
        for pair in token_pairs(survey, records, origins):
            yield None
            found.append(pair)
        known = [pair for pair in found if pair is not None]
        if known and len(known) == len(found):
            pairs.append(known)
        elif not known:
            others.append(records[0])
    others += [one for one in survey.ops("gather", "getitem") if _is_likelihood(survey, one)]
    if all(pair.shift == 2 for known in pairs for pair in known):
        for known in pairs:
            yield _finding(survey, known[0], origins, others)


def _is_likelihood(survey: Survey, record: NodeRecord) -> bool:
    """Return whether an operation reads log-probabilities by an index, as a loss without a function of its own does."""
    sources = [*survey.sources(record)]
    return record.created.requires_grad and len(sources) > 1 and sources[0].op == "log_softmax"


def _classes(survey: Survey, record: NodeRecord) -> int:
    """Return the number of classes of a loss or of log-probabilities."""
    source = next(survey.sources(record), None)
    shape = source.shape if source is not None else ()
    is_in_the_middle = record.op in CLASS_LOSSES and len(shape) > 2
    return shape[1 if is_in_the_middle else -1] if shape else 0


# From where elements were copied


class Origins:
    """For each element of a tensor, the memory that it was copied from, and the element there."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.makers: dict[int, _Tensor] = {}
        self.writes: defaultdict[int, list[NodeRecord]] = defaultdict(list)
        for record in survey.nodes.values():
            for nr, output in enumerate(record.created.outputs):
                if output.storage not in self.makers:
                    self.makers[output.storage] = _Tensor(record, nr)
                elif record.op in ("setitem", "copy") and record.created.outputs[0].storage == output.storage:
                    self.writes[output.storage].append(record)

    def tensor(self, node: int, output: int) -> _Tensor | None:
        """Return an output of a node; None if it is not known."""
        record = self.survey.nodes.get(node)
        if record is None or output >= len(record.created.outputs) or record.created.outputs[output].value is None:
            return None
        return _Tensor(record, output)

    def inputs(self, record: NodeRecord) -> list[_Tensor | None]:
        """Return the tensors that an operation got."""
        return [self.tensor(node, nr) for node, nr in record.created.inputs]

    def of(self, tensor: _Tensor, elements: Array, before: int, depth: int = 0) -> Array:
        """Return the origin of each of some elements of a tensor, as it was at event `before`."""
        places = _addresses(tensor, elements)
        return self._of_memory(tensor.made.storage, places, before, depth)

    def _of_memory(self, storage: int, places: Array, before: int, depth: int) -> Array:
        found = (storage << _LESS) + places
        if depth > 50:
            return found
        open_places = np.ones(len(places), bool)
        for write in reversed(self.writes.get(storage, ())):
            if write.seq < before and open_places.any():
                written = self._written(write, places)
                if written is None:
                    continue
                source, elements = written
                chosen = open_places & (elements >= 0)
                if chosen.any():
                    found[chosen] = self.of(source, elements[chosen], write.seq, depth + 1)
                    open_places &= ~chosen
        maker = self.makers.get(storage)
        if maker is not None and maker.record.created.kind == "op" and maker.is_in_order(places[open_places]):
            for source, numbers, elements in self._copied(maker, places[open_places]):
                at = np.flatnonzero(open_places)[numbers]
                found[at] = self.of(source, elements, maker.record.seq, depth + 1)
        return found

    def _written(self, write: NodeRecord, places: Array) -> tuple[_Tensor, Array] | None:
        """Return what a write put into a memory, and which element of it each place got: -1 for none."""
        inputs, target = self.inputs(write), _Tensor(write, 0)
        source = inputs[-1] if len(inputs) > 1 else None
        if source is None or not 0 < target.size <= _MOST or len(inputs) > 2:
            return None
        key = dict(write.created.attrs).get("key") if write.op == "setitem" else ["..."]
        index = _index(key)
        if index is None:
            return None
        addresses = _addresses(target, np.arange(target.size)).reshape(target.shape)
        try:
            region = addresses[index]
            elements = np.broadcast_to(np.arange(source.size).reshape(source.shape), region.shape)
        except (IndexError, ValueError):
            return None
        last = int(max(addresses.max(), places.max()))
        if not 0 <= last < 4 * _MOST or min(addresses.min(), places.min()) < 0:
            return None
        table = np.full(last + 1, -1)
        table[region.ravel()] = elements.ravel()
        return source, table[places]

    def _copied(self, maker: _Tensor, elements: Array) -> Iterator[tuple[_Tensor, Array, Array]]:
        """Yield the tensors that some elements of a new one were copied from, with both sets of elements."""
        record, inputs = maker.record, self.inputs(maker.record)
        first, attrs = inputs[0] if inputs else None, dict(record.created.attrs)
        if first is None:
            return
        every = np.arange(len(elements))
        if record.op in _IN_ORDER and first.size == maker.size:
            yield first, every, elements
            return
        if not 0 < maker.size <= _MOST:
            return
        known = [one for one in inputs if one is not None]
        numbers = [np.arange(one.size).reshape(one.shape) for one in known if one.size <= _MOST]
        if len(numbers) != len(inputs):
            return
        starts = np.cumsum([0, *(one.size for one in numbers)])
        numbered = [one + start for one, start in zip(numbers, starts, strict=False)]
        try:
            table = _arranged(record.op, numbered, attrs)
        except (TypeError, ValueError, IndexError):
            return
        if table is None or table.shape != maker.shape:
            return
        chosen = table.ravel()[elements]
        for tensor, start in zip(known, starts, strict=False):
            inside = np.flatnonzero((chosen >= start) & (chosen < start + tensor.size))
            if len(inside):
                yield tensor, inside, chosen[inside] - start


def _arranged(op: str, arrays: list[Array], attrs: dict[str, object]) -> Array | None:
    """Return how an operation arranges the elements of its inputs, -1 for new ones; None for any other operation."""
    dim = attrs.get("dim", 0)
    if op == "cat" and isinstance(dim, int):
        return np.concatenate(arrays, dim)
    if op == "stack" and isinstance(dim, int):
        return np.stack(arrays, dim)
    if op == "roll":
        shifts, dims = _numbers(attrs.get("shifts")), _numbers(attrs.get("dims"))
        return (
            np.roll(arrays[0], shifts, dims) if dims else np.roll(arrays[0].ravel(), shifts[0]).reshape(arrays[0].shape)
        )
    if op in ("pad", "constant_pad_nd"):
        pad, array = _numbers(attrs.get("pad")), arrays[0]
        widths = [(0, 0)] * array.ndim
        for at in range(len(pad) // 2):
            widths[array.ndim - 1 - at] = pad[2 * at], pad[2 * at + 1]
        cut = tuple(
            slice(max(-low, 0), size - max(-high, 0)) for (low, high), size in zip(widths, array.shape, strict=True)
        )
        return np.pad(array[cut], [(max(low, 0), max(high, 0)) for low, high in widths], constant_values=-1)
    if op in ("transpose", "t") and arrays[0].ndim > 1:
        one, other = attrs.get("dim0", 0), attrs.get("dim1", 1)
        return np.swapaxes(arrays[0], one, other) if isinstance(one, int) and isinstance(other, int) else None
    return None


def _numbers(given: object) -> list[int]:
    if isinstance(given, int):
        return [given]
    return [one for one in given if isinstance(one, int)] if isinstance(given, list | tuple) else []


def _index(key: object) -> Any:
    """Return an index as numpy takes it; None if it has anything but numbers and slices."""
    found: list[object] = []
    parts = key if isinstance(key, list | tuple) and key[:1] not in (["slice"], ("slice",)) else [key]
    for part in parts:
        match part:
            case bool():
                return None
            case int():
                found.append(part)
            case ["slice", start, stop, step] | ("slice", start, stop, step):
                found.append(slice(start, stop, step))
            case "...":
                found.append(Ellipsis)
            case ["..."] | ["ellipsis"] | "ellipsis" | "Ellipsis":
                found.append(Ellipsis)
            case _:
                return None
    return tuple(found)


def _addresses(tensor: _Tensor, elements: Array) -> Array:
    """Return the places in its memory of some elements of a tensor, which are numbered in their order."""
    made = tensor.made
    if made.strides is None or len(made.strides) != len(tensor.shape):
        return made.offset + elements
    if not tensor.shape:
        return np.full(len(elements), made.offset)
    where = np.unravel_index(elements, tensor.shape)
    places = np.full(len(elements), made.offset)
    for at, step in zip(where, made.strides, strict=True):
        places += at * step
    return places


# Labels and indices


def _pair(survey: Survey, loss: NodeRecord, origins: Origins) -> TokenPair | None:
    """Return the labels of a loss and the indices of an embedding in which they are, at any shift."""
    inputs = [one for one in origins.inputs(loss) if one is not None]
    labels = next((one for one in inputs if one.made.value is not None and "int" in one.made.value.dtype), None)
    logits = inputs[0] if inputs and inputs[0] is not labels else None
    if logits is not None:
        softmax = survey.unwrapped(logits.record)  # of three dimensions it is reshaped for the loss
        logits = next(iter(origins.inputs(softmax)), None) if softmax.op == "log_softmax" else logits
    if logits is None or labels is None or not _FEWEST <= labels.size <= _MOST:
        return None
    rows = _rows(logits, labels, origins)
    if rows is None:
        return None
    numbers, count = rows
    found: list[TokenPair] = []
    for node in islice(ancestors(survey.timeline, loss.node), _MOST_NODES):
        lookup = survey.nodes.get(node)
        if lookup is None or lookup.op != "embedding":
            continue
        indices = next((one for one in origins.inputs(lookup)[1:] if one is not None and one.size == count), None)
        if indices is not None:
            shift = _shift(survey, labels, loss, indices, lookup, numbers, origins)
            if shift is not None:
                found.append(TokenPair(loss, labels, indices, lookup, *shift))
    return min(found, key=lambda pair: (pair.shift != 1, pair.shift)) if found else None


def _rows(logits: _Tensor, labels: _Tensor, origins: Origins) -> tuple[Array, int] | None:
    """Return the row of the model's output that belongs to each label, and how many rows that has."""
    shape = logits.shape
    if len(shape) < 2 or logits.size < labels.size:
        return None
    classes = shape[-1] if len(shape) == 2 else shape[1]
    if not classes or logits.size // classes != labels.size:
        return None
    inner = logits.size // classes // shape[0]  # of (batch, classes, places)
    number = np.arange(labels.size)
    elements = number // inner * classes * inner + number % inner
    places = origins.of(logits, elements, logits.record.seq + 1)
    storages = np.unique(places >> _LESS)
    maker = origins.makers.get(int(storages[0])) if len(storages) == 1 else None
    if maker is None or not maker.size or maker.shape[-1] != classes:
        return None
    elements = places - (storages[0] << _LESS)
    if not maker.is_in_order(elements):
        return None
    rows, left = np.divmod(elements, classes)
    return (rows, maker.size // classes) if not left.any() else None


def _shift(
    survey: Survey,
    labels: _Tensor,
    loss: NodeRecord,
    indices: _Tensor,
    lookup: NodeRecord,
    rows: Array,
    origins: Origins,
) -> tuple[int, int] | None:
    """Return how many places later the labels are in the indices, and the number of their places; None if absent."""
    ours = origins.of(labels, np.arange(labels.size), loss.seq)
    theirs = origins.of(indices, np.arange(indices.size), lookup.seq)
    shift = _matching(ours, theirs, rows, indices.shape)
    if shift is not None:
        return shift
    arrays = [
        survey.timeline.array(one.made.value) if one.made.value is not None else None for one in (labels, indices)
    ]
    if arrays[0] is None or arrays[1] is None or any(origins.writes.get(one.made.storage) for one in (labels, indices)):
        return None
    if len(np.unique(arrays[0])) < 4:
        return None
    return _matching(arrays[0].ravel(), arrays[1].ravel(), rows, indices.shape)


def _matching(ours: Array, theirs: Array, rows: Array, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Return the only shift at which all labels that can be among the indices are equal to them, and their length.

    The places of a row are in the last dimension, or else in the first of two, as (sequence, batch).
    """
    length = shape[-1] if shape else 1
    found = _shifts_along(ours, theirs, rows, length, 1)
    if not found and len(shape) == 2:
        length = shape[0]
        found = _shifts_along(ours, theirs, rows, length, shape[1])
    return (found[0], length) if len(found) == 1 else None


def _shifts_along(ours: Array, theirs: Array, rows: Array, span: int, step: int) -> list[int]:
    found = []
    for shift in _SHIFTS:
        at = rows // step % span + shift
        inside = (at >= 0) & (at < span)
        if inside.sum() >= _FEWEST and (ours[inside] == theirs[rows[inside] + shift * step]).all():
            found.append(shift)
    return found


# What is reported


def _finding(survey: Survey, pair: TokenPair, origins: Origins, others: list[NodeRecord]) -> Finding:
    timeline = survey.timeline
    shifted, node = _shifted_once(survey, pair, origins), label(timeline, pair.loss.node)
    text = titled("the labels of {} are two tokens after the input", node)
    input_ = label_at(timeline, pair.indices.record.node)
    later = f"each label is the token that {input_} has two places later"
    parts = [Finding("target", later, pair.indices.record.seq, pair.indices.record.node, at=survey.at(pair.lookup))]
    fix = "if the next token is meant, shift by one: labels[:, 1:] and logits[:, :-1]"
    at = survey.at(pair.loss)
    if shifted is not None:
        once, again = shifted
        text = titled("the labels of {} are two tokens after the input: shifted twice", node)
        already = f"{label_at(timeline, once.record.node)} is one token after {input_} already"
        parts = [
            Finding("target", already, once.record.seq, once.record.node, at=survey.at(pair.lookup)),
            Finding(
                "used", f"{label_at(timeline, again.node)} shifts it again", again.seq, again.node, at=survey.at(again)
            ),
        ]
        fix = "shift once: the loss of all logits and labels, without [:-1] and [1:]"
        at = survey.at(again)
    elif (by_two := _shifted_by_two(pair, origins)) is not None:
        one_place = f"{label_at(timeline, by_two.node)} shifts the labels by two in one place"
        parts.append(Finding("used", one_place, by_two.seq, by_two.node, at=survey.at(by_two)))
        at = survey.at(by_two)
    classes = _classes(survey, pair.loss)
    suspected = shifted is None or any(_classes(survey, one) == classes for one in others)
    return Finding("shifted-twice", text, pair.loss.seq, pair.loss.node, tuple(parts), fix, at, (), suspected)


def _labels_before(pair: TokenPair, origins: Origins) -> Iterator[tuple[_Tensor, _Tensor]]:
    """Yield the labels of a loss and what they were made from, step by step: the result, and its source."""
    tensor = pair.labels
    for _ in range(_CALLS * 4):
        inputs = origins.inputs(tensor.record)
        source = inputs[0] if inputs and tensor.record.created.kind == "op" else None
        if source is None or source.made.value is None or "int" not in source.made.value.dtype:
            return
        yield tensor, source
        tensor = source


def _shifted_by_two(pair: TokenPair, origins: Origins) -> NodeRecord | None:
    """Return the only operation that shifts the labels, if it does so by two places."""
    shifts = list[tuple[int, NodeRecord]]()
    for tensor, source in _labels_before(pair, origins):
        if tensor.record.op not in _IN_ORDER or source.size != tensor.size:
            shift = _shift_of(tensor, source)
            if shift is None:  # copied from elsewhere
                break
            shifts += [(shift, tensor.record)] if shift else []
    return shifts[0][1] if len(shifts) == 1 and shifts[0][0] == 2 else None


def _shift_of(result: _Tensor, source: _Tensor) -> int | None:
    """Return by how many places of the last dimension a slice begins later, or a roll moves; None if unknown."""
    attrs = dict(result.record.created.attrs)
    if result.record.op == "roll":
        return -sum(_numbers(attrs.get("shifts")))
    if result.record.op not in ("getitem", "narrow", "slice") or result.made.storage != source.made.storage:
        return None
    moved, strides = result.made.offset - source.made.offset, source.made.strides or source.shape[-1:] * 2
    return moved % strides[-2] if len(source.shape) > 1 and strides[-2] else moved


def _shifted_once(survey: Survey, pair: TokenPair, origins: Origins) -> tuple[_Tensor, NodeRecord] | None:
    """Return the labels before their second shift, and the operation that shifts them."""
    again = pair.labels.record
    for tensor, source in _labels_before(pair, origins):
        if tensor.record.op not in _IN_ORDER or source.size != tensor.size:
            again = tensor.record
        if source.size == pair.indices.size and source.size <= _MOST:
            rows = np.arange(source.size)
            shift = _shift(survey, source, pair.loss, pair.indices, pair.lookup, rows, origins)
            if shift is not None and shift[0] == 1:
                return source, again
    return None
