"""Errors of writes in place: to a tensor that backward needs, and to a leaf that requires a gradient."""

from __future__ import annotations

import ast
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gviz.events import (
    BackwardStarted,
    DataSet,
    Edge,
    HookRan,
    NodeCreated,
    OptimizerStarted,
    OptimizerStepped,
    RequiresGradSet,
    StepStarted,
    StorageWritten,
)
from gviz.explain.backward_passes import pass_started
from gviz.explain.display_names import label, label_at, output_label, titled
from gviz.explain.edit import (
    Edit,
    in_block,
    lines_replaced,
    statement_instead,
    without_in_place,
    without_keyword,
    without_option,
    wrapped,
)
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import ACTIVATIONS
from gviz.explain.parameter_updates import Write, step_of, writer_of
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import called_name, function_of, is_at, names_set, program_text, statement_at
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.survey import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame, source_lines
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown
from gviz.values.value import Value

_CHANGED = r"modified by an inplace operation"


_NAMED_SHAPE = re.compile(r"Tensor (\[[\d, ]*\])")
_NAMED_VERSION = re.compile(r"expected version (\d+)")


def explain_saved(failure: Failure) -> Finding | None:
    """Explain the write between saving and backward: by an operation, or by the step of an optimizer."""
    if not failure.says(_CHANGED):
        return None
    timeline = failure.timeline
    saved_write = _write_of(timeline, failure) if failure.node else None
    if saved_write is None:
        text = "a tensor that backward needs was changed in place after it had been saved"
        return Finding("changed-in-place", text, failure.seq, failure.node, fix=_FIX, at=failure.at)
    (holder, version), seq, write = saved_write
    saver = timeline.info(failure.node)
    saved = f"saved by {saver.op.grad_fn or label(timeline, saver.node)}{at_text(saver.frames)} at version {version}"
    saved_part = Finding("saved", saved, saver.born, saver.node, at=innermost(saver))
    by_node = writer_of(write)
    owner = _owner(timeline, (holder, 0))
    step = step_of(timeline, owner, seq)
    needs = "but its rule still needs it as it was" if holder == saver.node else "but {} still needs it as it was"
    names = () if holder == saver.node else (label(timeline, saver.node),)
    if step is not None:
        frames = timeline.stack(step.stack)
        text = titled(
            "a step of {} updated {}, " + needs.removesuffix(" as it was"),
            shown(step.kind),
            label(timeline, owner),
            *names,
        )
        wrote = f"updated by the step{at_text(frames)} to version {write.version}"
        at = frames[0] if frames else failure.at
        parts = (saved_part, Finding("write", wrote, seq, owner, at=at))
        anew, edit = _made_anew(failure, seq, at)
        fix = f"compute the loss anew after it: {'; '.join(anew)}" if edit is not None else _STEP_FIX
        return Finding("changed-in-place", text, seq, owner, parts, fix, at, edit=edit)
    writer = timeline.info(by_node) if by_node in timeline.nodes else None
    text = titled("{} was changed in place, " + needs, label(timeline, holder), *names)
    wrote = f"changed by {label_at(timeline, by_node)} to version {write.version}" if writer else "changed"
    parts = (saved_part, Finding("write", wrote, seq, by_node, at=innermost(writer) if writer else None))
    at = innermost(writer) if writer else failure.at
    edit = without_in_place(timeline, at) or without_option(timeline, at, "inplace")
    return Finding("changed-in-place", text, seq, holder, parts, _fix(writer), at, edit=edit)


def _made_anew(failure: Failure, seq: int, at: Frame | None) -> tuple[list[str], Edit | None]:
    """Return the assignments between the parameters that a step updated and the loss, and the edit that repeats these.

    These are what the failed pass needs with the new parameters, as ``pred = D(fake)`` and ``loss = bce(pred, ones)``.
    """
    timeline = failure.timeline
    step = next((timeline.event(one.end) for one in timeline.contexts.steps_at(seq) if one.end), None)
    begun = next(reversed([event for _, event in timeline.select((BackwardStarted,), seq, failure.seq)]), None)
    if not isinstance(step, OptimizerStepped) or begun is None or at is None or len(begun.roots) != 1:
        return [], None
    root, _ = begun.roots[0]
    behind = {root, *ancestors(timeline, root)}
    uses = set(step.parameters)
    for node in sorted(behind):  # inputs are older than what uses them
        uses |= {node} if uses.intersection(timeline.nodes.inputs_by_node.get(node, ())) else set()
    made = (timeline.info(node) for node in sorted(uses & behind) if timeline.nodes.born(node) < seq)
    stacks = (info.frames for info in made if info.created.kind == "op")
    of_function = (
        next((one for one in frames if (one.path, one.function) == (at.path, at.function)), None) for frames in stacks
    )
    frames = list(of_function)
    known = [one for one in dict.fromkeys(frames) if one is not None]
    texts, edit = repeated_after(timeline, at, known) if known and None not in frames else ([], None)
    is_short = len(texts) <= _MOST_REPEATED and all(len(text) <= _LONGEST_REPEATED for text in texts)
    return (texts, edit) if is_short else ([], None)


