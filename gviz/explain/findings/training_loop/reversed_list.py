"""A list that is reversed each time that a loop appends to it: its elements end up in neither order.

Idea. Returns are often computed from the last reward to the first, appended to a list, and reversed at the end. If the
line that reverses is in the loop, every second element is at the other end: 1, 2, 3, 4, 5 becomes 5, 3, 1, 2, 4. The
program's text shows such a loop. That a tensor was made from the list shows that its order matters.

Example. ``for r in reversed(rewards): R = r + gamma * R; returns.append(R); returns.reverse()``.

Limits. A reversal under a condition, two reversals in one loop, a list that the loop makes anew or shortens, and a loop
that ends after the reversal are left out.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.display_names import titled
from gviz.explain.finding import Finding
from gviz.explain.program_text import (
    ProgramText,
    Statement,
    binds_name,
    called_name,
    frame_of,
    own_programs,
    places_read,
    places_set,
    statement_at,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import Edit, lines_replaced
from gviz.explain.source_frames import own_frame
from gviz.source.call_stack import Frame
from gviz.values.plain_text import clipped, file_line, shown

_MOST_NAME = 40


def reversed_in_loops(survey: Survey) -> Iterator[Finding | None]:
    """Yield the lines that reverse a list in the loop that appends to it; notes if no tensor is made from the list."""
    found: list[_Reversal] = []
    for text in own_programs(survey.timeline):
        yield None
        found += _reversals(text)
    read = _read_for_tensors(survey) if found else {}
    for one in found:
        like = Frame(one.text.path, "", 0, 0, -1, -1)
        at, added = (frame_of(like, each.first, one.text) for each in (one.statement, one.addition))
        name = shown(clipped(one.name, _MOST_NAME))
        title = titled("{} is reversed again each time that the loop adds to it", name)
        by = f"{file_line(added.path, added.line)} adds to it; every second element ends up at the other end"
        parts = [Finding("beside", by, survey.end, at=added)]
        places = [place for place in read.get((one.text.path, one.name), ()) if place.line not in (at.line, added.line)]
        tensor = next(iter(places), None)
        if tensor is not None:
            made = f"a tensor is made from it at {file_line(tensor.path, tensor.line)}"
            parts.append(Finding("beside", made, survey.end, at=tensor))
        fix = "reverse it once, after the loop"
        if one.is_ahead:
            fix = "leave the reversal out: what is inserted at 0 comes before the rest"
        suspected = tensor is None
        yield Finding(
            "reversed-in-loop", title, survey.end, 0, tuple(parts), fix, at, suspected=suspected, edit=_edit(one)
        )


def _read_for_tensors(survey: Survey) -> dict[tuple[str, str], list[Frame]]:
    """Return the lines that make tensors, by file and by each variable or attribute that they read."""
    found: defaultdict[tuple[str, str], list[Frame]] = defaultdict(list)
    seen: set[int] = set()
    for record in survey.nodes.values():
        stack = record.created.stack
        if stack in seen:
            continue
        seen.add(stack)
        at = own_frame(survey.timeline.stack(stack))
        source = statement_at(survey.timeline, at)
        if source is None or at is None or getattr(source[1].node, "body", None):
            continue
        for name in places_read(source[1].node):
            found[at.path, name].append(at)
    return found


# What the program's source code shows


@dataclass(frozen=True, slots=True)
class _Reversal:
    """A statement of a loop that reverses a list, and the one of the same loop that adds to it.

    `is_ahead` is whether the addition inserts at the beginning.
    """

    text: ProgramText
    name: str
    statement: Statement
    addition: Statement
    loop: ast.For | ast.While
    is_ahead: bool


def _reversals(text: ProgramText) -> Iterator[_Reversal]:
    reversals: defaultdict[tuple[ast.AST, str], list[Statement]] = defaultdict(list)
    for one in text.statements:
        if name := _reversed_place(one.node):
            around = next((outer for outer in reversed(one.around) if isinstance(outer, _LOOPS)), None)
            if around is not None:
                reversals[around, name].append(one)
    for (outer, name), statements in reversals.items():
        one = statements[0]
        if len(statements) > 1 or not isinstance(outer, ast.For | ast.While):
            continue
        loop: ast.For | ast.While = outer
        if one.node not in loop.body or _leaves(one) or (isinstance(loop, ast.For) and binds_name(loop.target, name)):
            continue
        inside = [other for other in text.statements if loop in other.around and other.node is not one.node]
        added = [other for other in inside if other.around[-1] is loop and _adds_to(other.node, name)]
        rest = [other for other in inside if other not in added]
        if len(added) == 1 and not any(_changes(other, name) for other in rest):
            yield _Reversal(text, name, one, added[0], loop, _is_ahead(added[0].node, name))


_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def _leaves(one: Statement) -> bool:
    """Return whether a loop ends after a statement of it."""
    after = one.block[one.block.index(one.node) :] if isinstance(one.node, ast.stmt) else []
    return any(isinstance(other, ast.Break | ast.Return | ast.Raise) for other in after)


def _place(node: ast.AST) -> str:
    """Return a variable or an attribute as text; empty for anything else."""
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _reversed_place(node: ast.AST) -> str:
    """Return the list that a statement reverses, as ``x.reverse()`` and ``x = x[::-1]`` do; empty for none."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="reverse"), args=[], keywords=[])):
            return _place(owner)
        case ast.Assign(targets=[target], value=value) if (place := _place(target)) and _reverses(value, place):
            return place
    return ""


