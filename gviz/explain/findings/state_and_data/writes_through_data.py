"""Writes through ``.data`` and ``.numpy()`` to tensors that backward needs: autograd does not notice them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gviz.events import StepStarted, StorageWritten
from gviz.explain.backward_passes import pass_started
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import without_in_place
from gviz.explain.source_frames import at_text, innermost
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline

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
    from gviz.rerun.node_forward import result_again  # the engine, which few answers need

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