_MOST_REPEATED, _LONGEST_REPEATED = 3, 80


def _owner(timeline: Timeline, output: Edge) -> int:
    """Return the node that owns an output's memory: for a view, the tensor that it is a view of."""
    node, nr = output
    while True:
        outputs = timeline.info(node).created.outputs
        base = outputs[nr].view_of if nr < len(outputs) else 0
        if not base or base >= node or base not in timeline.nodes:
            return node
        node, nr = base, 0


_STEP_FIX = "compute the loss anew after it; or run this backward pass before the step, which then uses both gradients"


def _write_of(timeline: Timeline, failure: Failure) -> tuple[Edge, int, Write] | None:
    """Return the write to a tensor that the rule had saved; of several tensors, the one that the error describes.

    The message has the shape of the saved tensor and the expected version. An operation may not have saved the first of
    its inputs: a step changes ``b`` and ``w`` of ``addmm(b, x, w.t())``, but only ``w.t()`` is saved.
    """
    shape, version = (pattern.search(failure.message) for pattern in (_NAMED_SHAPE, _NAMED_VERSION))
    born = timeline.at(timeline.info(failure.node).born)

    def mismatch(saved_write: tuple[Edge, int, Write]) -> tuple[bool, bool]:
        (holder, at_version), _, _ = saved_write
        state = born.state(holder)
        values = [output.value for output in state.outputs if output.value is not None] if state is not None else []
        shapes = [str(list(value.shape)) for value in values]
        return shape is not None and shape[1] not in shapes, version is not None and version[1] != str(at_version)

    return min(_writes(timeline, failure), key=mismatch, default=None)


_ASSIGNING = ("copy", "setitem")  # recorded operations of an assignment ``s[1] = v``
_FIX = "use the operation that makes a new tensor, or clone() before the change"


def _fix(writer: NodeInfo | None) -> str:
    plain = writer.op.base_name if writer is not None else ""
    if plain in _ASSIGNING:
        return "assign before it is used, write to a clone(), or make the whole of its parts with stack or cat"
    if writer is None or not writer.op.name.endswith("_"):
        return _FIX
    cause = "an activation with inplace=True" if plain in ACTIVATIONS else "an operator like +="
    return f"use {plain}, which makes a new tensor, instead of {plain}_ (or of {cause}); or clone() before"


def _writes(timeline: Timeline, failure: Failure) -> Iterator[tuple[Edge, int, Write]]:
    """Yield the first write to each tensor that the node had saved: ``((node, version), event, write)``."""
    info = timeline.info(failure.node)
    before = timeline.at(info.born)
    for holder, output_nr in [*((info.node, nr) for nr in range(len(info.created.outputs))), *info.created.inputs]:
        state = before.state(holder) if holder else None
        if state is None or output_nr >= len(state.outputs):
            continue
        for seq in timeline.events_of(holder):
            event = timeline.event(seq)
            if not (info.born < seq < failure.seq and isinstance(event, StorageWritten | DataSet)):
                continue
            if writer_of(event) != info.node:
                yield (holder, state.outputs[output_nr].version), seq, event
                break


# A leaf that requires a gradient

_RULE = "such a leaf may be changed in place only under no_grad"
_OF_A_LEAF = "a leaf that requires a gradient"
_ALSO = re.compile(r"\s*(\w+)\s*=\s*(\w+)\s*;?\s*(?:#.*)?")
_LEAF = r"leaf [Vv]ariable that requires grad .*in-place"


