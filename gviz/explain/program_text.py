"""The recorded source of the program: its lines, expressions, statements and variables.

It is read as text and never run. `gviz.explain.source_edit` changes it.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import cleandoc
from io import StringIO
from itertools import pairwise, takewhile
from textwrap import dedent
from typing import TypeVar

from gviz.explain.source_frames import is_of_library
from gviz.source import parsing
from gviz.source.call_stack import Frame, source_lines
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped


def line_text(timeline: Timeline, at: Frame | None) -> str:
    """Return a line of the program as it was recorded; empty if it is unknown."""
    text = timeline.source(at.path) if at is not None else None
    rows = source_lines(text) if text else []
    return rows[at.line - 1] if at is not None and 0 < at.line <= len(rows) else ""


_ALL_PARAMETERS = re.compile(r"\bparameters\(|named_parameters\(|state_dict\(|stack_module_state\(|\b_parameters\b")


def takes_all_parameters(timeline: Timeline, at: Frame | None) -> bool:
    """Return whether a line takes all parameters of a model: ``{k: v.detach() for k, v in net.named_parameters()}``."""
    return _ALL_PARAMETERS.search(line_text(timeline, at)) is not None


def underlined(timeline: Timeline, at: Frame | None) -> list[str]:
    """Return a line of the program, and below it a row that marks the expression at the frame; empty if it is unknown.

    Of an expression on several lines, the part on the first is marked. A line begins with its number.
    """
    row = line_text(timeline, at)
    if at is None or not row.strip():
        return []
    written, number = row.expandtabs(1), f"{at.line} | "
    margin = len(written) - len(written.lstrip())
    rows = [f"{number}{written.strip()}"]
    if at.column >= 0:
        whole = row.encode()
        end = at.end_column if at.end_line == at.line else len(whole.rstrip())
        start, length = (
            len(whole[: at.column].decode(errors="replace")),
            len(whole[at.column : end].decode(errors="replace")),
        )
        if length and start >= margin:
            rows.append(f"{' ' * (len(number) - 2)}| {' ' * (start - margin)}{'^' * length}")
    return [clipped(one, MOST_SOURCE) for one in rows]


MOST_SOURCE = 120
"""Characters of a line of the program below a finding."""

_BLANK = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE)


def about(timeline: Timeline) -> str:
    """Return the docstring of the file in which the program began, as it was when it ran; empty if there is none."""
    frames = timeline.info(int(timeline.nodes[0])).frames if len(timeline.nodes) else ()
    return docstring(timeline.source(frames[-1].path) or "") if frames else ""


def docstring(text: str) -> str:
    """Return the string with which a Python text begins. Only this token is read."""
    try:
        tokens = tokenize.generate_tokens(StringIO(text).readline)
        first = next((token for token in tokens if token.type not in _BLANK), None)
        constant = ast.literal_eval(first.string) if first is not None and first.type == tokenize.STRING else ""
    except (tokenize.TokenError, SyntaxError, ValueError):
        return ""  # it does not begin with a docstring
    return cleandoc(constant) if isinstance(constant, str) else ""


# The expression that was running when something happened


def expression(timeline: Timeline, at: Frame | None) -> ast.AST | None:
    """Return the expression that ran at a frame, or its whole lines if columns are unknown; None if there is none."""
    text = timeline.source(at.path) if at is not None else None
    if at is None or not text:
        return None
    rows = [row.encode() for row in source_lines(text)[at.line - 1 : at.end_line]]
    if rows and at.column >= 0:
        rows[-1] = rows[-1][: at.end_column]
        rows[0] = rows[0][at.column :]
    running = b"\n".join(rows).decode(errors="replace")
    try:
        return parsing.program(f"({running})" if at.column >= 0 else dedent(running))
    except (SyntaxError, ValueError):  # the file has changed since, or these lines are a part of a statement
        return None


def called_function(timeline: Timeline, at: Frame | None) -> str:
    """Return the last name of the function in the outermost call at a frame; empty if unknown."""
    running = expression(timeline, at)
    calls = (node for node in ast.walk(running) if isinstance(node, ast.Call)) if running is not None else ()
    return next(map(called_name, calls), "")


def called_name(call: ast.Call) -> str:
    """Return the last name of the called function: ``item`` for ``x.sum().item()``."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def names_read(part: ast.AST) -> set[str]:
    """Return the variables that a node of the syntax tree reads."""
    return {one.id for one in ast.walk(part) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def update_in_place(text: str, name: str) -> str:
    """Return ``w -= lr * w.grad`` for a line ``w = w - lr * w.grad``; empty for any other line.

    The name may also be an attribute or an item, as ``params[name]``.
    """
    try:
        (statement,) = parsing.program(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    match statement:
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right)) if (
            ast.unparse(target) == ast.unparse(left) == name
        ):
            return f"{name} {'+' if isinstance(op, ast.Add) else '-'}= {ast.unparse(right)}"
    return ""


