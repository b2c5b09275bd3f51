"""Data that a write in place changes again in each epoch: an augmentation or normalization of shared memory.

Idea. A tensor of data begins with certain numbers, and a write in place leaves others. If a tensor of the same line
begins, after another backward pass, with exactly the numbers that such a write has left, both have the same memory: the
write has changed the data set itself, and changes it again. So it does if it writes to one and the same tensor in
several iterations.

Example. ``img = torch.from_numpy(self.images[i])`` and ``img *= contrast``: the array shares its memory with `img`, and
in each epoch the contrast of the epochs before is a part of the image.

Limits. A state that is meant to change looks the same: running statistics, momentum, the hidden state of a recurrent
net, adversarial examples, counters. Their writes take numbers from parameters, gradients or other data, or only count.
So only writes are considered whose other operands are numbers, random draws, the tensor itself, or the same in each
iteration. A single tensor must also be the input of a layer.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite

import numpy as np

from gviz.events import OptimizerStepped, RequiresGradSet, StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.program_text import (
    FUNCTION_NODES,
    frame_of,
    line_text,
    names_read,
    names_set,
    parameters_of,
    statement_at,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, before, node_replaced, places_in
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.value import Value

_UPDATES = frozenset({
    "mul", "div", "true_divide", "add", "sub", "pow", "clamp", "clamp_min", "clamp_max", "sqrt", "exp", "log", "log1p",
    "neg", "square", "sigmoid", "tanh", "masked_fill", "addcmul", "addcdiv", "lerp", "floor_divide", "reciprocal",
    "rsqrt", "flip", "where", "relu", "threshold",
})  # fmt: skip
"""Operations whose result in place depends on the old numbers."""

_COUNTING = frozenset({"add", "sub"})

_DRAWN = re.compile(r"rand|normal|noise|uniform|bernoulli|exponential|poisson|jitter")
"""How the source of a random draw is called."""

_OVERWRITING = frozenset(
    {"normal", "uniform", "bernoulli", "exponential", "random", "cauchy", "geometric", "log_normal"}
)
_MOST_STEPS = 400
_MOST_COMPARED = 64
"""The most tensors of a line that are compared in full; further ones are counted by their numbers."""


@dataclass(slots=True)
class _Update:
    """The writes to one tensor without a backward pass between them."""

    record: NodeRecord
    writers: list[NodeRecord] = field(default_factory=list)

    @property
    def first(self) -> NodeRecord:
        """The first operation that wrote to the tensor."""
        return self.writers[0]

    @property
    def last(self) -> NodeRecord:
        """The last operation that wrote to the tensor."""
        return self.writers[-1]


def changed_again(survey: Survey) -> Iterator[Finding | None]:
    """Yield lines of writes in place that change the same data again in later iterations: each line once."""
    if len(survey.passes) > 1:
        yield from _Search(survey).findings()


class _Search:
    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.passes = [seq for seq, _ in survey.passes]
        self.writers_of: defaultdict[int, list[NodeRecord]] = defaultdict(list)  # by memory
        self.leaves = {event.node for _, event in survey.timeline.select((RequiresGradSet,)) if event.requires_grad}

    def findings(self) -> Iterator[Finding | None]:
        """Yield the findings, of fresh tensors and of one that is written again."""
        updates: list[_Update] = []
        running: dict[int, _Update] = {}  # by tensor
        steps = {event.stack for _, event in self.survey.select(OptimizerStepped)}  # the arithmetic of optimizers
        for _, event in self.survey.select(StorageWritten):
            writer = self.survey.nodes.get(event.node)
            if writer is None or writer.created.kind != "op" or writer.created.stack in steps:
                continue
            self.writers_of[event.storage].append(writer)
            target = self._target(writer)
            if target is None:
                continue
            update = running.get(target.node)
            if update is None or self._passes_between(update.last, writer):
                update = running[target.node] = _Update(target)
                updates.append(update)
            update.writers.append(writer)
        lines: defaultdict[int, list[_Update]] = defaultdict(list)
        for update in updates:
            lines[update.first.created.stack].append(update)
        for each in lines.values():
            yield None
            if len(each) > 1:
                yield from self._of_line(each)

    def _target(self, writer: NodeRecord) -> NodeRecord | None:
        """Return the tensor that an operation wrote to, if it may be data."""
        if writer.created.requires_grad or writer.created.untracked not in ("inputs", "no_grad"):
            return None
        target = next(self.survey.sources(writer), None)
        if target is None or target.created.requires_grad or target.created.kind not in ("constant", "op"):
            return None
        if target.node in self.leaves:
            return None  # what is trained by hand: w = torch.randn(3).requires_grad_()
        attrs = dict(target.created.attrs)
        if (
            "grad_of" in attrs
            or "gradient" in attrs
            or attrs.get("number")
            or target.value is None
            or target.value.size < 2
        ):
            return None
        return target

    def _passes_between(self, one: NodeRecord, other: NodeRecord) -> int:
        """Return the number of backward passes that began between two operations."""
        return bisect_left(self.passes, other.seq) - bisect_left(self.passes, one.seq)

    def _of_line(self, updates: list[_Update]) -> Iterator[Finding]:
        left: dict[object, _Update] = {}
        again: list[tuple[_Update, _Update]] = []
        for update in updates:
            begins = self._begin(update)
            before = left.get(_key(begins)) if begins is not None else None
            is_later = before is not None and self._passes_between(before.last, update.first) > 0
            if before is not None and is_later and (len(again) >= _MOST_COMPARED or self._is_again(before, update)):
                again.append((before, update))
            ends = update.last.value
            if ends is not None and begins is not None and _key(ends) != _key(begins) and not _is_uniform(ends):
                left[_key(ends)] = update
        if again and self._is_data(again):
            yield self._finding(updates, again)

    def _begin(self, update: _Update) -> Value | None:
        """Return the numbers of a tensor before its writes: of one that was written before, what these have left."""
        target, first = update.record, update.first
        if not any(one.seq < first.seq for one in self._own_writers(target)):
            return target.value
        return self.survey.timeline.memory_value(target.node, 0, first.seq - 1) or target.value

    def _own_writers(self, target: NodeRecord) -> Iterator[NodeRecord]:
        return (
            one for one in self.writers_of[target.created.outputs[0].storage] if one.created.inputs[0][0] == target.node
        )

    def _is_again(self, before: _Update, update: _Update) -> bool:
        """Return whether a write changes numbers that an earlier one has changed, and both are augmentations."""
        begins, ends = self._begin(update), update.last.value
        if begins is None or ends is None or not self._differ(begins, ends):
            return False
        if any(one.op not in _UPDATES for one in (*before.writers, *update.writers)):
            return False
        if self._depends_on_training(update.record):
            return False
        if not all(
            self._is_of_itself(update, one, other) for one, other in zip(update.writers, before.writers, strict=False)
        ):
            return False
        return not all(self._only_counts(one) for one in update.writers)

    def _differ(self, one: Value, other: Value) -> bool:
        """Return whether numbers differ by more than rounding."""
        before, after = self.survey.timeline.array(one), self.survey.timeline.array(other)
        if before is not None and after is not None and before.shape == after.shape:
            size = float(np.abs(before).max(initial=0.0))
            return isfinite(size) and not np.allclose(before, after, rtol=_SAME, atol=_SAME * size, equal_nan=True)
        pair = one.statistics(), other.statistics()
        if pair[0] is None or pair[1] is None:
            return False
        size = max(abs(pair[0].min), abs(pair[0].max))
        one_row, other_row = [[stats.min, stats.max, stats.mean, stats.rms] for stats in pair if stats is not None]
        return isfinite(size) and not np.allclose(one_row, other_row, rtol=_SAME, atol=_SAME * size, equal_nan=True)

    def _depends_on_training(self, record: NodeRecord) -> bool:
        """Return whether a tensor comes from parameters or gradients."""
        return any(self._is_trained(leaf) for leaf in self._leaves(record))

    @staticmethod
    def _is_trained(leaf: NodeRecord) -> bool:
        created, attrs = leaf.created, dict(leaf.created.attrs)
        return created.requires_grad or created.kind == "parameter" or "grad_of" in attrs or "gradient" in attrs

    def _leaves(self, record: NodeRecord) -> Iterator[NodeRecord]:
        """Yield what a tensor was computed from, without intermediate results."""
        waiting, seen, left = [record], {record.node}, _MOST_STEPS
        while waiting and left:
            here, left = waiting.pop(), left - 1
            sources = [*self.survey.sources(here)]
            if not sources or here.created.requires_grad:
                yield here
            new = [one for one in sources if one.node not in seen]
            seen.update(one.node for one in new)
            waiting += new

    def _is_of_itself(self, update: _Update, one: NodeRecord, other: NodeRecord) -> bool:
        """Return whether the operands of a write are numbers, draws, the tensor itself, or the same as before."""
        operands, earlier = [*self.survey.sources(one)][1:], [*self.survey.sources(other)][1:]
        if len(operands) != len(earlier):
            return False
        return all(self._is_free(update, one, *pair) for pair in zip(operands, earlier, strict=True))

    def _is_free(self, update: _Update, writer: NodeRecord, operand: NodeRecord, earlier: NodeRecord) -> bool:
        leaves = [*self._leaves(operand)]
        if any(self._is_trained(leaf) for leaf in leaves):
            return False
        if update.record.created.kind == "constant" and update.record.node not in self._repeated:
            return True  # fresh for each iteration, and yet it begins with what a write has left
        is_same = operand.node == earlier.node or (
            operand.created.kind == earlier.created.kind == "constant" and _key(operand.value) == _key(earlier.value)
        )
        if is_same and not self.writers_of.get(operand.created.outputs[0].storage):
            return True
        own = {update.record.node, *(leaf.node for leaf in self._leaves(update.record))}
        return all(leaf.node in own or self._is_draw(leaf, operand, writer) for leaf in leaves)

    @cached_property
    def _repeated(self) -> set[int]:
        """The tensors that are written to before and after a backward pass."""
        spans: dict[int, list[NodeRecord]] = {}
        for writers in self.writers_of.values():
            for one in writers:
                if one.created.inputs:
                    spans.setdefault(one.created.inputs[0][0], []).append(one)
        return {node for node, ones in spans.items() if self._passes_between(ones[0], ones[-1])}

    def _is_draw(self, leaf: NodeRecord, operand: NodeRecord, writer: NodeRecord) -> bool:
        """Return whether a leaf is a number, or a random draw of this iteration for nothing but an operand."""
        if leaf.value is None:
            return False
        if leaf.value.size == 1:
            return True
        storage = leaf.created.outputs[0].storage
        is_drawn = any(one.op in _OVERWRITING for one in self.writers_of.get(storage, ()))
        if not is_drawn and _DRAWN.search(line_text(self.survey.timeline, self.survey.at(leaf))) is None:
            return False
        of_operand = {writer.node, operand.node, *ancestors(self.survey.timeline, operand.node)}
        users = {user for user in self.survey.timeline.nodes.users(leaf.node) if user in self.survey.nodes}
        is_other = any(self.survey.nodes[user].op not in _OVERWRITING for user in users - of_operand)
        return not is_other and not self._passes_between(leaf, writer)

    def _only_counts(self, writer: NodeRecord) -> bool:
        """Return whether a write adds one number to all elements, as a counter does."""
        operands = [*self.survey.sources(writer)][1:]
        return writer.op in _COUNTING and all(one.value is not None and one.value.size == 1 for one in operands)

    def _is_data(self, again: list[tuple[_Update, _Update]]) -> bool:
        """Return whether tensors are samples: fresh ones, several of one line, or one that a layer gets."""
        if len({one.record.node for _, one in again}) > 1:
            return True
        (before, update), *_ = again
        return before.record is not update.record or self._meets_a_layer(update.record)

    def _meets_a_layer(self, record: NodeRecord) -> bool:
        """Return whether a tensor, or what is computed from it alone, is an input of an operation with a parameter."""
        waiting, seen, left = [record.node], {record.node}, _MOST_STEPS
        while waiting and left:
            node, left = waiting.pop(), left - 1
            for user in self.survey.timeline.nodes.users(node):
                one = self.survey.nodes.get(user)
                if one is None or user in seen:
                    continue
                seen.add(user)
                if one.created.requires_grad:
                    sources = (self.survey.unwrapped(source) for source in self.survey.sources(one))
                    if one.op in _LAYERS and any(
                        source.created.kind != "op" and source.created.requires_grad for source in sources
                    ):
                        return True
                else:
                    waiting.append(user)
        return False

    def _finding(self, updates: list[_Update], again: list[tuple[_Update, _Update]]) -> Finding:
        survey, timeline = self.survey, self.survey.timeline
        before, update = again[0]
        record, writer = update.record, update.first
        at, write = survey.at(record), survey.at(writer)
        copy = _read_as_copy(timeline, write)
        is_one = before.record is record
        text = titled("{} changes data that it has changed in an earlier iteration", label(timeline, writer.node))
        if is_one:
            began = f"{label_at(timeline, record.node)} is written to again after a backward pass"
        else:
            began = f"{label(timeline, record.node)} begins with what {label(timeline, before.last.node)} has left"
        began += f" ({len(again)} of {len(updates)} do)" * (len(again) > 1 and not is_one)
        values = self._begin(updates[0]), self._last_of_chain(updates[0], again)
        stats = [one.statistics() if one is not None else None for one in values]
        if stats[0] is not None and stats[1] is not None:
            began += f"; rms of the first: {number(stats[0].rms, 3)}, in the end {number(stats[1].rms, 3)}"
        part = Finding("begins", began, record.seq, record.node, at=at)
        fix = "clone() where the data is read: x = data[i].clone(); from_numpy and views share its memory"
        if is_one and copy is None:
            fix = "write a new tensor, x = data * a, or change the data once before the loop"
        place, edit = copy if copy is not None else ((write if is_one else at) or write, None)
        count = (Number("again", len(again), record.seq),)
        return Finding("changed-data", text, writer.seq, record.node, (part,), fix, place, count, edit=edit)

    def _last_of_chain(self, first: _Update, again: list[tuple[_Update, _Update]]) -> Value | None:
        """Return what the last write has left of the tensor that the first one wrote to."""
        last = first
        for written, update in again:
            if written is last:
                last = update
        return last.last.value


_SAME = 1e-4
_LAYERS = frozenset({
    "addmm", "mm", "matmul", "bmm", "linear", "convolution", "mv", "dot", "baddbmm", "native_layer_norm",
    "native_group_norm", "native_batch_norm", "lstm", "gru", "rnn_tanh", "rnn_relu",
})  # fmt: skip


def _key(value: Value | None) -> object:
    """Return what two values have in common exactly if their numbers are equal, as far as they were stored."""
    if value is None:
        return None
    return value.dtype, value.shape, value.data if value.data is not None else value.stats or value.blob


def _is_uniform(value: Value) -> bool:
    stats = value.statistics()
    return stats is None or stats.min == stats.max


# What the program's source code shows


def _read_as_copy(timeline: Timeline, at: Frame | None) -> tuple[Frame, Edit | None] | None:
    """Return the line that reads what a line writes to in place, and the edit that reads a copy instead.

    The variable must be assigned in the same loop or function: ``img = torch.from_numpy(a[i])`` gets ``.clone()``. A
    variable of a loop, or an argument that its function returns, is copied before the write.
    """
    source = statement_at(timeline, at)
    name = _written_in_place(source[1].node) if source is not None else ""
    if source is None or at is None or not name:
        return None
    text, here = source
    inner = next((one for one in reversed(here.around) if isinstance(one, (ast.For, ast.While, *FUNCTION_NODES))), None)
    around = [one for one in text.statements if inner is not None and inner in one.around and one.first < here.first]
    assignments = [one for one in around if name in names_set(one.node) and not isinstance(one.node, ast.AugAssign)]
    if assignments:
        read = assignments[-1]
        match read.node:
            case ast.Assign(targets=[ast.Name()], value=value):
                old = text.segment(value)
                simple = isinstance(value, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
                return frame_of(at, read.first, text), node_replaced(
                    text, value, f"{old if simple else f'({old})'}.clone()"
                )
        return frame_of(at, read.first, text), before(timeline, at, f"{name} = {name}.clone()")
    is_argument = name in parameters_of(inner)
    returns = [one.node for one in text.statements if inner in one.around and isinstance(one.node, ast.Return)]
    is_returned = any(name in names_read(one) for one in returns)
    if (is_argument and is_returned) or (isinstance(inner, ast.For) and name in places_in(inner.target, ast.Store)):
        return at, before(timeline, at, f"{name} = {name}.clone()")
    return None


def _written_in_place(node: ast.stmt) -> str:
    """Return the variable that a statement writes to in place: ``x *= 2``, ``x.mul_(2).add_(1)``, ``y = x.mul_(2)``."""
    value: ast.expr | None = None
    match node:
        case ast.AugAssign(target=ast.Name(id=name)):
            return name
        case ast.Expr(value=value) | ast.Assign(value=value) | ast.Return(value=value):
            pass
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr.endswith("_"):
        value = value.func.value
    is_written = isinstance(value, ast.Name) and not isinstance(getattr(node, "value", None), ast.Name)
    return value.id if is_written and isinstance(value, ast.Name) else ""