def explain_leaf(failure: Failure) -> Finding | None:
    """Return the name of the leaf, if the source line shows it."""
    if not failure.says(_LEAF):
        return None
    timeline, names = failure.timeline, _names(failure)
    leaves = map(timeline.info, _leaves(timeline))
    leaf = next((info for info in leaves if info.name in names), None)
    view = "a view of " if failure.says("a view of") else ""
    what = label(timeline, leaf.node) if leaf else "a leaf"
    text = titled(f"{view}{{}} was to be changed in place while autograd records", what)
    which = f"{label_at(timeline, leaf.node)} is a leaf that requires a gradient" if leaf else f"it is {_OF_A_LEAF}"
    parts = (Finding("leaf", f"{which}; {_RULE}", leaf.born if leaf else 0, leaf.node if leaf else 0),)
    fix = "update it inside with torch.no_grad():, let an optimizer do it, or change a clone()"
    edit = in_block(timeline, failure.at, "with torch.no_grad():")
    return Finding("leaf-in-place", text, failure.seq, leaf.node if leaf else 0, parts, fix, failure.at, edit=edit)


def _leaves(timeline: Timeline) -> Iterator[int]:
    """Yield leaves, the latest first, including tensors that began to require a gradient later."""
    created, later = timeline.select([NodeCreated]), timeline.select([RequiresGradSet])
    leaves = [(n, event.node) for n, event in created if event.kind != "op" and event.requires_grad]
    switched = [(n, event.node) for n, event in later if event.requires_grad]
    return (node for _, node in sorted([*leaves, *switched], reverse=True))


def _names(failure: Failure) -> set[str]:
    """Return the names on the line that raised it, and their aliases: after ``y = x`` also ``x``."""
    names = set(failure.names_on_its_line())
    text = failure.timeline.source(failure.at.path) if failure.at else None
    above = source_lines(text or "")[: failure.at.line] if failure.at else []
    for row in reversed(above):
        also = _ALSO.fullmatch(row)
        if also is not None and also[1] in names:
            names.add(also[2])
    return names


# A write through ``.numpy()``, which nothing counts: what is computed next has other numbers than what was recorded

_COMPUTED_AGAIN = {"sum", "mean", "add", "sub", "mul", "neg", "exp", "tanh", "sigmoid", "relu", "pow", "mm", "dot"}
"""Operations that mean the same on both engines, so that another result is one of other numbers."""

_MOST_COMPUTED = 50
_MOST_ELEMENTS = 1 << 16


def _changed_unseen(survey: Survey) -> Iterator[Finding | None]:
    """Yield writes through an array that shares the memory of a result: a later operation used other numbers."""
    timeline, tried = survey.timeline, 0
    for alias in survey.nodes.values():
        source = next(survey.sources(alias), None) if alias.created.untracked in ("detach", "data") else None
        if source is None or source.created.kind != "op" or timeline.nodes.users(alias.node):
            continue  # what reads it as a tensor is recorded
        for user in timeline.nodes.users(source.node):
            record = survey.nodes.get(user)
            if record is None or record.seq < alias.seq or record.op not in _COMPUTED_AGAIN or tried >= _MOST_COMPUTED:
                continue
            yield None
            tried += 1
            if _gives_another_result(timeline, timeline.info(user)):
                yield _unseen_finding(survey, alias, source, record)
                break


def _gives_another_result(timeline: Timeline, info: NodeInfo) -> bool:
    """Check whether an operation gives another result when it runs again on the recorded numbers of its inputs."""
    value = info.created.first_value
    recorded = timeline.array(value) if value is not None and value.size <= _MOST_ELEMENTS else None
    if recorded is None or recorded.dtype.kind != "f":
        return False
    from gviz.rerun.forward import result_again  # the engine, which few answers need

    again = result_again(timeline, info)
    if again is None or again.shape != recorded.shape:
        return False
    size = float(np.abs(recorded).max(initial=0.0))
    return not np.allclose(again, recorded, rtol=1e-2, atol=1e-2 * size, equal_nan=True)


def _unseen_finding(survey: Survey, alias: NodeRecord, source: NodeRecord, record: NodeRecord) -> Finding:
    timeline, at = survey.timeline, survey.at(alias)
    text = titled("{} was changed through an array that shares its memory", label(timeline, source.node))
    used = f"{label_at(timeline, record.node)} used other numbers than recorded: autograd sees no write through numpy"
    part = Finding("used", used, record.seq, record.node, at=survey.at(record))
    fix = "write to a copy: .numpy().copy(), or with an operation of the tensor, which autograd counts"
    return Finding("changed-through-data", text, alias.seq, source.node, (part,), fix, at)


# A write through ``.data``, which autograd does not count: backward uses the new numbers


