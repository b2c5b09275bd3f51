"""Why a ``.grad`` is None.

The reasons are checked in the order of `gviz.explain.finding_kinds`. The tensor requires no gradient, its ``.grad`` was
set to None, it is a result and not a leaf, or no pass ran. The pass may not have reached it yet, or was for other
inputs. The last reason is that no path leads to it from the loss: the path was cut, or the tensor was unused, or used
for something else.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gviz.events import BackwardStarted, GradAccumulated, GradRetained, GradSet, RequiresGradSet, changing
from gviz.explain.backward_passes import pass_started, start_of_pass
from gviz.explain.display_names import innermost, label, label_at, made_at, takes_shape, titled, why_cut, why_untracked
from gviz.explain.edit import (
    Edit,
    after,
    called_at,
    in_block,
    leaf_last,
    misspelled,
    statement_instead,
    switch_of,
    with_keyword,
    with_noise,
    without_arrays,
    without_call,
)
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.parameter_updates import next_step
from gviz.explain.program_source import (
    Variable,
    called_name,
    expression,
    line_text,
    names_in,
    numbers_taken,
    update_in_place,
    variable_owners,
    variables_read,
)
from gviz.explain.question import Question, question
from gviz.explain.recording_overview import Made, Survey
from gviz.explain.tracking import RECORD_ALL, ancestors, cuts_after, is_partial, loses_tracking, mend
from gviz.source.site import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped, file_line, shown
from gviz.values.value import Array
from gviz.values.value_text import grad


def not_tracked(asked: Question) -> Finding | None:
    """Return the finding about a node that does not require a gradient itself."""
    if asked.state is not None and asked.state.requires_grad:
        return None
    info, name, made = asked.info, label_at(asked.timeline, asked.node), asked.info.created
    if made.untracked and made.untracked != "inputs":
        text, how = f"{name} is not part of the graph: {why_cut(info)}", mend(asked.timeline, info)
        return Finding("cut", text, info.born, asked.node, (), how.fix, how.at or innermost(info), edit=how.edit)
    if made.kind == "op":
        return _no_input_requires(asked, name)
    return _requires_none(asked, name)


def _no_input_requires(asked: Question, name: str) -> Finding:
    """Return the finding about a result of inputs that require no gradient, or lost tracking on the path to them."""
    timeline, info = asked.timeline, asked.info
    text, kind = f"{name} needs no gradient: none of its inputs requires one", "no-input-requires"
    lost = next((node for node in ancestors(timeline, asked.node) if loses_tracking(timeline, node)), 0)
    if not lost:
        fix = "requires_grad=True on what it is made from"
        return Finding(kind, text, info.born, asked.node, fix=fix, at=innermost(info))
    cut = timeline.info(lost)
    reason = f"tracking was lost at {label_at(timeline, lost)}: {why_cut(cut)}"
    how = mend(timeline, cut)
    part = Finding("cut", reason, cut.born, lost, (), how.fix, how.at or innermost(cut), edit=how.edit)
    return Finding(kind, text, info.born, asked.node, (part,), at=innermost(info))


def _requires_none(asked: Question, name: str) -> Finding:
    """Return the finding about a leaf that is data, or that a line froze."""
    timeline, info = asked.timeline, asked.info
    frozen = " (it is frozen)" if info.created.kind == "parameter" else ""
    text, fix = f"{name} does not require a gradient{frozen}", "requires_grad_() before it is used"
    seq, frames = _switched_off(asked)
    if not frames:
        return Finding("requires-none", text, info.born, asked.node, fix=fix, at=innermost(info))
    line = clipped(line_text(timeline, frames[0]).strip(), 120)
    by = Finding("frozen", f"requires_grad was set to False{made_at(frames)}: {line}", seq, asked.node, at=frames[0])
    fix = "leave it out there, if it is to learn"
    return Finding("requires-none", text, info.born, asked.node, (by,), fix, frames[0])


def _switched_off(asked: Question) -> tuple[int, tuple[Frame, ...]]:
    """Return the last event that set ``requires_grad`` of a leaf, with its call stack; 0 if there is none."""
    timeline = asked.timeline
    for seq in reversed([seq for seq in timeline.events_of(asked.node) if seq <= asked.moment.n]):
        event = timeline.event(seq)
        if isinstance(event, RequiresGradSet):
            return seq, timeline.stack(event.stack)
    return 0, ()


# Passes: none yet, still on its way, for other inputs only; or the gradient was cleared

_CHANGES = changing("grad")


def passes_before(asked: Question) -> list[tuple[int, BackwardStarted]]:
    """Return the backward passes that had begun by the moment of a question."""
    timeline = asked.timeline
    phases = (phase for phase in timeline.phases if phase.kind == "backward" and phase.start <= asked.moment.n)
    starts = [phase.start for phase in phases]
    return [(start, event) for start in starts if isinstance(event := timeline.event(start), BackwardStarted)]


def cleared_grad(asked: Question) -> Finding | None:
    """Return the finding about a ``.grad`` that was set to None, with no pass for all leaves since."""
    timeline = asked.timeline
    event, last = None, 0
    for seq in reversed([seq for seq in timeline.events_of(asked.node) if seq <= asked.moment.n]):
        change = timeline.event(seq)
        if isinstance(change, GradSet) and change.how == "none":
            event, last = change, seq  # the first of several: the others had nothing to clear
        elif isinstance(change, _CHANGES):
            break
    if event is None:
        return None
    if any(start > last and not started.inputs for start, started in passes_before(asked)):
        return None
    frames = timeline.stack(event.stack)
    text = f"the .grad of {label(timeline, asked.node)} was set to None{made_at(frames) or f' by event {last}'}"
    fix = "read it before zero_grad() or .grad = None"
    return Finding("cleared", text, last, asked.node, fix=fix, at=frames[0] if frames else innermost(asked.info))


def no_pass(asked: Question) -> Finding | None:
    """Return the finding about a node after which no backward pass has run."""
    if any(start > asked.info.born for start, _ in passes_before(asked)):
        return None
    text = f"no backward pass has run since {label_at(asked.timeline, asked.node)} was made"
    fix = "call backward() on a result of it"
    return Finding("no-pass", text, asked.info.born, asked.node, fix=fix, at=innermost(asked.info))


def pending(asked: Question) -> Finding | None:
    """Return the finding about a node that the latest pass includes, and has not reached yet, or brought nothing."""
    passes, state, timeline = passes_before(asked), asked.state, asked.timeline
    if state is None or not state.pass_nr or (passes and passes[-1][1].pass_nr > state.pass_nr):
        return None
    name = label(timeline, asked.node)
    if asked.moment.pass_nr == state.pass_nr:
        cut_off = "; the recording ends within it" if asked.moment.n == len(timeline) and not timeline.growing else ""
        return Finding("pending", f"the backward pass has not come to {name} yet{cut_off}", 0, asked.node)
    start, event = start_of_pass(timeline, state.pass_nr), pass_started(timeline, state.pass_nr)
    if event is not None and event.inputs:
        at = made_at(timeline.stack(event.stack))
        text = f"the pass{at} was asked for other gradients only (inputs=, or autograd.grad): it added to no .grad here"
        return Finding("not-asked-for", text, start, asked.node)
    text = f"backward pass {state.pass_nr} reached {name} but no gradient arrived"
    return Finding("nothing-arrived", text, start, asked.node)


# Only leaves keep their gradient: a result, or a name that a result has taken over from a leaf

_REQUIRES_GRAD_LAST = "requires_grad last, on the result: {} = (...).requires_grad_()"


def not_a_leaf(asked: Question) -> Finding | None:
    """Return the finding about a result, which keeps no gradient. The recording has the gradient."""
    timeline, info = asked.timeline, asked.info
    if info.created.kind != "op":
        return None
    text = titled("{} is no leaf: only leaves keep their gradient in .grad", label(timeline, asked.node))
    value = asked.output.incoming
    was = (Finding("incoming", f"its gradient was {grad(value)}", _arrival(asked), asked.node),) if value else ()
    leaf = _leaf_of_this_name(timeline, info)
    nameless = nameless_leaf(timeline, info)
    if leaf is None and nameless is not None:
        of = f"the leaf is {label_at(timeline, nameless.node)}; no name holds it, and this result was made from it"
        parts = (Finding("leaf", of, nameless.born, nameless.node, at=innermost(nameless)), *was)
        return Finding(
            "not-a-leaf",
            text,
            info.born,
            asked.node,
            parts,
            _REQUIRES_GRAD_LAST.format(shown(info.name) or "w"),
            innermost(info),
            edit=leaf_last(timeline, innermost(info)),
        )
    if leaf is None and value is None and passes_before(asked):
        return None  # keeping it would not help: none has arrived
    if leaf is None:
        fix = "retain_grad() on it before backward"
        keep = f"{info.name}.retain_grad()"
        edit = after(timeline, innermost(info), keep) if info.name.isidentifier() else None
        return Finding("not-a-leaf", text, info.born, asked.node, was, fix, innermost(info), edit=edit)
    lost = f"the name {shown(info.name)} referred to the leaf {label_at(timeline, leaf.node)} before"
    parts = (Finding("rebound", lost, leaf.born, leaf.node, at=innermost(leaf)), *was)
    fix, at = _rebinding_fix(timeline, info), innermost(info)
    return Finding("rebound", text, info.born, asked.node, parts, fix, at, edit=rebinding_edit(timeline, info))


def nameless_leaf(timeline: Timeline, info: NodeInfo) -> NodeInfo | None:
    """Return the leaf that the same line made first: ``torch.randn(3, requires_grad=True).double()``."""
    sources = [timeline.info(node) for node, _ in info.created.inputs if node]
    sources = [one for one in sources if one.created.kind != "constant"]
    nameless = [one for one in sources if one.created.kind == "leaf" and one.created.requires_grad and not one.name]
    at = innermost(info)
    lines = ((one, innermost(one)) for one in nameless if at is not None and len(sources) == 1)
    return next((one for one, made in lines if made and at and (made.path, made.line) == (at.path, at.line)), None)


def rebinding_edit(timeline: Timeline, info: NodeInfo) -> Edit | None:
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
    return f"make the leaf last: {name} = (...).detach().requires_grad_(), or give the result another name"


def _arrival(asked: Question) -> int:
    parts = asked.output.parts
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
    wanted = _grads_read(survey)
    if not wanted or not survey.passes:
        return
    timeline, moment = survey.timeline, survey.timeline.at(survey.end)
    kept = {
        event.node for _, event in survey.select(GradRetained, GradSet) if isinstance(event, GradRetained | GradSet)
    }
    for made in reversed(survey.nodes.values()):
        if not wanted:
            return
        variable = _variable(timeline, timeline.info(made.node))
        if variable not in wanted:
            continue
        wanted.discard(variable)  # the last meaning of the name decides
        asked = question(timeline, moment, made.node, "grad")
        if made.created.kind in ("constant", "leaf") and made.node not in kept:
            yield from _read_of_data(survey, made)
        tracked = made.created.requires_grad and not made.created.during[0] and made.node not in kept
        if tracked and asked.topic != "unborn" and (found := not_a_leaf(asked)) is not None:
            yield found


def _read_of_data(survey: Survey, made: Made) -> Iterator[Finding]:
    """Yield the finding about a tensor that never requires a gradient, if a line misspells ``requires_grad``.

    Many programs read the ``.grad`` of data only to see that it is None.
    """
    timeline, info = survey.timeline, survey.timeline.info(made.node)
    state = timeline.at(survey.end).state(made.node)
    name = info.name.split(".")[0]
    typo = misspelled(timeline, innermost(info), name, "requires_grad")
    if typo is None or made.created.requires_grad or (state is not None and state.requires_grad):
        return
    written, at, edit = typo
    text = titled(f"{{}} requires no gradient: .{shown(written)} is no attribute of it", label(timeline, made.node))
    part = Finding("leaf", "Python makes a new attribute, which autograd does not read", made.seq, made.node)
    yield Finding("misspelled", text, made.seq, made.node, (part,), "write requires_grad = True", at, edit=edit)


def _grads_read(survey: Survey) -> set[_FileVariable]:
    stacks = {made.created.stack for made in survey.nodes.values()}
    paths = {frame.path for stack in stacks for frame in survey.timeline.stack(stack)}
    return {(path, read) for path in paths for read in variables_read(survey.timeline.source(path) or "", "grad")}


# No path from the loss

MOST_CUTS = 5
_COPIES_LOOKED_AT = 20
_OF_NUMBERS = "compute the loss with tensors throughout: .item(), numpy and torch.tensor(...) carry only the numbers"
_NEAR = 200
"""The number of nodes before and after in which parameters of the same model are searched."""


def no_path(asked: Question) -> Finding:
    """Return where the paths from a node to the roots end, if no pass has reached it."""
    timeline = asked.timeline
    started, backward = _pass_of(asked)
    roots = sorted({node for node, _ in backward.roots})
    users = _uses(asked)
    if not users:
        return unused(asked)
    if (lost := _lost_in_checkpoint(asked, users)) is not None:
        return lost
    leading = {*ancestors(timeline, *roots), *roots}
    ends = [end for end in _ends(asked, asked.node) if not _keeps_statistics(timeline, end.node)]
    ends = [end for end in ends if not takes_shape(timeline.info(end.node))] or ends
    cuts = [cut for cut in ends if cut.node in leading] or [out for end in ends for out in _copied(asked, end, leading)]
    start = ", ".join(label(timeline, root) for root in roots[:3] if root) or "the start of the pass"
    name = label(timeline, asked.node)
    if cuts:
        text = titled("{} got no gradient: every path from {} is cut", name, start)
        nearest = _nearest(timeline, cuts, roots)
        return Finding("cut", text, started, asked.node, tuple(_by_line(nearest))[:MOST_CUTS], at=nearest[0].at)
    text = titled("{} got no gradient: it is not connected to {}", name, start)
    return not_reached(asked, text, timeline.info(users[-1]))


def _keeps_statistics(timeline: Timeline, node: int) -> bool:
    """Return whether an operation writes the running statistics of a normalization, which never send a gradient."""
    return timeline.info(node).op.base_name in ("running_mean", "running_var")


_CHECKPOINT = re.compile(r"\bcheckpoint(?:_sequential)?\s*\(")


def _lost_in_checkpoint(asked: Question, users: Sequence[int]) -> Finding | None:
    """Return the finding about a reentrant checkpoint without a graph, because none of its inputs requires a gradient.

    It ran the last use of a leaf.
    """
    timeline, last = asked.timeline, asked.timeline.info(users[-1])
    calls = (frame for frame in last.frames if _CHECKPOINT.search(line_text(timeline, frame)))
    at = next(calls, None)
    if at is None or last.created.untracked != "no_grad":
        return None
    again = (info for user in timeline.nodes.users(asked.node) if (info := timeline.info(user)).created.during[0])
    if next(again, None) is not None:
        return None  # it ran again in backward: the gradient was lost elsewhere
    text = titled("{} got no gradient: its checkpoint runs without a graph", label(timeline, asked.node))
    inside = f"nothing that goes into the checkpoint at {file_line(at.path, at.line)} requires a gradient"
    used = Finding("elsewhere", f"{inside}; {label_at(timeline, last.node)} ran inside it", last.born, last.node)
    fix = "use_reentrant=False in this checkpoint, or requires_grad_() on the data that goes in"
    edit = with_keyword(timeline, at, "checkpoint", "use_reentrant", "False")
    return Finding("cut", text, last.born, asked.node, (used,), fix, at, edit=edit)


def checkpoints_without_graph(survey: Survey) -> Iterator[Finding | None]:
    """Yield parameters that a checkpoint left without a graph, and that are freed by the end.

    A check examines the other parameters.
    """
    timeline, got = survey.timeline, {event.node for _, event in survey.accumulated}
    for node in sorted(timeline.nodes.freed(survey.end) - got):
        made = survey.nodes.get(node)
        if made is None or made.created.kind != "parameter" or not made.created.requires_grad or not survey.passes:
            continue
        yield None
        if users := timeline.nodes.users(node):
            asked = question(timeline, timeline.at(timeline.nodes.born(users[-1])), node, "grad")
            yield _lost_in_checkpoint(asked, users)


def unused(asked: Question) -> Finding:
    """Return the finding about an unused node; a tensor of the same shape shows where it may have been intended."""
    info, timeline = asked.info, asked.timeline
    name = label(timeline, asked.node)
    text = titled("{} was not used in anything", name)
    if is_partial(timeline):
        recorded = titled("{} was not used in anything that was recorded", name)
        return Finding("unused", recorded, info.born, asked.node, (), RECORD_ALL, innermost(info))
    near = _like(asked)
    parts: tuple[Finding, ...] = ()
    if near is not None:
        like, user = near
        text_near = f"{label(timeline, like)}, of the same shape, was used in {label_at(timeline, user)}"
        parts = (Finding("nearest", f"{text_near}: could it have been meant there?", timeline.nodes.born(user), user),)
    read = _numbers_taken(timeline, info)
    if read is not None:
        text = titled("{} was used in no operation: only its numbers were", name)
        return Finding("unused", text, info.born, asked.node, (), _OF_NUMBERS, read)
    fix = "use it in what the loss is made from"
    return Finding("unused", text, info.born, asked.node, parts, fix, innermost(info))


def _takes_numbers(timeline: Timeline, at: Frame | None) -> bool:
    """Return whether the program takes numbers out of a value at a line."""
    calls = numbers_taken(timeline.source(at.path) or "") if at is not None else ()
    return any(at is not None and call.lineno <= at.line <= (call.end_lineno or 0) for call, _ in calls)


def _numbers_taken(timeline: Timeline, info: NodeInfo) -> Frame | None:
    """Return where the program takes the numbers of a leaf, if it does: ``scale.item()``."""
    names = {name.rpartition(".")[2] for name in info.names if name}
    for path, text in timeline.sources.items():
        for call, value in numbers_taken(text or ""):
            match value:
                case ast.Name(id=name) | ast.Attribute(attr=name) if name in names:
                    end = call.end_lineno or call.lineno, call.end_col_offset or -1
                    return Frame(path, "", call.lineno, end[0], call.col_offset, end[1])
    return None


def not_reached(asked: Question, text: str, last: NodeInfo) -> Finding:
    """Return the finding about a node that was used, but whose results do not lead to the loss."""
    name = label(asked.timeline, asked.node)
    used = Finding("elsewhere", f"{name} was used in {label_at(asked.timeline, last.node)}", last.born, last.node)
    fresh = _fresh(asked, last)
    if fresh is None and (copied := _copied_leaf(asked)) is not None:
        began = (
            f"{label_at(asked.timeline, copied.node)} began with the same numbers, as a copy does, and got the gradient"
        )
        parts = (Finding("copied", began, copied.born, copied.node, at=innermost(copied)), used)
        fix = "use the parameter itself, or copy the gradient of the copy to it: p.grad = copy.grad, before the step"
        return Finding("not-reached", text, copied.born, asked.node, parts, fix, innermost(copied))
    if fresh is None:
        fix = _OF_NUMBERS if _takes_numbers(asked.timeline, innermost(last)) else "call backward() on a result of that"
        return Finding("not-reached", text, 0, asked.node, (used,), fix, innermost(last))
    asks = ": requires_grad does not give it one" if fresh.created.kind == "leaf" else ""
    new = f"{label_at(asked.timeline, fresh.node)} is a new tensor with no autograd history{asks}"
    parts = (Finding("copied", new, fresh.born, fresh.node, at=innermost(fresh)), used)
    at = innermost(fresh)
    edit = without_call(asked.timeline, at, "Parameter") or without_arrays(asked.timeline, at)
    return Finding("not-reached", text, fresh.born, asked.node, parts, _OF_NUMBERS, at, edit=edit)


def _copied_leaf(asked: Question) -> NodeInfo | None:
    """Return a later leaf that began with the numbers of this one, and got a gradient: a copy, as of `deepcopy`."""
    timeline, own = asked.timeline, asked.info.created.first_value
    stats = own.statistics() if own is not None else None
    if own is None or own.size < _FEWEST_EQUAL or stats is None or stats.min == stats.max:
        return None
    for node, created in timeline.nodes.all_created([node for node in timeline.nodes if node > asked.node]):
        value = created.first_value if created.kind in ("leaf", "parameter") and created.requires_grad else None
        if value == own and any(isinstance(timeline.event(n), GradAccumulated) for n in timeline.events_of(node)):
            return timeline.info(node)
    return None


_FEWEST_EQUAL = 8
"""The fewest equal elements of two leaves that are no accident."""


def _fresh(asked: Question, last: NodeInfo) -> NodeInfo | None:
    """Return new data at the end of a path back from the loss, made from the numbers of the node after its last use."""
    timeline, roots = asked.timeline, [node for node, _ in _pass_of(asked)[1].roots if node]
    if len(roots) == 1 and (root := timeline.info(roots[0])).created.kind == "leaf" and root.born > last.born:
        return root  # the loss itself is a leaf: it has no inputs
    later = (info for node in (*roots, *ancestors(timeline, *roots)) if (info := timeline.info(node)).born > last.born)
    ends = (info for info in later if info.created.kind != "op")
    return next((end for end in ends if is_copied(timeline, end, asked.node)), None)


def _pass_of(asked: Question) -> tuple[int, BackwardStarted]:
    """Return the pass that could have reached a node: the first after a result was made, or after a leaf was last used.

    Of several before the optimizer step it is the last: the earlier ones may belong to another model.
    """
    timeline, passes, seqs = asked.timeline, passes_before(asked), map(asked.timeline.nodes.born, _uses(asked))
    passes = [one for one in passes if not one[1].inputs] or passes
    since = asked.info.born if asked.info.created.kind == "op" else max(seqs, default=asked.moment.n)
    step = next_step(timeline, asked.node, since)
    later = [one for one in passes if one[0] > since]
    before = [one for one in later if one[0] < step]
    return before[-1] if before else (later or passes[-1:])[0]


def _uses(asked: Question) -> Sequence[int]:
    """Return the uses of a node so far; without those after the last pass (an evaluation), if there are others."""
    timeline, last = asked.timeline, passes_before(asked)[-1][0]
    uses = timeline.nodes.users(asked.node, asked.moment.n)
    return [use for use in uses if timeline.nodes.born(use) < last] or uses


def _like(asked: Question) -> tuple[int, int] | None:
    """Return another leaf of the same shape that requires a gradient, made nearby, and its first user."""
    timeline, made = asked.timeline, asked.info.created
    shape = made.first_value.shape if made.first_value is not None else None
    place = timeline.nodes.place_of(asked.node)
    for other in timeline.nodes[max(place - _NEAR, 0) : place + _NEAR]:
        info = timeline.info(other) if other != asked.node else None
        if info is None or info.created.kind == "op" or not info.created.requires_grad:
            continue
        value, users = info.created.first_value, timeline.nodes.users(other)
        if value is not None and value.shape == shape and users:
            return other, users[0]
    return None


def _nearest(timeline: Timeline, cuts: Sequence[Finding], roots: Sequence[int]) -> list[Finding]:
    """Return the cuts of the lines at which the paths back from the roots end.

    A cut behind another cut is not the reason, and may be intended: a loop detaches the state that it carries.
    """
    met = {*roots, *ancestors(timeline, *roots, up_to={cut.node for cut in cuts})}
    lines = {_line_of(cut) for cut in cuts if cut.node in met}
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
        often = "once" if before == 1 else f"{before} times"
        yield replace(last, text=f"{last.text} (and {often} before)") if before else last


def _ends(asked: Question, node: int) -> Iterator[Finding]:
    """Yield the untracked operations where the paths forward from a node leave the graph."""
    for info in cuts_after(asked.timeline, node, range(asked.moment.n + 1)):
        text = f"cut at {label(asked.timeline, info.node)}{made_at(info.frames)}: {why_untracked(info.created)}"
        how = mend(asked.timeline, info)
        yield Finding("cut", text, info.born, info.node, (), how.fix, how.at or innermost(info), edit=how.edit)


def _copied(asked: Question, end: Finding, leading: set[int]) -> Iterator[Finding]:
    """Yield data on the path to the loss, made right after the graph was left: on the same line, or of the same shape.

    Numbers that leave for numpy or Python come back as constants without an input, which are found in this way. Data
    that appears after the next iteration of a loop came from that one.
    """
    timeline = asked.timeline
    at, left = timeline.nodes.place_of(end.node), timeline.info(end.node).created
    for node in timeline.nodes[at + 1 : at + 1 + _COPIES_LOOKED_AT]:
        info = timeline.info(node)
        if (info.created.op, info.created.stack) == (left.op, left.stack):
            return
        if node in leading and info.created.kind == "constant" and _comes_back(timeline, end, info):
            text = f"{label_at(timeline, node)} is a new tensor with no autograd history: it was made of the numbers"
            part = Finding("copied", text, info.born, node, at=innermost(info))
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


def is_copied(timeline: Timeline, new: NodeInfo, node: int) -> bool:
    """Return whether data was made from the numbers of a node or of its results.

    It is known if its expression reads them (``h.item()``), or if its elements equal theirs to the last digit.
    """
    results = [info for info in _results(timeline, node) if info.born < new.born]
    return _reads(timeline, new, results) or _equals(timeline, new, results)


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
        for name in names_in(part)
    }
    where = at.path, at.function
    made = [(info.name, innermost(info)) for info in results if info.name in read]
    return any(frame is not None and (frame.path, frame.function) == where for _, frame in made)


def _equals(timeline: Timeline, new: NodeInfo, results: list[NodeInfo]) -> bool:
    """Return whether each element with more digits than programs have equals one of a result, if there are some.

    Other elements may be from the program's text: the zeros of ``max(h, 0.0)``.
    """
    odd = [one for one in _elements(timeline, new).tolist() if _is_odd(one)]
    if not odd:
        return False
    computed: set[float] = set()
    for info in results:
        if info.created.kind == "op":
            computed.update(_elements(timeline, info).tolist())
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
    for made in survey.ops("normal"):
        created = made.created
        if created.stack in seen:
            continue
        yield None
        seen.add(created.stack)
        if not created.requires_grad and not _is_sample(survey.timeline, made):
            continue
        drawn_from = _nearest_tracked(survey, made)
        behind = {*drawn_from, *ancestors(survey.timeline, *drawn_from)} & survey.optimized
        if behind and not _has_probability(survey, made, drawn_from):
            trained = _trained_otherwise(survey, made, behind)
            if trained:
                yield _draw_finding(survey, made, drawn_from, trained)


def _is_sample(timeline: Timeline, made: Made) -> bool:
    """Return whether a distribution's ``sample`` switched gradients off for a draw, and not the program."""
    info = timeline.info(made.node)
    is_called = made.created.untracked == "no_grad" and called_at(timeline, innermost(info), "sample")
    return is_called and switch_of(timeline, info.frames) is None