def _reverses(value: ast.AST, place: str) -> bool:
    match value:
        case (
            ast.Call(func=ast.Name(id="list" | "tuple" | "deque"), args=[inner])
            | ast.Call(func=ast.Attribute(value=inner, attr="copy"), args=[])
        ):
            return _reverses(inner, place)
        case ast.Subscript(value=inner, slice=ast.Slice(lower=None, upper=None, step=ast.UnaryOp(ast.USub(), number))):
            return _place(inner) == place and isinstance(number, ast.Constant) and number.value == 1
        case ast.Call(func=ast.Name(id="reversed"), args=[inner]):
            return _place(inner) == place
        case ast.Call(func=ast.Attribute(value=owner, attr="flip"), args=args, keywords=keywords):
            if _place(owner) != place:
                if not args or _place(args[0]) != place:
                    return False
                args = args[1:]
            given = [*args, *(one.value for one in keywords)]
            return all(part.value == 0 for each in given for part in ast.walk(each) if isinstance(part, ast.Constant))
    return False


_JOINING = ("cat", "concat", "concatenate", "append", "hstack")


def _adds_to(node: ast.AST, place: str) -> bool:
    """Return whether a statement adds to a list: ``x.append(y)``, ``x += [y]``, ``x = torch.cat([x, y])``."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="append" | "insert" | "appendleft"))):
            return _place(owner) == place
        case ast.AugAssign(target=target, op=ast.Add(), value=ast.List()):
            return _place(target) == place
        case ast.Assign(targets=[target], value=ast.BinOp(op=ast.Add(), left=left, right=right)):
            is_list = isinstance(left, ast.List) or isinstance(right, ast.List)
            return is_list and _place(target) == place and place in (_place(left), _place(right))
        case ast.Assign(targets=[target], value=ast.Call(args=[first, *_]) as call) if called_name(call) in _JOINING:
            elements = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
            return _place(target) == place and place in map(_place, elements)
    return False


def _is_ahead(node: ast.AST, place: str) -> bool:
    """Return whether a statement adds at the beginning of a list."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="insert"), args=[ast.Constant(value=0), _])):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="appendleft"))):
            return True
        case ast.Assign(value=ast.BinOp(right=right)):
            return _place(right) == place
        case ast.Assign(value=ast.Call(args=[ast.List(elts=elements) | ast.Tuple(elts=elements), *_])):
            return _place(elements[-1]) == place
    return False


_SHORTENING = ("pop", "popleft", "clear", "remove", "sort", "extend", "append", "insert")


def _changes(one: Statement, place: str) -> bool:
    """Return whether a statement assigns a list, deletes elements or changes it by a method."""
    if place in places_set(one.node) or isinstance(one.node, ast.Delete | ast.Global):
        return True
    if isinstance(one.node, ast.For) and binds_name(one.node.target, place):
        return True
    return any(
        called_name(call) in _SHORTENING and isinstance(call.func, ast.Attribute) and _place(call.func.value) == place
        for call in one.parts(ast.Call)
    )


def _edit(reversal: _Reversal) -> Edit | None:
    """Move the reversal behind its loop, or remove it if the loop adds at the beginning."""
    text, one, loop = reversal.text, reversal.statement, reversal.loop
    last = loop.end_lineno or one.last
    if loop.orelse or not text.is_alone(one):
        return None
    rest = "".join(f"{row}\n" for row in text.rows[one.last : last])
    row = text.rows[loop.lineno - 1]
    indent = row[: len(row) - len(row.lstrip())]
    there = "" if reversal.is_ahead else f"{indent}{text.segment(one.node)}\n"
    return lines_replaced(text, one.first, last, rest + there)