def changed_through_data(survey: Survey) -> Iterator[Finding | None]:
    """Yield writes through ``.data`` or an array to a tensor that an operation has saved, before its rule ran."""
    yield from _changed_unseen(survey)
    tracked = {  # only tracked tensors: a layer updates its running statistics in this way
        record.node
        for record in survey.nodes.values()
        if record.created.untracked == "data" and any(source.created.requires_grad for source in survey.sources(record))
    }
    if not tracked:
        return
    saving = _saving_by_memory(survey)
    pending: defaultdict[int, list[_Saved]] = defaultdict(list)  # of `saving`: not yet used when this event happens
    for seq, event in survey.select(StorageWritten):
        yield None
        memory, waiting = event.storage, pending[event.storage]
        while saving[memory] and saving[memory][0].record.seq < seq:
            waiting.append(saving[memory].popleft())
        waiting[:] = [saved for saved in waiting if saved.rules[-1] > seq]
        writer = survey.nodes.get(event.node)
        if not waiting or writer is None or not _writes_to(survey, writer, tracked):
            continue
        for saved in waiting:
            used = next(n for n in saved.rules if n > seq)
            if not _is_restored(survey, saved.record, memory, used):
                yield _data_finding(survey, seq, writer, saved.record, used)
                break


@dataclass(frozen=True, slots=True)
class _Saved:
    """An operation that keeps some memory for backward, and the events with which its backward rule began."""

    record: NodeRecord
    rules: list[int]


def _saving_by_memory(survey: Survey) -> defaultdict[int, deque[_Saved]]:
    """Return the operations that save an output in each memory and whose backward rule ran, in order of creation."""
    timeline = survey.timeline
    by_memory: defaultdict[int, deque[_Saved]] = defaultdict(deque)
    for record in survey.nodes.values():
        if not record.created.requires_grad or record.created.kind != "op":
            continue
        op = timeline.op(record.created.op)
        slots = op.slots if len(op.slots) == len(record.created.inputs) else ()
        kept = [edge for name, edge in zip(slots, record.created.inputs, strict=False) if name in op.saved]
        if "result" in op.saved:
            kept.append((record.node, 0))
        if not kept:
            continue
        rules = [n for n in timeline.events_of(record.node) if isinstance(timeline.event(n), StepStarted)]
        if rules:
            saved = _Saved(record, rules)
            outputs = ((survey.nodes[node].created.outputs, nr) for node, nr in kept if node in survey.nodes)
            for memory in {known[nr].storage for known, nr in outputs if nr < len(known)}:
                by_memory[memory].append(saved)
    return by_memory


def _writes_to(survey: Survey, writer: NodeRecord, tracked: set[int]) -> bool:
    """Return whether an operation wrote to one of these tensors, or to a part of one."""
    while writer.created.inputs and not writer.created.requires_grad:
        node = writer.created.inputs[0][0]
        if node in tracked:
            return True
        if node not in survey.nodes:
            return False
        writer = survey.nodes[node]
    return False


def _is_restored(survey: Survey, record: NodeRecord, storage: int, n: int) -> bool:
    """Return whether some memory that an operation saved holds the same numbers again at event `n`.

    A check of gradients by finite differences changes each element and restores it.
    """
    edges = [(record.node, 0), *record.created.inputs]
    known = ((survey.nodes[node], nr) for node, nr in edges if node in survey.nodes)
    outputs = [(one.node, nr) for one, nr in known if one.created.outputs[nr].storage == storage]
    values = [
        (survey.timeline.memory_value(*edge, record.seq), survey.timeline.memory_value(*edge, n)) for edge in outputs
    ]
    return bool(values) and all(
        before is not None and after is not None and before.data is not None and before.data == after.data
        for before, after in values
    )


def _data_finding(survey: Survey, seq: int, writer: NodeRecord, saved: NodeRecord, used: int) -> Finding:
    timeline = survey.timeline
    info, how = timeline.info(writer.node), "through .data"
    started = pass_started(timeline, timeline.at(used).pass_nr)
    text = titled("a tensor that {} saved for backward was changed " + how, label(timeline, saved.node))
    at = at_text(timeline.stack(started.stack)) if started is not None else ""
    unseen = f"backward{at} used the new numbers: autograd does not notice a write {how}"
    part = Finding("used", unseen, used, saved.node)
    fix = "write to a clone(), or without .data inside torch.no_grad(): autograd then reports what backward needs"
    line = innermost(info)
    edit = without_in_place(timeline, line)
    return Finding("changed-through-data", text, seq, saved.node, (part,), fix, line, edit=edit)


# A write to a copy that the same line makes, and that nothing reads: the tensor that was meant keeps its numbers
# |
# ``x[rows].zero_()`` writes to the copy that an index of rows makes; ``layer.weight.data.normal_()`` after
# `weight_norm` writes to a product of two parameters that each access computes anew.


