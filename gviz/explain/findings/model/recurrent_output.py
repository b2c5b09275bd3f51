"""The step of a recurrent layer's output that a program reads, where that step is the wrong one.

Padding. A recurrent layer gives a result for each step. ``out[:, -1]`` takes the last one of the longest sequence of
the batch. For a shorter sequence it is a zero that `pad_packed_sequence` filled in, or a result for padding. If the
lengths are 3, 5 and 7, then 2 of its rows do not depend on their sequences. The last step is
``out[torch.arange(3), lengths - 1]``, or the final state that the layer returns.

Directions. The backward direction of a bidirectional layer starts at the end. ``out[:, -1]`` reads it there, where it
has seen one step, and its state before that was zero: ``weight_hh_l0_reverse`` gets the gradient zero, and
``weight_ih_l0_reverse`` does not. The final states of both directions are in the state that the layer returns.

Limits. Without packing, the padding is known only from an index with its elements, or from the lengths that
`pad_sequence` got; there, the layer sees the padding and may have learned to keep its state, so it is a note.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Callable, Iterator

from gviz.events import GradAccumulated
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.grad_history import is_zero
from gviz.explain.node_question import Question
from gviz.explain.operation_sets import DROPOUTS, RESHAPING
from gviz.explain.program_text import ProgramText, Statement, called_name, statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Change, Edit, imported_modules, rewritten
from gviz.explain.source_frames import innermost
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline

# The last step of a padded sequence

_STEPS = frozenset({"select", "slice"})
_SAME_STEPS = DROPOUTS | {
    "index_select", "transpose", "contiguous", "clone", "native_layer_norm", "to", "float", "relu", "tanh", "add",
    "mul",
}  # fmt: skip
"""Operations whose result has the same steps as their first input."""

_RECURRENT = ("RNN", "LSTM", "GRU")
_MOST_BETWEEN = 12


def last_of_padded(survey: Survey) -> Iterator[Finding | None]:
    """Yield lines that take the last step of a padded sequence: each line once.

    A line that also takes other steps, as ``out[:, t]`` in a loop does, may choose the last valid one.
    """
    seen: set[int] = set()
    if not (survey.by_op.get("_pad_packed_sequence") or any(one.kind in _RECURRENT for one in survey.scopes.values())):
        return
    seen |= {
        record.created.stack
        for record in survey.ops("select")
        for source in survey.sources(record)
        if len(source.shape) == 3 and _takes_another_step(record, source)
    }
    for record in survey.ops(*_STEPS):
        if record.created.stack in seen or not record.created.requires_grad:
            continue
        source = next(survey.sources(record), None)
        if source is None or len(source.shape) != 3 or (dim := _last_step(record, source)) is None:
            continue
        yield None
        finding = _of_packed(survey, record, source, dim) or _of_padded(survey, record, source, dim)
        if finding is not None:
            seen.add(record.created.stack)
            yield finding


def _last_step(record: NodeRecord, source: NodeRecord) -> int | None:
    """Return the dimension in which an operation takes the last element; None if it takes anything else."""
    attrs = dict(record.created.attrs)
    dim, start = attrs.get("dim"), attrs.get("index" if record.op == "select" else "start")
    if dim not in (0, 1) or not isinstance(dim, int) or source.shape[dim] < 2:
        return None
    return dim if start in (-1, source.shape[dim] - 1) else None


def _takes_another_step(record: NodeRecord, source: NodeRecord) -> bool:
    attrs = dict(record.created.attrs)
    dim, index = attrs.get("dim"), attrs.get("index")
    return (
        dim in (0, 1)
        and isinstance(index, int)
        and isinstance(dim, int)
        and index % source.shape[dim] != (source.shape[dim] - 1)
    )


def _of_packed(survey: Survey, record: NodeRecord, source: NodeRecord, dim: int) -> Finding | None:
    """Return the finding about zeros of ``pad_packed_sequence``."""
    timeline = survey.timeline
    lines = {one.created.stack for one in survey.by_op.get("_pad_packed_sequence", ())}
    padded = _before(survey, source, lambda one: one.created.stack in lines)
    if padded is None:
        return None
    of_line = (one for one in survey.by_op["_pad_packed_sequence"] if one.created.stack == padded.created.stack)
    lengths = next((one for one in reversed([*of_line]) if one.seq < record.seq), None)
    if lengths is None:
        return None
    attrs = dict(lengths.created.attrs)
    stats = lengths.value.statistics() if lengths.value is not None else None
    steps, sequences = source.shape[dim], source.shape[1 - dim]
    if dim != (1 if attrs.get("batch_first") else 0) or attrs.get("padding_value", 0.0) != 0.0 or stats is None:
        return None
    if not stats.min < steps:
        return None
    array = timeline.array(lengths.value) if lengths.value is not None else None
    shorter = int((array < steps).sum()) if array is not None else 0
    text = titled("{} takes the last step, which is zero for shorter sequences", label(timeline, record.node))
    some = f"{shorter} of {sequences} rows are zero" if shorter else "rows of shorter sequences are zero"
    part = Finding("padding", f"{some}: the lengths are {stats.min:.0f} to {stats.max:.0f}, and it takes step {steps}",
                   lengths.seq, lengths.node)  # fmt: skip
    at = survey.at(record)
    fix = "out[torch.arange(len(lengths)), lengths - 1]" if dim else "out[lengths - 1, torch.arange(len(lengths))]"
    fix = f"{fix}, or the state h_n that the layer returns"
    edit = _last_steps(timeline, at, survey.at(lengths), batch_first=dim == 1)
    numbers = (Number("rows of zeros", shorter, record.seq),) if shorter else ()
    return Finding("last-of-padded", text, record.seq, record.node, (part,), fix, at, numbers, edit=edit)


def _of_padded(survey: Survey, record: NodeRecord, source: NodeRecord, dim: int) -> Finding | None:
    """Return the finding about the result of a recurrent layer for padding."""
    timeline, steps = survey.timeline, source.shape[dim]
    result = _before(survey, source, lambda one: _layer(survey, one) != 0)
    if result is None:
        return None
    padding = _padded_input(survey, result, _layer(survey, result), steps, source.shape[1 - dim])
    if padding is None:
        return None
    data, shorter = padding
    text = titled("{} takes the last step, which is padding for shorter sequences", label(timeline, record.node))
    counted = f"{shorter} of {source.shape[1 - dim]} sequences of {label_at(timeline, data.node)} end with padding"
    part = Finding("padding", counted, data.seq, data.node, at=survey.at(data))
    fix = "the step at the length of each: out[torch.arange(n), lengths - 1], or pack_padded_sequence and h_n"
    numbers = (Number("padded", shorter, data.seq),)
    at = survey.at(record)
    return Finding("last-of-padded", text, record.seq, record.node, (part,), fix, at, numbers, suspected=True)


def _layer(survey: Survey, record: NodeRecord) -> int:
    """Return the call of a recurrent layer that made a node; 0 for any other node."""
    scope = survey.scopes.get(record.created.scope)
    return scope.scope if scope is not None and scope.kind in _RECURRENT else 0


def _before(survey: Survey, record: NodeRecord, wanted: Callable[[NodeRecord], bool]) -> NodeRecord | None:
    """Return the first node with the same steps that is wanted, going back from a node."""
    for _ in range(_MOST_BETWEEN):
        if wanted(record):
            return record
        source = next(survey.sources(record), None)
        if record.op not in _SAME_STEPS or source is None or sorted(source.shape[:2]) != sorted(record.shape[:2]):
            return None
        record = source
    return None


def _padded_input(
    survey: Survey, result: NodeRecord, layer: int, steps: int, sequences: int
) -> tuple[NodeRecord, int] | None:
    """Return the data with padding at the end that a recurrent layer got, and how many of its sequences end with it."""
    waiting, seen = [result], {result.node}
    while waiting:
        record = waiting.pop()
        for source in survey.sources(record):
            if source.node in seen or source.created.kind == "parameter":
                continue
            seen.add(source.node)
            if _layer(survey, source) == layer:
                waiting.append(source)
            elif {steps, sequences} <= {*source.shape}:
                return _padding_of(survey, source, result.seq - 1, steps, sequences)
    return None


def _padding_of(
    survey: Survey, record: NodeRecord, before: int, steps: int, sequences: int
) -> tuple[NodeRecord, int] | None:
    for _ in range(_MOST_BETWEEN):
        sources = [*survey.sources(record)]
        if record.op == "pad_sequence":
            side = dict(record.created.attrs).get("padding_side", "right")
            shorter = sum(bool(source.shape) and source.shape[0] < steps for source in sources)
            return (record, shorter) if shorter and side == "right" else None
        if record.op == "embedding":
            row = dict(record.created.attrs).get("padding_idx")
            ids = sources[1] if len(sources) > 1 else None
            array = survey.timeline.array(ids.value) if ids is not None and ids.value is not None else None
            if ids is not None and survey.unwrapped(ids).op == "pad_sequence":
                record = survey.unwrapped(ids)
                continue
            if ids is None or array is None or not isinstance(row, int) or row < 0 or array.ndim != 2:
                return None
            by_step = array if array.shape == (steps, sequences) else array.T
            if by_step.shape != (steps, sequences) or steps == sequences:
                return None
            shorter = int(((by_step[-1] == row) & (by_step[0] != row)).sum())
            return (ids, shorter) if shorter else None
        if record.op not in _SAME_STEPS | RESHAPING or not sources:
            shorter = _ending_in_zeros(survey, record, before, steps, sequences)
            return (record, shorter) if shorter else None
        record = sources[0]
    return None


def _ending_in_zeros(survey: Survey, record: NodeRecord, before: int, steps: int, sequences: int) -> int:
    """Return how many sequences of a tensor end with a step of zeros, and do not begin with one."""
    value = survey.timeline.memory_value(record.node, 0, before)  # the rows may have been written to zeros
    array = survey.timeline.array(value) if value is not None else None
    if array is None or array.ndim != 3 or steps == sequences or {steps, sequences} - {*array.shape[:2]}:
        return 0
    by_step = array if array.shape[0] == steps else array.swapaxes(0, 1)
    return int((~by_step[-1].any(-1) & by_step[0].any(-1)).sum())


# The first step of the backward direction

_OF_REVERSE = re.compile(r"weight_hh(?=_l\d+_reverse$)")
_NEAR = 8
"""How far apart in the recording the parameters of one layer are at most."""

_READING = frozenset({"select", "slice", "gather", "index", "getitem"})
_MOST_SEARCHED = 5_000


def reverse_direction(question: Question) -> Finding | None:
    """Return why the gradient of a backward direction's ``weight_hh`` is zero, if only its first step is read."""
    timeline, node, last = question.timeline, question.node, question.output.parts[-1].seq
    if _OF_REVERSE.search(question.info.name) is None or not _is_trained_by_input(timeline, question):
        return None
    read = next(_reads(timeline, node, last), None) if _ran_steps(timeline, node, last) else None
    if read is None:
        return None
    text = titled("{} gets zero: only the first step of its direction is read", label(timeline, node))
    seen = (
        "the backward direction starts at the end of the sequence: there it has seen one step, and the state was zero"
    )
    part = Finding("computed", seen, last, node)
    fix = "the final states of both directions: _, h = gru(x), or _, (h, c) = lstm(x); torch.cat([h[-2], h[-1]], 1)"
    return Finding("last-of-reverse", text, last, node, (part,), fix, innermost(read))


