"""Label smoothing that adds 1/N to each class in the place of eps/N.

Idea. Smoothed targets are ``(1 - eps) * y + eps / N``: what the right class gives up, all N classes share. If the added
term is 1/N, each wrong class has the share that a guess would have, and a row adds up to nearly 2. The least element of
the target is 1/N then, and the text of its line shows where the 1 comes from.

Example. ``y = (1.0 - eps) * y + 1.0 / y.size(1)``.

Limits. For some eps and N both forms give the same number (eps/2 of two classes is 1/N of many), so only a line that
divides the number 1 counts, in a program that takes ``1 - eps`` for the rest. It is a note: some programs keep it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.program_text import ProgramText, Statement, frame_of, function_of, statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, node_replaced
from gviz.source.call_stack import Frame
from gviz.values.number_text import number
from gviz.values.plain_text import clipped, shown

_SMOOTHING = ("add", "add_", "scatter", "scatter_", "lerp", "setitem", "setitem_", "index_put_", "where", "copy_")
_NEAR = 1e-4
_MOST_BETWEEN = 12
_ROOM = 40


def share_of_one(survey: Survey) -> Iterator[Finding | None]:
    """Yield the lines that make smoothed targets whose wrong classes have 1/N: each line once."""
    seen = set[int]()
    for record in survey.ops(*_SMOOTHING):
        created = record.created
        if created.stack in seen or created.requires_grad or len(record.shape) < 2:
            continue
        seen.add(created.stack)
        yield None
        count = record.shape[-1]
        stats = record.stats
        if stats is None or not stats.min < 0.5 < stats.max < 1 + stats.min:
            continue
        if not any(abs(stats.min * each - 1) < _NEAR for each in (count, count - 1)):
            continue
        term = _term(survey, record)
        user = _loss_of(survey, record) if term is not None else None
        if term is not None and user is not None:
            yield _finding(survey, record, term, user, (stats.min, stats.max), count)


def _loss_of(survey: Survey, record: NodeRecord) -> NodeRecord | None:
    """Return the tracked operation that uses a target."""
    waiting, seen = [record.node], set[int]()
    if survey.timeline.op(record.created.op).name.endswith("_"):
        waiting += [node for node, _ in record.created.inputs if node]
    while waiting and len(seen) < _MOST_BETWEEN:
        for user in survey.timeline.nodes.users(waiting.pop(0)):
            one = survey.nodes.get(user)
            if one is None or user in seen:
                continue
            if one.created.requires_grad:
                return one
            seen.add(user)
            waiting.append(user)
    return None


def _finding(
    survey: Survey, record: NodeRecord, term: _Term, user: NodeRecord, span: tuple[float, float], count: int
) -> Finding:
    timeline, low = survey.timeline, span[0]
    text = titled("{}: label smoothing adds 1/N to each class, not eps/N", label(timeline, record.node))
    eps = clipped(term.eps, _ROOM)
    has = f"it has {number(low)} for each wrong class of {count}, and up to {number(span[1])} for a right one"
    use = f"{label_at(timeline, user.node)} uses it as the target"
    parts = (Finding("target", f"{has}; {use}", user.seq, user.node),)
    fix = f"{shown(eps)} / {shown(clipped(term.classes, _ROOM))}, so that a row keeps its sum"
    numbers = (Number("wrong class", low, record.seq),)
    return Finding(
        "label-smoothing", text, record.seq, record.node, parts, fix, term.at, numbers, suspected=True, edit=term.edit
    )


# What the program's source code shows


@dataclass(frozen=True, slots=True)
class _Term:
    """A term ``1 / N`` of a smoothed target: its line, the texts of N and of eps, and the edit to ``eps / N``."""

    at: Frame
    classes: str
    eps: str
    edit: Edit | None


def _term(survey: Survey, record: NodeRecord) -> _Term | None:
    """Return the term ``1 / N`` that a line adds, or that a variable has which the line reads, next to ``1 - eps``."""
    at = survey.at(record)
    source = statement_at(survey.timeline, at)
    if source is None or at is None:
        return None
    text, one = source
    near = [one, *_read_by(text, one)]
    rests = [(each, eps) for each in near for eps in _rests(each)]
    for each in near:
        for part in each.parts(ast.BinOp):
            match part:
                case ast.BinOp(left=ast.Constant(value=1 | 1.0) as one_number, op=ast.Div(), right=right):
                    terms = [(other, eps) for other, eps in rests if ast.unparse(eps) not in ast.unparse(part)]
                    if not terms or _is_scaled(each.node, part):
                        continue
                    other, eps = terms[0]
                    is_known = function_of(other) is function_of(each) or isinstance(eps, ast.Constant)
                    new = ast.unparse(eps)
                    edit = node_replaced(text, one_number, new) if is_known else None
                    return _Term(frame_of(at, each.first, text), ast.unparse(right), new, edit)
    return None


def _read_by(text: ProgramText, one: Statement) -> Iterator[Statement]:
    """Yield the statements that set a variable or an attribute which a statement reads, or fill it in place."""
    names = {ast.unparse(part) for part in ast.walk(one.node) if isinstance(part, ast.Name | ast.Attribute)}
    for other in text.statements:
        if other.node is one.node:
            continue
        match other.node:
            case ast.Assign(targets=[ast.Name() as target]) if function_of(other) is function_of(one):
                is_set = ast.unparse(target) in names
            case ast.Assign(targets=[ast.Attribute() as target]):
                is_set = ast.unparse(target) in names
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="fill_"))):
                is_set = function_of(other) is function_of(one) and ast.unparse(owner) in names
            case _:
                is_set = False
        if is_set:
            yield other


def _rests(one: Statement) -> Iterator[ast.expr]:
    """Yield the eps of each ``1 - eps``."""
    for part in one.parts(ast.BinOp):
        match part:
            case ast.BinOp(left=ast.Constant(value=1 | 1.0), op=ast.Sub(), right=eps) if isinstance(
                eps, ast.Name | ast.Attribute | ast.Constant | ast.Subscript
            ):
                yield eps


def _is_scaled(node: ast.AST, part: ast.expr) -> bool:
    """Return whether something multiplies or divides a term, as eps may."""
    products = (one for one in ast.walk(node) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult | ast.Div))
    return any(part in (one.left, one.right) for one in products)
