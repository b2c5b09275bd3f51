"""Errors of writes in place: to a tensor that backward needs, and to a leaf that requires a gradient."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from gviz.events import (
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
from gviz.explain.display_names import innermost, label, label_at, made_at, titled
from gviz.explain.edit import (
    FunctionText,
    discards_result,
    function_around,
    in_block,
    without_in_place,
    without_option,
    wrapped,
)
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import ACTIVATIONS
from gviz.explain.parameter_updates import Write, step_of, writer_of
from gviz.explain.program_errors import Failure
from gviz.explain.recording_overview import Made, Survey
from gviz.source.site import Frame, source_lines
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown

_CHANGED = r"modified by an inplace operation"


_NAMED_SHAPE = re.compile(r"Tensor (\[[\d, ]*\])")
_NAMED_VERSION = re.compile(r"expected version (\d+)")


def explain_saved(failure: Failure) -> Finding | None:
    """Explain the write between saving and backward: by an operation, or by the step of an optimizer."""
    if not failure.says(_CHANGED):
        return None
    timeline = failure.timeline
    found = _write_of(timeline, failure) if failure.node else None
    if found is None:
        text = "a tensor that backward needs was changed in place after it had been saved"
        return Finding("changed-in-place", text, failure.seq, failure.node, fix=_FIX, at=failure.at)
    (holder, version), seq, write = found
    saver = timeline.info(failure.node)
    saved = f"saved by {saver.op.grad_fn or label(timeline, saver.node)}{made_at(saver.frames)} at version {version}"
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
        wrote = f"updated by the step{made_at(frames)} to version {write.version}"
        at = frames[0] if frames else failure.at
        parts = (saved_part, Finding("write", wrote, seq, owner, at=at))
        return Finding("changed-in-place", text, seq, owner, parts, _STEP_FIX, at)
    writer = timeline.info(by_node) if by_node in timeline.nodes else None
    text = titled("{} was changed in place, " + needs, label(timeline, holder), *names)
    wrote = f"changed by {label_at(timeline, by_node)} to version {write.version}" if writer else "changed"
    parts = (saved_part, Finding("write", wrote, seq, by_node, at=innermost(writer) if writer else None))
    at = innermost(writer) if writer else failure.at
    edit = without_in_place(timeline, at) or without_option(timeline, at, "inplace")
    return Finding("changed-in-place", text, seq, holder, parts, _fix(writer), at, edit=edit)


def _owner(timeline: Timeline, output: Edge) -> int:
    """Return the node that owns an output's memory: for a view, the tensor that it is a view of."""
    node, nr = output
    while True:
        outputs = timeline.info(node).created.outputs
        base = outputs[nr].view_of if nr < len(outputs) else 0
        if not base or base >= node or base not in timeline.nodes:
            return node
        node, nr = base, 0


_STEP_FIX = "run this backward pass before the step, or compute the loss anew after it"


def _write_of(timeline: Timeline, failure: Failure) -> tuple[Edge, int, Write] | None:
    """Return the write to a tensor that the rule had saved; of several tensors, the one that the error describes.

    The message has the shape of the saved tensor and the expected version. An operation may not have saved the first of
    its inputs: a step changes ``b`` and ``w`` of ``addmm(b, x, w.t())``, but only ``w.t()`` is saved.
    """
    shape, version = (pattern.search(failure.message) for pattern in (_NAMED_SHAPE, _NAMED_VERSION))
    born = timeline.at(timeline.info(failure.node).born)

    def mismatch(found: tuple[Edge, int, Write]) -> tuple[bool, bool]:
        (holder, at_version), _, _ = found
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
    made = [(n, event.node) for n, event in created if event.kind != "op" and event.requires_grad]
    switched = [(n, event.node) for n, event in later if event.requires_grad]
    return (node for _, node in sorted([*made, *switched], reverse=True))


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


