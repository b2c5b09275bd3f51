"""A term of a loss that compares a tensor with itself: it is always 0, and trains nothing.

Idea. Two tensors are the same if they are one node, or if the same operations made them from the same nodes. A
divergence, an error or a difference of the two is 0 whatever the parameters are, and so is its gradient.

Example. A distillation with ``soft = F.log_softmax(teacher_logits / T)`` and ``target = F.softmax(teacher_logits / T)``
compares the teacher with the teacher. The loss still falls, because of its other term. In ``triplet_margin_loss(z, z,
negative)`` the anchor is its own positive, so that the loss only drives samples apart.

Limits. Random operations make other numbers each time, so they are never the same. ``x - x.detach()`` is left out: its
value is 0, but not its gradient. If the operands are trained, the term may be a placeholder, so that is a note, but not
for an anchor and its positive, nor if the whole loss is 0.

A difference of an old and a new value is one, too, if both share one memory, whether a loss uses it or not.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from gviz.events import OptimizerStepped, StorageWritten
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import DRAWS, DROPOUTS, LISTS, RESHAPING
from gviz.explain.program_text import (
    ProgramText,
    called_function,
    frame_of_part,
    statement_at,
    stores_of,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, node_replaced, renamed_variable, wrapped
from gviz.explain.source_frames import own_frames
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.values.plain_text import shown

_CARRYING = {
    "add", "sub", "rsub", "mul", "div", "neg", "sum", "mean", "pow", "square", "abs", "sqrt", "clone", "to", "float",
    "where", "norm", "linalg_vector_norm", "clamp", "clamp_min", "relu", *LISTS, *RESHAPING,
}  # fmt: skip
"""Operations between a comparison and the loss."""

_ERRORS = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cosine_embedding_loss", "cosine_similarity"}
_EVEN = {"abs", "norm", "linalg_vector_norm"}
"""Functions other than squares that have their minimum at 0."""

_SAME = {"detach", "clone", "alias", "contiguous"}
_RANDOM = DROPOUTS | DRAWS | {"rrelu", "rand_like", "randn_like", "normal", "uniform", "gumbel_softmax"}
_MOST = 200
_MOST_MADE = 5_000
_MOST_ALIKE = 200
_FEWEST = 2
"""The fewest comparisons of two computations that are the same, as one of them may be from before a step."""

_NEARLY = 1e-4


@dataclass(frozen=True, slots=True)
class _Pair:
    """A comparison of two tensors: the operation, its operands, and whether the first one has logarithms."""

    record: NodeRecord
    one: NodeRecord
    other: NodeRecord
    is_divergence: bool = False


def compared_with_itself(survey: Survey) -> Iterator[Finding | None]:
    """Yield the terms of losses that compare a tensor with itself: each line once."""
    keys, seen = _Keys(survey), set[int]()
    for root in {event.stack: event.roots[0][0] for _, event in survey.passes if len(event.roots) == 1}.values():
        record = survey.nodes.get(root)
        if record is None or record.shape or survey.optimized.isdisjoint(ancestors(survey.timeline, root)):
            continue
        yield None
        for pair in _pairs(survey, record):
            if pair.record.created.stack not in seen and _is_of_itself(survey, pair, keys):
                seen.add(pair.record.created.stack)
                yield _finding(survey, record, pair)
    yield from _of_one_memory(survey, seen)


def _pairs(survey: Survey, root: NodeRecord) -> Iterator[_Pair]:
    """Yield the comparisons that a loss adds up, tracked or not."""
    waiting, seen = [(root, False)], {root.node}
    while waiting and len(seen) < _MOST:
        record, is_even = waiting.pop()
        yield from _compared(survey, record, is_even=is_even)
        if record.op not in _CARRYING:
            continue
        is_even = is_even or survey.is_square(record) or record.op in _EVEN
        for source in survey.sources(record):
            if source.node not in seen and source.created.kind == "op":
                seen.add(source.node)
                waiting.append((source, is_even))


def _compared(survey: Survey, record: NodeRecord, *, is_even: bool) -> Iterator[_Pair]:
    """Yield the two tensors that an operation compares, if it does."""
    sources = list(survey.sources(record))
    attrs, stack = dict(record.created.attrs), record.created.stack
    if record.op in _ERRORS and len(sources) > 1:
        yield _Pair(record, sources[0], sources[1])
    elif record.op == "kl_div" and len(sources) > 1:
        yield _Pair(record, sources[0], sources[1], is_divergence=not attrs.get("log_target"))
    elif attrs.get("log_target") and len(sources) > 1:  # of a call that consists of several operations
        inner: NodeRecord | None = sources[0]
        while inner is not None and inner.created.stack == stack and inner.op in _CARRYING:
            inner = next(survey.sources(inner), None)
        if inner is not None:
            yield _Pair(record, inner, sources[-1])
    elif record.op == "sub" and sources:
        product = sources[-1] if sources[-1].op == "mul" and sources[-1].created.stack == stack else None
        if product is not None and (len(sources) == 1 or sources[0].op == "xlogy"):
            pair = list(survey.sources(product))
            if len(pair) == 2:
                logarithms, chances = sorted(pair, key=_is_of_chances)
                yield _Pair(record, logarithms, chances, is_divergence=True)
        elif len(sources) == 2:
            tracked = [one.created.requires_grad for one in sources]
            if is_even or tracked[0] == tracked[1]:
                yield _Pair(record, sources[0], sources[1])


def _is_of_chances(record: NodeRecord) -> bool:
    stats = record.stats
    return stats is not None and stats.min >= 0


def _is_of_itself(survey: Survey, pair: _Pair, keys: _Keys) -> bool:
    """Return whether two operands are the same tensor, by what they were made of and by their numbers."""
    if pair.one.shape != pair.other.shape or pair.one.value is None or pair.one.value.size < 2:
        return False
    if pair.one.created.kind == pair.other.created.kind == "constant":
        return False
    first, second = keys.of(pair.one), keys.of_logarithm(pair.other) if pair.is_divergence else keys.of(pair.other)
    if first != second:
        return False
    one, other = pair.one.stats, pair.other.stats
    if one is None or other is None or not one.min < one.max or one.nan or one.inf:
        return False
    if not pair.is_divergence and not (
        _is_near(one.mean, other.mean, one.rms) and _is_near(one.rms, other.rms, one.rms)
    ):
        return False
    alike = [each for each in survey.by_op[pair.record.op] if each.created.stack == pair.record.created.stack]
    if pair.one is pair.other and _is_of_triplets(survey, pair.record, survey.at(pair.record)):
        # each call has a difference to the negative, too, and that of both distances, on its line
        hinges = [each for each in survey.ops("clamp_min") if each.created.stack == pair.record.created.stack]
        alike = [each for each in alike if len(each.created.inputs) == 2 and len({*each.created.inputs}) == 1]
        return len(alike) == len(hinges)
    is_one_node = _origin(survey, pair.one) is _origin(survey, pair.other)
    known = [stats for each in alike[-_MOST_ALIKE:] if (stats := each.stats) is not None]
    end = 1.0 if pair.record.op == "cosine_similarity" else 0.0
    is_always = bool(known) and all(
        _is_near(number, end, one.rms) for each in known for number in (each.min, each.max, each.mean)
    )
    return is_always and (is_one_node or (len(alike) >= _FEWEST and not _is_step_between(survey, pair)))


def _is_step_between(survey: Survey, pair: _Pair) -> bool:
    """Return whether a step changed the parameters after one operand was made, and before the other."""
    first, last = sorted((pair.one.seq, pair.other.seq))
    return any(first < seq < last for seq, _ in survey.select(OptimizerStepped))


def _is_near(one: float, other: float, size: float) -> bool:
    return abs(one - other) <= _NEARLY * (1 + size)


def _origin(survey: Survey, record: NodeRecord) -> NodeRecord:
    """Return the tensor from which operations with one tensor and numbers made another."""
    for _ in range(_MOST):
        sources = [one for one in survey.sources(record) if one.value is None or one.value.size > 1]
        if len(sources) != 1 or record.op in _RANDOM:
            break
        record = sources[0]
    return record


class _Keys:
    """What tensors were made of: equal for tensors that the same operations made from the same nodes and numbers."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._numbers: dict[object, int] = {}
        self._keys: dict[int, int] = {}

    def of(self, record: NodeRecord) -> int:
        """Return the number of a tensor's making."""
        waiting = [record]
        while waiting and len(waiting) < _MOST_MADE:
            one = waiting[-1]
            sources = list(self._survey.sources(one)) if self._is_made_again(one) else []
            missing = [source for source in sources if source.node not in self._keys]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if one.node not in self._keys:
                self._keys[one.node] = self._key(one, sources)
        return self._keys.get(record.node, self._number(("node", record.node)))

    def of_logarithm(self, record: NodeRecord) -> int:
        """Return what `of` gives for the logarithm of a softmax."""
        while record.op in _SAME and (source := next(self._survey.sources(record), None)) is not None:
            record = source
        source = next(self._survey.sources(record), None)
        if record.op != "softmax" or source is None:
            return self._number(("node", record.node))
        return self._number(("log_softmax", _dim(record), self.of(source)))

    def _is_made_again(self, record: NodeRecord) -> bool:
        inputs = record.created.inputs
        is_known = all(node in self._survey.nodes for node, _ in inputs) and bool(inputs)
        return record.created.kind == "op" and is_known and record.op not in _RANDOM

    def _key(self, record: NodeRecord, sources: list[NodeRecord]) -> int:
        if not sources:
            is_number = bool(dict(record.created.attrs).get("number"))
            stats = record.stats if is_number else None
            return self._number(("number", stats.mean) if stats is not None else ("node", record.node))
        keys = tuple((self._keys[node], nr) for node, nr in record.created.inputs)
        match record.op:
            case op if op in _SAME:
                return keys[0][0]
            case "log_softmax":
                return self._number(("log_softmax", _dim(record), keys[0][0]))
            case "log" if sources[0].op == "softmax":
                return self.of_logarithm(sources[0])
            case "addmm" if sources[2].op == "t":  # a linear layer: one operation if it is not tracked
                weight = self._keys[sources[2].created.inputs[0][0]]
                return self._number(("linear", keys[1][0], weight, keys[0][0]))
            case "linear" if len(keys) == 3:
                return self._number(("linear", *(key for key, _ in keys)))
        attrs = tuple(sorted((name, repr(value)) for name, value in record.created.attrs))
        return self._number((record.op, attrs, keys))

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _dim(record: NodeRecord) -> object:
    dim = dict(record.created.attrs).get("dim")
    return dim % len(record.shape) if isinstance(dim, int) and record.shape else repr(dim)


