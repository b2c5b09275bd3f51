"""Backward of what has no autograd history: the place where a loss lost it, or the line that made the loss a number."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gviz.events import BackwardFinished, GradCaptured, RequiresGradSet
from gviz.explain.backward_passes import pass_started
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.program_errors import Failure
from gviz.explain.program_text import called_at, line_text, numbers_read
from gviz.explain.source_edit import stacked, with_keyword, without_arrays
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.tracking import CREATE_GRAPH, STACK, Mend, ancestors, loses_tracking, mend, why_untracked
from gviz.source.call_stack import Frame, source_lines
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped, file_line, shown
from gviz.values.value import Value

_UNTRACKED = r"does not require grad and does not have a grad_fn"
_NO_HISTORY = "set requires_grad=True on its inputs; data that went through numpy or .item() has no history"


def explain_untracked_loss(failure: Failure) -> Finding | None:
    """Return the finding about backward of a tensor without autograd history, with the place where it was lost."""
    if not failure.says(_UNTRACKED):
        return None
    timeline = failure.timeline
    root = _root(failure)
    name = label(timeline, root) if root else "a tensor"
    called = "backward" if called_at(timeline, failure.at, "backward") else "autograd.grad"
    called = called if called_at(timeline, failure.at, "grad") else "backward"
    text = titled(f"{called} was called on {{}}, which has no autograd history", name)
    lost = _lost_at(timeline, root) if root else 0
    copied = _new_data(timeline, root) if root else None
    if lost and copied is not None and copied.is_read and timeline.info(lost).created.untracked == "dtype":
        lost = 0  # numbers of results, which lost their history here, and not where an index was taken
    if not lost:
        found = (copied.part, copied.fix) if copied is not None else _frozen(timeline, root) if root else None
        why, fix = found or (
            Finding("no-input-requires", "nothing that it was computed from requires a gradient", failure.seq, root),
            _NO_HISTORY,
        )
        return Finding("untracked-loss", text, failure.seq, root, (why,), fix, why.at or failure.at, edit=why.edit)
    info = timeline.info(lost)
    reason = f"tracking was lost first at {label_at(timeline, lost)}: {why_untracked(info.created)}"
    part = Finding("cut", reason, info.born, lost, at=innermost(info))
    how = _tracking_fix(timeline, lost)
    at = how.at or innermost(info)
    return Finding("untracked-loss", text, failure.seq, root, (part,), how.fix, at, edit=how.edit)


def _frozen(timeline: Timeline, root: int) -> tuple[Finding, str] | None:
    """Return the line that froze the parameters of a loss, and the fix; None if none of them is frozen."""
    parameters = [node for node in ancestors(timeline, root) if timeline.info(node).created.kind == "parameter"]
    set_off = [
        (seq, event)
        for node in parameters
        for seq in timeline.events_of(node)
        if isinstance(event := timeline.event(seq), RequiresGradSet) and not event.requires_grad
    ]
    if not set_off:
        return None
    seq, event = min(set_off, key=lambda one: one[0])
    frames = timeline.stack(event.stack)
    count = len({one.node for _, one in set_off})
    many = f"all {count} parameters behind it are" if count > 1 else f"{label(timeline, event.node)} behind it is"
    text = f"{many} frozen: requires_grad was set to False{at_text(frames)}"
    part = Finding("frozen", text, seq, event.node, at=frames[0] if frames else None)
    return part, "remove requires_grad = False for the parameters that should learn"


@dataclass(frozen=True, slots=True)
class _NewData:
    """Data on the path to a loss that has no history: the fact, the fix, and whether a line reads numbers for it."""

    part: Finding
    fix: str
    is_read: bool = False


_MAKING = re.compile(r"\b(?:(?:as_)?tensor|from_numpy|(?:Float|Double|Half)?Tensor)\((?=[^),]*(?<![\d.])[A-Za-z_[])")


def _new_data(timeline: Timeline, root: int) -> _NewData | None:
    """Return the new data on the path to the root; of several, one for which a line reads the numbers of results.

    It is a gradient that ``autograd.grad`` returned, or a tensor made from the numbers of results.
    """
    first_events = gradients_taken(timeline)
    found = []
    for node in (root, *ancestors(timeline, root)):
        info = timeline.info(node)
        line = line_text(timeline, innermost(info)).strip()
        value = info.created.first_value
        if info.created.kind != "constant" or value is None:
            continue
        is_gradient = first_events.get(value, info.born) < info.born
        if is_gradient or _MAKING.search(line):
            at = innermost(info)
            data = "a result of autograd.grad" if is_gradient else f"new data to autograd: {clipped(line, 80)}"
            text = f"{label_at(timeline, node)} has no history: it is {data}"
            if is_gradient:
                edit = with_keyword(timeline, at, "grad", "create_graph", "True")
                found.append(_NewData(Finding("copied", text, info.born, node, at=at, edit=edit), CREATE_GRAPH, True))
            elif (read := _numbers_taken(timeline, info, at)) is not None:
                name, there = read
                text = f"{text}; {name} has been a number since {file_line(there.path, there.line)}"
                is_array = called_at(timeline, there, "numpy")
                if is_array:
                    text = f"{text.rpartition(';')[0]}; {name} is from an array of {file_line(there.path, there.line)}"
                fix = _TENSORS if is_array else _SUM
                found.append(_NewData(Finding("copied", text, info.born, node, at=there), fix, True))
            else:
                edit = without_arrays(timeline, at) or stacked(timeline, at)
                part = Finding("copied", text, info.born, node, at=at, edit=edit)
                found.append(_NewData(part, STACK, called_at(timeline, at, "item", "tolist", "numpy", "float")))
    return next((one for one in found if one.is_read), next(iter(found), None))


def _numbers_taken(timeline: Timeline, made: NodeInfo, at: Frame | None) -> tuple[str, Frame] | None:
    """Return the variable from which a line made a tensor, and the line that took its numbers; None without one.

    Of several lines, it is one at which a tracked tensor lost its history. If the text shows none, as where another
    function computes the numbers, it is the last such line that the same iteration ran before.
    """
    read = [*numbers_read(timeline, at)]
    if called_at(timeline, at, "item", "tolist", "numpy", "float") and not read:
        return None  # the line itself takes them
    lost = dict[tuple[str, int], NodeInfo]()
    place = timeline.nodes.place_of(made.node)
    for node in reversed(timeline.nodes[max(place - _NEAR_NUMBERS, 0) : place]):
        info, line = timeline.info(node), innermost(timeline.info(node))
        is_taken = info.created.untracked in ("detach", "data") and called_at(timeline, line, *_TAKING)
        if info.iteration == made.iteration and line is not None and is_taken and loses_tracking(timeline, node):
            lost.setdefault((line.path, line.line), info)
    of_history = [(name, line) for name, line in read if (line.path, line.line) in lost]
    if of_history or read:
        return (of_history or read)[0]
    first = next(iter(lost.values()), None)
    line = innermost(first) if first is not None else None
    return (shown(first.name) or "it", line) if first is not None and line is not None else None


_TAKING = ("numpy", "tolist", "item")
_NEAR_NUMBERS = 200
"""The nodes before a tensor of numbers among which the line that took the numbers is searched."""

_TENSORS = "compute the loss with tensors throughout, by torch functions: an array has no history"
_SUM = "add up the tensors themselves, without .item(), float() or numpy, so that the sum has their history"


def gradients_taken(timeline: Timeline) -> dict[Value, int]:
    """Return the gradients that ``autograd.grad`` returned, each with the first event that captured it."""
    events: dict[Value, int] = {}
    for seq, event in timeline.select((GradCaptured,)):
        events.setdefault(event.value, seq)
    return events


def _tracking_fix(timeline: Timeline, lost: int) -> Mend:
    info = timeline.info(lost)
    if info.op.name.startswith(("argmax", "argmin")):
        return Mend("indices have no gradient: compute the loss from the scores, with softmax or cross_entropy")
    return mend(timeline, info)


def _root(failure: Failure) -> int:
    """Return the tensor whose backward was called.

    It is the first untracked root of the pass that the error ended. If the recording has no such pass, it is the newest
    tensor named on the failing line, or else the newest of all.
    """
    timeline = failure.timeline
    ends = (timeline.event(seq) for seq in (failure.seq, failure.seq - 1) if seq > 0)
    end = next((event for event in ends if isinstance(event, BackwardFinished) and event.error), None)
    started = pass_started(timeline, end.pass_nr) if end is not None else None
    for node, _ in started.roots if started is not None else ():
        if node in timeline.nodes and not timeline.info(node).created.requires_grad:
            return node
    names, last = failure.names_on_its_line(), next(failure.earlier_nodes(), None)
    named = (info.node for info in failure.earlier_nodes() if info.name in names)
    return next(named, last.node if last is not None else 0)


def _lost_at(timeline: Timeline, root: int) -> int:
    """Return the earliest operation with a tracked input on the untracked path to the root; 0 if there is none.

    What a tracked input was made from is not looked at: a tensor of integers there, such as a sampled action, is not
    the reason. If there are several operations, one that loses real numbers is preferred.
    """
    lost, seen, waiting = list[int](), {root}, [root]
    while waiting:
        node = waiting.pop()
        if loses_tracking(timeline, node):
            lost.append(node)
        for source in timeline.nodes.inputs_by_node.get(node, ()):
            if source and source not in seen and not timeline.info(source).created.requires_grad:
                seen.add(source)
                waiting.append(source)
    real = [node for node in lost if timeline.info(node).created.untracked != "dtype"]
    return min(real or lost, key=timeline.nodes.born, default=0)


# ----------------------------------------------------------------------------------------------------------------------
# A number, which has no ``backward``: the line that converted it from a tensor.


def of_number(failure: Failure) -> Finding | None:
    """Return the finding about ``backward`` of a number, with the line that converted it; None for other errors."""
    name = _number_called(failure)
    if not name:
        return None
    text = titled("backward was called on {}, which is a number, not a tensor", name)
    conversion = _conversion_line(failure, name)
    parts = (Finding("made-number", f"it became a number at {conversion}", failure.seq),) if conversion else ()
    fix = f"call backward() on the tensor, and give the number another name: {name}.backward(); value = {name}.item()"
    return Finding("failed", text, failure.seq, 0, parts, fix, failure.at)


_CONVERSION = r"\.item\(\)|\.tolist\(\)|\.numpy\(\)|\bfloat\(|\bint\("


def _number_called(failure: Failure) -> str:
    """Return the variable whose ``backward`` was called although it is a number; empty for any other error."""
    if not re.match(r"'(float|int|list|numpy\.\w+)' object has no attribute 'backward'", failure.message):
        return ""
    called = re.search(r"([A-Za-z_]\w*)\.backward\b", failure.line)
    return called[1] if called else ""


def _conversion_line(failure: Failure, name: str) -> str:
    """Return the last line before the error that assigns a number to a name; empty if there is none.

    For example ``train.py:9: loss = loss.item()``.
    """
    at = failure.at
    text = failure.timeline.source(at.path) if at is not None else None
    if at is None or text is None:
        return ""
    assignment = re.compile(rf"(?<![\w.]){name}\s*=(?!=)[^;#]*(?:{_CONVERSION})[^;#]*")
    for line, row in reversed(list(enumerate(source_lines(text)[: at.line], 1))):
        if match := assignment.search(row):
            return f"{file_line(at.path, line)}: {clipped(match[0].strip(), 100)}"
    return ""
