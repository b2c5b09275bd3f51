"""A hinge that is 0 in every pass, because an infinity with the wrong sign reaches it.

Idea. A loss looks for the hardest of some pairs, and hides the others with an infinity: the maximum must see minus
infinity there, the minimum plus infinity. With the other sign the extreme is that infinity in every row, and a hinge
such as ``relu(positive - negative + margin)`` is 0 for all of them. No gradient arrives, and the loss is no warning.

Example. ``sim.diagonal().fill_(-inf)``, and then ``(1 - sim).max(1)``. A number like 1e9 instead of the infinity does
the same.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import CLAMPS, MASKING, ZERO_GRADIENT_REGIONS
from gviz.explain.program_text import ProgramText, called_name
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Change, Edit, rewritten
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.value import Value

_HINGES = (*sorted(ZERO_GRADIENT_REGIONS | CLAMPS), "max", "margin_ranking_loss", "triplet_margin_loss")
_EXTREMES = frozenset({"max", "min", "amax", "amin", "topk", "sort", "aminmax"})
_HUGE = 1e4
"""The size from which a number of a mask is like an infinity."""

_SAME = 1e-3
"""How much the numbers of a mask may differ, as a part of their size: small numbers are added to them."""

_WRITING = MASKING | {"index_put", "index_fill", "masked_scatter", "scatter", "copy", "setitem", "add", "sub"}
"""Operations that write a mask into other numbers, or add it."""

_MOST_STEPS = 40


@dataclass(frozen=True, slots=True)
class _Picked:
    """An extreme that is an infinity in every row, and the operation that wrote the infinity."""

    extreme: NodeRecord
    origin: NodeRecord


def flat_hinge(survey: Survey) -> Iterator[Finding | None]:
    """Yield hinges that are 0 everywhere in every pass, and what wrote the infinity that they get: each line once."""
    lines: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for record in survey.ops(*_HINGES):
        if record.created.requires_grad:
            lines[record.created.stack].append(record)
    for records in lines.values():
        yield None
        if not all(map(_is_zero, records)):
            continue
        first, last = (_picked(survey, record) for record in (records[0], records[-1]))
        if first is not None and last is not None:
            yield _finding(survey, records, first)


def _is_zero(record: NodeRecord) -> bool:
    return record.value is not None and record.stats is not None and record.stats.zero == record.value.size


def _all_huge(record: NodeRecord) -> bool:
    """Return whether all elements of a tensor are infinite, or one number of the size of a mask."""
    stats = record.stats
    if stats is None or record.value is None:
        return False
    is_one = not stats.inf and abs(stats.max) >= _HUGE and stats.max - stats.min <= _SAME * abs(stats.max)
    return is_one or stats.inf == record.value.size


def _has_huge(value: Value | None) -> bool:
    stats = value.statistics() if value is not None else None
    return stats is not None and (stats.inf > 0 or max(abs(stats.min), abs(stats.max)) >= _HUGE)


def _picked(survey: Survey, hinge: NodeRecord) -> _Picked | None:
    """Return the extreme behind the input of a hinge which took only numbers of a mask, though there are others."""
    waiting = [one for one in survey.sources(hinge) if one.created.requires_grad and _all_huge(one)]
    for record in waiting:
        sources = [one for one in survey.sources(record) if one.created.requires_grad]
        if record.op in _EXTREMES and sources and not _all_huge(sources[0]):
            origin = _origin(survey, sources[0])
            return _Picked(record, origin) if origin is not None else None
        if len(waiting) < _MOST_STEPS:
            waiting += [one for one in sources if _all_huge(one)]
    return None


def _origin(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the last operation that got no infinity, or only as a constant, and whose result has some."""
    for _ in range(_MOST_STEPS):
        sources = list(survey.sources(record))
        before = next((one for one in sources if one.created.requires_grad and _holds_huge(survey, one, record)), None)
        if before is None:
            return record if record.op in _WRITING else None
        record = before
    return None


def _holds_huge(survey: Survey, source: NodeRecord, user: NodeRecord) -> bool:
    """Return whether a tensor had the infinity when it was used, from its operation or a later write in place."""
    return _has_huge(source.value) or _has_huge(survey.timeline.memory_value(source.node, 0, user.seq - 1))


def _finding(survey: Survey, records: list[NodeRecord], picked: _Picked) -> Finding:
    timeline, hinge, extreme, origin = survey.timeline, records[0], picked.extreme, picked.origin
    text = titled("{} is 0 in every pass: a mask has the wrong sign", label(timeline, hinge.node))
    stats = extreme.stats
    what = number(stats.max) if stats is not None and not stats.inf else "infinite"
    means = f"{label_at(timeline, extreme.node)} picks the mask in every row and is {what}, so the hinge is off"
    part = Finding("mask", means, extreme.seq, extreme.node, at=survey.at(extreme))
    at = survey.at(origin)
    fix = "the other sign for what is masked: the maximum must see -inf there, the minimum inf"
    numbers = (Number("passes", len(records), hinge.seq),)
    return Finding("flat-hinge", text, hinge.seq, hinge.node, (part,), fix, at, numbers, edit=_other_sign(timeline, at))


def _other_sign(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Change the sign of the infinity on a line."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.UnaryOp(op=ast.USub(), operand=value) if _is_infinity(value):
                    return text.segment(value)
                case ast.Call(args=[ast.Constant(value=str(sign))]) if _is_infinity(part) and sign.strip()[:1] == "-":
                    return text.segment(part).replace("-", "", 1)
                case _ if isinstance(part, ast.Call | ast.Attribute | ast.Constant) and _is_infinity(part):
                    return f"-{text.segment(part)}"
            return None

        return known

    return rewritten(timeline, at, change)


def _is_infinity(part: ast.expr) -> bool:
    """Return whether an expression is ``float("inf")``, with either sign, ``math.inf``, or a number like 1e9."""
    match part:
        case ast.Call(args=[ast.Constant(value=str(written))]) if called_name(part) == "float":
            return written.strip().lower().lstrip("+-") in ("inf", "infinity")
        case ast.Attribute(attr="inf"):
            return True
        case ast.Constant(value=float() | int() as value):
            return abs(value) >= _HUGE
    return False