def _nearest_tracked(survey: Survey, made: Made) -> set[int]:
    """Return the nearest tracked tensors that a draw was made from, its mean and its deviation, before any detach."""
    waiting, nearest = list(survey.sources(made)), set[int]()
    while waiting:
        source = waiting.pop()
        if source.created.requires_grad:
            nearest.add(source.node)
        elif source.created.untracked not in ("", "detach", "data"):
            waiting += survey.sources(source)
    return nearest


def _has_probability(survey: Survey, made: Made, drawn_from: set[int]) -> bool:
    """Return whether an operation on the draw also uses what it was drawn from, as a probability of it does.

    It may use an earlier result than the mean, such as its logarithm.
    """
    nodes, waiting, seen = survey.timeline.nodes, [made.node], {made.node}
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


def _trained_otherwise(survey: Survey, made: Made, behind: set[int]) -> tuple[int, GradAccumulated] | None:
    """Return the first gradient of a parameter behind a draw, in a pass whose root was made from the draw, too."""
    reached: dict[int, bool] = {}
    roots = {event.pass_nr: event.roots for _, event in survey.passes}
    for seq, event in survey.accumulated:
        if seq > made.seq and event.node in behind:
            if event.pass_nr not in reached:
                starts = [node for node, _ in roots.get(event.pass_nr, ()) if node]
                reached[event.pass_nr] = made.node in ancestors(survey.timeline, *starts)
            if reached[event.pass_nr]:
                return seq, event
    return None


def _draw_finding(survey: Survey, made: Made, drawn_from: set[int], trained: tuple[int, GradAccumulated]) -> Finding:
    timeline, (seq, event) = survey.timeline, trained
    info = timeline.info(made.node)
    text = titled("{} is a random draw: it sends no gradient back", label(timeline, made.node))
    source = " and ".join(label(timeline, node) for node in sorted(drawn_from)[:2])
    gets = f"{label(timeline, event.node)} gets {grad(event.part)} from the rest of the loss only"
    part = Finding("drawn", f"drawn from {source}; {gets}", seq, event.node)
    at = innermost(info)
    fix, edit = "draw only the noise: mean + std * torch.randn_like(mean)", None
    if not made.created.requires_grad:
        fix, edit = "rsample(), which computes the draw from noise", mend(timeline, info).edit
    elif next(survey.sources(made)).shape == made.shape:
        edit = with_noise(timeline, at)
    return Finding("drawn", text, made.seq, made.node, (part,), fix, at, edit=edit)