def changed_unseen(survey: Survey) -> Iterator[Finding | None]:
    """Yield writes through an array that shares the memory of a result: a later operation used other numbers."""
    timeline, tried = survey.timeline, 0
    for alias in survey.nodes.values():
        source = next(survey.sources(alias), None) if alias.created.untracked in ("detach", "data") else None
        if source is None or source.created.kind != "op" or timeline.nodes.users(alias.node):
            continue  # what reads it as a tensor is recorded
        for user in timeline.nodes.users(source.node):
            made = survey.nodes.get(user)
            if made is None or made.seq < alias.seq or made.op not in _COMPUTED_AGAIN or tried >= _MOST_COMPUTED:
                continue
            yield None
            tried += 1
            if _gives_another_result(timeline, timeline.info(user)):
                yield _unseen_finding(survey, alias, source, made)
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


def _unseen_finding(survey: Survey, alias: Made, source: Made, made: Made) -> Finding:
    timeline, at = survey.timeline, survey.at(alias)
    text = titled("{} was changed through an array that shares its memory", label(timeline, source.node))
    used = f"{label_at(timeline, made.node)} used other numbers than recorded: autograd sees no write through numpy"
    part = Finding("used", used, made.seq, made.node, at=survey.at(made))
    fix = "write to a copy: .numpy().copy(), or with an operation of the tensor, which autograd counts"
    return Finding("changed-through-data", text, alias.seq, source.node, (part,), fix, at)


# A write through ``.data``, which autograd does not count: backward uses the new numbers


def changed_through_data(survey: Survey) -> Iterator[Finding | None]:
    """Yield writes through ``.data`` or an array to a tensor that an operation has saved, before its rule ran."""
    yield from changed_unseen(survey)
    timeline = survey.timeline
    tracked = {  # only tracked tensors: a layer updates its running statistics in this way
        made.node
        for made in survey.nodes.values()
        if made.created.untracked == "data" and any(source.created.requires_grad for source in survey.sources(made))
    }
    for seq, event in survey.select(StorageWritten) if tracked else ():
        yield None
        writer = survey.nodes.get(event.node)
        if writer is None or not _writes_to(survey, writer, tracked):
            continue
        saving = _saving(survey, event.storage, seq)
        used = next(
            (
                (one, n)
                for one in saving
                if (n := _ran_after(timeline, one.node, seq)) and not _is_restored(survey, one, event.storage, n)
            ),
            None,
        )
        if used is not None:
            yield _data_finding(survey, seq, writer, *used)


def _writes_to(survey: Survey, writer: Made, tracked: set[int]) -> bool:
    """Return whether an operation wrote to one of these tensors, or to a part of one."""
    while writer.created.inputs and not writer.created.requires_grad:
        node = writer.created.inputs[0][0]
        if node in tracked:
            return True
        if node not in survey.nodes:
            return False
        writer = survey.nodes[node]
    return False


def _saving(survey: Survey, storage: int, seq: int) -> Iterator[Made]:
    """Yield the operations that had saved a tensor in some memory when it was written to."""
    holds = {
        (made.node, nr)
        for made in survey.nodes.values()
        if made.seq < seq
        for nr, output in enumerate(made.created.outputs)
        if output.storage == storage
    }
    users = {user for node, _ in holds for user in survey.timeline.nodes.users(node, seq)}
    for made in (survey.nodes[node] for node in sorted({*users, *(node for node, _ in holds)}) if node in survey.nodes):
        op = survey.timeline.op(made.created.op)
        slots = op.slots if len(op.slots) == len(made.created.inputs) else ()
        kept = any(name in op.saved and edge in holds for name, edge in zip(slots, made.created.inputs, strict=False))
        if made.created.requires_grad and (kept or ("result" in op.saved and (made.node, 0) in holds)):
            yield made


def _ran_after(timeline: Timeline, node: int, seq: int) -> int:
    """Return the event with which the backward rule of a node began after event `seq`; 0 if it did not."""
    later = (n for n in timeline.events_of(node) if n > seq)
    return next((n for n in later if isinstance(timeline.event(n), StepStarted)), 0)


