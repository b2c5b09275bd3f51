"""Rows of a layer's weight that get no gradient, as the part of its output that they make is cut off or unused.

Idea. The result of one layer is often split: ``q, k, v = qkv(x).chunk(3, -1)``. If every path from one part to the loss
is cut, the rows of the weight that make this part are never trained. The parameter as a whole has a gradient, so that
nothing looks wrong. Which rows a part comes from follows from where it lies in the memory of the result.

Example. ``k = k.detach()`` after the chunk: the rows d to 2d of ``qkv.weight`` stay as they began.

Limits. It is about paths, not about numbers: rows with a gradient of 0 behind a ReLU, a mask or a saturated gate have a
path, and so has the bias of a key. A part that another call of the layer, or another iteration, uses is trained. The
search ends at operations that are no views: what they use counts as trained. A part that the program calls ``_``, or
has not taken out of the result, may be left unused on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from gviz.events import Output
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import RESHAPING
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_frames import at_text, own_frame
from gviz.explain.tracking import ancestors, why_untracked
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown
from gviz.values.value import Array

_LAYERS = {"addmm": 2, "mm": 1, "matmul": 1, "linear": 1, "convolution": 1}
"""By operation: which input is the weight. The rows of the weight make the last dimension, or that of the channels."""

_VIEWS = RESHAPING | {
    "transpose", "t", "permute", "movedim", "alias", "slice", "select", "getitem", "narrow", "chunk", "split",
    "tensor_split", "unbind", "split_with_sizes", "unflatten", "flatten", "swapaxes", "unsafe_split", "unsafe_chunk",
}  # fmt: skip
"""Operations whose results are parts of what they get, or all of it in another shape."""

_MOST_POSITIONS = 1 << 20
"""The most positions that are computed for one view: of a larger one all rows count as used."""

_MOST_VIEWS = 500

Part = tuple[NodeRecord, int]
"""An output of a node, by its number."""


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of a layer as it lies in memory: element `p` of it comes from row ``p // inner % rows``."""

    rows: int
    inner: int

    def rows_of(self, output: Output) -> Array | None:
        """Return which rows an output in the memory of this result comes from; None if that is unknown."""
        if output.value is None:
            return None
        positions = np.array([output.offset])
        strides = output.strides if output.strides is not None else _contiguous(output.value.shape)
        for size, stride in zip(output.value.shape, strides, strict=True):
            if stride % (self.inner * self.rows):
                if positions.size * size > _MOST_POSITIONS:
                    return None
                positions = (positions[:, None] + stride * np.arange(size)).ravel()
        found = np.zeros(self.rows, bool)
        found[positions // self.inner % self.rows] = True
        return found


@dataclass(slots=True)
class _Weight:
    """The rows of a weight that something trains, and the parts of its last result, with their rows.

    `taken` are the rows of each part that an operation uses. `unit` is what they are in the weight.
    """

    trained: Array
    unit: str = "rows"
    parts: list[tuple[Part, Array]] = field(default_factory=list)
    taken: list[Array] = field(default_factory=list)
    is_known: bool = True


def untrained_rows(survey: Survey) -> Iterator[Finding | None]:
    """Yield the weights that have rows without a path to any loss."""
    timeline = survey.timeline
    roots = survey.roots & survey.nodes.keys()
    live = set(survey.history(*roots))
    weights: dict[int, _Weight] = {}
    for record in survey.ops(*_LAYERS):
        yield None
        weight = _weight_of(survey, record) if record.node in live else None
        result = _result_of(record) if weight is not None else None
        if weight is None or result is None or not weight.shape or result.rows < 2:
            continue
        one = weights.setdefault(weight.node, _Weight(np.zeros(result.rows, bool), _unit(record, weight)))
        one.is_known = one.is_known and one.trained.size == result.rows
        if one.is_known and not (one.trained.all() and not one.parts):
            _follow(survey, one, record, result, live)
    suspects = {node: one for node, one in weights.items() if one.is_known and 0 < one.trained.sum() < one.trained.size}
    suspects = {node: one for node, one in suspects.items() if _is_for_layers(survey, node, live)}
    leading = {*roots, *ancestors(timeline, *roots)} if suspects else set()
    for node, one in suspects.items():
        yield _finding(survey, node, one, leading)


def _weight_of(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the parameter that is the weight of a layer's operation, perhaps transposed."""
    place, inputs = _LAYERS[record.op], record.created.inputs
    weight = survey.nodes.get(inputs[place][0]) if place < len(inputs) else None
    if weight is not None and weight.op in ("t", "transpose"):
        weight = next(survey.sources(weight), None)
    is_trained = weight is not None and weight.created.kind == "parameter" and weight.created.requires_grad
    return weight if is_trained else None


def _result_of(record: NodeRecord) -> _Result | None:
    shape = record.shape
    if record.op == "convolution":
        return _Result(shape[1], prod(shape[2:])) if len(shape) > 2 else None
    return _Result(shape[-1], 1) if len(shape) > 1 else None


def _unit(record: NodeRecord, weight: NodeRecord) -> str:
    """Return what makes one element of a layer's result in its weight, by where the weight has the results."""
    if record.op == "convolution":
        return "channels"
    is_direct = (weight.node, 0) in record.created.inputs
    return "columns" if is_direct and record.op != "linear" else "rows"


def _is_for_layers(survey: Survey, weight: int, live: set[int]) -> bool:
    """Return whether a weight goes into operations of layers only, perhaps transposed, where it has a gradient."""
    users = [node for node in survey.timeline.nodes.users(weight) if node in live]
    turned = [node for node in users if survey.nodes[node].op in ("t", "transpose")]
    others = [node for node in users if node not in turned]
    others += [node for one in turned for node in survey.timeline.nodes.users(one) if node in live]
    return all(survey.nodes[node].op in _LAYERS for node in others)


def _follow(survey: Survey, one: _Weight, record: NodeRecord, result: _Result, live: set[int]) -> None:
    """Note which rows of a weight are trained by a result of its layer: those of the parts that a loss depends on."""
    one.parts.clear()
    one.taken.clear()
    waiting, seen = [(record, 0)], {(record.node, 0)}
    while waiting:
        part = waiting.pop(0)
        rows = result.rows_of(part[0].created.outputs[part[1]])
        if rows is None or len(seen) > _MOST_VIEWS:
            one.trained[:] = True
            return
        one.parts.append((part, rows))
        for user in _users(survey, part):
            if user.created.untracked:
                continue
            views = _views(part, user, result)
            if views is None:
                if user.node in live:
                    one.trained |= rows
                    one.taken.append(rows)
                continue
            for nr in views:
                if (user.node, nr) not in seen:
                    seen.add((user.node, nr))
                    waiting.append((user, nr))


def _users(survey: Survey, part: Part) -> Iterator[NodeRecord]:
    """Yield the operations of forwards that use an output."""
    record, nr = part
    for node in survey.timeline.nodes.users(record.node):
        user = survey.nodes.get(node)
        if user is not None and (record.node, nr) in user.created.inputs and not user.created.during[0]:
            yield user


def _views(part: Part, user: NodeRecord, result: _Result) -> Sequence[int] | None:
    """Return the outputs of an operation that are views of a part, and lie in memory as it does; None if none do."""
    own, outputs = part[0].created.outputs[part[1]], user.created.outputs
    if user.op not in _VIEWS:
        return None
    if all(output.storage == own.storage for output in outputs):
        return range(len(outputs))
    is_whole = len(outputs) == 1 and own.value is not None and _is_contiguous(own) and _is_contiguous(outputs[0])
    ends = (output.value.shape[-1:] for output in (own, outputs[0]) if output.value is not None)
    is_same = result.inner == 1 and all(end == (result.rows,) for end in ends)
    return [0] if is_whole and is_same and user.op in RESHAPING else None


def _is_contiguous(output: Output) -> bool:
    if output.value is None or output.offset:
        return False
    shape, expected = output.value.shape, _contiguous(output.value.shape)
    strides = output.strides if output.strides is not None else expected
    return all(size == 1 or one == other for size, one, other in zip(shape, strides, expected, strict=True))


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(shape[at + 1 :]) for at in range(len(shape)))


# What is reported


def _finding(survey: Survey, node: int, one: _Weight, leading: set[int]) -> Finding | None:
    dead = ~one.trained
    lost = [(part, rows) for part, rows in one.parts if rows.any() and not (rows & one.trained).any()]
    covered = np.zeros_like(dead)
    for _, rows in lost:
        covered |= rows
    part, reason, at, fix = _reason(survey, [part for part, _ in lost], leading)
    suspected = not (covered == dead).all()
    if part is None or suspected:
        if not suspected or not _are_apart(one.taken):
            return None
        part = one.parts[0][0]
        reason, at = "no slice of the result takes them", survey.at(part[0])
        fix = "look at the bounds of the slices: together they do not cover the result"
    count, name = int(dead.sum()), label(survey.timeline, node)
    text = titled(f"{one.unit} {_ranges(dead)} of {{}} get no gradient", name)
    used = f"{reason}; the other {dead.size - count:,} of the {dead.size:,} {one.unit} are trained"
    fact = Finding("used", used, part[0].seq, part[0].node)
    numbers = (Number(f"{one.unit} without gradient", count), Number(one.unit, dead.size))
    return Finding("untrained-rows", text, part[0].seq, node, (fact,), fix, at, numbers, suspected=suspected)


def _reason(survey: Survey, lost: Sequence[Part], leading: set[int]) -> tuple[Part | None, str, Frame | None, str]:
    """Return the part that is lost, why, the line of that, and what to write instead; no part if it may be intended."""
    timeline = survey.timeline
    for part in lost:
        for user in _users(survey, part):
            if user.created.untracked and user.node in leading:
                name, frames = _name(timeline, part), timeline.stack(user.created.stack)
                reason = f"{name or 'their part of the result'} is cut{at_text(frames)}: {why_untracked(user.created)}"
                fix = f"the path to {name or 'this part'} without a cut, or a layer with fewer outputs"
                return part, reason, own_frame(frames), fix
    for part in lost:
        name = _name(timeline, part)
        if name and not name.startswith("_"):
            frames = timeline.stack(part[0].created.stack)
            has_users = any(True for _ in _users(survey, part))
            what = f"nothing that the loss depends on uses {name}" if has_users else f"nothing uses {name}"
            fix = f"use {name}, or a layer with fewer outputs"
            return part, f"{what}, their part of the result", own_frame(frames), fix
    return None, "", None, ""


def _name(timeline: Timeline, part: Part) -> str:
    return shown(timeline.info(part[0].node).output_name(part[1]))


def _are_apart(taken: Sequence[Array]) -> bool:
    """Return whether two of some sets of rows have none in common, as slices of a result have."""
    return any(not (one & other).any() for at, one in enumerate(taken) for other in taken[:at])


def _ranges(rows: Array) -> str:
    """Return the numbers of rows as text: ``16 to 31``, or ``0 to 3, 8 to 11, …``."""
    numbers = np.flatnonzero(rows)
    pieces = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    texts = [f"{piece[0]} to {piece[-1]}" if piece.size > 1 else str(piece[0]) for piece in pieces]
    return ", ".join(texts if len(texts) < 3 else [*texts[:2], "…"])