# An old and a new value that share one memory
# |
# ``state["old"] = p.grad`` keeps no copy: what changes the gradient in place changes the old one, too. Then both
# operands of a difference are the same numbers, although a write came after one of them was kept.


def _of_one_memory(survey: Survey, seen: set[int]) -> Iterator[Finding | None]:
    """Yield the differences of two tensors with one memory, which was written to after the first was kept."""
    written: defaultdict[int, list[int]] = defaultdict(list)
    for seq, event in survey.select(StorageWritten):
        written[event.storage].append(seq)
    found: defaultdict[int, list[_Pair]] = defaultdict(list)
    others = set[int]()
    for record in survey.ops("sub"):
        yield None
        stack, sources = record.created.stack, list(survey.sources(record))
        if stack in seen or len(sources) != 2 or record.created.during[0]:
            continue
        old, new = sorted(sources, key=lambda one: one.seq)
        if not _is_one_memory(old, new):
            continue
        writes = written.get(old.created.outputs[0].storage, [])
        stats = record.stats
        made = [dict(one.created.attrs).get("made_at_version") for one in (old, new)]  # of data, at its first use
        if isinstance(made[0], int) and isinstance(made[1], int) and made[0] != made[1]:
            old, new = (new, old) if made[1] < made[0] else (old, new)
        elif bisect_left(writes, old.seq) == bisect_left(writes, record.seq):
            continue
        if stats is None or record.value is None:
            continue
        if stats.zero == record.value.size:
            found[stack].append(_Pair(record, old, new))
        else:
            others.add(stack)
    for stack, pairs in found.items():
        old, new = pairs[-1].one, pairs[-1].other
        if stack not in others and (old is not new or _has_two_operands(survey, pairs[-1].record)):
            yield _memory_finding(survey, pairs)


