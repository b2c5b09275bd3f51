"""Weights of volume rendering and stick breaking whose cumulative product includes the element itself.

Idea. The weight of element i is alpha_i times the product of 1 - alpha_j over the elements before it. `cumprod`
includes element i, so alpha_i * cumprod(1 - alpha)_i has the factor alpha_i * (1 - alpha_i): an opaque element gets the
weight 0. ``exp(-cumsum(s))`` times ``1 - exp(-s)`` is the same mistake with logarithms.

Limits. Both factors must be computed from the same tensor, without a shift by `roll`, `cat` or a slice in between.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import RESHAPING
from gviz.explain.program_text import ProgramText, called_name
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Change, Edit, imported_modules, rewritten
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline

_MOST_STEPS, _MOST_USERS, _DEPTH = 8, 24, 4
_NEAR_ONE = 0.01


@dataclass(frozen=True, slots=True)
class _Linear:
    """A tensor as ``factor * base + constant``."""

    base: NodeRecord
    factor: float
    constant: float


def inclusive_product(survey: Survey) -> Iterator[Finding | None]:
    """Yield cumulative products that are multiplied by the complement of what they multiply: each line once."""
    seen = set[int]()
    for record in survey.ops("cumprod", "cumsum"):
        if record.created.stack in seen or not record.created.requires_grad:
            continue
        yield None
        source = next(survey.sources(record), None)
        whole = record if record.op == "cumprod" else _decaying(survey, record)
        if source is None or whole is None:
            continue
        for other in _factors(survey, whole):
            if _is_complement(survey, record, source, other):
                seen.add(record.created.stack)
                yield _finding(survey, record, other)
                break


def _decaying(survey: Survey, total: NodeRecord) -> NodeRecord | None:
    """Return ``exp(-total)`` of a cumulative sum, or ``exp(total)``; None without it."""
    waiting = [total]
    for record in waiting:
        for node in survey.timeline.nodes.users(record.node):
            user = survey.nodes.get(node)
            if user is not None and user.op == "exp":
                return user
            if user is not None and user.op in ("neg", "mul") and len(waiting) < _MOST_USERS:
                waiting.append(user)
    return None


def _factors(survey: Survey, product: NodeRecord) -> list[NodeRecord]:
    """Return the other factors of the products that a tensor is in, as it is or in another shape."""
    waiting, found, behind = [product], list[NodeRecord](), {product.node}
    while waiting and len(behind) < _MOST_USERS:
        for node in survey.timeline.nodes.users(waiting.pop(0).node):
            user = survey.nodes.get(node)
            if user is not None and user.op == "div" and _is_divided(survey, user, behind):
                return []  # h * S / (1 - h): the program takes the factor out again
            if user is None or node in behind or user.op not in ("mul", *RESHAPING):
                continue
            behind.add(node)
            waiting.append(user)
            others = [_unshaped(survey, one) for one in survey.sources(user)]
            inner = [one for other in others if other.op == "mul" for one in survey.sources(other)]
            found += [*others, *(_unshaped(survey, one) for one in inner)]
    return found


def _is_divided(survey: Survey, quotient: NodeRecord, products: Collection[int]) -> bool:
    """Return whether a quotient divides each element of a product by a number of its own, unlike a normalization."""
    sources = list(survey.sources(quotient))
    return len(sources) == 2 and sources[0].node in products and sources[1].shape == sources[0].shape


def _unshaped(survey: Survey, record: NodeRecord) -> NodeRecord:
    while record.op in RESHAPING and (source := next(survey.sources(record), None)) is not None:
        record = source
    return record


def _is_complement(survey: Survey, total: NodeRecord, source: NodeRecord, other: NodeRecord) -> bool:
    """Return whether a factor is 1 minus what is multiplied, or ``1 - exp(-s)`` of the ``s`` that is added up."""
    one, two = _linear(survey, source), _linear(survey, other)
    if total.op == "cumprod":
        is_one = abs(one.constant + two.constant - 1) < _NEAR_ONE and abs(one.factor + two.factor) < _NEAR_ONE
        return is_one and _are_same(survey, one.base, two.base)
    if two.base.op != "exp" or (two.factor, two.constant) != (-1.0, 1.0):
        return False
    exponent = next((_linear(survey, each) for each in survey.sources(two.base)), None)
    return (
        exponent is not None and abs(exponent.factor) == abs(one.factor) and _are_same(survey, exponent.base, one.base)
    )


def _linear(survey: Survey, record: NodeRecord) -> _Linear:
    """Return a tensor as a multiple of another one and a constant, as far as numbers are added and multiplied."""
    factor, constant = 1.0, 0.0
    for _ in range(_MOST_STEPS):
        sources = list(survey.sources(record))
        tracked = [one for one in sources if one.created.requires_grad]
        value = next((one.number for one in sources if not one.created.requires_grad), 0.0)
        if len(tracked) != 1 or value is None:
            break
        is_first = sources[0] is tracked[0]
        match record.op, len(sources):
            case "add", 2:
                constant += factor * value
            case ("sub", 2) if is_first:
                constant -= factor * value
            case ("sub" | "rsub", 2) if is_first == (record.op == "rsub"):
                constant, factor = constant + factor * value, -factor
            case "mul", 2:
                factor *= value
            case "neg", 1:
                factor = -factor
            case ("clamp" | "clamp_min" | "clone" | "contiguous", _):
                pass
            case _:
                break
        record = tracked[0]
    return _Linear(record, factor, constant)


def _are_same(survey: Survey, one: NodeRecord, other: NodeRecord, depth: int = _DEPTH) -> bool:
    """Return whether two tensors are one, or the same operations on the same tensors."""
    if one.node == other.node:
        return True
    sources, others = list(survey.sources(one)), list(survey.sources(other))
    is_same = one.op == other.op and one.created.attrs == other.created.attrs and len(sources) == len(others) > 0
    if not is_same:
        numbers = one.number, other.number
        return one.created.kind == other.created.kind == "constant" and None not in numbers and len({*numbers}) == 1
    pairs = zip(sources, others, strict=True)
    return depth > 0 and all(_are_same(survey, first, second, depth - 1) for first, second in pairs)


def _finding(survey: Survey, record: NodeRecord, other: NodeRecord) -> Finding:
    timeline, at = survey.timeline, survey.at(record)
    text = titled("each weight has its own factor 1 - alpha in {}", label(timeline, record.node))
    means = f"{record.op} includes the element itself, so {label_at(timeline, other.node)} near 1 gets a weight near 0"
    part = Finding("used", means, record.seq, other.node, at=survey.at(other))
    is_last = dict(record.created.attrs).get("dim") in (-1, len(record.shape) - 1)
    fix = "the product over the elements before it: a 1 in front, and without the last element"
    if record.op == "cumsum":
        fix = "the sum over the elements before it: cumsum(s) - s"
    edit = _exclusive(timeline, at, record.op) if is_last or record.op == "cumsum" else None
    return Finding("inclusive-product", text, record.seq, record.node, (part,), fix, at, edit=edit)


def _exclusive(timeline: Timeline, at: Frame | None, name: str) -> Edit | None:
    """Replace a cumulative product in the last dimension, or a cumulative sum, with that of the elements before."""

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not isinstance(part, ast.Call) or called_name(part) != name or "torch" not in imported_modules(text):
                return None
            whole = text.segment(part)
            if name == "cumprod":
                return f"torch.nn.functional.pad({whole}[..., :-1], (1, 0), value=1.0)"
            match part.func:
                case ast.Attribute(value=ast.Name(id="torch")) if part.args:
                    return f"({whole} - {text.segment(part.args[0])})"
                case ast.Attribute(value=value):
                    return f"({whole} - {text.segment(value)})"
            return None

        return known

    return rewritten(timeline, at, change)
