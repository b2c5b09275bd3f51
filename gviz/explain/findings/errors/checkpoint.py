"""Checkpoints: the part of a forward that backward computes again, with other numbers or operations than before."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from gviz.explain.display_names import is_mask, label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import (
    ProgramText,
    Store,
    assigned_parts,
    called_lines,
    called_name,
    calls_in,
    frame_of,
    function_of,
    places_read,
    statement_at,
    stores_of,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import with_keyword
from gviz.explain.source_frames import at_text, innermost, own_frames
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped, file_line


def other_recomputation(survey: Survey) -> Iterator[Finding | None]:
    """Yield operations that backward ran again, on the same numbers and with another result, each line once.

    Such an operation draws at random, in most programs. So does a line that makes a tensor of other numbers than in
    the forward. The gradients are then those of another forward than that of the loss.

    A backward of the program that evaluates its function at other inputs is no checkpoint: it estimates the gradient.
    """
    timeline, seen = survey.timeline, set[int]()
    again = [record for record in survey.nodes.values() if record.created.during[0] and _may_draw(survey, record)]
    if not again:
        return
    places = {_place(survey, record) for record in again}
    before: defaultdict[tuple[int, _Place, _Numbers], list[NodeRecord]] = defaultdict(list)
    for number, record in enumerate(survey.nodes.values()):
        if not number % _STRETCH:
            yield None
        if not record.created.during[0] and _may_draw(survey, record) and (place := _place(survey, record)) in places:
            before[timeline.iteration_at(record.seq).index, place, _given(survey, record)].append(record)
    results: dict[int, set[_Numbers]] = {}  # of the forward, by iteration

    def has_other_inputs(record: NodeRecord) -> bool:
        iteration = timeline.iteration_at(record.seq)
        if iteration.index not in results:
            made = (survey.nodes[node] for node in timeline.nodes.of(iteration) if node in survey.nodes)
            forward = [one for one in made if one.created.kind == "op" and not one.created.during[0]]
            results[iteration.index] = {_stored(one) for one in forward}
        return _has_other_inputs(survey, record, results[iteration.index])

    inside: dict[int, bool] = {}  # by the call stack of the forward

    def is_inside(record: NodeRecord) -> bool:
        stack = record.created.stack
        if stack not in inside:
            inside[stack] = _is_in_checkpoint(timeline, record)
        return inside[stack]

    for number, record in enumerate(again):
        if not number % _STRETCH:
            yield None
        runs = before[timeline.iteration_at(record.seq).index, _place(survey, record), _given(survey, record)]
        runs = [one for one in reversed(runs) if one.seq < record.seq]
        if record.created.stack in seen or not runs or any(_stored(one) == _stored(record) for one in runs):
            continue
        if has_other_inputs(record):
            continue
        of_line = (one for one in runs if one.created.kind == "op" and _line(survey, one) == _line(survey, record))
        first = next((one for one in runs if is_inside(one)), None) or next(of_line, None)
        # a reentrant checkpoint tracks nothing in the forward, and one without it ends early in backward
        if first is not None and any(_is_for_gradients(survey, run) for run in (first, record)):
            seen.add(record.created.stack)
            yield _finding(survey, first, record)


_STRETCH = 1000
"""Nodes that are examined at a time."""


def _is_for_gradients(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a tracked result depends on an operation.

    None does on what a batch normalization computes for its running statistics, which both runs update. What an
    operation writes to another tensor counts, and so does a draw in place.
    """
    if record.created.requires_grad or survey.timeline.info(record.node).op.name.endswith("_"):
        return True
    waiting, seen = [record.node], {record.node}
    while waiting:
        node = waiting.pop()
        for user in survey.timeline.nodes.users(node):
            info = survey.timeline.info(user)
            writes_elsewhere = info.op.name.endswith("_") and info.created.inputs[0][0] != node
            if info.created.requires_grad or writes_elsewhere:
                return True
            if user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


def _has_other_inputs(survey: Survey, record: NodeRecord, results: Collection[_Numbers]) -> bool:
    """Return whether what backward runs again begins with numbers that the forward has not: ``x + step``.

    The inputs of two operations may seem the same where only their statistics are stored.
    """
    waiting, seen = [record], {record.node}
    while waiting and len(seen) < _MOST_NODES:
        for source in survey.sources(waiting.pop()):
            if source.created.during != record.created.during or source.node in seen:
                continue
            is_new = source.created.kind == "op" and source.op not in SAME_NUMBERS and source.op != "detach"
            if is_new and _stored(source) not in results:
                return True
            seen.add(source.node)
            waiting.append(source)
    return False


def _line(survey: Survey, record: NodeRecord) -> Frame | None:
    """Return the innermost line of the program that made a node."""
    return next(iter(survey.timeline.stack(record.created.stack)), None)