# The function that owns each variable, as Python resolves names

MODULE = "<module>"

Variable = tuple[str, str]
"""A name, and the qualified name of the function whose variable it is: ``("h", "Net.forward")``."""


# The statement at a frame, and what the program does there


_Part = TypeVar("_Part", bound=ast.AST)


BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)
"""The parts of a statement that are in its blocks."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a program without its body, its block, and its index there."""

    node: ast.stmt
    block: Sequence[ast.stmt]
    around: tuple[ast.AST, ...]

    @property
    def first(self) -> int:
        """Its first line, including decorators."""
        decorators: list[ast.expr] = getattr(self.node, "decorator_list", [])
        return min([self.node.lineno, *(one.lineno for one in decorators)])

    @property
    def last(self) -> int:
        """The last line of its head."""
        body = getattr(self.node, "body", None)
        return body[0].lineno - 1 if body and body[0].lineno > self.node.lineno else self.node.end_lineno or self.first

    def parts(self, kind: type[_Part]) -> Iterator[_Part]:
        """Yield its parts of one kind, without those of the statements in its blocks."""
        heads = (part for part in ast.iter_child_nodes(self.node) if not isinstance(part, BLOCKS))
        return (part for head in heads for part in ast.walk(head) if isinstance(part, kind))


class ProgramText:
    """A program's text as lines and as a syntax tree."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.rows = source_lines(text)
        self.tree = parsing.program(text)
        self.statements = list(_statements(self.tree, ()))

    @cached_property
    def by_function(self) -> Mapping[ast.AST | None, Sequence[Statement]]:
        """By function, the statements that are in no function within it; those outside of functions at None."""
        by_function: defaultdict[ast.AST | None, list[Statement]] = defaultdict(list)
        for one in self.statements:
            by_function[function_of(one)].append(one)
        return by_function

    def at(self, line: int, column: int = -1) -> Statement | None:
        """Return the innermost statement on a line; of several, the one at that column, or else the first."""
        candidates = [one for one in self.statements if one.first <= line <= one.last]
        there = [one for one in candidates if (one.node.lineno, one.node.col_offset) <= (line, column)]
        if column >= 0 and there:
            return max(there, key=lambda one: (len(one.around), one.node.lineno, one.node.col_offset))
        return max(candidates, key=lambda one: (len(one.around), -one.node.col_offset), default=None)

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """Return the text of a node of the syntax tree. Several lines keep their indentation."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        rows = [row.encode() for row in self.rows[first : last + 1]]
        rows[-1] = rows[-1][: node.end_col_offset]
        rows[0] = rows[0][node.col_offset :]
        return b"\n".join(rows).decode()

    def with_part(self, node: ast.expr, part: ast.expr, new: str) -> str:
        """Return the text of a node with another text in the place of a part of it."""

        def place(line: int, column: int) -> int:
            before = (len(self.rows[at - 1].encode()) + 1 for at in range(node.lineno, line))
            return sum(before) + column - node.col_offset

        whole = self.segment(node).encode()
        start = place(part.lineno, part.col_offset)
        end = place(part.end_lineno or part.lineno, part.end_col_offset or part.col_offset)
        return b"".join([whole[:start], new.encode(), whole[end:]]).decode()

    def indent(self, one: Statement) -> str:
        """Return the indentation of a statement."""
        row = self.rows[one.first - 1]
        return row[: len(row) - len(row.lstrip())]

    def is_alone(self, one: Statement) -> bool:
        """Return whether no other statement is on its lines."""
        head = self.rows[one.first - 1].encode()[: one.node.col_offset].strip()
        tail = self.rows[(one.node.end_lineno or 1) - 1].encode()[one.node.end_col_offset :].strip()
        return not head and (not tail or tail.startswith(b"#"))


