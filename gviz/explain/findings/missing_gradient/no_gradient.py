"""Why a ``.grad`` is None.

The reasons are checked in the order of `gviz.explain.finding_kinds`. The tensor requires no gradient, its ``.grad`` was
set to None, it is a result and not a leaf, or no pass ran. The pass may not have reached it yet, or was for other
inputs. The last reason is that no path leads to it from the loss: the path was cut, or the tensor was unused, or used
for something else.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from gviz.events import (
    BackwardFinished,
    BackwardStarted,
    GradAccumulated,
    GradRetained,
    GradSet,
    RequiresGradSet,
    changing,
)
from gviz.explain.backward_passes import pass_started, start_of_pass
from gviz.explain.display_names import called, label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.custom_functions.custom_backward_returns import none_for_input
from gviz.explain.findings.missing_gradient.dropped_result import dropped_module_call
from gviz.explain.node_question import Question, node_question
from gviz.explain.operation_sets import COMPARISONS, SAME_NUMBERS, STEPPING
from gviz.explain.parameter_updates import next_step
from gviz.explain.program_errors import ended_first, failure_at, program_end
from gviz.explain.program_text import (
    MODULE,
    ProgramText,
    Variable,
    all_programs,
    assignment,
    called_at,
    called_name,
    expression,
    frame_of,
    frame_of_part,
    line_text,
    names_read,
    program_text,
    update_in_place,
)
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import (
    Change,
    Edit,
    after,
    in_block,
    leaf_last,
    node_replaced,
    parameter_last,
    rewritten,
    statement_instead,
    switch_of,
    with_keyword,
    without_arrays,
    without_attribute,
    without_call,
)
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.tracking import (
    RECORD_ALL,
    ancestors,
    cuts_after,
    is_partial,
    loses_tracking,
    mend,
    takes_shape,
    why_cut,
    why_untracked,
)
from gviz.source import parsing
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import times_text
from gviz.values.plain_text import clipped, file_line, shown
from gviz.values.value import Array
from gviz.values.value_text import grad


def not_tracked(question: Question) -> Finding | None:
    """Return the finding about a node that does not require a gradient itself."""
    if question.state is not None and question.state.requires_grad:
        return None
    info, name, created = question.info, label_at(question.timeline, question.node), question.info.created
    if created.untracked and created.untracked != "inputs":
        text, how = f"{name} is not part of the graph: {why_cut(info)}", mend(question.timeline, info)
        return Finding("cut", text, info.born, question.node, (), how.fix, how.at or innermost(info), edit=how.edit)
    if created.kind == "op":
        return _no_input_requires(question, name)
    return _requires_none(question, name)


def _no_input_requires(question: Question, name: str) -> Finding:
    """Return the finding about a result of inputs that require no gradient, or lost tracking on the path to them."""
    timeline, info = question.timeline, question.info
    text, kind = f"{name} needs no gradient: none of its inputs requires one", "no-input-requires"
    lost = next((node for node in ancestors(timeline, question.node) if loses_tracking(timeline, node)), 0)
    if not lost:
        fix = "requires_grad=True on what it is made from"
        return Finding(kind, text, info.born, question.node, fix=fix, at=innermost(info))
    cut = timeline.info(lost)
    reason = f"tracking was lost at {label_at(timeline, lost)}: {why_cut(cut)}"
    how = mend(timeline, cut)
    part = Finding("cut", reason, cut.born, lost, (), how.fix, how.at or innermost(cut), edit=how.edit)
    return Finding(kind, text, info.born, question.node, (part,), at=innermost(info))


def _requires_none(question: Question, name: str) -> Finding:
    """Return the finding about a leaf that is data, or that a line froze."""
    timeline, info = question.timeline, question.info
    frozen = " (it is frozen)" if info.created.kind == "parameter" else ""
    text, fix = f"{name} does not require a gradient{frozen}", "requires_grad_() before it is used"
    seq, frames = _switched_off(question)
    if not frames:
        return Finding("requires-none", text, info.born, question.node, fix=fix, at=innermost(info))
    line = clipped(line_text(timeline, frames[0]).strip(), 120)
    by = Finding("frozen", f"requires_grad was set to False{at_text(frames)}: {line}", seq, question.node, at=frames[0])
    fix = f"leave requires_grad True, if {label(timeline, question.node)} should learn"
    return Finding("requires-none", text, info.born, question.node, (by,), fix, frames[0])


def _switched_off(question: Question) -> tuple[int, tuple[Frame, ...]]:
    """Return the last event that set ``requires_grad`` of a leaf, with its call stack; 0 if there is none."""
    timeline = question.timeline
    for seq in reversed([seq for seq in timeline.events_of(question.node) if seq <= question.moment.n]):
        event = timeline.event(seq)
        if isinstance(event, RequiresGradSet):
            return seq, timeline.stack(event.stack)
    return 0, ()


# Passes: none yet, still on its way, for other inputs only; or the gradient was cleared

_CHANGES = changing("grad")


def _passes_before(question: Question) -> list[tuple[int, BackwardStarted]]:
    """Return the backward passes that had begun by the moment of a question."""
    timeline = question.timeline
    phases = (phase for phase in timeline.phases if phase.kind == "backward" and phase.start <= question.moment.n)
    starts = [phase.start for phase in phases]
    return [(start, event) for start in starts if isinstance(event := timeline.event(start), BackwardStarted)]


def cleared_grad(question: Question) -> Finding | None:
    """Return the finding about a ``.grad`` that was set to None, with no pass for all leaves since."""
    timeline = question.timeline
    event, last = None, 0
    for seq in reversed([seq for seq in timeline.events_of(question.node) if seq <= question.moment.n]):
        change = timeline.event(seq)
        if isinstance(change, GradSet) and change.how == "none":
            event, last = change, seq  # the first of several: the others had nothing to clear
        elif isinstance(change, _CHANGES):
            break
    if event is None:
        return None
    if any(start > last and not started.inputs for start, started in _passes_before(question)):
        return None
    frames = timeline.stack(event.stack)
    text = f"the .grad of {label(timeline, question.node)} was set to None{at_text(frames) or f' by event {last}'}"
    fix = "read it before zero_grad() or .grad = None"
    return Finding("cleared", text, last, question.node, fix=fix, at=frames[0] if frames else innermost(question.info))


def no_pass(question: Question) -> Finding | None:
    """Return the finding about a node after which no backward pass has run."""
    if any(start > question.info.born for start, _ in _passes_before(question)):
        return None
    failure = program_end(question.timeline, question.moment.n, question.info.born)
    if failure is not None:
        return ended_first(failure, f"a backward pass for {label(question.timeline, question.node)}", question.node)
    text = f"no backward pass has run since {label_at(question.timeline, question.node)} was made"
    born, at = question.info.born, innermost(question.info)
    if (later := _later_pass(question)) is not None:
        return Finding("no-pass", text, born, question.node, (later,), at=at)
    return Finding("no-pass", text, born, question.node, fix="call backward() on a result of it", at=at)


def _later_pass(question: Question) -> Finding | None:
    """Return the first pass after the moment of a question that is to reach the node."""
    timeline, node = question.timeline, question.node
    starts = timeline.select((BackwardStarted,), question.moment.n + 1)
    for start, event in islice(starts, _MOST_LATER):
        roots = [root for root, _ in event.roots if root in timeline.nodes]
        is_for_it = not event.inputs or node in [wanted for wanted, _ in event.inputs]
        if is_for_it and (node in roots or node in ancestors(timeline, *roots)):
            ends = timeline.select((BackwardFinished,), start)
            end = next((seq for seq, one in ends if one.pass_nr == event.pass_nr), start)
            text = f"backward{at_text(timeline.stack(event.stack))} comes later: ask again at event {end}"
            return Finding("later", text, start, node, at=next(iter(timeline.stack(event.stack)), None))
    return _call_below(question) if timeline.growing else None


def _call_below(question: Question) -> Finding | None:
    """Return the fact that a running program has a line with ``backward()`` that it has not reached yet."""
    timeline, at = question.timeline, innermost(question.info)
    text = program_text(timeline, at)
    calls = [part for one in text.statements for part in one.parts(ast.Call)] if text is not None else []
    lines = [call.lineno for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "backward"]
    if at is None or not lines:
        return None
    place = file_line(at.path, min(lines))
    words = f"the program is still running, and calls backward() at {place}: ask again after it"
    return Finding("later", words, 0, question.node)


_MOST_LATER = 20
"""The most later passes that are examined."""


ASK_ERROR = "mend the error first: why error shows its cause"
"""The fix of a pass that an error ended."""


def pending(question: Question) -> Finding | None:
    """Return the finding about a node that the latest pass includes, and has not reached yet, or brought nothing."""
    passes, state, timeline = _passes_before(question), question.state, question.timeline
    if state is None or not state.pass_nr or (passes and passes[-1][1].pass_nr > state.pass_nr):
        return None
    name = label(timeline, question.node)
    if question.moment.pass_nr == state.pass_nr:
        cut_off = (
            "; the recording ends within it" if question.moment.n == len(timeline) and not timeline.growing else ""
        )
        return Finding("pending", f"the backward pass has not come to {name} yet{cut_off}", 0, question.node)
    start, event = start_of_pass(timeline, state.pass_nr), pass_started(timeline, state.pass_nr)
    if event is not None and event.inputs:
        at = at_text(timeline.stack(event.stack))
        text = f"the pass{at} was asked for other gradients only (inputs=, or autograd.grad): it added to no .grad here"
        return Finding("not-asked-for", text, start, question.node)
    ends = timeline.select((BackwardFinished,), start, question.moment.n + 1) if start else ()
    end = next((seq for seq, one in ends if one.pass_nr == state.pass_nr and one.error), 0)
    if (failure := failure_at(timeline, end)) is not None:
        at = f" at {label_at(timeline, failure.node)}" if failure.node else ""
        text = titled(f"backward pass {state.pass_nr} stopped{at} and never reached {{}}", name)
        return Finding("nothing-arrived", text, end, question.node, fix=ASK_ERROR, at=failure.at)
    text = f"backward pass {state.pass_nr} reached {name} but no gradient arrived"
    return Finding("nothing-arrived", text, start, question.node)


# Only leaves keep their gradient: a result, or a name that a result has taken over from a leaf

_REQUIRES_GRAD_LAST = "requires_grad last, on the result: {} = (...).requires_grad_()"


def not_a_leaf(question: Question) -> Finding | None:
    """Return the finding about a result, which keeps no gradient. The recording has the gradient."""
    timeline, info = question.timeline, question.info
    if info.created.kind != "op":
        return None
    text = titled("{} is not a leaf: only leaves keep their gradient in .grad", label(timeline, question.node))
    value = question.output.incoming
    was = (
        (Finding("incoming", f"its gradient was {grad(value)}", _last_arrival_event(question), question.node),)
        if value
        else ()
    )
    leaf = _leaf_of_this_name(timeline, info)
    nameless = nameless_leaf(timeline, info)
    if leaf is None and nameless is not None:
        of = f"the leaf is {label_at(timeline, nameless.node)}; no name holds it, and this result was made from it"
        parts, at = (Finding("leaf", of, nameless.born, nameless.node, at=innermost(nameless)), *was), innermost(info)
        fix, edit = _REQUIRES_GRAD_LAST.format(shown(info.name) or "w"), leaf_last(timeline, at)
        if nameless.created.kind == "parameter":
            fix, edit = PARAMETER_LAST, parameter_last(timeline, at)
        return Finding("not-a-leaf", text, info.born, question.node, parts, fix, at, edit=edit)
    if leaf is None and value is None and _passes_before(question):
        return None  # keeping it would not help: none has arrived
    if leaf is None:
        fix = "retain_grad() on it before backward"
        keep = f"{info.name}.retain_grad()"
        edit = after(timeline, innermost(info), keep) if info.name.isidentifier() else None
        return Finding("not-a-leaf", text, info.born, question.node, was, fix, innermost(info), edit=edit)
    lost = f"the name {shown(info.name)} referred to the leaf {label_at(timeline, leaf.node)} before"
    parts = (Finding("rebound", lost, leaf.born, leaf.node, at=innermost(leaf)), *was)
    fix, at = _rebinding_fix(timeline, info), innermost(info)
    return Finding("rebound", text, info.born, question.node, parts, fix, at, edit=_rebinding_edit(timeline, info))


PARAMETER_LAST = "make it a Parameter last, of the whole result: nn.Parameter(...) around the other calls"


def nameless_leaf(timeline: Timeline, info: NodeInfo) -> NodeInfo | None:
    """Return the leaf that the same line made first: ``torch.randn(3, requires_grad=True).double()``."""
    sources = [timeline.info(node) for node, _ in info.created.inputs if node]
    sources = [one for one in sources if one.created.kind != "constant"]
    nameless = [one for one in sources if one.created.kind != "op" and one.created.requires_grad and not one.name]
    at = innermost(info)
    lines = ((one, innermost(one)) for one in nameless if at is not None and len(sources) == 1)
    return next((one for one, frame in lines if frame and at and (frame.path, frame.line) == (at.path, at.line)), None)


def _rebinding_edit(timeline: Timeline, info: NodeInfo) -> Edit | None:
    """Return the update in place under no_grad, followed by clearing the gradient, as the new tensor has none."""
    at = innermost(info)
    update = update_in_place(line_text(timeline, at), info.name)
    if not update:
        return None
    cleared = f"{info.name}.grad = None"
    if info.created.switched_off:
        return statement_instead(timeline, at, f"{update}; {cleared}")
    return in_block(timeline, at, "with torch.no_grad():", update, cleared)


def _rebinding_fix(timeline: Timeline, info: NodeInfo) -> str:
    """Return the line that rebinds the name, rewritten so that the name stays with a leaf."""
    name, at = shown(info.name), innermost(info)
    update = update_in_place(line_text(timeline, at), info.name)
    if update:
        return f"with torch.no_grad(): {clipped(update, 80)}"
    if info.op.name.startswith(("add", "sub")):
        return f"change {name} in place, inside with torch.no_grad():, and its name stays with the leaf"
    return f"create the leaf last: {name} = (...).detach().requires_grad_(), or give the result another name"


def _last_arrival_event(question: Question) -> int:
    parts = question.output.parts
    return parts[-1].seq if parts else 0


def _leaf_of_this_name(timeline: Timeline, info: NodeInfo) -> NodeInfo | None:
    """Return the leaf from which it was made, and whose variable now holds it."""
    if not info.name:
        return None
    variable = _variable(timeline, info)
    for node in ancestors(timeline, info.node):
        other = timeline.info(node)
        same = other.name == info.name and other.created.kind != "op" and other.created.requires_grad
        if same and _variable(timeline, other) == variable:
            return other
    return None


_FileVariable = tuple[str, Variable]
"""A variable, with the path of its file."""


def _variable(timeline: Timeline, info: NodeInfo) -> _FileVariable:
    """Return the variable that holds a node, with its file; both parts are empty if no line assigned it."""
    frame = timeline.nodes.assigned_at(info.created.stack)
    if frame is None:
        return "", (info.name, "")
    known = variable_owners(timeline.source(frame.path) or "")
    return frame.path, (info.name, known.get((info.name, frame.function), frame.function))


def grads_read_in_vain(survey: Survey) -> Iterator[Finding]:
    """Yield results that keep no ``.grad`` although the program's source reads it."""
    variables = _grads_read(survey)
    if not variables or not survey.passes:
        return
    timeline, moment = survey.timeline, survey.timeline.at(survey.end)
    kept = {
        event.node for _, event in survey.select(GradRetained, GradSet) if isinstance(event, GradRetained | GradSet)
    }
    for node in [*kept]:  # an operation in place has taken over the variable: relu_(h); h.retain_grad()
        record = survey.nodes.get(node)
        while record is not None and record.created.outputs and record.created.outputs[0].version:
            kept.update(source.node for source in survey.sources(record))
            record = next(survey.sources(record), None)
    for record in reversed(survey.nodes.values()):
        if not variables:
            return
        variable = _variable(timeline, timeline.info(record.node))
        if variable not in variables:
            continue
        variables.discard(variable)  # the last meaning of the name decides
        question = node_question(timeline, moment, record.node, "grad")
        if record.created.kind in ("constant", "leaf") and record.node not in kept:
            yield from _read_of_data(survey, record)
        tracked = record.created.requires_grad and not record.created.during[0] and record.node not in kept
        if tracked and question.topic != "unborn" and (finding := not_a_leaf(question)) is not None:
            yield finding