def lost_writes(survey: Survey) -> Iterator[Finding | None]:
    """Yield writes in place to a result of the same line that nothing uses afterwards: each line once."""
    timeline, seen = survey.timeline, set[int]()
    owners = _first_of_each_memory(survey)
    for seq, event in survey.select(StorageWritten):
        writer, owner = survey.nodes.get(event.node), owners.get(event.storage)
        if writer is None or owner is None or writer.created.stack in seen or owner.created.kind != "op":
            continue
        if writer.created.kind != "op" or owner is writer or not owner.created.inputs:
            continue
        yield None
        at, origin = survey.at(writer), survey.at(owner)
        if at is None or origin is None or (at.path, at.line) != (origin.path, origin.line):
            continue
        if _discards_result(timeline, at) and not _is_used_later(survey, event.storage, at):
            seen.add(writer.created.stack)
            yield _lost_finding(survey, seq, writer, owner)


def _first_of_each_memory(survey: Survey) -> dict[int, NodeRecord]:
    """Return the node that made each memory. A write has the memory of its input."""
    owners: dict[int, NodeRecord] = {}
    for record in survey.nodes.values():
        for output in record.created.outputs:
            owners.setdefault(output.storage, record)
    return owners


def _is_used_later(survey: Survey, storage: int, at: Frame) -> bool:
    """Return whether a tensor in a memory has a name, is the root of a pass, or is used on another line."""
    timeline = survey.timeline
    holders = {
        record.node for record in survey.nodes.values() if any(one.storage == storage for one in record.created.outputs)
    }
    users = {user for node in holders for user in timeline.nodes.users(node)}
    places = [survey.at(survey.nodes[node]) for node in holders | users if node in survey.nodes]
    is_elsewhere = any(one is None or (one.path, one.line) != (at.path, at.line) for one in places)
    freed = timeline.nodes.freed(survey.end)
    return is_elsewhere or any(timeline.info(node).name or node not in freed for node in holders)


def _lost_finding(survey: Survey, seq: int, writer: NodeRecord, owner: NodeRecord) -> Finding:
    timeline, source = survey.timeline, next(survey.sources(owner), None)
    name = shown(timeline.op(writer.created.op).name)
    text = titled(f"{name} writes to {{}}, a new tensor that nothing uses", label(timeline, owner.node))
    parts: tuple[Finding, ...] = ()
    if source is not None:
        names = label_at(timeline, owner.node), label_at(timeline, source.node)
        kept = f"{names[0]} is computed from {names[1]}, which stays as it was"
        parts = (Finding("operand", kept, source.seq, source.node, at=survey.at(source)),)
    fix = "write to what it is computed from, or before it is: the parameter first, then the parametrization"
    if owner.op in _COPYING:
        fix = "an index of rows or a mask makes a copy: assign to it, x[rows] = ..., or use index_fill_, masked_fill_"
    return Finding("lost-write", text, seq, owner.node, parts, fix, survey.at(writer))


_COPYING = ("getitem", "index", "index_select", "masked_select", "gather", "take")


# A hook of a leaf that writes to the leaf: it was meant for the gradient


def written_by_hook(survey: Survey) -> Iterator[Finding | None]:
    """Yield hooks after accumulation that write to their parameter and read no gradient: each hook once.

    Such a hook gets the parameter, and not its gradient. One that makes an update of its own reads ``.grad``. A write
    outside of the function of the hook is one of the program, between two hooks.
    """
    timeline, seen = survey.timeline, set[str]()
    since = 0
    for seq, ran in timeline.select((HookRan, OptimizerStarted, OptimizerStepped)):
        if not isinstance(ran, HookRan) or ran.when != "post accumulate" or ran.name in seen:
            since = seq
            continue
        yield None
        written = _written_inside(survey, ran, since, seq)
        since = seq
        if written is None:
            continue
        seen.add(ran.name)
        write, at, function = written
        if ".grad" in function.text:
            continue
        text = titled(
            f"the hook {shown(ran.name)} writes to {{}} itself, not to its gradient", label(timeline, ran.node)
        )
        registered = timeline.stack(ran.stack) if ran.stack else ()
        then = f"a hook after accumulation gets the parameter; it was registered{at_text(registered)}"
        part = Finding("hook", then, seq, ran.node, at=registered[0] if registered else None)
        fix = "write to its .grad in the hook, or use register_hook, whose hook gets the gradient"
        edit = wrapped(timeline, at, function.parameter, ".grad") if function.parameter else None
        yield Finding("written-by-hook", text, write, ran.node, (part,), fix, at, edit=edit)