def _is_trained_by_input(timeline: Timeline, question: Question) -> bool:
    """Return whether the ``weight_ih`` of the same direction has got a gradient that is not zero."""
    place, name = timeline.nodes.place_of(question.node), _OF_REVERSE.sub("weight_ih", question.info.name)
    near = timeline.nodes[max(place - _NEAR, 0) : place + _NEAR + 1]
    own = (node for node in near if timeline.info(node).name == name)
    events = (timeline.event(seq) for node in own for seq in timeline.events_of(node))
    return any(isinstance(event, GradAccumulated) and not is_zero(event.part) for event in events)


def _ran_steps(timeline: Timeline, node: int, end: int) -> bool:
    """Return whether the last call of the layer of a parameter ran several steps.

    Either one operation ran them all, and its result has steps, or each step multiplied by the weight, which may have
    been transposed once.
    """
    uses = [timeline.info(user) for user in timeline.nodes.users(node, end)]
    own = [use for use in uses if use.created.scope == uses[-1].created.scope]
    transposed = [user for use in own if use.op.base_name == "t" for user in timeline.nodes.users(use.node, end)]
    if len(own) > 1 or len(transposed) > 1:
        return True
    shapes = [output.value.shape for use in own for output in use.created.outputs if output.value is not None]
    return any(len(shape) == 3 and min(shape[:2]) > 1 for shape in shapes)