def _statements(node: ast.AST, around: tuple[ast.AST, ...]) -> Iterator[Statement]:
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        block: list[ast.AST] = getattr(node, name, None) or []
        if not isinstance(block, list):
            continue  # the body of a lambda
        for one in block:
            if isinstance(one, ast.stmt):
                yield Statement(one, [part for part in block if isinstance(part, ast.stmt)], (*around, node))
            yield from _statements(one, (*around, node))


@lru_cache(16)
def parsed_program(path: str, text: str) -> ProgramText | None:
    try:
        return ProgramText(path, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def all_programs(timeline: Timeline) -> Iterator[ProgramText]:
    """Yield the text of each recorded file that can be parsed."""
    texts = (parsed_program(path, timeline.source(path) or "") for path in timeline.sources)
    return (text for text in texts if text is not None)


def own_programs(timeline: Timeline) -> Iterator[ProgramText]:
    """Yield the text of each file of the program itself, not of installed packages or the standard library."""
    return (text for text in all_programs(timeline) if not is_of_library(text.path))


def program_text(timeline: Timeline, at: Frame | None) -> ProgramText | None:
    text = timeline.source(at.path) if at is not None else None
    return parsed_program(at.path, text) if at is not None and text else None


def statement_at(timeline: Timeline, at: Frame | None) -> tuple[ProgramText, Statement] | None:
    text = program_text(timeline, at)
    one = text.at(at.line, at.column) if text is not None and at is not None else None
    return (text, one) if text is not None and one is not None else None


def has_parameter(timeline: Timeline, at: Frame | None, name: str) -> bool:
    """Return whether the innermost function around a line has a parameter of that name."""
    return name in parameters_around(timeline, at)


def parameters_around(timeline: Timeline, at: Frame | None) -> list[str]:
    """Return the parameters of the innermost function around a line, in their order; empty outside of functions."""
    source = statement_at(timeline, at)
    return parameters_of(function_of(source[1])) if source is not None else []


def parameters_of(function: ast.AST | None) -> list[str]:
    """Return the parameters of a function in their order, without ``*args`` and ``**options``; empty for all else."""
    keywords = function.args.kwonlyargs if isinstance(function, FUNCTION_NODES) else []
    return [*positional_parameters(function), *(one.arg for one in keywords)]


def positional_parameters(function: ast.AST | None) -> list[str]:
    """Return the parameters of a function, or of a lambda, that may be passed by their place; empty for all else."""
    if not isinstance(function, (*FUNCTION_NODES, ast.Lambda)):
        return []
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args)]


def passed_arguments(call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr]:
    """Return the arguments of a call by the parameter of a function or method that gets each.

    The parameters of arguments behind ``*values`` are unknown, and so are those of ``**options``.
    """
    names = positional_parameters(function)
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    placed = takewhile(lambda one: not isinstance(one, ast.Starred), call.args)
    return dict(zip(names, placed, strict=False)) | {key.arg: key.value for key in call.keywords if key.arg}


def imported_names(text: ProgramText) -> set[str]:
    """Return the names that the imports of a program bind: ``torch``, ``nn``, ``F``."""
    imports = (one.node for one in text.statements if isinstance(one.node, ast.Import | ast.ImportFrom))
    return {(name.asname or name.name).partition(".")[0] for one in imports for name in one.names}


def frame_of(like: Frame, line: int, text: ProgramText) -> Frame:
    """Return a line of a program as a frame, in the function of another frame."""
    return Frame(text.path, like.function, line, line, -1, -1)


def frame_of_part(text: ProgramText, part: ast.expr | ast.stmt | ast.keyword, function: str = "") -> Frame:
    """Return the place of a part of a program as a frame, with its columns."""
    end = part.end_lineno or part.lineno
    return Frame(text.path, function, part.lineno, end, part.col_offset, part.end_col_offset or -1)


def function_name(one: Statement) -> str:
    """Return the name of the innermost function around a statement, as a frame has it."""
    return getattr(function_of(one), "name", MODULE)


def places_read(part: ast.AST) -> set[str]:
    """Return the variables and attributes that a part of a program reads, as text."""
    kinds = ast.Name | ast.Attribute
    return {ast.unparse(one) for one in ast.walk(part) if isinstance(one, kinds) and isinstance(one.ctx, ast.Load)}


def places_set(node: ast.stmt) -> set[str]:
    """Return the variables and attributes that a statement assigns, as text."""
    parts = [part for target in assigned_parts(node) for part in ast.walk(target)]
    kinds = ast.Name | ast.Attribute
    return {ast.unparse(one) for one in parts if isinstance(one, kinds) and isinstance(one.ctx, ast.Store)}