def _read_of_data(survey: Survey, record: NodeRecord) -> Iterator[Finding]:
    """Yield the finding about a tensor that never requires a gradient, if a line misspells ``requires_grad``.

    Many programs read the ``.grad`` of data only to see that it is None.
    """
    timeline, info = survey.timeline, survey.timeline.info(record.node)
    state = timeline.at(survey.end).state(record.node)
    name = info.name.split(".")[0]
    typo = misspelled(timeline, innermost(info), name, "requires_grad")
    if typo is None or record.created.requires_grad or (state is not None and state.requires_grad):
        return
    written, at, edit = typo
    text = titled(f"{{}} requires no gradient: .{shown(written)} is no attribute of it", label(timeline, record.node))
    part = Finding("leaf", "Python makes a new attribute, which autograd does not read", record.seq, record.node)
    yield Finding("misspelled", text, record.seq, record.node, (part,), "write requires_grad = True", at, edit=edit)


def _grads_read(survey: Survey) -> set[_FileVariable]:
    stacks = {record.created.stack for record in survey.nodes.values()}
    paths = {frame.path for stack in stacks for frame in survey.timeline.stack(stack)}
    return {(path, read) for path in paths for read in variables_read(survey.timeline.source(path) or "", "grad")}


# No path from the loss

MOST_CUTS = 5
_COPIES_LOOKED_AT = 20
_OF_NUMBERS = "compute the loss with tensors throughout: .item(), numpy and torch.tensor(...) carry only the numbers"
_NEAR = 200
"""The number of nodes before and after in which parameters of the same model are searched."""
_MOST_IN_MODULE = 16
"""The same for the parameters of one module."""

