"""A condition in which a text stands alone, so that it is always true: ``if "conv" or "head" in name``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.display_names import titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import (
    ProgramText,
    Statement,
    all_programs,
    called_name,
    frame_of_part,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import Edit, node_replaced
from gviz.explain.source_frames import is_of_library
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown


def lone_text_conditions(survey: Survey) -> Iterator[Finding]:
    """Yield conditions around writes to parameters in which a text is an operand by itself.

    Python takes ``"conv" or "head" in name`` for ``"conv" or ("head" in name)``, and a text is true unless it is empty.
    Only the text of the program shows it; whether the line ran is not known.
    """
    for one in _lone_texts(survey.timeline):
        if not is_of_library(one.at.path):
            text = titled(_title(one), shown(one.word))
            means = f"Python takes {shown(one.word)} by itself, and it is always true"
            part = Finding("since", means + "; the else never runs" * (one.is_true and one.whole and one.others))
            fix = "compare each text: 'a' in name or 'b' in name"
            yield Finding("constant-condition", text, 0, 0, (part,), fix, one.at, edit=one.edit)


def _title(one: _LoneText) -> str:
    if not one.is_true:
        return "{} has no effect in this condition: it is compared with nothing"
    return f"this {'condition' if one.whole else 'part of a condition'} is always true: {{}} is compared with nothing"


# What the program's source code shows


@dataclass(frozen=True, slots=True)
class _LoneText:
    """A text that stands alone in a condition, as in ``if "conv" or "head" in name``, and the edit that compares it.

    It makes the operands of ``or`` at a frame true, which are the `whole` condition or a part of it. After ``and`` it
    has no effect, and neither has one after another text, as in ``("conv" or "head") in name``. `others` is whether
    there is an ``else``.
    """

    at: Frame
    word: str
    is_true: bool
    whole: bool
    others: bool
    edit: Edit | None


def _lone_texts(timeline: Timeline) -> Iterator[_LoneText]:
    """Yield the texts that stand alone in the conditions of a program around writes to parameters.

    A condition counts if its block calls a function such as ``zeros_`` or sets ``requires_grad`` or ``data``, or if it
    is in a loop over parameters or modules.
    """
    for text in all_programs(timeline):
        for one in text.statements:
            for test, others in _conditions(one):
                found = next(_lone(text, test), None)
                if found is not None:
                    part, word, is_true, edit = found
                    yield _LoneText(frame_of_part(text, part), word, is_true, part is test, others, edit)


def _conditions(one: Statement) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the conditions of a statement that are about parameters or modules, and whether each has an else."""
    is_inside = any(_is_over_members(outer.iter) for outer in one.around if isinstance(outer, ast.For))
    if isinstance(one.node, ast.If) and (is_inside or _sets_parameters(one)):
        yield one.node.test, bool(one.node.orelse)
    if is_inside:
        yield from ((part.test, True) for part in one.parts(ast.IfExp))
    for part in one.parts(ast.expr):
        for each in getattr(part, "generators", []):
            if _is_over_members(each.iter):
                yield from ((test, False) for test in each.ifs)


def _lone(text: ProgramText, test: ast.expr) -> Iterator[tuple[ast.expr, str, bool, Edit | None]]:
    """Yield operands with a lone text among them: the text, whether it makes them true, and the edit."""
    match test:
        case ast.BoolOp(op=op, values=values):
            alone = [value for value in values if _is_text(value)]
            if alone:
                yield test, text.segment(alone[0]), isinstance(op, ast.Or), _tested(text, test)
            for value in values:
                yield from _lone(text, value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _lone(text, operand)
        case ast.Compare(left=ast.BoolOp(op=ast.Or(), values=[first, second, *more]), ops=[ast.In()]) if all(
            map(_is_text, (first, second, *more))
        ):
            place = text.segment(test.comparators[0])
            each = [f"{text.segment(value)} in {place}" for value in (first, second, *more)]
            yield test, text.segment(second), False, node_replaced(text, test, f"({' or '.join(each)})")


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str) and bool(value.value)


def _tested(text: ProgramText, part: ast.BoolOp) -> Edit | None:
    """Return the edit that compares each lone text as its only neighbour: ``"a" in name or "b" in name``."""
    tests = [value for value in part.values if not _is_text(value)]
    match tests:
        case [ast.Compare(left=left, ops=[ast.In()], comparators=[place])] if _is_text(left):
            before, after = "", f" in {text.segment(place)}"
        case [ast.Compare(left=name, ops=[ast.Eq()], comparators=[right])] if _is_text(right):
            before, after = f"{text.segment(name)} == ", ""
        case _:
            return None
    compared = [f"{before}{text.segment(value)}{after}" if _is_text(value) else text.segment(value)
                for value in part.values]  # fmt: skip
    return node_replaced(text, part, (" or " if isinstance(part.op, ast.Or) else " and ").join(compared))


_MEMBERS = (
    "parameters", "named_parameters", "modules", "named_modules", "children", "named_children", "state_dict", "items",
)  # fmt: skip


def _is_over_members(part: ast.expr) -> bool:
    """Return whether an expression has the parameters or the modules of a model."""
    return any(isinstance(call, ast.Call) and called_name(call) in _MEMBERS for call in ast.walk(part))


def _sets_parameters(one: Statement) -> bool:
    """Return whether the block of a condition initializes or freezes something."""
    parts = [part for statement in getattr(one.node, "body", []) for part in ast.walk(statement)]
    calls = [called_name(part) for part in parts if isinstance(part, ast.Call)]
    targets = [part.attr for part in parts if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)]
    is_written = any(name.endswith("_") and not name.endswith("__") for name in calls)
    return is_written or not {"requires_grad", "data"}.isdisjoint(targets)