# Properties of a statement


def receiver(timeline: Timeline, at: Frame | None, method: str) -> str:
    """Return ``opt`` for a line ``opt.step()``; empty for any other line."""
    source = statement_at(timeline, at)
    if source is None or getattr(source[1].node, "body", None):
        return ""
    text, one = source
    for part in ast.walk(one.node):
        match part:
            case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as value, attr=name)) if name == method:
                return text.segment(value)
    return ""


def arguments(timeline: Timeline, at: Frame | None, method: str) -> list[str]:
    """Return the arguments of the first call of a method on a line: ``["opt"]`` for ``scaler.step(opt)``."""
    source = statement_at(timeline, at)
    if source is None:
        return []
    text, one = source
    calls = (part for part in ast.walk(one.node) if isinstance(part, ast.Call) and called_name(part) == method)
    return [text.segment(part) for call in calls for part in call.args][:8]


def method_self(timeline: Timeline, at: Frame | None) -> str:
    """Return the first parameter of the method that contains a line: ``self``; empty outside of classes."""
    source = statement_at(timeline, at)
    around = source[1].around if source is not None else ()
    for outer, inner in pairwise(around):
        names = positional_parameters(inner) if isinstance(outer, ast.ClassDef) else []
        if names:
            return names[0]
    return ""


def called_at(timeline: Timeline, at: Frame | None, *names: str) -> bool:
    """Return whether a line calls one of these functions or methods."""
    source = statement_at(timeline, at)
    return source is not None and any(called_name(call) in names for call in source[1].parts(ast.Call))


def assignment(timeline: Timeline, at: Frame | None, name: str) -> Frame | None:
    """Return the last line up to a frame that assigns to a name, in the file of the frame; None if there is none."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    before = [
        one for one in text.statements if one.first <= at.line and name in map(text.segment, assigned_parts(one.node))
    ]
    if not before:
        return None
    node = before[-1].node
    return Frame(text.path, at.function, node.lineno, node.lineno, node.col_offset, -1)


def written_by_call(text: ProgramText, call: ast.Call) -> str:
    """Return what a call writes to, if the name of its function or method ends with an underscore."""
    match call.func:
        case ast.Attribute(attr=attr) | ast.Name(id=attr) if not attr.endswith("_") or attr.startswith("_"):
            return ""
        case ast.Attribute(value=value) if text.segment(value).split(".")[-1] != "init":
            inner = value.value if isinstance(value, ast.Attribute) and value.attr == "data" else value
            return text.segment(inner)
        case ast.Attribute() | ast.Name():
            return text.segment(call.args[0]) if call.args else ""
    return ""


def written_name(timeline: Timeline, at: Frame | None) -> str:
    """Return what a line writes to: ``self.emb.weight`` for ``nn.init.normal_(self.emb.weight)``; empty if nothing."""
    source = statement_at(timeline, at)
    if source is None:
        return ""
    text, one = source
    return next((name for call in one.parts(ast.Call) if (name := written_by_call(text, call))), "")


FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef)


def scope_of(text: ProgramText, one: Statement, name: str) -> ast.AST:
    """Return the function whose variable a name is in a statement; the program for a global variable."""
    for outer in reversed(one.around):
        if isinstance(outer, FUNCTION_NODES) and name in variables_of(text, outer):
            return outer
    return text.tree


def variables_of(text: ProgramText, function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the parameters of a function, and the names that its own statements assign."""
    others = [part.arg for part in (function.args.vararg, function.args.kwarg) if part is not None]
    own = [one.node for one in text.statements if function_of(one) is function]
    declared = {name for node in own if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    assigned = {name for node in own for name in names_set(node)}
    return {*parameters_of(function), *others} | (assigned - declared)


def function_of(one: Statement) -> ast.AST | None:
    """Return the innermost function around a statement."""
    return next((outer for outer in reversed(one.around) if isinstance(outer, FUNCTION_NODES)), None)


def innermost_loop(one: Statement) -> ast.For | ast.AsyncFor | ast.While | None:
    """Return the innermost loop around a statement in its own function."""
    for outer in reversed(one.around):
        if isinstance(outer, ast.For | ast.AsyncFor | ast.While):
            return outer
        if isinstance(outer, FUNCTION_NODES):
            return None
    return None


def names_set(node: ast.stmt) -> set[str]:
    return {target.id for target in assigned_parts(node) if isinstance(target, ast.Name)}


def _reads_numbers(part: ast.AST) -> bool:
    """Return whether a part of a program is ``x.item()`` or ``float(x)``; ``x.float()`` is a tensor."""
    match part:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in ("item", "tolist", "numpy")
        case ast.Call(func=ast.Name(id=name)):
            return name in ("float", "int")
    return False


def numbers_read(timeline: Timeline, at: Frame | None) -> Iterator[tuple[str, Frame]]:
    """Yield variables from which a line makes a tensor, and the earlier lines that made them from numbers of tensors.

    The latest come first. A line that adds such numbers to a list, ``losses.append(loss.item())``, counts, too.
    Variables in between are followed in the function of the line: ``p = x.numpy(); d = p.sum() / n; torch.tensor(d)``.
    """
    text = program_text(timeline, at)
    one = text.at(at.line) if text is not None and at is not None else None
    if text is None or one is None or at is None:
        return
    direct, read = names_read(one.node), names_read(one.node)
    for other in reversed([other for other in text.statements if other.first < at.line]):
        value = getattr(other.node, "value", None)
        if not isinstance(value, ast.expr):
            continue
        is_read = any(map(_reads_numbers, ast.walk(value)))
        is_here = function_of(other) is function_of(one)
        targets = [*assigned_parts(other.node)]
        match other.node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr="append" | "extend"))):
                targets = [owner]
        for target in targets:
            if not isinstance(target, ast.Name) or target.id not in (read if is_here else direct):
                continue
            if is_read:
                yield target.id, frame_of(at, other.first, text)
            elif is_here:
                read |= names_read(value)