_ALIASES_LOOKED_AT = 20_000
"""The nodes from the beginning among which other tensors of a parameter's memory are searched."""


def no_path(question: Question) -> Finding:
    """Return where the paths from a node to the roots end, if no pass has reached it."""
    timeline = question.timeline
    started, backward = _pass_of(question)
    roots = sorted({node for node, _ in backward.roots})
    users = _uses(question)
    if not users:
        return unused(question)
    if (lost := _lost_in_checkpoint(question, users)) is not None:
        return lost
    leading = {*ancestors(timeline, *roots), *roots}
    ends = [end for end in _ends(question, question.node) if not _keeps_statistics(timeline, end.node)]
    ends = [end for end in ends if not takes_shape(timeline.info(end.node))] or ends
    cuts = [cut for cut in ends if cut.node in leading] or [
        out for end in ends for out in _copied(question, end, leading)
    ]
    start = ", ".join(label(timeline, root) for root in roots[:3] if root) or "the start of the pass"
    name = label(timeline, question.node)
    if cuts:
        text = titled("{} got no gradient: every path from {} is cut", name, start)
        nearest = _nearest(timeline, cuts, roots)
        return Finding("cut", text, started, question.node, tuple(_by_line(nearest))[:MOST_CUTS], at=nearest[0].at)
    if question.node in leading and (refused := none_for_input(timeline, started, question.node)) is not None:
        return refused
    text = titled("{} got no gradient: it is not connected to {}", name, start)
    return _not_reached(question, text, timeline.info(users[-1]))


def _keeps_statistics(timeline: Timeline, node: int) -> bool:
    """Return whether an operation writes the running statistics of a normalization, which never send a gradient."""
    return timeline.info(node).op.base_name in ("running_mean", "running_var")


_CHECKPOINT = re.compile(r"\bcheckpoint(?:_sequential)?\s*\(")


