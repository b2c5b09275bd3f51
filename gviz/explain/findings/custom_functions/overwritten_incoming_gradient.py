"""A backward or a hook that writes in place to the gradient that it receives.

Idea. Autograd may give one tensor to several operations, and `sum` sends one number for all elements: an expanded
tensor of stride 0. A write to one of its elements changes all of them. So PyTorch asks a `backward` and the hooks not
to write to what they get.

Example. ``g[worst] = 0`` in a backward below ``losses.sum()`` makes the gradient of every sample zero.

The gradient that arrived is recognized by its numbers: it is the first tensor of its memory, its numbers are those of
the incoming gradient, and no call on its line made it. A `.grad` that a hook changes after its accumulation is left
out. What a hook of a module gets is not recorded as a gradient.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from gviz import events as e
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.grad_history import is_zero
from gviz.explain.program_text import (
    ProgramText,
    Statement,
    called_function,
    function_of,
    line_text,
    names_read,
    parameters_around,
    statement_at,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, before
from gviz.explain.source_frames import innermost
from gviz.source.call_stack import Frame
from gviz.values.value import Value
from gviz.values.value_text import grad

_FACTORIES = {
    "zeros", "ones", "full", "empty", "rand", "randn", "zeros_like", "ones_like", "full_like", "empty_like",
    "rand_like", "randn_like", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "tensor", "as_tensor",
    "from_numpy", "arange", "eye", "expand", "expand_as", "broadcast_to", "clone", "contiguous", "float", "double",
    "half", "to", "type", "type_as",
}  # fmt: skip
"""Functions that make a tensor, which may have the numbers of the gradient."""


def written_gradients(survey: Survey) -> Iterator[Finding | None]:
    """Yield the lines of a backward or a hook that write to the gradient that they get, each once."""
    writes = [
        (seq, event, survey.nodes[event.node])
        for seq, event in survey.select(e.StorageWritten)
        if event.node in survey.nodes and survey.nodes[event.node].created.during[1]
    ]
    if not writes:
        return
    memory: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    wanted = {event.storage for _, event, _ in writes}
    for record in survey.nodes.values():
        if record.created.during[1] and record.created.outputs and record.created.outputs[0].storage in wanted:
            memory[record.created.outputs[0].storage].append(record)
    seen = set[int]()
    for seq, event, writer in writes:
        yield None
        first = memory[event.storage][0] if memory[event.storage] else None
        stack = writer.created.stack
        if stack in seen or first is None or first.seq >= seq or first.created.during != writer.created.during:
            continue
        arrived = _arrived(survey, first.created.during[1], first.seq)
        # an expanded gradient is recorded as its single number and the view of it
        received = next((one for one in memory[event.storage][:2] if _is_received(survey, one, arrived)), None)
        if received is not None and arrived is not None:
            seen.add(stack)
            yield _finding(survey, seq, writer, received, arrived, event.value.size < arrived.size)


def _arrived(survey: Survey, node: int, n: int) -> Value | None:
    """Return the incoming gradient of an operation or a leaf at an event."""
    state = survey.timeline.at(n).state(node)
    outputs = state.outputs if state is not None else ()
    return next((output.incoming for output in outputs if output.incoming is not None), None)


def _is_received(survey: Survey, record: NodeRecord, arrived: Value | None) -> bool:
    """Return whether a tensor is the gradient that arrived, and not a new one with the same numbers."""
    value, at = record.value, survey.at(record)
    if record.created.kind == "op" and record.op != "expand":
        return False
    if value is None or arrived is None or not value.is_known or value != arrived or is_zero(arrived):
        return False
    if "grad_of" in dict(record.created.attrs) or called_function(survey.timeline, at) in _FACTORIES:
        return False
    stats = arrived.statistics()
    is_uniform = stats is not None and stats.min == stats.max  # another tensor of ones is nothing rare
    return not is_uniform or survey.timeline.info(record.node).name in parameters_around(survey.timeline, at)


def _finding(
    survey: Survey, seq: int, writer: NodeRecord, received: NodeRecord, arrived: Value, is_expanded: bool
) -> Finding:
    timeline, (pass_nr, node) = survey.timeline, writer.created.during
    at = survey.at(writer)
    name, whose = timeline.info(received.node).name, label(timeline, node)
    info = timeline.info(node)
    in_backward = info.op.is_of_program and _is_rule_running(survey, node, seq)
    what = "the backward of {}" if in_backward else "a hook of {}"
    edit = _copied_before(survey, at, name)
    name = name if name and name in line_text(timeline, at) else "g"
    copy = f"write to a copy: {name} = {name}.clone(), and return that"
    if is_expanded:
        text = titled(f"{what} writes to an expanded gradient: more elements change", whose)
        means = f"several elements of {grad(arrived)} are one number in memory, as sum() sends them"
        part = Finding("write", f"{means}: a write to one changes all of these", seq, writer.node)
        return Finding("written-gradient", text, seq, node, (part,), copy, at, edit=edit)
    also = _also_sent(survey, seq, pass_nr, node)
    if also is not None:
        sender, other = also
        text = titled(f"{what} writes to its gradient, which {{}} gets, too", whose, label(timeline, other))
        means = (
            f"{label_at(timeline, sender)} sends one tensor to both, and {label(timeline, other)} uses it afterwards"
        )
        place = innermost(timeline.info(other))
        parts = (Finding("write", means, seq, writer.node, at=place),)
        return Finding("written-gradient", text, seq, node, parts, copy, at, edit=edit)
    text = titled(f"{what} writes to the gradient that it gets", whose)
    means = "another operation may get the same tensor, or all elements may be one number: PyTorch does not allow it"
    part = Finding("write", means, seq, writer.node)
    return Finding("written-gradient", text, seq, node, (part,), copy, at, suspected=True, edit=edit)


def _is_rule_running(survey: Survey, node: int, n: int) -> bool:
    """Return whether the backward rule of a node runs at an event; before it, its hooks run."""
    started = [seq for seq in survey.timeline.events_of(node) if seq <= n]
    last = next((survey.timeline.event(seq) for seq in reversed(started) if _is_step(survey, seq)), None)
    return isinstance(last, e.StepStarted)


def _is_step(survey: Survey, seq: int) -> bool:
    return isinstance(survey.timeline.event(seq), e.StepStarted | e.StepFinished)


def _also_sent(survey: Survey, seq: int, pass_nr: int, node: int) -> tuple[int, int] | None:
    """Return an addition that sent one tensor to two nodes, and the other node, if that used it after a write.

    An addition sends its incoming gradient itself to both inputs. A sum of several contributions is another tensor.
    """
    start = next((n for n, event in survey.passes if event.pass_nr == pass_nr), 0)
    flowed: dict[int, list[e.GradFlowed]] = defaultdict(list)
    later: list[int] = []
    for n, event in survey.timeline.select((e.GradFlowed, e.StepStarted, e.BackwardFinished), start):
        match event:
            case e.GradFlowed():
                flowed[event.node].append(event)
            case e.StepStarted() if n > seq:
                later.append(event.node)
            case e.BackwardFinished() if event.pass_nr == pass_nr:
                break
    if len(flowed[node]) != 1:
        return None
    (arrived,) = flowed[node]
    sender = survey.nodes.get(arrived.source)
    if sender is None or sender.op != "add" or sender.shape != arrived.part.shape:
        return None
    for other in later:
        parts = flowed.get(other, [])
        if other != node and len(parts) == 1 and parts[0].source == sender.node and parts[0].part == arrived.part:
            return sender.node, other
    return None


def _copied_before(survey: Survey, at: Frame | None, name: str) -> Edit | None:
    """Return the edit that copies a gradient before a write, if its function returns the variable afterwards."""
    source = statement_at(survey.timeline, at)
    if source is None or not name.isidentifier() or name not in parameters_around(survey.timeline, at):
        return None
    text, one = source
    function = function_of(one)
    if function is None or not _is_first_write(text, one, function, name):
        return None
    returns = [part for part in ast.walk(function) if isinstance(part, ast.Return) and part.value is not None]
    if not returns or not all(name in names_read(part) for part in returns):
        return None
    return before(survey.timeline, at, f"{name} = {name}.clone()")


def _is_first_write(text: ProgramText, one: Statement, function: ast.AST, name: str) -> bool:
    """Return whether a statement in the body of a function is the first that uses a parameter."""
    if one.around[-1] is not function:
        return False
    earlier = [other for other in text.statements if function_of(other) is function and other.first < one.first]
    return not any(name in names_read(other.node) for other in earlier)