def _is_one_memory(one: NodeRecord, other: NodeRecord) -> bool:
    """Return whether two tensors are the same elements of one memory."""
    if not one.created.outputs or not other.created.outputs or one.shape != other.shape:
        return False
    here, there = one.created.outputs[0], other.created.outputs[0]
    is_same = (here.storage, here.offset) == (there.storage, there.offset)
    rows = tuple(prod(one.shape[place + 1 :]) for place in range(len(one.shape)))
    is_same = is_same and (here.strides or rows) == (there.strides or rows)
    return bool(here.storage) and is_same and "number" not in dict(one.created.attrs)


def _has_two_operands(survey: Survey, record: NodeRecord) -> bool:
    """Return whether the program writes a difference of two expressions that differ, and not ``x - x``.

    ``net.emb.weight - net.out.weight`` tests whether weights are tied: no operand is an older one.
    """
    source = statement_at(survey.timeline, survey.at(record))
    parts = source[1].parts(ast.BinOp) if source is not None else ()
    pairs = [(part.left, part.right) for part in parts if isinstance(part.op, ast.Sub)]
    return bool(pairs) and not any(
        ast.unparse(one) == ast.unparse(other)
        or (isinstance(one, ast.Attribute) and isinstance(other, ast.Attribute) and one.attr == other.attr)
        for one, other in pairs
    )