def _lost_in_checkpoint(question: Question, users: Sequence[int]) -> Finding | None:
    """Return the finding about a reentrant checkpoint without a graph, because none of its inputs requires a gradient.

    It ran the last use of a leaf.
    """
    timeline, last = question.timeline, question.timeline.info(users[-1])
    calls = (frame for frame in last.frames if _CHECKPOINT.search(line_text(timeline, frame)))
    at = next(calls, None)
    if at is None or last.created.untracked != "no_grad":
        return None
    again = (info for user in timeline.nodes.users(question.node) if (info := timeline.info(user)).created.during[0])
    if next(again, None) is not None:
        return None  # it ran again in backward: the gradient was lost elsewhere
    text = titled("{} got no gradient: its checkpoint runs without a graph", label(timeline, question.node))
    inside = f"nothing that goes into the checkpoint at {file_line(at.path, at.line)} requires a gradient"
    used = Finding("elsewhere", f"{inside}; {label_at(timeline, last.node)} ran inside it", last.born, last.node)
    fix = "use_reentrant=False in this checkpoint, or requires_grad_() on the data that goes in"
    edit = with_keyword(timeline, at, "checkpoint", "use_reentrant", "False")
    return Finding("cut", text, last.born, question.node, (used,), fix, at, edit=edit)