_CHECKPOINTS = ("checkpoint", "checkpoint_sequential")


def _is_in_checkpoint(timeline: Timeline, record: NodeRecord) -> bool:
    """Return whether a line of a node's call stack calls ``checkpoint``."""
    frames = timeline.stack(record.created.stack)
    calls = {(call.path, call.line) for frame in {*frames} for call in called_lines(timeline, frame, *_CHECKPOINTS)}
    return any((frame.path, frame.line) in calls for frame in frames)


_Place = tuple[str, str, str]
"""An operation, its options, and the path of the module that it ran in."""


def _place(survey: Survey, record: NodeRecord) -> _Place:
    scope = survey.scopes.get(record.created.scope)
    return record.op, repr(record.created.attrs), scope.name if scope is not None else ""


_Numbers = tuple[object, ...]
"""The numbers of a tensor in a comparison, in which nan is equal to nan."""


def _may_draw(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a node is an operation with one input, or a tensor of numbers that the program made."""
    value, inputs = record.value, record.created.inputs
    if value is None or value.statistics() is None:
        return False
    if not inputs:
        return record.created.kind == "constant" and value.size > 1 and "float" in value.dtype
    return len(inputs) <= 2 and len(_inputs(survey, record)) == 1


def _inputs(survey: Survey, record: NodeRecord) -> list[NodeRecord]:
    """Return the inputs of an operation, besides the mask that it has drawn."""
    return [source for source in survey.sources(record) if not is_mask(source.created)]


def _given(survey: Survey, record: NodeRecord) -> _Numbers:
    """Return the numbers of the input of an operation; for a new tensor its shape, and the line that made it."""
    inputs = _inputs(survey, record)
    return _stored(inputs[0]) if inputs else (record.shape, _line(survey, record))


def _stored(record: NodeRecord) -> _Numbers:
    """Return the numbers of a node as far as they were stored."""
    value = record.value
    return () if value is None else (value.shape, value.data, repr(value.stats), value.blob)


def _finding(survey: Survey, first: NodeRecord, again: NodeRecord) -> Finding:
    timeline = survey.timeline
    inner, outer = timeline.stack(again.created.stack), timeline.stack(first.created.stack)
    shared = next((nr for nr, (one, other) in enumerate(zip(inner, outer, strict=False)) if one != other), len(inner))
    at = outer[shared] if shared < len(outer) else survey.at(first)
    text = titled("{} gives other numbers when backward computes it again", label(timeline, first.node))
    is_new = not again.created.inputs
    same = "made on the same line" if is_new else "the same call on the same input"
    other = f"{label_at(timeline, again.node)} is {same}: the gradients are those of another forward"
    part = Finding("recomputed", other, again.seq, again.node, at=survey.at(first))
    fix = "leave preserve_rng_state at True: the checkpoint then draws the same random numbers again"
    edit = with_keyword(timeline, at, "checkpoint", "preserve_rng_state", "True")
    return Finding("other-recomputation", text, again.seq, first.node, (part,), fix, at, edit=edit)


# An error of a checkpoint: what backward runs again is not what the forward ran

DIFFERENT = (
    r"have different metadata than during the forward|A different number of tensors was saved during the original"
)
_MOST_NODES = 5000
"""The most nodes of one run of a checkpoint that are compared."""


@dataclass(frozen=True, slots=True)
class _Difference:
    """The first operation in which two runs of a checkpoint differ: that of the forward, and that of backward.

    One of them is None if only the other run has such an operation. `before` are the nodes of the forward.
    """

    first: NodeInfo | None
    again: NodeInfo | None
    before: range


def explain_difference(failure: Failure) -> Finding | None:
    """Return the finding about a checkpoint that runs other operations again, with the state that it has changed."""
    timeline = failure.timeline
    difference = _first_difference(failure)
    if difference is None:
        return None
    first, again = difference.first, difference.again
    shown_node = again or first
    assert shown_node is not None
    name = label(timeline, shown_node.node)
    text = titled("{} has another shape when backward computes it again", name)
    if first is None:
        text = titled("a checkpoint runs {} in backward, but not in the forward", name)
    elif again is None:
        text = titled("a checkpoint runs {} in the forward, but not in backward", name)
    at = innermost(shown_node)
    part, fix = _cause(timeline, difference, at)
    called = _checkpoint_call(timeline, shown_node)
    calls = [] if called is None else [_called_from(failure, called)]
    message = Finding("message", failure.quoted, failure.seq)
    return Finding("failed", text, failure.seq, shown_node.node, (part, *calls, message), fix, at)


def _called_from(failure: Failure, called: Frame) -> Finding:
    place = file_line(called.path, called.line)
    return Finding(
        "recomputed", f"checkpoint() at {place} calls it in the forward, and again in backward", failure.seq, at=called
    )


def _first_difference(failure: Failure) -> _Difference | None:
    """Return the first difference between the last run of a checkpoint in backward and its run in the forward."""
    timeline, node = failure.timeline, failure.node
    again = list(takewhile(lambda info: info.created.during[0], _latest_operations(timeline, failure.seq)))
    node = node or (again[0].created.during[1] if again else 0)
    again = [info for info in reversed(again) if info.created.during == (again[0].created.during[0], node)]
    phases = reversed([phase for phase in timeline.phases if phase.kind == "backward" and phase.start < failure.seq])
    started = next((phase.start for phase in phases), failure.seq)
    place = _start_of_run(timeline, again[0] if again else None, node, started)
    if place < 0:
        return None
    forward = [timeline.info(node) for node in timeline.nodes[place : place + 2 * _MOST_NODES]]
    first = [info for info in forward if info.born < started and _is_compared(info)][:_MOST_NODES]
    if not first:
        return None
    before = range(first[0].node, first[-1].node + 1)
    keys, keys_again = [_key(timeline, info) for info in first], [_key(timeline, info) for info in again]
    for nr, (one, other) in enumerate(zip(first, again, strict=False)):
        if keys[nr] == keys_again[nr]:
            if _shapes(one) != _shapes(other):
                return _Difference(one, other, before)
        elif keys_again[nr] in keys[nr:] and keys[nr] not in keys_again[nr:]:
            return _Difference(one, None, before)
        else:
            return _Difference(None, other, before)
    return _Difference(first[len(again)], None, before) if len(first) > len(again) else None


def _start_of_run(timeline: Timeline, again: NodeInfo | None, needed: int, started: int) -> int:
    """Return the place of the node with which a checkpoint began in the forward, by its first one in backward.

    If the forward began with another operation, the run is all of the calls of ``checkpoint`` around the node whose
    rule needs it. The place is -1 if there is none.
    """
    nodes = timeline.nodes
    if again is not None:
        key, sources = _key(timeline, again), [node for node, _ in again.created.inputs if node]
        users = sorted({user for source in sources for user in nodes.users(source, started)}, reverse=True)
        start = next((user for user in users if _key(timeline, timeline.info(user)) == key), 0)
        if start:
            return nodes.place_of(start)
    if needed not in nodes:
        return -1
    calls = _checkpoint_calls(timeline)
    place = end = nodes.place_of(needed)
    while place >= 0 and end - place < _MOST_NODES:
        if calls.keys().isdisjoint((frame.path, frame.line) for frame in timeline.info(nodes[place]).frames):
            break
        place -= 1
    return place + 1 if place < end else -1


def _latest_operations(timeline: Timeline, seq: int) -> Iterator[NodeInfo]:
    """Yield the compared operations before an event, the latest first."""
    nodes = (node for node in reversed(timeline.nodes) if timeline.nodes.born(node) < seq)
    return (info for info in map(timeline.info, islice(nodes, _MOST_NODES)) if _is_compared(info))


def _is_compared(info: NodeInfo) -> bool:
    """Return whether a node is an operation of the program, and not what saves a tensor."""
    return info.created.kind == "op" and info.created.untracked not in ("detach", "data")


def _key(timeline: Timeline, info: NodeInfo) -> tuple[object, ...]:
    """Return what is the same in two runs: the operation, its line, and the parameters that it gets."""
    at = innermost(info)
    creations = (timeline.info(node).created for node, _ in info.created.inputs if node)
    parameters = tuple(created.node for created in creations if created.kind == "parameter")
    return info.op.name, at and (at.path, at.line, at.column), parameters


def _shapes(info: NodeInfo) -> list[tuple[int, ...]]:
    return [output.value.shape for output in info.created.outputs if output.value is not None]


def _cause(timeline: Timeline, difference: _Difference, at: Frame | None) -> tuple[Finding, str]:
    """Return why two runs differ, and the fix: a result of the first run that is kept, a random number, or a state."""
    shown_node = difference.again or difference.first
    assert shown_node is not None
    seq, node = shown_node.born, shown_node.node
    sources = [one for one, _ in shown_node.created.inputs] if difference.again is not None else []
    kept = next((timeline.info(one) for one in sources if one in difference.before and one in timeline.nodes), None)
    if kept is not None and kept.created.kind == "op":
        store = next(stores_of(timeline, own_frames(kept.frames), kept.names), None) or _store_read(timeline, at)
        held = f"it gets {label_at(timeline, kept.node)} of the first run"
        place = store.place if store is not None else "a list or an attribute"
        if store is not None:
            held = f"{held}, which {place} keeps{at_text((store.at,))}"
        fix = f"store nothing in {place} in a checkpointed function: train without this cache"
        return Finding("held", held, seq, kept.node, at=store.at if store is not None else None), fix
    frames = shown_node.frames
    drawn = _call_of_random(timeline, frames)
    if drawn is not None:
        text, there = drawn
        held = f"{text} at {file_line(there.path, there.line)} draws another number again: only torch's are restored"
        fix = "draw it outside, and pass it as an argument of checkpoint(); or draw with torch.rand"
        return Finding("draw", held, seq, node, at=there), fix
    state = _state_changed(timeline, frames)
    if state is not None:
        text, there = state
        held = f"{text} is changed by each run at {file_line(there.path, there.line)}"
        fix = f"change {text} outside of the checkpointed function, or pass it as an argument"
        return Finding("held", held, seq, node, at=there), fix
    first = difference.first
    was = (
        f"the forward ran {label_at(timeline, first.node)}" if first is not None else "the forward did not run its line"
    )
    part = Finding("recomputed", was, seq, first.node if first is not None else node)
    return part, "let it do the same in both runs: no state that it changes itself, no random numbers but torch's"


def _store_read(timeline: Timeline, at: Frame | None) -> Store | None:
    """Return the line that stores in a container which the statement at a frame of the same function reads."""
    source = statement_at(timeline, at)
    function = function_of(source[1]) if source is not None else None
    if source is None or at is None or function is None:
        return None
    text, one = source
    read = places_read(one.node)
    for other in text.by_function.get(function, ()):
        for target in assigned_parts(other.node):
            if isinstance(target, ast.Subscript) and ast.unparse(target.value) in read:
                return Store(frame_of(at, other.first, text), ast.unparse(target.value))
            if isinstance(target, ast.Attribute) and ast.unparse(target) in read:
                return Store(frame_of(at, other.first, text), ast.unparse(target))
    return None


def _checkpoint_call(timeline: Timeline, info: NodeInfo) -> Frame | None:
    """Return the line of a call stack that calls ``checkpoint``; or the only one of the program."""
    calls = _checkpoint_calls(timeline)
    of_stack = (calls[frame.path, frame.line] for frame in info.frames if (frame.path, frame.line) in calls)
    return next(of_stack, next(iter(calls.values()), None) if len(calls) == 1 else None)


def _checkpoint_calls(timeline: Timeline) -> dict[tuple[str, int], Frame]:
    """Return the lines that call ``checkpoint``, by file and line."""
    starts = (Frame(path, "", 1, 1, -1, -1) for path in timeline.sources)
    calls = (call for start in starts for call in called_lines(timeline, start, *_CHECKPOINTS))
    return {(call.path, call.line): call for call in calls}


# What the program's source code shows

_RANDOM = re.compile(r"^(random|np\.random|numpy\.random|rng|self\.rng)\.")


def _functions(timeline: Timeline, frames: Sequence[Frame]) -> Iterator[tuple[ProgramText, ast.AST, Frame]]:
    """Yield the functions of a call stack, the innermost first, without those that call ``checkpoint``."""
    for frame in frames:
        source = statement_at(timeline, frame)
        function = function_of(source[1]) if source is not None else None
        if source is None or function is None:
            return
        if any(called_name(call) in _CHECKPOINTS for call in calls_in(function)):
            return
        yield source[0], function, frame


def _call_of_random(timeline: Timeline, frames: Sequence[Frame]) -> tuple[str, Frame] | None:
    """Return a random number of Python or numpy that a function of a call stack draws, with its line."""
    for text, function, frame in _functions(timeline, frames):
        for call in calls_in(function):
            if _RANDOM.search(ast.unparse(call.func)):
                return clipped(ast.unparse(call), 40), frame_of(frame, call.lineno, text)
    return None


def _state_changed(timeline: Timeline, frames: Sequence[Frame]) -> tuple[str, Frame] | None:
    """Return an attribute or a list that a function of a call stack changes and reads, with its line."""
    for text, function, frame in _functions(timeline, frames):
        of_function = text.by_function.get(function, ())
        read = {name for one in of_function for name in places_read(one.node)}
        for one in of_function:
            match one.node:
                case ast.AugAssign(target=ast.Attribute() as target):
                    changed = ast.unparse(target)
                case ast.Assign(targets=[ast.Attribute() as target]) if ast.unparse(target) in read:
                    changed = ast.unparse(target)
                case ast.Expr(
                    value=ast.Call(func=ast.Attribute(value=owner, attr="append" | "add" | "extend" | "pop"))
                ):
                    changed = ast.unparse(owner)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=name))) if name.endswith("_"):
                    changed = ast.unparse(owner)
                case _:
                    continue
            return changed, frame_of(frame, one.first, text)
    return None