def _is_restored(survey: Survey, made: Made, storage: int, n: int) -> bool:
    """Return whether some memory that an operation saved holds the same numbers again at event `n`.

    A check of gradients by finite differences changes each element and restores it.
    """
    edges = [(made.node, 0), *made.created.inputs]
    known = ((survey.nodes[node], nr) for node, nr in edges if node in survey.nodes)
    held = [(one.node, nr) for one, nr in known if one.created.outputs[nr].storage == storage]
    values = [(survey.timeline.memory_value(*edge, made.seq), survey.timeline.memory_value(*edge, n)) for edge in held]
    return bool(values) and all(
        before is not None and after is not None and before.data is not None and before.data == after.data
        for before, after in values
    )


def _data_finding(survey: Survey, seq: int, writer: Made, saved: Made, used: int) -> Finding:
    timeline = survey.timeline
    info, how = timeline.info(writer.node), "through .data"
    started = pass_started(timeline, timeline.at(used).pass_nr)
    text = titled("a tensor that {} saved for backward was changed " + how, label(timeline, saved.node))
    at = made_at(timeline.stack(started.stack)) if started is not None else ""
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
        at, made = survey.at(writer), survey.at(owner)
        if at is None or made is None or (at.path, at.line) != (made.path, made.line):
            continue
        if discards_result(timeline, at) and not _is_used_later(survey, event.storage, at):
            seen.add(writer.created.stack)
            yield _lost_finding(survey, seq, writer, owner)


def _first_of_each_memory(survey: Survey) -> dict[int, Made]:
    """Return the node that made each memory. A write has the memory of its input."""
    owners: dict[int, Made] = {}
    for made in survey.nodes.values():
        for output in made.created.outputs:
            owners.setdefault(output.storage, made)
    return owners


def _is_used_later(survey: Survey, storage: int, at: Frame) -> bool:
    """Return whether a tensor in a memory has a name, is the root of a pass, or is used on another line."""
    timeline = survey.timeline
    holders = {
        made.node for made in survey.nodes.values() if any(one.storage == storage for one in made.created.outputs)
    }
    users = {user for node in holders for user in timeline.nodes.users(node)}
    places = [survey.at(survey.nodes[node]) for node in holders | users if node in survey.nodes]
    is_elsewhere = any(one is None or (one.path, one.line) != (at.path, at.line) for one in places)
    freed = timeline.nodes.freed(survey.end)
    return is_elsewhere or any(timeline.info(node).name or node not in freed for node in holders)


def _lost_finding(survey: Survey, seq: int, writer: Made, owner: Made) -> Finding:
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
        then = f"a hook after accumulation gets the parameter; it was registered{made_at(registered)}"
        part = Finding("hook", then, seq, ran.node, at=registered[0] if registered else None)
        fix = "write to its .grad in the hook, or use register_hook, whose hook gets the gradient"
        edit = wrapped(timeline, at, function.parameter, ".grad") if function.parameter else None
        yield Finding("written-by-hook", text, write, ran.node, (part,), fix, at, edit=edit)


def _written_inside(survey: Survey, ran: HookRan, start: int, end: int) -> tuple[int, Frame, FunctionText] | None:
    """Return the first write to the memory of a leaf by its hook between two events, with its line and the hook."""
    made, timeline = survey.nodes.get(ran.node), survey.timeline
    storages = {output.storage for output in made.created.outputs} if made is not None else set()
    for seq, event in timeline.select((StorageWritten,), start, end):
        writer = survey.nodes.get(event.node) if event.storage in storages else None
        at = survey.at(writer) if writer is not None and writer.created.kind == "op" else None
        if writer is None or at is None:
            continue
        functions = (function_around(timeline, frame, ran.name) for frame in timeline.stack(writer.created.stack))
        function = next((one for one in functions if one is not None), None)
        if function is not None:
            return seq, at, function
    return None