def _reads(timeline: Timeline, node: int, end: int) -> Iterator[NodeInfo]:
    """Yield the operations that select a step of what a parameter made in its last iteration, outside of its module."""
    uses = [timeline.info(user) for user in timeline.nodes.users(node, end)]
    waiting = deque(use for use in uses if use.iteration == uses[-1].iteration)
    own, seen = uses[-1].created.scope if uses else 0, {use.node for use in waiting}
    while waiting and len(seen) < _MOST_SEARCHED:
        info = waiting.popleft()
        if info.created.scope != own and info.op.base_name in _READING and _takes_the_end(timeline, info):
            yield info
        for user in timeline.nodes.users(info.node, end):
            if user not in seen:
                seen.add(user)
                waiting.append(timeline.info(user))


def _takes_the_end(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether an operation selects the last of several steps; of an index with tensors, that is not known."""
    source = timeline.info(info.created.inputs[0][0]) if info.created.inputs and info.created.inputs[0][0] else None
    value, attrs = source.created.first_value if source is not None else None, dict(info.created.attrs)
    if value is None or len(value.shape) != 3 or min(value.shape[:2]) < 2:
        return False
    dim, index = attrs.get("dim"), attrs.get("index", attrs.get("start"))
    if info.op.base_name not in ("select", "slice") or not isinstance(dim, int) or not isinstance(index, int):
        return True
    return dim < 2 and index % value.shape[dim] == value.shape[dim] - 1


# What the program's source code shows


def _last_steps(timeline: Timeline, at: Frame | None, padded: Frame | None, *, batch_first: bool) -> Edit | None:
    """Replace ``out[:, -1]`` with ``out[torch.arange(len(lengths)), lengths - 1]``.

    The lengths are what `pad_packed_sequence` returns at the line `padded`, or what `pack_padded_sequence` got in the
    same function.
    """
    source, returned = statement_at(timeline, at), statement_at(timeline, padded)
    if source is None or returned is None or source[0] is not returned[0] or source[1].around != returned[1].around:
        return None
    text = source[0]
    if "torch" not in imported_modules(text):
        return None
    lengths = _lengths(text, returned[1])
    if not lengths:
        return None

    def change(_: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Subscript(value=value, slice=index) if _is_last(index, batch_first=batch_first):
                    rows, steps = f"torch.arange(len({lengths}))", f"{lengths} - 1"
                    return f"{text.segment(value)}[{f'{rows}, {steps}' if batch_first else f'{steps}, {rows}'}]"
            return None

        return known

    return rewritten(timeline, at, change)


def _lengths(text: ProgramText, returned: Statement) -> str:
    """Return the variable that has the lengths of sequences as a tensor; empty if there is none."""
    match returned.node:
        case ast.Assign(targets=[ast.Tuple(elts=[_, ast.Name(id=name)])]) if not name.startswith("_"):
            return name
    for one in text.statements:
        if one.around != returned.around or one.first > returned.first:
            continue
        for call in one.parts(ast.Call):
            if called_name(call) == "pack_padded_sequence":
                given = call.args[1] if len(call.args) > 1 else None
                given = next((each.value for each in call.keywords if each.arg == "lengths"), given)
                match given:
                    case ast.Name(id=name) | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="cpu")):
                        return name
    return ""


def _is_last(index: ast.expr, *, batch_first: bool) -> bool:
    """Return whether an index takes the last step: ``[:, -1]``, ``[:, -1, :]``, or ``[-1]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    texts = [ast.unparse(part) for part in parts]
    return texts in ([":", "-1"], [":", "-1", ":"]) if batch_first else texts in (["-1"], ["-1", ":"], ["-1", ":", ":"])