def _memory_finding(survey: Survey, pairs: list[_Pair]) -> Finding:
    timeline, pair = survey.timeline, pairs[-1]
    old, info = pair.one, survey.timeline.info(pair.one.node)
    text = titled("{} compares {} with itself", label(timeline, pair.record.node), label(timeline, old.node))
    times = f", {len(pairs):,} times" if len(pairs) > 1 else ""
    facts = f"both operands are one memory, which was written to since {label_at(timeline, old.node)}: always 0{times}"
    store = next(stores_of(timeline, own_frames(info.frames), info.names), None)
    assigned = _assigned_operand(survey, pair.record) if store is None else None
    at = survey.at(old) or survey.at(pair.record)
    name = info.names[0] if info.names and info.names[0].isidentifier() else "tensor"
    copy, edit = f"{name}.detach().clone()", None
    if store is not None:
        at, copy = store.at, f"{store.place} = {copy}"
        names = [one for one in info.names if one.isidentifier()]
        edit = next((one for each in names if (one := wrapped(timeline, at, each, ".clone()")) is not None), None)
    elif assigned is not None:
        program, assignment = assigned
        at, kept = frame_of_part(program, assignment), f"{program.segment(assignment.value)}.clone()"
        copy = f"{shown(program.segment(assignment.targets[0]))} = {shown(kept)}"
        edit = node_replaced(program, assignment.value, kept)
    fix = f"keep a copy, {copy}: what writes to the memory changes both"
    part = Finding("operand", facts, pair.record.seq, old.node, at=survey.at(pair.record))
    return Finding("self-comparison", text, pair.record.seq, pair.record.node, (part,), fix, at, edit=edit)


def _assigned_operand(survey: Survey, record: NodeRecord) -> tuple[ProgramText, ast.Assign] | None:
    """Return the only assignment to an operand of a difference that is an entry of a container, or an attribute.

    The class of ``p - state["old"]`` has ``state["old"] = p.detach()``.
    """
    source = statement_at(survey.timeline, survey.at(record))
    if source is None:
        return None
    text, statement = source
    pairs = [(part.left, part.right) for part in statement.parts(ast.BinOp) if isinstance(part.op, ast.Sub)]
    kept = {ast.unparse(one) for pair in pairs for one in pair if isinstance(one, ast.Subscript | ast.Attribute)}
    assignments = [
        one.node
        for one in text.statements
        if isinstance(one.node, ast.Assign) and len(one.node.targets) == 1 and ast.unparse(one.node.targets[0]) in kept
    ]
    return (text, assignments[0]) if len(assignments) == 1 and isinstance(assignments[0].value, _COPIED) else None


_COPIED = ast.Name | ast.Attribute | ast.Call | ast.Subscript
"""Expressions that ``.clone()`` can follow."""


# What is reported