def checkpoints_without_graph(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters that a checkpoint left without a graph, and that are freed by the end.

    A check examines the other parameters.
    """
    timeline, got = survey.timeline, {event.node for _, event in survey.accumulated}
    for node in sorted(timeline.nodes.freed(survey.end) - got):
        record = survey.nodes.get(node)
        if (
            record is None
            or record.created.kind != "parameter"
            or not record.created.requires_grad
            or not survey.passes
        ):
            continue
        yield None
        if users := timeline.nodes.users(node):
            question = node_question(timeline, timeline.at(timeline.nodes.born(users[-1])), node, "grad")
            yield _lost_in_checkpoint(question, users)


def unused(question: Question) -> Finding:
    """Return the finding about an unused node; a tensor of the same shape shows where it may have been intended."""
    info, timeline = question.info, question.timeline
    name = label(timeline, question.node)
    text = titled("{} was not used in anything", name)
    if is_partial(timeline):
        recorded = titled("{} was not used in anything that was recorded", name)
        return Finding("unused", recorded, info.born, question.node, (), RECORD_ALL, innermost(info))
    if (detached := _detached_alias(question)) is not None:
        return _used_detached(question, *detached)
    near = _like(question)
    parts: tuple[Finding, ...] = ()
    if near is not None:
        like, user = near
        text_near = f"{label(timeline, like)}, of the same shape, was used in {label_at(timeline, user)}"
        parts = (Finding("nearest", f"{text_near}: could it have been meant there?", timeline.nodes.born(user), user),)
    read = _numbers_taken(timeline, info)
    if read is not None:
        text = titled("{} was used in no operation: only its numbers were", name)
        return Finding("unused", text, info.born, question.node, (), _OF_NUMBERS, read)
    fix = "use it in what the loss is made from"
    return Finding("unused", text, info.born, question.node, parts, fix, innermost(info))


def _detached_alias(question: Question) -> tuple[NodeInfo, NodeInfo] | None:
    """Return a tensor without a gradient that shares the memory of a parameter, and the first operation that used it.

    ``state_dict()`` has such tensors, and so has ``.data``.
    """
    timeline, aliases = question.timeline, question.timeline.once(_constants_by_storage, 0)
    near = (node for output in question.info.created.outputs for node in aliases.get(output.storage, ()))
    used = ((node, users[0]) for node in near if (users := timeline.nodes.users(node)))
    first = next(used, None)
    return (timeline.info(first[0]), timeline.info(first[1])) if first is not None else None


def _constants_by_storage(timeline: Timeline, _: int) -> dict[int, list[int]]:
    """Return the first constants of each storage, up to `_ALIASES_LOOKED_AT` nodes of a recording."""
    constants: defaultdict[int, list[int]] = defaultdict(list)
    for node, created in timeline.nodes.all_created(timeline.nodes[:_ALIASES_LOOKED_AT]):
        if created.kind == "constant":
            for storage in {output.storage for output in created.outputs} - {0}:
                constants[storage].append(node)
    return constants


def _used_detached(question: Question, alias: NodeInfo, user: NodeInfo) -> Finding:
    """Return the finding about a parameter whose numbers were used without it, with the line where they come from."""
    timeline, use = question.timeline, innermost(user)
    names = label(timeline, question.node), label(timeline, alias.node)
    text = titled("{} was used only as {}, which is detached from it", *names)
    part = Finding("elsewhere", f"{label_at(timeline, user.node)} used it", user.born, user.node, at=use)
    holder = re.split(r"[.\[]", alias.name or "")[0]
    places = (*alias.frames, *user.frames)
    made = (at for frame in places if holder and (at := assignment(timeline, frame, holder)) is not None)
    for at in (*made, *places):
        if edit := with_keyword(timeline, at, "state_dict", "keep_vars", "True"):
            fix = "dict(model.named_parameters()), or state_dict(keep_vars=True): state_dict() returns detached tensors"
            return Finding("unused", text, alias.born, question.node, (part,), fix, at, edit=edit)
        if edit := without_attribute(timeline, at, "data"):
            fix = "use the parameter itself: .data is detached from it"
            return Finding("unused", text, alias.born, question.node, (part,), fix, at, edit=edit)
    fix = "use the parameter itself: a tensor of .data, detach() or state_dict() is detached from it"
    return Finding("unused", text, alias.born, question.node, (part,), fix, innermost(alias) or use)


def _takes_numbers(timeline: Timeline, at: Frame | None) -> bool:
    """Return whether the program takes numbers out of a value at a line."""
    text = program_text(timeline, at)
    calls = _calls_that_take_numbers(text) if text is not None else ()
    return any(at is not None and call.lineno <= at.line <= (call.end_lineno or 0) for call, _ in calls)


def _numbers_taken(timeline: Timeline, info: NodeInfo) -> Frame | None:
    """Return where the program takes the numbers of a leaf, if it does: ``scale.item()``."""
    names = {name.rpartition(".")[2] for name in info.names if name}
    for text in all_programs(timeline):
        for call, value in _calls_that_take_numbers(text):
            match value:
                case ast.Name(id=name) | ast.Attribute(attr=name) if name in names:
                    return frame_of_part(text, call)
    return None


def _is_updated_like_others(timeline: Timeline, node: NodeInfo, last: NodeInfo) -> bool:
    """Return whether a loop over parameters made an unused result, and from another parameter one that is used.

    The inner loop of a meta-learner adapts all parameters of a model, also those that its loss does not use. A new
    parameter has the shape of the old one; a line such as ``[head(x) for head in heads]`` makes other shapes.
    """
    old, new = node.created.first_value, last.created.first_value
    if old is None or new is None or old.shape != new.shape:
        return False
    nodes, end = timeline.nodes, last.node
    while (users := nodes.users(end)) and timeline.info(users[-1]).created.stack == last.created.stack:
        end = users[-1]
    places = (nodes.origins.stack == last.created.stack).nonzero()[0].tolist() if last.created.stack else []
    elsewhere = (user for place in places for user in nodes.users(nodes[place]))
    return not users and any(timeline.info(user).created.stack != last.created.stack for user in elsewhere)


def _not_reached(question: Question, text: str, last: NodeInfo) -> Finding:
    """Return the finding about a node that was used, but whose results do not lead to the loss."""
    name = label(question.timeline, question.node)
    used = Finding("elsewhere", f"{name} was used in {label_at(question.timeline, last.node)}", last.born, last.node)
    fresh, copied = _fresh(question, last), _copied_leaf(question)
    if copied is not None and (fresh is None or fresh.created.first_value == copied.created.first_value):
        copy = label_at(question.timeline, copied.node)
        began = f"{copy} began with the same numbers, as a copy does, and got the gradient"
        parts = (Finding("copied", began, copied.born, copied.node, at=innermost(copied)), used)
        fix = "use the parameter itself, or copy the gradient of the copy to it: p.grad = copy.grad, before the step"
        return Finding("not-reached", text, copied.born, question.node, parts, fix, innermost(copied))
    if fresh is None and _is_updated_like_others(question.timeline, question.info, last):
        text = titled("{} is only updated, like all others: nothing uses the result", name)
        fix = "leave it out of these parameters, or use it in what the loss is made from"
        return Finding("not-reached", text, 0, question.node, (used,), fix, innermost(last), suspected=True)
    if fresh is None and _leads_to_taken_gradient(question):
        text = titled("{} got no gradient: only the derivative of its result is trained", name)
        fix = "nothing, if it is a constant that the derivative does not depend on, as the last bias of an energy is"
        return Finding("not-reached", text, 0, question.node, (used,), fix, innermost(last), suspected=True)
    if fresh is None and (dropped := dropped_module_call(question, _uses(question))) is not None:
        return dropped
    if fresh is None:
        fix = (
            _OF_NUMBERS if _takes_numbers(question.timeline, innermost(last)) else "call backward() on a result of that"
        )
        return Finding("not-reached", text, 0, question.node, (used,), fix, innermost(last))
    timeline = question.timeline
    at = _leaf_call(timeline, fresh) or innermost(fresh)
    asks = ": requires_grad does not give it one" if fresh.created.kind == "leaf" else ""
    new = f"{label_at(timeline, fresh.node)} is a new tensor with no autograd history{asks}"
    source = _copied_from(timeline, fresh)
    if source is not None:
        new = f"{new}; it has the numbers of {label_at(timeline, source.node)}"
    parts = (Finding("copied", new, fresh.born, fresh.node, at=at), used)
    edit = without_call(timeline, at, "Parameter") or without_arrays(timeline, at)
    fix = _OF_NUMBERS
    if source is not None and (step := _step_before(timeline, source)) is not None:
        fix = f"{called(step)} has no gradient: leave it out of the loss, or use a smooth function in its place"
    return Finding("not-reached", text, fresh.born, question.node, parts, fix, at, edit=edit)


def _leaf_call(timeline: Timeline, fresh: NodeInfo) -> Frame | None:
    """Return the line before a use that makes a leaf with `Variable`, which is recorded when it is used first."""
    at = innermost(fresh)
    if not fresh.name.isidentifier() or at is None or called_at(timeline, at, "Variable"):
        return None
    made = assignment(timeline, at, fresh.name)
    return made if made is not None and called_at(timeline, made, "Variable") else None


_NEAR_COPY = 200
"""The nodes before new data among which the tensor with the same numbers is searched."""

_STEPS = STEPPING | COMPARISONS | {"argmax", "argmin"}


def _copied_from(timeline: Timeline, new: NodeInfo) -> NodeInfo | None:
    """Return the tensor whose memory or numbers new data has, made shortly before it, if its numbers are no accident.

    ``torch.tensor(out, requires_grad=True)`` copies them, ``Variable(out.data)`` shares the memory. A few equal numbers
    count only on the line that makes the new data.
    """
    output = new.created.outputs[0] if new.created.outputs else None
    value = output.value if output is not None else None
    if output is None or value is None or "float" not in value.dtype:
        return None
    place, at = timeline.nodes.place_of(new.node), innermost(new)
    stats = value.statistics()
    is_odd = value.size >= _FEWEST_EQUAL and stats is not None and stats.min != stats.max
    for node in reversed(timeline.nodes[max(place - _NEAR_COPY, 0) : place]):
        info = timeline.info(node)
        other = info.created.outputs[0] if info.created.outputs else None
        if info.created.kind != "op" or other is None or other.value is None or other.value.shape != value.shape:
            continue
        is_here = at is not None and _calls_of(info) == _calls_of(new)
        if other.storage == output.storage or (other.value == value and (is_odd or is_here)):
            return info
    return None


def _calls_of(info: NodeInfo) -> list[tuple[str, int]]:
    return [(frame.path, frame.line) for frame in info.frames]


def _step_before(timeline: Timeline, source: NodeInfo) -> NodeInfo | None:
    """Return the comparison or rounding from which a tensor was converted; None if there is none."""
    for _ in range(_CONVERSIONS):
        if source.op.base_name in _STEPS:
            return source
        if source.op.base_name not in SAME_NUMBERS or not source.created.inputs or not source.created.inputs[0][0]:
            return None
        source = timeline.info(source.created.inputs[0][0])
    return None


_CONVERSIONS = 4


def _leads_to_taken_gradient(question: Question) -> bool:
    """Return whether results of a node lead to the root of an ``autograd.grad`` with ``create_graph``."""
    timeline = question.timeline
    roots = {
        node
        for _, event in timeline.select((BackwardStarted,))
        if event.create_graph and event.inputs
        for node, _ in event.roots
    }
    waiting, seen = [question.node], {question.node}
    while waiting and len(seen) < _MOST_FOLLOWED:
        for user in timeline.nodes.users(waiting.pop()):
            if user in roots:
                return True
            if user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


_MOST_FOLLOWED = 2_000


def _copied_leaf(question: Question) -> NodeInfo | None:
    """Return a later leaf that began with the numbers of this one, and got a gradient: a copy, as of `deepcopy`."""
    timeline, own = question.timeline, question.info.created.first_value
    stats = own.statistics() if own is not None else None
    if own is None or own.size < _FEWEST_EQUAL or stats is None or stats.min == stats.max:
        return None
    for node, created in timeline.nodes.all_created([node for node in timeline.nodes if node > question.node]):
        value = created.first_value if created.kind in ("leaf", "parameter") and created.requires_grad else None
        if value == own and any(isinstance(timeline.event(n), GradAccumulated) for n in timeline.events_of(node)):
            return timeline.info(node)
    return None


_FEWEST_EQUAL = 8
"""The fewest equal elements of two leaves that are no accident."""


def _fresh(question: Question, last: NodeInfo) -> NodeInfo | None:
    """Return new data at the end of a path back from the loss, made from the numbers of the node after its last use."""
    timeline, roots = question.timeline, [node for node, _ in _pass_of(question)[1].roots if node]
    if len(roots) == 1 and (root := timeline.info(roots[0])).created.kind == "leaf" and root.born > last.born:
        return root  # the loss itself is a leaf: it has no inputs
    later = (info for node in (*roots, *ancestors(timeline, *roots)) if (info := timeline.info(node)).born > last.born)
    ends = (info for info in later if info.created.kind != "op")
    return next((end for end in ends if _is_copied(timeline, end, question.node)), None)


def _pass_of(question: Question) -> tuple[int, BackwardStarted]:
    """Return the pass that could have reached a node: the first after a result was made, or after a leaf was last used.

    Of several before the optimizer step it is the last: the earlier ones may belong to another model.
    """
    timeline, passes, seqs = (
        question.timeline,
        _passes_before(question),
        map(question.timeline.nodes.born, _uses(question)),
    )
    passes = [one for one in passes if not one[1].inputs] or passes
    since = question.info.born if question.info.created.kind == "op" else max(seqs, default=question.moment.n)
    step = next_step(timeline, question.node, since)
    later = [one for one in passes if one[0] > since]
    before = [one for one in later if one[0] < step]
    return before[-1] if before else (later or passes[-1:])[0]


def _uses(question: Question) -> Sequence[int]:
    """Return the uses of a node so far; without those after the last pass (an evaluation), if there are others."""
    timeline, last = question.timeline, _passes_before(question)[-1][0]
    uses = timeline.nodes.users(question.node, question.moment.n)
    return [use for use in uses if timeline.nodes.born(use) < last] or uses


def _like(question: Question) -> tuple[int, int] | None:
    """Return another leaf of the same shape that requires a gradient, made nearby, and its first user.

    A parameter of a module is compared together with the others of its module: a bias of 8 elements alone says little.
    """
    timeline, created = question.timeline, question.info.created
    own = _same_module(timeline, question.node)
    if any(timeline.nodes.users(node) for node in own.values()):
        return None
    shape = created.first_value.shape if created.first_value is not None else None
    place = timeline.nodes.place_of(question.node)
    for other in timeline.nodes[max(place - _NEAR, 0) : place + _NEAR]:
        info = timeline.info(other) if other != question.node else None
        if info is None or info.created.kind == "op" or not info.created.requires_grad:
            continue
        value, users = info.created.first_value, timeline.nodes.users(other)
        if value is not None and value.shape == shape and users and (not own or _is_like(timeline, own, other)):
            return other, users[0]
    return None


def _same_module(timeline: Timeline, node: int) -> dict[str, int]:
    """Return the parameters of a parameter's module, by the last part of their names; empty for any other tensor."""
    module, separator, _ = timeline.info(node).name.rpartition(".")
    if not separator or timeline.info(node).created.kind != "parameter":
        return {}
    place = timeline.nodes.place_of(node)
    infos = map(timeline.info, timeline.nodes[max(place - _MOST_IN_MODULE, 0) : place + _MOST_IN_MODULE])
    named = ((info.name.rpartition("."), info) for info in infos if info.created.kind == "parameter")
    return {name: info.node for (path, _, name), info in named if path == module}


def _is_like(timeline: Timeline, own: Mapping[str, int], other: int) -> bool:
    """Return whether the module of another parameter has the same parameters as a module, with the same shapes."""

    def shapes(parameters: Mapping[str, int]) -> dict[str, tuple[int, ...] | None]:
        values = {name: timeline.info(node).created.first_value for name, node in parameters.items()}
        return {name: value.shape if value is not None else None for name, value in values.items()}

    return shapes(_same_module(timeline, other)) == shapes(own)


def _nearest(timeline: Timeline, cuts: Sequence[Finding], roots: Sequence[int]) -> list[Finding]:
    """Return the cuts of the lines at which the paths back from the roots end.

    A cut behind another cut is not the reason, and may be intended: a loop detaches the state that it carries.
    """
    reached = {*roots, *ancestors(timeline, *roots, up_to={cut.node for cut in cuts})}
    lines = {_line_of(cut) for cut in cuts if cut.node in reached}
    return [cut for cut in cuts if _line_of(cut) in lines] or list(cuts)


def _line_of(cut: Finding) -> tuple[str, int] | int:
    return (cut.at.path, cut.at.line) if cut.at is not None else cut.node


def _by_line(cuts: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the last cut of each line, because a loop repeats a cut."""
    lines: defaultdict[tuple[str, int] | int, list[Finding]] = defaultdict(list)
    for cut in cuts:
        lines[_line_of(cut)].append(cut)
    for same in lines.values():
        last, before = max(same, key=lambda cut: cut.event), len(same) - 1
        yield replace(last, text=f"{last.text} (and {times_text(before)} before)") if before else last


def _ends(question: Question, node: int) -> Iterator[Finding]:
    """Yield the untracked operations where the paths forward from a node leave the graph.

    An operation that takes no more than a shape, such as ``ones_like``, cuts no path.
    """
    cuts = cuts_after(question.timeline, node, range(question.moment.n + 1))
    for info in (info for info in cuts if not takes_shape(info)):
        text = f"cut at {label(question.timeline, info.node)}{at_text(info.frames)}: {why_untracked(info.created)}"
        how = mend(question.timeline, info)
        yield Finding("cut", text, info.born, info.node, (), how.fix, how.at or innermost(info), edit=how.edit)


def _copied(question: Question, end: Finding, leading: set[int]) -> Iterator[Finding]:
    """Yield data on the path to the loss, made right after the graph was left: on the same line, or of the same shape.

    Numbers that leave for numpy or Python come back as constants without an input, which are found in this way. Data
    that appears after the next iteration of a loop came from that one.
    """
    timeline = question.timeline
    at, left = timeline.nodes.place_of(end.node), timeline.info(end.node).created
    last = timeline.iteration_at(end.event).end
    for node in timeline.nodes[at + 1 : at + 1 + _COPIES_LOOKED_AT]:
        info = timeline.info(node)
        if (info.created.op, info.created.stack) == (left.op, left.stack) or info.born > last:
            return
        if node in leading and info.created.kind in ("constant", "leaf") and _comes_back(timeline, end, info):
            text = f"{label_at(timeline, node)} is a new tensor with no autograd history: it was made of the numbers"
            part = Finding("copied", text, info.born, node, at=innermost(info))
            if left.untracked == "dtype":
                yield replace(end, parts=(part,))  # tensors throughout would not help
                return
            edit = without_arrays(timeline, end.at) or without_arrays(timeline, innermost(info)) or end.edit
            yield replace(end, parts=(part,), fix="compute it with tensors, without numpy between", edit=edit)
            return


def _comes_back(timeline: Timeline, end: Finding, info: NodeInfo) -> bool:
    left, back = timeline.info(end.node).created.outputs[0], info.created.outputs[0]
    at = innermost(info)
    same_line = end.at is not None and at is not None and (at.path, at.line) == (end.at.path, end.at.line)
    same_shape = left.value is not None and back.value is not None and left.value.shape == back.value.shape
    return left.storage == back.storage or same_line or same_shape


# Data that a program made from the numbers of results: it has no history

_READ = {"item", "tolist", "numpy", "float", "int"}
"""Methods and functions that return the numbers of a tensor without their history."""

_MOST_ELEMENTS = 64
"""The most elements of new data that are compared with results one by one."""


def _is_copied(timeline: Timeline, new: NodeInfo, node: int) -> bool:
    """Return whether data was made from the numbers of a node or of its results.

    It is known if it has the memory or all numbers of a result, if its expression reads them (``h.item()``), or if its
    elements equal theirs to the last digit.
    """
    source = _copied_from(timeline, new)
    if source is not None and node in timeline.once(_sources_of, source.node):
        return True
    results = [info for info in _results(timeline, node) if info.born < new.born]
    return _reads(timeline, new, results) or _equals(timeline, new, results)


def _sources_of(timeline: Timeline, node: int) -> frozenset[int]:
    """Return what a node was made from, tracked or not."""
    return frozenset(ancestors(timeline, node))


def _results(timeline: Timeline, node: int) -> Iterator[NodeInfo]:
    """Yield a node and the tracked nodes made from it."""
    seen, waiting = {node}, deque([node])
    while waiting:
        info = timeline.info(waiting.popleft())
        if info.created.requires_grad:
            yield info
            new = [user for user in timeline.nodes.users(info.node) if user not in seen]
            seen.update(new)
            waiting.extend(new)


def _reads(timeline: Timeline, new: NodeInfo, results: list[NodeInfo]) -> bool:
    """Return whether the expression that made it takes the numbers of a variable that holds one of the results."""
    at = innermost(new)
    running = expression(timeline, at)
    if running is None or at is None:
        return False
    read = {
        name
        for call in ast.walk(running)
        if isinstance(call, ast.Call) and called_name(call) in _READ
        for part in ([call.func.value] if isinstance(call.func, ast.Attribute) else call.args)
        for name in names_read(part)
    }
    where = at.path, at.function
    sources = [(info.name, innermost(info)) for info in results if info.name in read]
    return any(frame is not None and (frame.path, frame.function) == where for _, frame in sources)


def _equals(timeline: Timeline, new: NodeInfo, results: list[NodeInfo]) -> bool:
    """Return whether each element with more digits than programs have equals one of a result, if there are some.

    Other elements may be from the program's text: the zeros of ``max(h, 0.0)``. If there are several numbers, as the
    losses in ``torch.tensor([a, b])``, it is enough that one of them is a result of one number: the others may come
    from other parameters.
    """
    odd = [one for one in _elements(timeline, new).tolist() if _is_odd(one)]
    if not odd:
        return False
    computed: set[float] = set()
    for info in results:
        if info.created.kind == "op":
            elements = _elements(timeline, info).tolist()
            if len(elements) == 1 and elements[0] in odd:
                return True
            computed.update(elements)
    return computed.issuperset(odd)


def _elements(timeline: Timeline, info: NodeInfo, most: int = _MOST_ELEMENTS) -> Array:
    """Return the stored elements of the first output; none if there are more than `most`, or if they are unknown."""
    value = info.created.first_value
    array = timeline.array(value) if value is not None and value.size <= most else None
    return np.empty(0) if array is None or array.dtype.kind != "f" else array.ravel()


def _is_odd(element: Any) -> bool:
    return bool(np.isfinite(element)) and float(f"{element:.4g}") != element


# Random draws that stop the gradient to what they are drawn from
#
# A draw has no derivative. A variational autoencoder therefore draws noise, and computes ``mean + std * noise``
# (reparameterization). With ``q.sample()`` or ``torch.normal(mean, std)`` the encoder learns from the rest of the loss
# only, for example from its KL term, so it has a gradient and looks healthy. A draw is deliberate if the program also
# computes its probability, as policy gradients do, if the loss does not train what it is drawn from, or if the program
# itself cuts the graph with ``detach`` or ``no_grad``.


def draws(survey: Survey) -> Iterator[Finding | None]:
    """Yield normal draws from what a loss trains, if that loss gets no gradient through the draw."""
    seen: set[int] = set()
    for record in survey.ops("normal"):
        created = record.created
        if created.stack in seen:
            continue
        yield None
        seen.add(created.stack)
        if not created.requires_grad and not _is_sample(survey.timeline, record):
            continue
        drawn_from = _nearest_tracked(survey, record)
        parameters = {*drawn_from, *ancestors(survey.timeline, *drawn_from)} & survey.optimized
        trained = _trained_otherwise(survey, record, parameters)
        if trained is not None and not _has_probability(survey, record, drawn_from):
            yield _draw_finding(survey, record, drawn_from, trained)


def _is_sample(timeline: Timeline, record: NodeRecord) -> bool:
    """Return whether a distribution's ``sample`` switched gradients off for a draw, and not the program."""
    info = timeline.info(record.node)
    return called_at(timeline, innermost(info), "sample") and switch_of(timeline, info.frames) is None


def _nearest_tracked(survey: Survey, record: NodeRecord) -> set[int]:
    """Return the nearest tracked tensors that a draw was made from, its mean and its deviation, before any detach."""
    waiting, seen, nearest = [record], {record.node}, set[int]()
    while waiting:
        for source in survey.sources(waiting.pop()):
            if source.node in seen:
                continue
            seen.add(source.node)
            if source.created.requires_grad:
                nearest.add(source.node)
            elif source.created.untracked not in ("", "detach", "data"):
                waiting.append(source)
    return nearest


def _has_probability(survey: Survey, record: NodeRecord, drawn_from: set[int]) -> bool:
    """Return whether an operation on the draw also uses what it was drawn from, as a probability of it does.

    It may use an earlier result than the mean, such as its logarithm.
    """
    nodes, waiting, seen = survey.timeline.nodes, [record.node], {record.node}
    results = {
        node
        for node in ancestors(survey.timeline, *drawn_from)
        if node in survey.nodes and survey.nodes[node].created.kind == "op" and survey.nodes[node].created.requires_grad
    }
    basis = {*drawn_from, *results}
    while waiting:
        for user in nodes.users(waiting.pop()):
            one = survey.nodes.get(user)
            if one is None or user in seen:
                continue
            seen.add(user)
            others = [source.node for source in survey.sources(one) if source.node not in seen]
            if not basis.isdisjoint({*others, *ancestors(survey.timeline, *others, up_to=basis)}):
                return True
            if not one.created.requires_grad or one.op in SAME_NUMBERS:
                waiting.append(user)
    return False


def _trained_otherwise(survey: Survey, record: NodeRecord, parameters: set[int]) -> tuple[int, GradAccumulated] | None:
    """Return the first gradient of a parameter behind a draw, in a pass whose root was made from the draw, too.

    Only passes of the iteration of the draw are examined.
    """
    reached: dict[int, bool] = {}
    end = survey.timeline.iteration_at(record.seq).end
    roots = {event.pass_nr: event.roots for _, event in survey.passes}
    for seq, event in survey.accumulated:
        if record.seq < seq <= end and event.node in parameters:
            if event.pass_nr not in reached:
                starts = [node for node, _ in roots.get(event.pass_nr, ()) if node]
                reached[event.pass_nr] = record.node in ancestors(survey.timeline, *starts)
            if reached[event.pass_nr]:
                return seq, event
    return None


def _draw_finding(
    survey: Survey, record: NodeRecord, drawn_from: set[int], trained: tuple[int, GradAccumulated]
) -> Finding:
    timeline, (seq, event) = survey.timeline, trained
    info = timeline.info(record.node)
    text = titled("{} is a random draw: it sends no gradient back", label(timeline, record.node))
    source = " and ".join(label(timeline, node) for node in sorted(drawn_from)[:2])
    gets = f"{label(timeline, event.node)} gets {grad(event.part)} from the rest of the loss only"
    part = Finding("drawn", f"drawn from {source}; {gets}", seq, event.node)
    at = innermost(info)
    fix, edit = "draw only the noise: mean + std * torch.randn_like(mean)", None
    if not record.created.requires_grad:
        fix, edit = "rsample(), which computes the draw from noise", mend(timeline, info).edit
    elif next(survey.sources(record)).shape == record.shape:
        edit = _with_noise(timeline, at)
    return Finding("drawn", text, record.seq, record.node, (part,), fix, at, edit=edit)


# What the program's source code shows


def _with_noise(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``torch.normal(mean, std)`` with ``(mean + std * torch.randn_like(mean))``, if the mean is a name."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(
                    func=ast.Attribute(value=module), args=[ast.Name() | ast.Attribute() as mean, std], keywords=[]
                ) if called_name(part) == "normal" and text.segment(module) == "torch":
                    factor, noise = text.segment(std), f"torch.randn_like({text.segment(mean)})"
                    if not isinstance(std, ast.Name | ast.Attribute | ast.Call | ast.Constant):
                        factor = f"({factor})"
                    return f"({text.segment(mean)} + {factor} * {noise})"
            return None

        return known

    return rewritten(timeline, at, change)


def misspelled(
    timeline: Timeline, at: Frame | None, name: str, attribute: str
) -> tuple[str, Frame, Edit | None] | None:
    """Return the line that sets an attribute of a variable whose name is nearly `attribute`: ``x.require_grad = True``.

    Python makes a new attribute of it, which nothing reads.
    """
    text = program_text(timeline, at)
    for one in text.statements if text is not None and at is not None else ():
        match one.node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=other), attr=attr) as target]) if other == name:
                if attr != attribute and get_close_matches(attr, [attribute], cutoff=0.8) and text and at:
                    return attr, frame_of(at, one.first, text), node_replaced(text, target, f"{name}.{attribute}")
    return None


