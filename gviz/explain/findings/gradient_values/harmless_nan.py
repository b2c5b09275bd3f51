"""nan and infinities that are no mistake: the program fills the memory later, masks with them, or expects them.

Idea. Three kinds of nan and infinities are harmless:

* *Memory that is not filled yet.* ``torch.empty`` and ``x.new`` return whatever was in memory before, often nan. This
  is harmless if the program fills the memory before it reads it.
* *Masks.* Programs hide attention scores with -inf, take the logarithm of a mask before a softmax, or pass inf as a
  limit. This is harmless as long as the result is a probability of zero, or nothing that is trained.
* *Expected nan.* A program that calls ``isnan`` on its data, or replaces what ``isinf`` selects, handles them itself.

`nan_origin` asks `is_harmless`, `is_a_mask` and `is_looked_for` before it reports where a nan appears.

Example. In ``buffer = torch.empty(8); buffer.copy_(x)`` the nan of ``buffer`` is not reported. In
``buffer = torch.empty(8); loss = (buffer + x).sum()`` it is, because the addition reads it.

Limits. A result that is infinite because an operation has no number there, such as 1 / 0 or the logarithm of a
prediction, is not harmless, even if every finite element of it is zero. The marks of errors in a picture follow a
simpler rule: `gviz.trace.nan_and_inf`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import isinf

from gviz.events import GradSet, OptimizerStarted, OptimizerStepped, StorageWritten
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import MASKING, SAME_NUMBERS, SOFTMAXES
from gviz.explain.program_text import called_function, called_name, statement_at
from gviz.explain.recording_survey import Survey
from gviz.explain.source_frames import innermost
from gviz.explain.value_computation import computation
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.value_text import bad_text


def is_harmless(survey: Survey, stopped: Finding) -> bool:
    """Return whether the nan or infinity at which the check stopped is harmless.

    No parameter led to it. It is memory that is filled later, a probability of zero in a softmax, or an element that
    the program replaces or leaves out; or it comes from a given inf, and nothing that is trained was computed from it.
    """
    timeline = survey.timeline
    if _is_overwritten_grad(timeline, stopped):
        return True
    created = timeline.info(stopped.node).created if stopped.node else None
    if created is not None and created.kind == "constant":
        return called_function(timeline, innermost(timeline.info(stopped.node))) in _NOT_FILLED
    if created is None or created.kind != "op" or created.requires_grad:
        return False
    if timeline.info(stopped.node).op.base_name in _NOT_FILLED and _is_filled_later(survey, stopped.node):
        return True
    if any("nan" in bad_text(output.value) for output in created.outputs):
        return False
    if _is_given_inf(timeline, stopped.node):
        return not _is_used_in_training(timeline, stopped.node)
    op = timeline.info(stopped.node).op.base_name
    return (
        op in _NOT_FILLED
        or (op == "log" and goes_into_softmax(timeline, stopped.node))
        or any(_is_replaced(timeline, timeline.info(user)) for user in timeline.nodes.users(stopped.node))
    )


def _is_overwritten_grad(timeline: Timeline, stopped: Finding) -> bool:
    """Return whether a bad ``.grad`` is memory that is not filled yet, and is filled before anything uses it."""
    event = timeline.event(stopped.event) if stopped.event else None
    frames = timeline.stack(event.stack) if isinstance(event, GradSet) and event.how == "assigned" else ()
    source = statement_at(timeline, frames[0]) if frames else None
    if source is None or not any(called_name(call) in _NOT_FILLED for call in source[1].parts(ast.Call)):
        return False
    readers = timeline.nodes.origins.gradient_of == stopped.node
    read = [timeline.nodes[place] for place in readers.nonzero()[0].tolist()]
    for seq, later in timeline.select((GradSet, OptimizerStarted, OptimizerStepped), stopped.event + 1):
        if isinstance(later, GradSet) and later.node != stopped.node:
            continue
        used = (user for node in read for user in timeline.nodes.users(node) if timeline.nodes.born(user) < seq)
        is_filled = isinstance(later, GradSet) and not bad_text(later.value)
        return is_filled and all(_fills(timeline, user) for user in used)
    return False


def _is_filled_later(survey: Survey, node: int) -> bool:
    """Return whether the program fills memory with good numbers before it reads it."""
    timeline = survey.timeline
    storages = {output.storage for output in timeline.info(node).created.outputs}
    born = timeline.nodes.born(node)
    for seq, event in survey.select(StorageWritten):
        if isinstance(event, StorageWritten) and seq > born and event.storage in storages and not bad_text(event.value):
            waiting, seen = [node], {node}
            while waiting:
                for user in timeline.nodes.users(waiting.pop()):
                    if user in seen or timeline.nodes.born(user) > seq or _fills(timeline, user):
                        continue
                    if timeline.info(user).op.base_name not in SAME_NUMBERS:
                        return False
                    seen.add(user)
                    waiting.append(user)
            return True
    return False


_FILLING = {"copy", "fill", "zero", "setitem", "index_put", "normal", "uniform", "exponential"}
_FILLING |= {"bernoulli", "cauchy", "geometric", "log_normal", "random"}
"""Operations that write to memory without reading it, without the underscore at their end."""


def _fills(timeline: Timeline, node: int) -> bool:
    """Return whether an operation writes to memory without reading it."""
    return timeline.info(node).op.base_name.rstrip("_") in _FILLING


def _is_used_in_training(timeline: Timeline, node: int) -> bool:
    """Return whether something tracked was made of a node."""
    waiting, seen = [node], {node}
    while waiting:
        for user in timeline.nodes.users(waiting.pop()):
            if timeline.info(user).created.requires_grad:
                return True
            if user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


_NOT_FILLED = {"new", "empty", "empty_like", "empty_strided", "new_empty"}


def _is_given_inf(timeline: Timeline, node: int) -> bool:
    """Return whether the program gives an operation the number inf itself: a norm times the limit inf."""
    info = timeline.info(node)
    numbers = [value for _, value in info.created.attrs if isinstance(value, float)]
    constants = [timeline.info(source) for source, _ in info.created.inputs if source]
    given = [one.created.first_value for one in constants if one.created.kind == "constant"]
    return any(map(isinf, numbers)) or any("inf" in bad_text(value) for value in given if value and not value.shape)


_SELECTING = MASKING | {"setitem", "index_put", "getitem", "index"}


def _is_replaced(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether a comparison with inf selects elements that the program then replaces, or leaves out."""
    values = [operand.value for operand in computation(timeline, info.node).operands]
    is_with_inf = any(not value.shape and "inf" in bad_text(value) for value in values if value)
    if info.op.base_name not in ("isinf", "isfinite") and not (info.op.base_name in ("eq", "ne") and is_with_inf):
        return False
    users = [timeline.info(user) for user in timeline.nodes.users(info.node)]
    inverted = [user.node for user in users if user.op.base_name in ("bitwise_not", "logical_not")]
    users += [timeline.info(user) for node in inverted for user in timeline.nodes.users(node)]
    return any(user.op.base_name.rstrip("_") in _SELECTING for user in users)