def _finding(survey: Survey, root: NodeRecord, pair: _Pair) -> Finding:
    timeline, compared = survey.timeline, survey.at(pair.record)
    origin = _origin(survey, pair.one)
    is_one_node = origin is _origin(survey, pair.other)
    of = origin if is_one_node and pair.one is not pair.other else pair.one
    text = titled("{} compares {} with itself", label(timeline, pair.record.node), label(timeline, of.node))
    is_trained = pair.one.created.requires_grad or pair.other.created.requires_grad
    always = "always 1" if pair.record.op == "cosine_similarity" else "always 0"
    one, other = label_at(timeline, pair.one.node), label_at(timeline, pair.other.node)
    is_triplet = pair.record.op == "sub" and _is_of_triplets(survey, pair.record, compared)
    operands = f"{'anchor and positive' if is_triplet else 'both operands'} are {one}"
    if pair.one is not pair.other:
        made = f"made from {label(timeline, origin.node)}" if is_one_node else "the same computation"
        operands = f"{one} and {other} are both {made}"
    doubtful = min(pair.one, pair.other, key=lambda each: each.created.requires_grad)  # the first, if both are alike
    at = compared
    if pair.one is not pair.other and (not is_one_node or doubtful not in (origin, *_copies(survey, origin))):
        at = _line_in(survey, doubtful, compared) or compared
    trains = (
        "their distance is always 0: no samples are drawn together"
        if is_triplet
        else f"it is {always}, and trains nothing"
    )
    part = Finding("operand", f"{operands}: {trains}", pair.record.seq, pair.one.node, at=compared)
    fix = "the output of the model that is trained as one of the two operands"
    if is_trained:  # a reference that is the model itself, or memory of it
        fix = (
            "another tensor as one of the two; a reference must be a copy: copy.deepcopy(model), or p.detach().clone()"
        )
    if is_triplet:
        fix = "another sample with the same label as the positive, or another view of the anchor"
    is_placeholder = is_trained and root.number != 0 and not (is_triplet and pair.one is pair.other)
    edit = _edit(survey, root, origin, at) if is_one_node and not is_trained else None
    return Finding(
        "self-comparison",
        text,
        pair.record.seq,
        pair.record.node,
        (part,),
        fix,
        at,
        suspected=is_placeholder,
        edit=edit,
    )


def _is_of_triplets(survey: Survey, record: NodeRecord, at: Frame | None) -> bool:
    """Return whether a difference is a part of a triplet loss: of the function, or of the module."""
    scope = survey.scopes.get(record.created.scope)
    is_module = scope is not None and scope.kind.startswith("TripletMargin")
    return is_module or called_function(survey.timeline, at).startswith("triplet_margin")


def _copies(survey: Survey, origin: NodeRecord) -> list[NodeRecord]:
    """Return the copies of a tensor, with or without its history."""
    users = (survey.nodes.get(node) for node in survey.timeline.nodes.users(origin.node))
    return [user for user in users if user is not None and user.op in _SAME]


def _line_in(survey: Survey, record: NodeRecord, compared: Frame | None) -> Frame | None:
    """Return the line of the function of a comparison that made a tensor."""
    frames = survey.timeline.stack(record.created.stack)
    return next((one for one in frames if compared is not None and _place(one) == _place(compared)), None)


def _place(frame: Frame) -> tuple[str, str]:
    return frame.path, frame.function


def _edit(survey: Survey, root: NodeRecord, origin: NodeRecord, at: Frame | None) -> Edit | None:
    """Return the edit that reads the only other result of the same shape that the loss trains."""
    timeline, name = survey.timeline, survey.timeline.info(origin.node).name
    names = set[str]()
    for node in ancestors(timeline, root.node):
        one = survey.nodes.get(node)
        if one is None or one.shape != origin.shape or not one.created.requires_grad or one.created.kind != "op":
            continue
        made = _line_in(survey, one, at)
        if (called := timeline.info(node).name) and made is not None and at is not None and made.line < at.line:
            names.add(called)
    if len(names) != 1 or not name.isidentifier() or not all(one.isidentifier() for one in names):
        return None
    edit = renamed_variable(timeline, at, name, names.pop())
    return edit if edit is not None and len(re.findall(rf"\b{name}\b", edit.old)) == 1 else None