# What the program's source code shows

_NAMELESS = {
    ast.Lambda: "lambda",
    ast.ListComp: "listcomp",
    ast.SetComp: "setcomp",
    ast.DictComp: "dictcomp",
    ast.GeneratorExp: "genexpr",
}
"""Syntax without a name that has variables of its own -> its name in Python."""


@lru_cache(64)
def variable_owners(text: str) -> Mapping[Variable, str]:
    """Return the owner of each variable, by its name and the function that uses it; empty for invalid Python."""
    try:
        with parsing.unwarned():
            table = symtable.symtable(text, MODULE, "exec")
        return dict(_owners(table, MODULE, ()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


@lru_cache(64)
def variables_read(text: str, attribute: str) -> frozenset[Variable]:
    """Return the variables of a program whose attribute is read."""
    try:
        return frozenset(_attribute_reads(parsing.program(text), attribute, (MODULE,), variable_owners(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def _owners(
    table: symtable.SymbolTable, function: str, around: tuple[tuple[str, symtable.SymbolTable], ...]
) -> Iterator[tuple[Variable, str]]:
    """Yield the variables that a scope and its inner scopes use. `around` are the outer functions, innermost first."""
    for symbol in table.get_symbols():
        name = symbol.get_name()
        holders = (
            outer for outer, names in around if name in names.get_identifiers() and names.lookup(name).is_local()
        )
        owner = next(holders, MODULE) if symbol.is_free() else function if symbol.is_local() else MODULE
        yield (name, function), owner
    if table.get_type() == "function":
        around = ((function, table), *around)
    for child in table.get_children():
        named = child.get_type() in ("function", "class")  # type parameters are in no qualified name
        of_class = table.get_type() == "class"
        yield from _owners(
            child, _qualified_name(function, child.get_name(), of_class=of_class) if named else function, around
        )


def _attribute_reads(
    node: ast.AST, attribute: str, scopes: tuple[str, ...], known: Mapping[Variable, str], *, of_class: bool = False
) -> Iterator[Variable]:
    """Yield the reads below a node; `scopes` are the scopes around it, the innermost first."""
    match node:
        case ast.Attribute(attr=attr, ctx=ast.Load(), value=ast.Name(id=name)) if attr == attribute:
            yield name, next((known[name, scope] for scope in scopes if (name, scope) in known), MODULE)
    scope = _NAMELESS.get(type(node), getattr(node, "name", ""))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *_NAMELESS)):
        scopes = (_qualified_name(scopes[0], scope, of_class=of_class), *scopes)
        of_class = isinstance(node, ast.ClassDef)
    for inner in ast.iter_child_nodes(node):
        yield from _attribute_reads(inner, attribute, scopes, known, of_class=of_class)


def _qualified_name(outer: str, name: str, *, of_class: bool) -> str:
    """Return the qualified name of an object within a function, class or module, as Python writes it."""
    called = f"<{name}>" if name in _NAMELESS.values() else name
    return called if outer == MODULE else f"{outer}.{called}" if of_class else f"{outer}.<locals>.{called}"


def _calls_that_take_numbers(text: ProgramText) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield each call that takes numbers out of a value, with that value: ``scale.item()``, ``float(self.scale)``."""
    for node in ast.walk(text.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="item" | "numpy" | "tolist")):
                yield node, value
            case ast.Call(func=ast.Name(id="float" | "int"), args=[value]):
                yield node, value
