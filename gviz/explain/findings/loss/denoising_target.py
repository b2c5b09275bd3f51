"""A model that predicts noise, and gets another noise in its input than in its target.

Idea. A diffusion model predicts the noise that was added to its data. If the target is a random draw that nothing but
the loss uses, and the input has another draw of the same shape added to it, the target does not depend on the input:
the best prediction is its mean, and the loss stays at its variance.

Example. ``noise = torch.randn_like(x0)`` and ``x_t = q_sample(x0, t)``, which draws its own noise.

Limits. A draw that is the whole input is none: a toy program trains on random inputs and random targets. The draws are
known by their operation or, if they have no inputs, by the call in the source.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import LOSSES_OF_PAIRS, SAME_NUMBERS
from gviz.explain.program_text import called_function, function_of, has_parameter, statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, node_replaced, replaced_call, with_keyword
from gviz.explain.source_frames import own_frame
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import shape_text
from gviz.values.plain_text import shown

_OPERATIONS = frozenset({"randn_like", "rand_like", "normal"})
_CALLS = _OPERATIONS | {"randn", "rand"}
_LIKE = frozenset({"randn_like", "rand_like"})
_SELECTIONS = frozenset({"getitem", "index", "index_select", "select", "slice", "narrow", "split", "chunk", "unbind"})
_DIFFERENCES = LOSSES_OF_PAIRS | {"sub", "l1_loss"}
_ERRORS = frozenset({"pow", "square", "abs", "mul", "norm", "linalg_vector_norm", "mean", "sum"})


def other_noise(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses whose target is another draw than the one in the input: each line once.

    The input may have several draws, as that of data with noise of its own: the last one that is added is the noise.
    """
    starts, seen = [seq for seq, _ in survey.passes], Counter[int]()
    draws = [one for one in survey.nodes.values() if one.shape and not one.created.requires_grad]
    for record in survey.ops(*_DIFFERENCES):
        pair = _compared(survey, record)
        if seen[record.created.stack] >= _MOST_TRIES or not record.created.requires_grad or len(pair) != 2:
            continue
        prediction, target = sorted(pair, key=lambda one: not one.created.requires_grad)
        if target.created.requires_grad or not prediction.created.requires_grad:
            continue
        drawn = survey.unwrapped(target)
        if not _is_draw(survey, drawn) or not _is_only_for(survey, drawn, record):
            continue
        yield None
        seen[record.created.stack] += 1
        nr = bisect_left(starts, record.seq)
        behind = {*ancestors(survey.timeline, prediction.node)}
        since = starts[nr - 1] if nr else 0
        alike = [
            one for one in draws
            if since < one.seq < record.seq and one.node in behind and one.node != drawn.node
            and one.shape == drawn.shape and _is_draw(survey, one)
        ]  # fmt: skip
        sums = [(one, at) for one in alike if (at := _sum_with(survey, one, since)) is not None]
        if drawn.seq > since and sums:
            seen[record.created.stack] = _MOST_TRIES
            yield _finding(survey, record, drawn, max(sums, key=lambda one: one[1].seq)[0])


def _compared(survey: Survey, record: NodeRecord) -> list[NodeRecord]:
    """Return what a difference compares. The last operation of a call of several may have the untracked one."""
    pair = list(survey.sources(record))[:2]
    last = record
    while len(pair) == 1 and last.op != "mean":
        users = (survey.nodes.get(node) for node in survey.timeline.nodes.users(last.node))
        user = next((one for one in users if one is not None and one.created.stack == record.created.stack), None)
        if user is None:
            break
        pair += [one for one in survey.sources(user) if one is not last and one.shape == record.shape]
        last = user
    return pair[:2]


_MOST_TRIES = 3
"""Passes of one line that are examined: in the first, data that was drawn before the loop looks like noise."""


