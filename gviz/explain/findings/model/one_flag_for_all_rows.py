"""One flag for a whole tensor is used as a mask where each row needs its own.

Idea. `any`, `all` or `max` without a dimension gives one number for all elements. As a factor of the losses of single
elements it keeps all of them or none, and never leaves out the rows that it is about.

Example. ``mask = (target != 0).flatten(2).any()`` is to leave out the channels without a target. Without ``dim=2``, the
mask is one True, and the empty channels are trained, too.

Limits. The reduced tensor must have as many rows as the one that is masked. If the program has merged the dimensions
behind the rows right before, the flags of rows are certainly meant; else one flag may be meant, and it is a note. Flags
that look for nan or inf are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import COMPARISONS, RESHAPING
from gviz.explain.program_text import called_function
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, with_dim
from gviz.values.number_text import shape_text

_FLAGS = ("any", "all")
_EXTREMES = ("max", "amax", "min", "amin")
_KEEPING = RESHAPING | COMPARISONS | {
    "to", "float", "type", "bool", "type_as", "logical_not", "bitwise_not", "flatten", "getitem",
}  # fmt: skip
"""Operations whose result is a flag, or a mask of all elements, if their input is."""

_CHECKS = {"isnan", "isinf", "isfinite"}
_MERGING = {"flatten", "view", "reshape", "_unsafe_view"}
_FEWEST_ROWS, _MOST_STEPS = 2, 12


def flags_for_rows(survey: Survey) -> Iterator[Finding | None]:
    """Yield the flags of whole tensors that mask tensors with several rows: each line once."""
    seen = set[int]()
    for record in survey.ops(*_FLAGS, *_EXTREMES):
        yield None
        reduced = next(survey.sources(record), None)
        if record.shape or reduced is None or len(reduced.shape) < 2 or reduced.shape[0] < _FEWEST_ROWS:
            continue
        if record.created.requires_grad or record.created.stack in seen:
            continue
        seen.add(record.created.stack)
        masked = None if _is_check(survey, reduced) else _masked(survey, record, reduced)
        if masked is not None:
            yield _finding(survey, record, reduced, *masked)


def _is_check(survey: Survey, reduced: NodeRecord) -> bool:
    """Return whether a flag looks for nan or inf."""
    record: NodeRecord | None = reduced
    for _ in range(_MOST_STEPS):
        if record is None or record.op in _CHECKS:
            return True
        if record.op not in _KEEPING:
            return False
        record = next(survey.sources(record), None)
    return True


def _masked(survey: Survey, flag: NodeRecord, reduced: NodeRecord) -> tuple[NodeRecord, NodeRecord] | None:
    """Return the tracked result that a flag masks element by element, and the tensor that it masks."""
    waiting, seen = [(flag, flag.op in _FLAGS)], {flag.node}
    while waiting and len(seen) < _MOST_STEPS:
        record, is_flag = waiting.pop()
        for node in survey.timeline.nodes.users(record.node):
            user = survey.nodes.get(node)
            if user is None or user.node in seen:
                continue
            seen.add(user.node)
            others = [one for one in survey.sources(user) if one is not record and one.shape[:1] == reduced.shape[:1]]
            tracked = [one for one in others if one.created.requires_grad]
            is_choice = user.op == "where" and next(survey.sources(user), None) is record
            if is_flag and (user.op == "mul" or is_choice) and tracked and user.shape == tracked[0].shape:
                return user, tracked[0]
            is_mask = user.op in ("mul", "logical_and", "bitwise_and") and others and not user.created.requires_grad
            if user.op in _KEEPING or (is_flag and is_mask):
                waiting.append((user, is_flag or user.op in COMPARISONS))
    return None


def _is_merged(survey: Survey, reduced: NodeRecord) -> bool:
    """Return whether a tensor keeps its rows, and the program has merged the dimensions behind them."""
    rows, record = len(reduced.shape) - 1, reduced
    for _ in range(_MOST_STEPS):
        source = next(survey.sources(record), None)
        if source is None:
            return False
        if record.op in _MERGING and len(source.shape) > len(reduced.shape):
            return source.shape[:rows] == reduced.shape[:rows]
        if source.shape != reduced.shape:
            return False
        record = source
    return False


def _finding(survey: Survey, flag: NodeRecord, reduced: NodeRecord, user: NodeRecord, masked: NodeRecord) -> Finding:
    timeline, at = survey.timeline, survey.at(flag)
    rows = shape_text(reduced.shape[:-1])
    text = titled("{} is one flag for all rows, but masks {}", label(timeline, flag.node), label(timeline, masked.node))
    facts = (
        f"{label_at(timeline, reduced.node)} {shape_text(reduced.shape)} gives one number, not one for each row {rows}"
    )
    where = f"{facts}; {label_at(timeline, user.node)} keeps all or none of {shape_text(masked.shape)}"
    part = Finding("mask", where, flag.seq, reduced.node, at=survey.at(user))
    dim = len(reduced.shape) - 1
    is_merged = _is_merged(survey, reduced)
    fix = f"{flag.op}(dim={dim if is_merged else -1}): one flag for each row"
    edit = _edit(survey, flag, masked, dim) if is_merged else None
    return Finding("flag-for-rows", text, flag.seq, flag.node, (part,), fix, at, suspected=not is_merged, edit=edit)


def _edit(survey: Survey, flag: NodeRecord, masked: NodeRecord, dim: int) -> Edit | None:
    """Return the edit that adds the dimension, if its result fits or the program reshapes it."""
    timeline, at = survey.timeline, survey.at(flag)
    users = (survey.nodes.get(node) for node in timeline.nodes.users(flag.node))
    known = [user for user in users if user is not None and user.op in RESHAPING]
    is_reshaped = any(user.created.stack != flag.created.stack for user in known)
    if called_function(timeline, at) != flag.op or flag.op not in _FLAGS:
        return None
    return with_dim(timeline, at, flag.op, str(dim)) if is_reshaped or len(masked.shape) == dim else None