def keyword_or_argument(timeline: Timeline, at: Frame | None, function: str, number: int, name: str) -> set[str]:
    """Return the variables in one argument of a call on a line. The argument may be a keyword."""
    source = statement_at(timeline, at)
    for part in ast.walk(source[1].node) if source is not None else ():
        if isinstance(part, ast.Call) and called_name(part) == function:
            arguments = part.args[number : number + 1] + [one.value for one in part.keywords if one.arg == name]
            return {one.id for each in arguments for one in ast.walk(each) if isinstance(one, ast.Name)}
    return set()


def assigned_parts(node: ast.stmt) -> Iterator[ast.expr]:
    match node:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            yield target


def called_lines(timeline: Timeline, at: Frame | None, *names: str) -> Iterator[Frame]:
    """Yield the lines of the program that call one of these functions."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return
    for one in text.statements:
        if any(called_name(call) in names for call in one.parts(ast.Call)):
            yield frame_of(at, one.first, text)


def keyword_text(timeline: Timeline, at: Frame | None, function: str, name: str) -> str:
    """Return the text of a keyword of a call on a line: ``0`` for ``StepLR(opt, gamma=0)``; empty without it."""
    source = statement_at(timeline, at)
    calls = (call for call in source[1].parts(ast.Call) if called_name(call) == function) if source is not None else ()
    texts = (source[0].segment(key.value) for call in calls for key in call.keywords if key.arg == name and source)
    return next(texts, "")


def target_of(timeline: Timeline, at: Frame | None) -> str:
    """Return the only name that a line assigns to; empty for any other line."""
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""


def is_at(part: ast.expr, at: Frame) -> bool:
    """Return whether an expression is the one that a frame ran."""
    place = part.lineno, part.end_lineno, part.col_offset, part.end_col_offset
    return place == (at.line, at.end_line, at.column, at.end_column)


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Call))


def binds_name(target: ast.expr, name: str) -> bool:
    """Return whether the target of a loop has a name."""
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))


def method_class(one: Statement) -> str:
    """Return the name of the innermost class around a statement; empty outside of classes."""
    return next((outer.name for outer in reversed(one.around) if isinstance(outer, ast.ClassDef)), "")


def classes_named(timeline: Timeline, name: str) -> Iterator[tuple[ProgramText, ast.ClassDef]]:
    """Yield the classes of the program with a name, each with the text of its file."""
    for text in all_programs(timeline):
        for one in text.statements:
            if isinstance(one.node, ast.ClassDef) and one.node.name == name:
                yield text, one.node


def methods_of(owner: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """Return the functions in the body of a class by name."""
    return {part.name: part for part in owner.body if isinstance(part, ast.FunctionDef)}


# What keeps a result for later calls: an attribute, an element of a dict or list, or the cache of a function


@dataclass(frozen=True, slots=True)
class Store:
    """The line that keeps a result: ``self.cache[key] = freqs``, where `place` is ``self.cache[key]``.

    `how` is the fix, if it is a special one.
    """

    at: Frame
    place: str
    how: str = ""


_CACHES = frozenset({"cache", "lru_cache", "cached", "cached_property", "cached_method", "memoize"})
_KEEPING = frozenset({"append", "setdefault", "register_buffer", "__setitem__", "put", "add"})
_LONGEST_PLACE = 30


def stores_of(
    timeline: Timeline, frames: Sequence[Frame], names: Sequence[str], reading: Sequence[Frame] = ()
) -> Iterator[Store]:
    """Yield the lines that keep a result in an attribute, a dict or a list which a later call stack reads.

    `frames` made the result, and `names` are its variables. Without a call stack that reads it, these are all lines
    that keep the result.
    """
    again = {(frame.path, frame.line) for frame in reading}
    for nr, frame in enumerate(frames):
        text = program_text(timeline, frame)
        one = text.at(frame.line, frame.column) if text is not None else None
        if text is None or one is None:
            continue
        function = function_of(one)
        if (cache := _cache_of(text, function, frame)) is not None:
            yield cache
            continue
        is_called_again = any((outer.path, outer.line) in again for outer in frames[nr + 1 :])
        readers = [*reading, frame] if is_called_again else reading
        for other in text.by_function.get(function, ()):
            place = _kept_in(other, names, frame if other.node is one.node else None)
            if place is not None and (not reading or _is_read(timeline, readers, place)):
                yield Store(frame_of(frame, other.first, text), clipped(ast.unparse(place), _LONGEST_PLACE))


def _cache_of(text: ProgramText, function: ast.AST | None, like: Frame) -> Store | None:
    """Return the decorator of a function that keeps its results."""
    for part in getattr(function, "decorator_list", []):
        named = ast.unparse(part.func if isinstance(part, ast.Call) else part)
        if named.split(".")[-1] in _CACHES:
            return Store(frame_of(like, part.lineno, text), f"@{named}", "return a detached tensor")
    return None


def place_of_store(one: Statement, names: Sequence[str]) -> str:
    """Return the attribute or container to which a statement adds one of these variables; empty if it adds none."""
    place = _kept_in(one, names, None)
    return clipped(ast.unparse(place), _LONGEST_PLACE) if place is not None else ""


def _kept_in(one: Statement, names: Sequence[str], running: Frame | None) -> ast.expr | None:
    """Return the attribute or container to which a statement adds a variable, or the expression that was running."""
    match one.node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                pairs = [(target, value)]
                if isinstance(target, ast.Tuple):
                    parts = value.elts if isinstance(value, ast.Tuple) else [value] * len(target.elts)
                    pairs = list(zip(target.elts, parts, strict=False))
                for place, kept in pairs:
                    if isinstance(place, ast.Attribute | ast.Subscript) and _keeps(kept, names, running):
                        return place
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=attr), args=[*_] as args)) if (
            attr in _KEEPING and any(_keeps(kept, names, running) for kept in args)
        ):
            if attr == "register_buffer" and isinstance(args[0], ast.Constant):
                return ast.Attribute(owner, str(args[0].value), ast.Load())
            return owner
    return None


def _keeps(kept: ast.expr, names: Sequence[str], running: Frame | None) -> bool:
    """Return whether an expression, or an element of it, is one of these variables, or was running."""
    parts = [kept]
    if isinstance(kept, ast.Tuple | ast.List):
        parts = [kept, *kept.elts]
    elif isinstance(kept, ast.Dict):
        parts = [kept, *kept.values]
    is_named = any(isinstance(part, ast.Name) and part.id in names for part in parts)
    return is_named or (running is not None and any(is_at(part, running) for part in parts))


def _is_read(timeline: Timeline, frames: Sequence[Frame], place: ast.expr) -> bool:
    """Return whether a function of a call stack reads an attribute or a container."""
    while isinstance(place, ast.Subscript):
        place = place.value
    key = ast.unparse(place).rpartition(".")[2]
    for frame in frames:
        source = statement_at(timeline, frame)
        if source is None:
            continue
        text, one = source
        function = function_of(one)
        read = (places_read(other.node) for other in text.by_function.get(function, ()))
        if any(
            name.rpartition(".")[2] == key
            for names in (read if function else [places_read(one.node)])
            for name in names
        ):
            return True
    return False