_NAN_AWARE = {"isnan", "isfinite", "isinf", "nan_to_num", "nanmean", "nansum", "nanmedian"}
"""Functions that programs call because they expect nan."""


def is_looked_for(timeline: Timeline, node: int) -> bool:
    """Return whether the program looks for nan in its data: then it expects some.

    Data that is written into a tensor, or viewed, is looked for there.
    """
    if timeline.info(node).created.kind == "op":
        return False
    waiting, seen = [node], {node}
    while waiting:
        for user in timeline.nodes.users(waiting.pop()):
            info = timeline.info(user)
            with_itself = info.op.base_name in ("eq", "ne") and len({*info.created.inputs}) == 1
            if info.op.base_name in _NAN_AWARE or (with_itself and len(info.created.inputs) == 2):  # nan != nan
                return True
            written = [*_views(timeline, info.created.inputs[0][0])] if info.op.name.endswith("_") else []
            carried = [user, *written] if written or info.op.base_name in SAME_NUMBERS else []
            waiting += [one for one in carried if one and one not in seen]
            seen.update(carried)
    return False


def _views(timeline: Timeline, node: int) -> Iterator[int]:
    """Yield a tensor, and what it is a view of."""
    while node:
        yield node
        info = timeline.info(node)
        node = info.created.inputs[0][0] if info.op.base_name in SAME_NUMBERS and info.created.inputs else 0


def is_a_mask(timeline: Timeline, node: int) -> bool:
    """Return whether an infinity is deliberate: a constant, or a mask of attention scores."""
    info = timeline.info(node)
    value = info.created.first_value
    masks = info.created.kind != "op" or info.op.base_name in MASKING or _is_log_of_a_mask(timeline, info)
    return masks and "nan" not in bad_text(value)


def _is_log_of_a_mask(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether this is the logarithm of an untracked boolean mask."""
    if info.op.base_name != "log" or not info.created.inputs:
        return False
    source = timeline.info(info.created.inputs[0][0])
    while source.op.name in SAME_NUMBERS and source.created.inputs and not _is_yes_or_no(source):
        source = timeline.info(source.created.inputs[0][0])
    return not source.created.requires_grad and _is_yes_or_no(source)


def _is_yes_or_no(info: NodeInfo) -> bool:
    value = info.created.first_value
    return info.op.name in ("tril", "triu") or (value is not None and value.dtype == "bool")


_NEAR_SOFTMAX = 4
"""The most operations between masked scores and their softmax."""


def goes_into_softmax(timeline: Timeline, node: int) -> bool:
    """Return whether a softmax follows soon."""
    front = {node}
    for _ in range(_NEAR_SOFTMAX):
        front = {user for one in front for user in timeline.nodes.users(one)}
        if any(timeline.info(one).op.base_name in SOFTMAXES | {"logsumexp"} for one in front):
            return True
    return False