def _written_inside(survey: Survey, ran: HookRan, start: int, end: int) -> tuple[int, Frame, _FunctionText] | None:
    """Return the first write to the memory of a leaf by its hook between two events, with its line and the hook."""
    record, timeline = survey.nodes.get(ran.node), survey.timeline
    storages = {output.storage for output in record.created.outputs} if record is not None else set()
    for seq, event in timeline.select((StorageWritten,), start, end):
        writer = survey.nodes.get(event.node) if event.storage in storages else None
        at = survey.at(writer) if writer is not None and writer.created.kind == "op" else None
        if writer is None or at is None:
            continue
        functions = (_function_around(timeline, frame, ran.name) for frame in timeline.stack(writer.created.stack))
        function = next((one for one in functions if one is not None), None)
        if function is not None:
            return seq, at, function
    return None


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


# An activation in place that overwrites what it was given, although the code around it reads that again


_SAME_AGAIN = ("relu", "hardtanh", "threshold")
"""Activations that change nothing when they are applied again."""

_MOST_WRITES = 20
"""The writes of one line that are looked at: its input may have nothing to change at first."""


def overwritten_inputs(survey: Survey) -> Iterator[Finding | None]:
    """Yield activations in place of a tensor from outside that the program reads again as if it were unchanged.

    ``out = conv(relu_(x)); out += x`` adds ``relu(x)``. The activation is found by its name, the later use in the
    graph, and the variable in the text: ``x = relu_(x)`` is meant so. A tensor that the activation left as it was, such
    as the result of another relu, does not count.
    """
    timeline = survey.timeline
    left: defaultdict[int, int] = defaultdict(lambda: _MOST_WRITES)
    for record in survey.ops(*ACTIVATIONS):
        name = timeline.op(record.created.op).name
        if not name.endswith("_") or name.endswith("__") or not left[record.created.stack]:
            continue
        yield None
        left[record.created.stack] -= 1
        source = next(survey.sources(record), None)
        if source is None or source.created.kind != "op" or not _changes(source, record):
            continue
        for user in timeline.nodes.users(record.node):
            use = survey.nodes.get(user)
            is_same = use is not None and use.op == record.op and use.op in _SAME_AGAIN
            variable = _read_again(survey, source, record, use) if use is not None and not is_same else None
            if use is not None and variable is not None:
                left[record.created.stack] = 0
                yield _overwritten_finding(survey, source, record, use, *variable)
                break


def _changes(source: NodeRecord, record: NodeRecord) -> bool:
    """Return whether a write in place has changed a tensor."""
    before, after = (one.value.statistics() if one.value is not None else None for one in (source, record))
    return before is not None and after is not None and (before.min, before.max) != (after.min, after.max)


def _read_again(
    survey: Survey, source: NodeRecord, record: NodeRecord, use: NodeRecord
) -> tuple[str, Frame, Frame] | None:
    """Return the variable with the overwritten tensor, the call that got it, and the expression that reads it again."""
    if use.created.kind != "op" or use.created.switched_off or _is_of_part(survey, source, record, use):
        return None
    calls, uses, earlier = ([*reversed(survey.timeline.stack(one.created.stack))] for one in (record, use, source))
    place = next((n for n, (call, used) in enumerate(zip(calls, uses, strict=False)) if call != used), None)
    if place is None or (earlier[: place + 1] == calls[: place + 1] and not survey.scopes.get(record.created.scope)):
        return None
    name = _argument_read_later(survey.timeline, calls[place], uses[place])
    return (name, calls[place], uses[place]) if name else None


def _is_of_part(survey: Survey, source: NodeRecord, record: NodeRecord, use: NodeRecord) -> bool:
    """Return whether the part of a model that makes the write has made the tensor, too: then it may return it."""
    around = set(_calls_around(survey, use))
    inside = [scope for scope in _calls_around(survey, record) if scope not in around]
    return bool(inside) and inside[-1] in _calls_around(survey, source)


def _calls_around(survey: Survey, record: NodeRecord) -> list[int]:
    """Return the module calls around a node, from the inside out."""
    scope, calls = record.created.scope, list[int]()
    while scope in survey.scopes:
        calls.append(scope)
        scope = survey.scopes[scope].parent
    return calls