def _is_draw(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a tensor is a random draw of real numbers."""
    if record.value is None or not record.value.dtype.startswith(("float", "bfloat")) or record.value.size < 2:
        return False
    if record.created.kind == "op":
        return record.op in _OPERATIONS
    return record.created.kind == "constant" and called_function(survey.timeline, survey.at(record)) in _CALLS


def _is_only_for(survey: Survey, drawn: NodeRecord, loss: NodeRecord) -> bool:
    """Return whether nothing but a loss uses a draw."""
    waiting, seen = [drawn.node], {drawn.node}
    while waiting:
        for user in survey.timeline.nodes.users(waiting.pop()):
            record = survey.nodes.get(user)
            if record is None or user in seen or user == loss.node:
                continue
            seen.add(user)
            if record.created.stack == loss.created.stack and record.created.requires_grad:
                continue  # another operation of the same loss
            if record.op not in SAME_NUMBERS:
                return False
            waiting.append(user)
    return True


def _sum_with(survey: Survey, drawn: NodeRecord, since: int) -> NodeRecord | None:
    """Return the sum of a draw, or a multiple of it, and data, before any parameter is used; None if there is none.

    The sum of two draws that were made after `since` is random data, and no data with noise.
    """
    waiting, seen = [drawn.node], {drawn.node}
    while waiting:
        for user in survey.timeline.nodes.users(waiting.pop()):
            record = survey.nodes.get(user)
            if record is None or user in seen or record.created.requires_grad:
                continue
            seen.add(user)
            others = [one for one in survey.sources(record) if one.node not in seen and one.shape == drawn.shape]
            if record.op in ("add", "sub", "lerp", "addcmul") and others:
                return None if all(_is_multiple_of_draw(survey, one, since) for one in others) else record
            if record.op in ("mul", "div", *SAME_NUMBERS):
                waiting.append(user)
    return None


def _is_multiple_of_draw(survey: Survey, record: NodeRecord, since: int) -> bool:
    """Return whether a tensor is a draw from after an event, or a draw that is multiplied by something else."""
    one = survey.unwrapped(record)
    factors = list(survey.sources(one)) if one.op in ("mul", "div") else [one]
    return any(_is_draw(survey, each) and each.seq > since for each in map(survey.unwrapped, factors))


def _finding(survey: Survey, loss: NodeRecord, drawn: NodeRecord, other: NodeRecord) -> Finding:
    timeline = survey.timeline
    names = label(timeline, drawn.node), label(timeline, other.node)
    text = titled("{} is the target, but the input has another noise, {}", *names)
    one = _one_draw(survey, drawn, other)
    shape = shape_text(drawn.shape)
    means = f"two draws {shape}: {label_at(timeline, drawn.node)} for the loss, {label_at(timeline, other.node)} for x"
    part = Finding("drawn", means, other.seq, other.node, at=survey.at(other))
    size = drawn.value.size if drawn.value is not None else 0
    numbers = (Number("elements", size, drawn.seq),)
    fix = f"{one.fix}: else the loss cannot fall below its variance"
    return Finding(
        "other-noise", text, loss.seq, drawn.node, (part,), fix, one.at, numbers, not one.is_returned, edit=one.edit
    )


@dataclass(frozen=True, slots=True)
class _OneDraw:
    """The line where one draw can serve for both, the fix, and whether a function returns a draw that is never used."""

    at: Frame | None
    fix: str
    edit: Edit | None = None
    is_returned: bool = False


def _one_draw(survey: Survey, drawn: NodeRecord, other: NodeRecord) -> _OneDraw:
    """Return the line that draws again, or calls a function that does, and the edit that uses one draw there."""
    timeline = survey.timeline
    names = timeline.info(drawn.node).name, timeline.info(other.node).name
    fix = f"one draw for both, as x_t = q_sample(x0, t, {names[0] or 'noise'})"
    own = [[one for one in timeline.stack(each.created.stack) if one == own_frame((one,))] for each in (drawn, other)]
    if not own[0] or not own[1]:
        return _OneDraw(survey.at(other), fix)
    here, there = own[0][0], own[1]
    caller = there[1] if len(there) > 1 and there[1].function == here.function else None
    if caller is not None and (place := _place_in_result(timeline, there[0], names[1])) is not None:
        return _returned_draw(timeline, here, caller, there[0], place, names[0])
    if drawn.seq < other.seq and names[0].isidentifier():
        if there[0].function == here.function:
            return _OneDraw(there[0], fix, replaced_call(timeline, there[0], names[0]))
        if caller is not None and has_parameter(timeline, there[0], names[1]):
            called = there[0].function.rpartition(".")[2]
            return _OneDraw(caller, fix, with_keyword(timeline, caller, called, names[1], names[0]))
    elif names[1].isidentifier() and there[0].function == here.function:
        return _OneDraw(here, fix, replaced_call(timeline, here, names[1]))
    return _OneDraw(there[0], fix)


def _place_in_result(timeline: Timeline, at: Frame, name: str) -> int | None:
    """Return the place of a variable in the tuple that the function around a line returns; None if it has none."""
    source = statement_at(timeline, at)
    text, function = (source[0], function_of(source[1])) if source is not None else (None, None)
    for one in text.by_function.get(function, ()) if text is not None and function is not None else ():
        match one.node:
            case ast.Return(value=ast.Tuple(elts=parts)):
                names = [part.id if isinstance(part, ast.Name) else "" for part in parts]
                return names.index(name) if name and name in names else None
    return None


def _returned_draw(timeline: Timeline, here: Frame, caller: Frame, drawing: Frame, place: int, name: str) -> _OneDraw:
    """Return the edit that takes the draw for the target from the result of the call that has made the input."""
    function = drawing.function.rpartition(".")[2]
    fix = f"take the noise that {shown(function)} returns as the target"
    source = statement_at(timeline, caller)
    match source[1].node if source is not None else None:
        case ast.Assign(targets=[ast.Tuple(elts=parts)]) if source is not None and place < len(parts):
            kept = parts[place]
            if isinstance(kept, ast.Name) and kept.id != "_" and here.line > caller.line:
                return _OneDraw(here, fix, replaced_call(timeline, here, kept.id), True)
            if isinstance(kept, ast.Name) and here.line < caller.line and name.isidentifier():
                return _OneDraw(caller, fix, node_replaced(source[0], kept, name), True)
    return _OneDraw(caller, fix, is_returned=True)


# A model that gets noised data, and whose target is that input


def noised_target(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses whose target is the noised input of the model, so that it learns the identity: each line once.

    The noise must be drawn anew for the pass. A factor of the noise for each sample is that of a diffusion model. With
    one factor for all, the noise may be a part of the data: so only noise like a given tensor is reported, as a note.
    """
    starts, seen = [seq for seq, _ in survey.passes], set[int]()
    for record in survey.ops(*_DIFFERENCES):
        pair = list(survey.sources(record))[:2]
        if record.created.stack in seen or not record.created.requires_grad or len(pair) != 2:
            continue
        prediction, target = sorted(pair, key=lambda one: not one.created.requires_grad)
        if target.created.requires_grad or (record.op == "sub" and not _is_error(survey, record)):
            continue
        noised = survey.unwrapped(target)
        noise = _noise_in(survey, noised)
        if noise is None or not prediction.created.requires_grad:
            continue
        yield None
        drawn, factor = noise
        nr = bisect_left(starts, record.seq)
        since = starts[nr - 1] if nr else 0
        if factor is None and not _is_noise_like_data(survey, noised, drawn, since):
            continue
        if drawn.seq > since and noised.node in ancestors(survey.timeline, prediction.node):
            seen.add(record.created.stack)
            yield _noised_finding(survey, record, noised, drawn, factor)


def _is_error(survey: Survey, difference: NodeRecord) -> bool:
    """Return whether a difference is only squared, or its size taken."""
    users = [survey.nodes.get(node) for node in survey.timeline.nodes.users(difference.node)]
    return bool(users) and all(user is not None and user.op in _ERRORS - {"mean", "sum"} for user in users)


def _noise_in(survey: Survey, record: NodeRecord) -> tuple[NodeRecord, NodeRecord | None] | None:
    """Return the draw that is added to other data in a tensor, and its factor if that is more than a number."""
    sources = list(survey.sources(record))
    if record.op not in ("add", "sub", "lerp", "addcmul") or len(sources) < 2 or record.created.requires_grad:
        return None
    found, others = None, 0
    for source in sources[:2] if record.op == "lerp" else sources:
        one, factor = survey.unwrapped(source), None
        if one.op in ("mul", "div"):
            parts = [survey.unwrapped(part) for part in survey.sources(one)]
            draws = [part for part in parts if _is_draw(survey, part) and part.shape == record.shape]
            factor = next((part for part in parts if part not in draws and _is_many(part)), None)
            one = draws[0] if len(draws) == 1 else one
        if found is None and _is_draw(survey, one) and one.shape == record.shape:
            found = one, factor
        elif source.shape == record.shape:
            others += 1
    if record.op == "lerp" and found is not None and len(sources) > 2 and _is_many(sources[2]):
        found = found[0], sources[2]
    return found if others else None


def _is_noise_like_data(survey: Survey, noised: NodeRecord, drawn: NodeRecord, since: int) -> bool:
    """Return whether noise was drawn in the shape of data from before an event, ``x + 0.1 * torch.randn_like(x)``.

    A program that makes its own data, ``torch.sin(t) + 0.1 * torch.randn(n)``, computes the rest of the sum.
    """
    if drawn.op not in _LIKE and called_function(survey.timeline, survey.at(drawn)) not in _LIKE:
        return False
    parts = (survey.unwrapped(one) for one in survey.sources(noised) if one.shape == noised.shape)
    data = next((one for one in parts if one is not drawn and drawn not in survey.sources(one)), None)
    while data is not None and data.op in _SELECTIONS:
        data = next((survey.unwrapped(one) for one in survey.sources(data)), None)
    return data is not None and data.created.kind != "op" and data.seq <= since


def _is_many(record: NodeRecord) -> bool:
    return record.value is not None and record.value.size > 1


def _noised_finding(
    survey: Survey, loss: NodeRecord, noised: NodeRecord, drawn: NodeRecord, factor: NodeRecord | None
) -> Finding:
    timeline = survey.timeline
    text = titled("the target of {} is the noised input of the model", label(timeline, loss.node))
    means = f"{label_at(timeline, noised.node)} is data plus the noise {label_at(timeline, drawn.node)}"
    part = Finding(
        "target", f"{means}; the model gets it, so it can copy it", noised.seq, noised.node, at=survey.at(noised)
    )
    fix = "the data without noise as the target, or the noise, if the model is to predict that"
    at = survey.at(loss)
    return Finding("noised-target", text, loss.seq, loss.node, (part,), fix, at, suspected=factor is None)