def _overwritten_finding(
    survey: Survey, source: NodeRecord, record: NodeRecord, use: NodeRecord, name: str, call: Frame, again: Frame
) -> Finding:
    timeline, scope = survey.timeline, survey.scopes.get(record.created.scope)
    text = titled("{} in place overwrites {}, which is read again", record.op, shown(name))
    stats = source.value.statistics() if source.value is not None else None
    was = f"; its least element was {number(stats.min)}" if stats is not None else ""
    then = f"{label_at(timeline, use.node)} gets the result of {record.op}{was}"
    part = Finding("used", then, use.seq, use.node, at=again)
    at, edit, fix = call, None, f"{record.op} without inplace=True, or of {shown(name)}.clone()"
    if scope is not None and record.created.scope not in _calls_around(survey, use):
        around = set(_calls_around(survey, use))
        part_call = [one for one in _calls_around(survey, record) if one not in around][-1]
        path = scope.name.removeprefix(survey.scopes[part_call].name).strip(".")
        fix = f"make the {shown(scope.kind)} {shown(scope.name)} without inplace=True"
        made = _made_in_place(timeline, call, path.split(".") if path else [], scope.kind)
        if made is not None:
            at, edit = made
    else:
        edit = without_keyword(timeline, call, record.op, "inplace")
    return Finding("overwritten-input", text, record.seq, record.node, (part,), fix, at, suspected=True, edit=edit)


# What the text of the program says


def repeated_after(timeline: Timeline, at: Frame | None, earlier: Sequence[Frame]) -> tuple[list[str], Edit | None]:
    """Return assignments before a statement of the same block as texts, and the edit that repeats these after it.

    Nothing is repeated if one of the places is in another block, or in no assignment. Neither is an assignment that
    would read another number the second time, as ``h = cell(x, h)`` does.
    """
    source = statement_at(timeline, at)
    if source is None or getattr(source[1].node, "body", None):
        return [], None
    text, one = source
    found = [text.at(frame.line, frame.column) for frame in earlier if frame.path == text.path]
    statements = {id(each.node): each for each in found if each is not None}
    repeated = sorted(statements.values(), key=lambda each: each.first)
    in_block = {id(node) for node in one.block}
    if len(found) < len(earlier) or None in found or not text.is_alone(one):
        return [], None
    if any(id(each.node) not in in_block or not isinstance(each.node, ast.Assign) for each in repeated):
        return [], None
    if not repeated or repeated[-1].first >= one.first or _reads_what_follows([each.node for each in repeated]):
        return [], None
    texts = [text.segment(each.node) for each in repeated]
    rows = "".join(f"{row}\n" for row in text.rows[one.first - 1 : one.last])
    new = "".join(f"{text.indent(one)}{each}\n" for each in texts)
    return texts, lines_replaced(text, one.first, one.last, rows + new)


def _reads_what_follows(statements: Sequence[ast.stmt]) -> bool:
    """Return whether one of the assignments reads a name that it, or a later one, assigns."""
    assigned: set[str] = set()
    for statement in reversed(statements):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        for target in (part for one in targets for part in _changed_by(one)):
            assigned.add(ast.unparse(target))
        parts = [part for part in ast.walk(statement) if isinstance(part, ast.Name | ast.Attribute | ast.Subscript)]
        if any(ast.unparse(part) in assigned for part in parts if isinstance(part.ctx, ast.Load)):
            return True
    return False


def _changed_by(target: ast.expr) -> Iterator[ast.expr]:
    """Yield what an assignment changes: each name of a tuple, and of ``h[0]`` also ``h``."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _changed_by(part)
        case ast.Starred(value=value):
            yield from _changed_by(value)
        case ast.Subscript(value=value):
            yield from (target, value)
        case _:
            yield target


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


def _made_in_place(timeline: Timeline, call: Frame, path: Sequence[str], kind: str) -> tuple[Frame, Edit | None] | None:
    """Return where a class makes a module with ``inplace=True``, and the edit that leaves it out.

    The class is the one whose method makes the call ``self.conv(x)``, and the module has the `path` in ``self.conv``.
    """
    source = statement_at(timeline, call)
    if source is None:
        return None
    text, one = source
    owner = next((outer for outer in reversed(one.around) if isinstance(outer, ast.ClassDef)), None)
    calls = [part for part in one.parts(ast.Call) if isinstance(part.func, ast.Attribute)]
    attributes = {part.func.attr for part in calls if isinstance(part.func, ast.Attribute)}
    assigned = (part for part in (ast.walk(owner) if owner is not None else ()) if isinstance(part, ast.Assign))
    pairs = (pair for part in assigned for target in part.targets for pair in _paired(target, part.value))
    made = [value for target, value in pairs if isinstance(target, ast.Attribute) and target.attr in attributes]
    if len(made) != 1 or len(attributes) != 1:
        return None
    module: ast.expr = made[0]
    for word in path:
        items = module.args if isinstance(module, ast.Call) and called_name(module) == "Sequential" else []
        if not word.isdecimal() or int(word) >= len(items) or any(isinstance(one, ast.Starred) for one in items):
            break
        module = items[int(word)]
    known = [
        part
        for part in ast.walk(module)
        if isinstance(part, ast.Call) and called_name(part) == kind and (part.args or part.keywords)
    ]
    if len(known) != 1:
        return None
    (making,) = known
    first, last = making.lineno, making.end_lineno or making.lineno
    at = Frame(text.path, call.function, first, last, making.col_offset, making.end_col_offset or -1)
    return at, without_keyword(timeline, at, kind, "inplace")


def _paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return the target and the value of an assignment, one by one if both are tuples."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


# What the text of the program says


def _discards_result(timeline: Timeline, at: Frame | None) -> bool:
    """Return whether a statement only writes to something: ``x[rows].zero_()``, ``x[rows][0] = 1``, ``init.zeros_(x)``.

    No variable has its result.
    """
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name.endswith("_") and not name.endswith("__")
        case ast.Assign(targets=[ast.Subscript(value=whole)]) | ast.AugAssign(target=ast.Subscript(value=whole)):
            return not isinstance(whole, ast.Name)
    return False


@dataclass(frozen=True, slots=True)
class _FunctionText:
    """The text of a function, and its first parameter; that of a method is the one after ``self``."""

    text: str
    parameter: str


def _function_around(timeline: Timeline, at: Frame | None, name: str) -> _FunctionText | None:
    """Return the function with this name, or the lambda, in which a frame is; None if it is in no such function."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    last = name.rpartition(".")[2]
    for part in ast.walk(text.tree):
        if not isinstance(part, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        known = "<lambda>" if isinstance(part, ast.Lambda) else part.name
        if known == last and _is_inside(part, at):
            names = [one.arg for one in (*part.args.posonlyargs, *part.args.args)]
            is_method = names[:1] in (["self"], ["cls"])
            return _FunctionText(text.segment(part), next(iter(names[is_method:]), ""))
    return None


def _is_inside(part: ast.expr | ast.stmt, at: Frame) -> bool:
    """Return whether the expression at a frame is a part of another. Unknown columns are those of the whole line."""
    start, end = (part.lineno, part.col_offset), (part.end_lineno or part.lineno, part.end_col_offset or 0)
    here = (at.line, at.column) if at.column >= 0 else (at.line, part.col_offset)
    return start <= here <= end


def _argument_read_later(timeline: Timeline, call: Frame, use: Frame) -> str:
    """Return the variable that is an argument of a call and that a later expression of the function reads; else empty.

    ``skip = x`` is another name of it. A result without a name, as of ``relu(x)`` on a line of its own, is that of a
    call for its effect, and so does not count. Neither does a variable that is set again in between.
    """
    called, used = statement_at(timeline, call), statement_at(timeline, use)
    if called is None or used is None or function_of(called[1]) is not function_of(used[1]):
        return ""
    text, one = called
    calls = list(one.parts(ast.Call))
    calls = [part for part in calls if is_at(part, call)] or calls
    if len(calls) != 1 or isinstance(one.node, ast.Expr) or used[1].first < one.first:
        return ""
    running = calls[0]
    values = [*running.args, *(keyword.value for keyword in running.keywords)]
    given = {part.id for part in values if isinstance(part, ast.Name)}
    own = [part for part in text.statements if function_of(part) is function_of(one)]
    for part in own:
        if given and part.first < one.first and isinstance(part.node, ast.Assign):
            value = part.node.value
            others = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            is_alias = any(isinstance(other, ast.Name) and other.id in given for other in others)
            given = given | names_set(part.node) if is_alias else given - names_set(part.node)
    if used[1].node is one.node:
        inside = {id(part) for part in ast.walk(running)}
        read = {part.id for part in one.parts(ast.Name) if id(part) not in inside and isinstance(part.ctx, ast.Load)}
        return next(iter(sorted(given & read)), "")
    for part in own:
        if one.first <= part.first < used[1].first:
            given -= names_set(part.node)
    read = {part.id for part in used[1].parts(ast.Name) if isinstance(part.ctx, ast.Load)}
    return next(iter(sorted(given & read)), "")
