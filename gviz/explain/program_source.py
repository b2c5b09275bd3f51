"""The recorded source of the program: its lines, expressions, statements and variables.

It is read as text and never run. `gviz.explain.edit` changes it.
"""

from __future__ import annotations

import ast
import symtable
import tokenize
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import cleandoc
from io import StringIO
from itertools import islice, pairwise
from textwrap import dedent
from typing import TypeVar

from gviz.source import syntax
from gviz.source.site import Frame, source_lines
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped


def line_text(timeline: Timeline, at: Frame | None) -> str:
    """Return a line of the program as it was recorded; empty if it is unknown."""
    text = timeline.source(at.path) if at is not None else None
    rows = source_lines(text) if text else []
    return rows[at.line - 1] if at is not None and 0 < at.line <= len(rows) else ""


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
        return syntax.program(f"({running})" if at.column >= 0 else dedent(running))
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
        (statement,) = syntax.program(text.strip()).body
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

_NAMELESS = {
    ast.Lambda: "lambda",
    ast.ListComp: "listcomp",
    ast.SetComp: "setcomp",
    ast.DictComp: "dictcomp",
    ast.GeneratorExp: "genexpr",
}
"""Syntax without a name that has variables of its own -> its name in Python."""


@lru_cache(64)
def variable_owners(text: str) -> Mapping[Variable, str]:
    """Return the owner of each variable, by its name and the function that uses it; empty for invalid Python."""
    try:
        with syntax.unwarned():
            table = symtable.symtable(text, MODULE, "exec")
        return dict(_owners(table, MODULE, ()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


@lru_cache(64)
def variables_read(text: str, attribute: str) -> frozenset[Variable]:
    """Return the variables of a program whose attribute is read."""
    try:
        return frozenset(_attribute_reads(syntax.program(text), attribute, (MODULE,), variable_owners(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def _owners(
    table: symtable.SymbolTable, function: str, around: tuple[tuple[str, symtable.SymbolTable], ...]
) -> Iterator[tuple[Variable, str]]:
    """Yield the variables that a scope and its inner scopes use. `around` are the outer functions, innermost first."""
    for symbol in table.get_symbols():
        name = symbol.get_name()
        holders = (
            outer for outer, names in around if name in names.get_identifiers() and names.lookup(name).is_local()
        )
        owner = next(holders, MODULE) if symbol.is_free() else function if symbol.is_local() else MODULE
        yield (name, function), owner
    if table.get_type() == "function":
        around = ((function, table), *around)
    for child in table.get_children():
        named = child.get_type() in ("function", "class")  # type parameters are in no qualified name
        of_class = table.get_type() == "class"
        yield from _owners(
            child, _qualified_name(function, child.get_name(), of_class=of_class) if named else function, around
        )


def _attribute_reads(
    node: ast.AST, attribute: str, scopes: tuple[str, ...], known: Mapping[Variable, str], *, of_class: bool = False
) -> Iterator[Variable]:
    """Yield the reads below a node; `scopes` are the scopes around it, the innermost first."""
    match node:
        case ast.Attribute(attr=attr, ctx=ast.Load(), value=ast.Name(id=name)) if attr == attribute:
            yield name, next((known[name, scope] for scope in scopes if (name, scope) in known), MODULE)
    scope = _NAMELESS.get(type(node), getattr(node, "name", ""))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *_NAMELESS)):
        scopes = (_qualified_name(scopes[0], scope, of_class=of_class), *scopes)
        of_class = isinstance(node, ast.ClassDef)
    for inner in ast.iter_child_nodes(node):
        yield from _attribute_reads(inner, attribute, scopes, known, of_class=of_class)


def _qualified_name(outer: str, name: str, *, of_class: bool) -> str:
    """Return the qualified name of an object within a function, class or module, as Python writes it."""
    called = f"<{name}>" if name in _NAMELESS.values() else name
    return called if outer == MODULE else f"{outer}.{called}" if of_class else f"{outer}.<locals>.{called}"


# Where the program takes numbers out of tensors, or branches by a tensor

_METHODS = frozenset({"argmax", "argmin", "argsort", "item", "numpy", "tolist"})
_FUNCTIONS = frozenset({"asarray", "bool", "float", "index", "int"})


def reads_tensors(source: str, names: Container[str]) -> bool:
    """Return whether it may: by ``.item()``, ``float``, ``if loss:``, ``range(n)``; `names` are those of tensors.

    A branch by a comparison is an operation, and needs no guess. True for a text that is not valid Python.
    """
    try:
        tree = syntax.program(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return any(_takes_out(node) or _is_read(node, names) for node in ast.walk(tree))


def numbers_taken(text: str) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield each call that takes numbers out of a value, with that value: ``scale.item()``, ``float(self.scale)``.

    A text that is not valid Python has none.
    """
    try:
        tree = syntax.program(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="item" | "numpy" | "tolist")):
                yield node, value
            case ast.Call(func=ast.Name(id="float" | "int"), args=[value]):
                yield node, value


def _takes_out(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _METHODS | {"asarray", "index"}
        case ast.Call(func=ast.Name(id=name)):
            return name in _FUNCTIONS
    return False


def _is_read(node: ast.AST, names: Container[str]) -> bool:
    return any(_names_one(test, names) for test in _truths(node))


def _truths(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions whose truth a program tests, or up to which it counts."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test) | ast.IfExp(test=test):
            yield test
        case ast.UnaryOp(op=ast.Not(), operand=test) | ast.Match(subject=test):
            yield test
        case ast.BoolOp(values=tests) | ast.comprehension(ifs=tests):
            yield from tests
        case ast.Call(func=ast.Name(id="range"), args=tests):
            yield from tests


def _names_one(test: ast.expr, names: Container[str]) -> bool:
    """Return whether a test that is no comparison is of one of the tensors."""
    match test:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in names
        case ast.Call(func=ast.Attribute(value=value)) | ast.Subscript(value=value):
            return _names_one(value, names)
        case ast.BinOp(left=left, right=right):
            return _names_one(left, names) or _names_one(right, names)
    return False


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
        self.tree = syntax.program(text)
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
    around = reversed(source[1].around) if source is not None else ()
    function = next((one for one in around if isinstance(one, FUNCTION_NODES)), None)
    return [one.arg for one in (*function.args.args, *function.args.kwonlyargs)] if function is not None else []


def block_around(timeline: Timeline, frames: Sequence[Frame], function: str) -> Frame | None:
    """Return the line of the innermost ``with`` block around a call stack that a function of this name opens."""
    for frame in frames:
        source = statement_at(timeline, frame)
        for outer in reversed(source[1].around) if source is not None else ():
            if isinstance(outer, ast.With):
                calls = [item.context_expr for item in outer.items if isinstance(item.context_expr, ast.Call)]
                if any(called_name(call) == function for call in calls):
                    return frame_of(frame, outer.lineno, source[0]) if source is not None else None
    return None


def frame_of(like: Frame, line: int, text: ProgramText) -> Frame:
    """Return a line of a program as a frame, in the function of another frame."""
    return Frame(text.path, like.function, line, line, -1, -1)


# A state that a loop carries on, and the function that is to detach it


@dataclass(frozen=True, slots=True)
class DetachingCall:
    """A call that is to detach a state of a loop: ``h = repackage(h)``.

    `at` is the line of the call, `state` is ``h``, `function` is ``repackage``, and `inside` is the line of the
    function that detaches, or that of the condition around it. `condition` is the text of that condition.
    """

    at: Frame
    state: str
    function: str
    inside: Frame
    condition: str


def detaching_call(timeline: Timeline, frames: Sequence[Frame], names: Container[str]) -> DetachingCall | None:
    """Return the call in a loop that gets the state which a call stack carries on, and that is to detach it.

    The loop must set the state from itself at a frame, and without a condition to the result of the call. Of several
    such states it is one of these `names`. The attribute of a module has another path in the loop: ``net.state`` is
    ``self.state`` in the method that sets it.
    """
    attributes: set[str] = set()
    for frame in frames:
        source = statement_at(timeline, frame)
        if source is None:
            continue
        text, one = source
        carried = {name for name in places_set(one.node) if name in places_read(one.node)}
        variables = {name for name in carried if name.isidentifier()}
        variables = {name for name in variables if name in names} or (variables if len(carried) == 1 else set())
        attributes |= {name.rpartition(".")[2] for name in carried - variables}
        loop = innermost_loop(one)
        for other in text.statements if loop is not None else ():
            if other.around[-1] is not loop and other.around[-1] is not one.around[-1]:
                continue
            match other.node:
                case ast.Assign(targets=[target], value=ast.Call(args=[*_, argument]) as call):
                    state = ast.unparse(target)
                    is_known = state in variables or (isinstance(target, ast.Attribute) and target.attr in attributes)
                    if not is_known or state != ast.unparse(argument) or other.node is one.node:
                        continue
                    if (inside := _detaches(timeline, frame, called_name(call))) is not None:
                        at = frame_of(frame, other.first, text)
                        return DetachingCall(at, state, called_name(call), *inside)
    return None


def passes_function(timeline: Timeline, at: Frame | None, name: str) -> bool:
    """Return whether a call on a line gets a function as an argument, as ``opt.step(closure)`` does."""
    source = statement_at(timeline, at)
    calls = (part for part in ast.walk(source[1].node) if isinstance(part, ast.Call)) if source is not None else ()
    given = (one for call in calls for one in (*call.args, *(keyword.value for keyword in call.keywords)))
    return any(isinstance(one, ast.Name | ast.Attribute) and ast.unparse(one).split(".")[-1] == name for one in given)


def drops_result(timeline: Timeline, at: Frame | None) -> bool:
    """Return whether no variable holds what a line computes, or only that of the loop around it.

    Such lines are ``h.detach()``, ``[h.detach() for h in state]`` and ``for h in state: h = h.detach()``.
    """
    source = statement_at(timeline, at)
    if source is None:
        return False
    outer = source[1].around[-1]
    match source[1].node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="detach" | "clone"))):
            return True
        case ast.Expr(value=ast.ListComp() | ast.Tuple() | ast.Attribute()):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) if isinstance(outer, ast.For):
            later = {read for part in outer.body[outer.body.index(source[1].node) + 1 :] for read in names_read(part)}
            variables = {part.id for part in ast.walk(outer.target) if isinstance(part, ast.Name)}
            return name in variables and name not in later
    return False


def innermost_loop(one: Statement) -> ast.For | ast.While | None:
    """Return the innermost loop around a statement in its own function."""
    for outer in reversed(one.around):
        if isinstance(outer, ast.For | ast.While):
            return outer
        if isinstance(outer, FUNCTION_NODES):
            return None
    return None


def places_read(part: ast.AST) -> set[str]:
    """Return the variables and attributes that a part of a program reads, as text."""
    kinds = ast.Name | ast.Attribute
    return {ast.unparse(one) for one in ast.walk(part) if isinstance(one, kinds) and isinstance(one.ctx, ast.Load)}


def places_set(node: ast.stmt) -> set[str]:
    """Return the variables and attributes that a statement assigns, as text."""
    parts = [part for target in _targets(node) for part in ast.walk(target)]
    kinds = ast.Name | ast.Attribute
    return {ast.unparse(one) for one in parts if isinstance(one, kinds) and isinstance(one.ctx, ast.Store)}


def _detaches(timeline: Timeline, at: Frame, function: str) -> tuple[Frame, str] | None:
    """Return the line of a program's function that detaches, or of the condition around it, with its text."""
    for path in dict.fromkeys((at.path, *timeline.sources)):
        text = parsed_program(path, timeline.source(path) or "")
        for one in text.statements if text is not None else ():
            owner = function_of(one)
            if not isinstance(owner, FUNCTION_NODES) or owner.name != function or text is None:
                continue
            if not any(_is_detaching(part) for part in one.parts(ast.expr)):
                continue
            tests = [outer for outer in one.around if isinstance(outer, ast.If) and outer in {*ast.walk(owner)}]
            line, condition = (tests[-1].lineno, text.segment(tests[-1].test)) if tests else (one.first, "")
            return Frame(path, function, line, line, -1, -1), condition
    return None


def _is_detaching(part: ast.expr) -> bool:
    return isinstance(part, ast.Attribute) and part.attr in ("detach", "detach_", "data")


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


def optimizer_named(timeline: Timeline, at: Frame | None) -> str:
    """Return the only optimizer's name in a program, as in ``opt = torch.optim.SGD(...)``; empty
    for none or several.
    """
    text = program_text(timeline, at)
    names = set()
    for one in text.statements if text is not None else ():
        match one.node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(value=package))) if (
                text is not None and text.segment(package).split(".")[-1] == "optim"
            ):
                names.add(name)
    return names.pop() if len(names) == 1 else ""


def method_self(timeline: Timeline, at: Frame | None) -> str:
    """Return the first parameter of the method that contains a line: ``self``; empty outside of classes."""
    source = statement_at(timeline, at)
    around = source[1].around if source is not None else ()
    for outer, inner in pairwise(around):
        if isinstance(outer, ast.ClassDef) and isinstance(inner, ast.FunctionDef) and inner.args.args:
            return inner.args.args[0].arg
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
    before = [one for one in text.statements if one.first <= at.line and name in map(text.segment, _targets(one.node))]
    if not before:
        return None
    node = before[-1].node
    return Frame(text.path, at.function, node.lineno, node.lineno, node.col_offset, -1)


_ZEROS = ("zeros", "new_zeros", "zeros_like", "tensor")


def zero_start(timeline: Timeline, at: Frame | None, name: str) -> Frame | None:
    """Return the line that starts a name with zeros before the loop around a line that only replaces it.

    None if the loop reads the name anywhere, or if nothing after the loop reads it.
    """
    source = statement_at(timeline, at)
    loops = (
        [outer for outer in source[1].around if isinstance(outer, ast.For | ast.While)] if source is not None else []
    )
    if source is None or not loops or name not in names_set(source[1].node):
        return None
    text, loop = source[0], loops[-1]
    if name in names_read(loop) or isinstance(source[1].node, ast.AugAssign):
        return None
    scope = scope_of(text, source[1], name)
    of_name = [one for one in text.statements if scope_of(text, one, name) is scope]
    if not any(one.first > (loop.end_lineno or loop.lineno) and name in names_read(one.node) for one in of_name):
        return None
    starts = [one for one in of_name if one.first < loop.lineno and name in names_set(one.node)]
    value = getattr(starts[-1].node, "value", None) if starts else None
    is_zero = isinstance(value, ast.Constant) and type(value.value) in (int, float) and not value.value
    if isinstance(value, ast.Call) and called_name(value) in _ZEROS:
        number = value.args[0] if called_name(value) == "tensor" and value.args else ast.Constant(0)
        is_zero = isinstance(number, ast.Constant) and not number.value
    return frame_of(at, starts[-1].first, text) if is_zero and at is not None else None


def initializer(timeline: Timeline, at: Frame | None, name: str, until: int) -> Frame | None:
    """Return the last line between a frame and line `until` that writes to a parameter: ``nn.init.zeros_(p)``.

    The line refers to the parameter by its name, or as the variable of a loop over ``parameters()``.
    """
    text, frame = program_text(timeline, at), None
    if text is None or at is None:
        return None
    for one in text.statements:
        if not at.line < one.first < until:
            continue
        for call in one.parts(ast.Call):
            target = _written_by(text, call)
            loops = [outer for outer in one.around if isinstance(outer, ast.For)]
            is_loop_variable = any(
                text.segment(loop.target).split(", ")[-1] == target and "parameters(" in text.segment(loop.iter)
                for loop in loops
            )
            if target and (is_loop_variable or f".{name}".endswith(f".{target}") or f".{target}".endswith(f".{name}")):
                frame = frame_of(at, one.first, text)
    return frame


def _written_by(text: ProgramText, call: ast.Call) -> str:
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
    return next((name for call in one.parts(ast.Call) if (name := _written_by(text, call))), "")


def filled_at(timeline: Timeline, like: Frame | None, name: str) -> Frame | None:
    """Return the only line of the program that writes to a parameter by its name: ``init.normal_(self.emb.weight)``."""
    text, last = program_text(timeline, like), ".".join(name.split(".")[-2:])
    if text is None or like is None or not name:
        return None
    lines = [
        one.first
        for one in text.statements
        if isinstance(one.node, ast.Expr)
        and any(f".{_written_by(text, call)}".endswith(f".{last}") for call in one.parts(ast.Call))
    ]
    return frame_of(like, lines[0], text) if len(lines) == 1 else None


def scaled_at(timeline: Timeline, like: Frame | None, name: str, size: float) -> Frame | None:
    """Return the only line that writes to tensors of this last name with a number of about a size.

    ``nn.init.normal_(m.weight, std=0.01)`` writes to every weight with an rms of 0.01.
    """
    text = program_text(timeline, like)
    if text is None or like is None:
        return None
    found: dict[int, bool] = {}
    for one in text.statements:
        for call in one.parts(ast.Call):
            target = _written_by(text, call).removesuffix(".data")
            if target.split(".")[-1] == name and called_name(call) not in _NOT_NUMBERS:
                numbers = [part.value for part in ast.walk(call) if isinstance(part, ast.Constant)]
                sizes = [abs(part) for part in numbers if isinstance(part, int | float)]
                found[one.first] = any(size / 2 <= part <= 2.5 * size for part in sizes)
    near = [line for line, is_near in found.items() if is_near]
    return frame_of(like, near[0], text) if len(near) == 1 else None


_NOT_NUMBERS = ("requires_grad_", "detach_", "retain_grad_")


FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef)


def scope_of(text: ProgramText, one: Statement, name: str) -> ast.AST:
    """Return the function whose variable a name is in a statement; the program for a global variable."""
    for outer in reversed(one.around):
        if isinstance(outer, FUNCTION_NODES) and name in variables_of(text, outer):
            return outer
    return text.tree


def variables_of(text: ProgramText, function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the parameters of a function, and the names that its own statements assign."""
    args = function.args
    parameters = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    own = [one.node for one in text.statements if function_of(one) is function]
    declared = {name for node in own if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    assigned = {name for node in own for name in names_set(node)}
    return {part.arg for part in parameters if part is not None} | (assigned - declared)


def function_of(one: Statement) -> ast.AST | None:
    """Return the innermost function around a statement."""
    return next((outer for outer in reversed(one.around) if isinstance(outer, FUNCTION_NODES)), None)


def names_set(node: ast.stmt) -> set[str]:
    return {target.id for target in _targets(node) if isinstance(target, ast.Name)}


_NUMBERS = ("item", "tolist", "numpy", "float", "int")


def numbers_read(timeline: Timeline, at: Frame | None) -> tuple[str, Frame] | None:
    """Return a variable from which a line makes a tensor, and the earlier line that made it from numbers of tensors."""
    text = program_text(timeline, at)
    one = text.at(at.line) if text is not None and at is not None else None
    if text is None or one is None or at is None:
        return None
    read = names_read(one.node)
    for other in reversed([other for other in text.statements if other.first < at.line]):
        value = getattr(other.node, "value", None)
        if not isinstance(value, ast.expr):
            continue
        is_read = any(isinstance(part, ast.Call) and called_name(part) in _NUMBERS for part in ast.walk(value))
        for target in _targets(other.node):
            if is_read and isinstance(target, ast.Name) and target.id in read:
                return target.id, frame_of(at, other.first, text)
    return None


def keyword_or_argument(timeline: Timeline, at: Frame | None, function: str, number: int, name: str) -> set[str]:
    """Return the variables in one argument of a call on a line. The argument may be a keyword."""
    source = statement_at(timeline, at)
    for part in ast.walk(source[1].node) if source is not None else ():
        if isinstance(part, ast.Call) and called_name(part) == function:
            arguments = part.args[number : number + 1] + [one.value for one in part.keywords if one.arg == name]
            return {one.id for each in arguments for one in ast.walk(each) if isinstance(one, ast.Name)}
    return set()


def _targets(node: ast.stmt) -> Iterator[ast.expr]:
    match node:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            yield target


def discards_result(timeline: Timeline, at: Frame | None) -> bool:
    """Return whether a statement only writes to something: ``x[rows].zero_()``, ``x[rows][0] = 1``, ``init.zeros_(x)``.

    No variable has its result.
    """
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name.endswith("_") and not name.endswith("__")
        case ast.Assign(targets=[ast.Subscript(value=whole)]) | ast.AugAssign(target=ast.Subscript(value=whole)):
            return not isinstance(whole, ast.Name)
    return False


@dataclass(frozen=True, slots=True)
class FunctionText:
    """The text of a function, and its first parameter; that of a method is the one after ``self``."""

    text: str
    parameter: str


def function_around(timeline: Timeline, at: Frame | None, name: str) -> FunctionText | None:
    """Return the function with this name, or the lambda, in which a frame is; None if it is in no such function."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    last = name.rpartition(".")[2]
    for part in ast.walk(text.tree):
        if not isinstance(part, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        known = "<lambda>" if isinstance(part, ast.Lambda) else part.name
        if known == last and _is_inside(part, at):
            names = [one.arg for one in (*part.args.posonlyargs, *part.args.args)]
            is_method = names[:1] in (["self"], ["cls"])
            return FunctionText(text.segment(part), next(iter(names[is_method:]), ""))
    return None


def _is_inside(part: ast.expr | ast.stmt, at: Frame) -> bool:
    """Return whether the expression at a frame is a part of another. Unknown columns are those of the whole line."""
    start, end = (part.lineno, part.col_offset), (part.end_lineno or part.lineno, part.end_col_offset or 0)
    here = (at.line, at.column) if at.column >= 0 else (at.line, part.col_offset)
    return start <= here <= end


def pairing_loop(timeline: Timeline, at: Frame | None, read: str) -> Frame | None:
    """Return the first loop whose head makes pairs with an expression: ``zip(copy.parameters(), net.parameters())``."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    _, dot, method = read.rpartition(".")
    for one in text.statements:
        calls = [text.segment(call) for call in one.parts(ast.Call)] if isinstance(one.node, ast.For) else []
        alike = [call for call in calls if call.endswith(dot + method)]
        if read in alike and len(alike) > 1:
            return frame_of(at, one.first, text)
    return None


def loop_over(timeline: Timeline, at: Frame | None, *names: str) -> Frame | None:
    """Return the innermost loop around a line whose head calls one of these functions; None without one."""
    source = statement_at(timeline, at)
    if source is None or at is None:
        return None
    text, one = source
    for outer in reversed([*one.around, one.node]):
        if isinstance(outer, ast.For) and any(called_name(call) in names for call in _calls(outer.iter)):
            return frame_of(at, outer.lineno, text)
    return None


_COPYING = ("copy_", "lerp_", "mul_", "add_")


def copying_loop(timeline: Timeline, at: Frame | None) -> Frame | None:
    """Return the only loop over ``parameters()`` of the program that writes numbers to tensors, as an average does."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    loops = [
        one.node
        for one in text.statements
        if isinstance(one.node, ast.For)
        and any(called_name(call) in ("parameters", "named_parameters") for call in _calls(one.node.iter))
        and any(_copies(part) for inner in one.node.body for part in ast.walk(inner))
    ]
    return frame_of(at, loops[0].lineno, text) if len(loops) == 1 else None


def _copies(part: ast.AST) -> bool:
    match part:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _COPYING
        case ast.Assign(targets=[ast.Attribute(attr="data")]):
            return True
    return False


def repeated_list(timeline: Timeline, at: Frame | None, name: str) -> Frame | None:
    """Return the only ``[module] * n`` of the program in an assignment to an attribute or a variable of this name.

    ``[module for _ in range(n)]`` is the same. A list inside of another is repeated, too; the outer one counts.
    """
    text = program_text(timeline, at)
    if text is None or at is None:
        return None
    lists: list[ast.expr] = []
    for one in text.statements:
        attributes = {target.attr for target in _targets(one.node) if isinstance(target, ast.Attribute)}
        if name in attributes | names_set(one.node):
            lists += [part for part in one.parts(ast.expr) if _repeats(part)][:1]
    if len(lists) != 1:
        return None
    first, last = lists[0].lineno, lists[0].end_lineno or lists[0].lineno
    return Frame(text.path, at.function, first, last, lists[0].col_offset, lists[0].end_col_offset or -1)


def _repeats(part: ast.expr) -> bool:
    match part:
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return any(isinstance(side, ast.List | ast.Tuple) for side in (left, right))
        case (
            ast.ListComp(elt=ast.Name(id=name), generators=parts)
            | ast.GeneratorExp(elt=ast.Name(id=name), generators=parts)
        ):
            return not any(_binds(each.target, name) for each in parts)
    return False


def called_lines(timeline: Timeline, at: Frame | None, *names: str) -> Iterator[Frame]:
    """Yield the lines of the program that call one of these functions."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return
    for one in text.statements:
        if any(called_name(call) in names for call in one.parts(ast.Call)):
            yield frame_of(at, one.first, text)


def called_before(timeline: Timeline, frames: Sequence[Frame], *names: str) -> Frame | None:
    """Return the line that calls one of these functions last before a call stack, in a function of the stack.

    The innermost function that has such a line counts.
    """
    for frame in frames:
        source = statement_at(timeline, frame)
        if source is None:
            continue
        text, here = source
        before = (one for one in text.by_function[function_of(here)] if one.first < here.first)
        calling = [one for one in before if any(called_name(call) in names for call in one.parts(ast.Call))]
        if calling:
            return frame_of(frame, calling[-1].first, text)
    return None


def keyword_text(timeline: Timeline, at: Frame | None, function: str, name: str) -> str:
    """Return the text of a keyword of a call on a line: ``0`` for ``StepLR(opt, gamma=0)``; empty without it."""
    source = statement_at(timeline, at)
    calls = (call for call in source[1].parts(ast.Call) if called_name(call) == function) if source is not None else ()
    texts = (source[0].segment(key.value) for call in calls for key in call.keywords if key.arg == name and source)
    return next(texts, "")


def rates_set(timeline: Timeline, at: Frame | None) -> Iterator[Frame]:
    """Yield the lines of the program that set a learning rate: ``group["lr"] = 0.1 * rate``."""
    text = program_text(timeline, at)
    if text is None or at is None:
        return
    for one in text.statements:
        targets = one.node.targets if isinstance(one.node, ast.Assign) else [getattr(one.node, "target", None)]
        keys = (target.slice for target in targets if isinstance(target, ast.Subscript))
        if any(isinstance(key, ast.Constant) and key.value == "lr" for key in keys):
            yield frame_of(at, one.first, text)


def calls_in_block(timeline: Timeline, at: Frame | None, *names: str) -> Iterator[Frame]:
    """Yield the lines that only call one of these functions, in the block of the statement at a frame."""
    source = statement_at(timeline, at)
    if source is None or at is None:
        return
    text, here = source
    for one in here.block:
        is_call = isinstance(one, ast.Expr | ast.Assign) and isinstance(one.value, ast.Call)
        if is_call and any(isinstance(part, ast.Call) and called_name(part) in names for part in ast.walk(one)):
            yield frame_of(at, one.lineno, text)


@dataclass(frozen=True, slots=True)
class ConditionalCall:
    """A call that runs only under a condition: the line of the ``if``, and the text of the condition."""

    at: Frame
    condition: str


def conditional_call(timeline: Timeline, at: Frame | None, name: str, method: str) -> ConditionalCall | None:
    """Return the only ``name.method()`` in the loop around a line, if an ``if`` of that loop encloses it."""
    source = statement_at(timeline, at)
    if source is None or at is None:
        return None
    text, here = source
    loop = next((part for part in reversed(here.around) if isinstance(part, ast.For | ast.While)), None)
    if loop is None:
        return None
    inside = [one for one in text.statements if loop in one.around]
    calls = [one for one in inside if any(_is_call_of(call, name, method) for call in one.parts(ast.Call))]
    if len(calls) != 1:
        return None
    around = calls[0].around
    branches = [part for part in around[around.index(loop) :] if isinstance(part, ast.If) and part not in here.around]
    if len(branches) != 1 or not any(calls[0].node in ast.walk(one) for one in branches[0].body):
        return None  # of several conditions, or in an else, it is not known which was not true
    condition = " ".join(text.segment(branches[0].test).split())
    return ConditionalCall(frame_of(at, branches[0].lineno, text), condition)


def _is_call_of(call: ast.Call, name: str, method: str) -> bool:
    match call.func:
        case ast.Attribute(value=value, attr=attribute):
            return attribute == method and ast.unparse(value) == name
    return False


def target_of(timeline: Timeline, at: Frame | None) -> str:
    """Return the only name that a line assigns to; empty for any other line."""
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""


def is_read_once(timeline: Timeline, at: Frame | None, name: str) -> bool:
    """Return whether a line sets only this name, and reads it in one place: ``h = cell(x, h)``."""
    source = statement_at(timeline, at)
    if source is None or target_of(timeline, at) != name:
        return False
    reads = [part for part in source[1].parts(ast.Name) if part.id == name and isinstance(part.ctx, ast.Load)]
    return len(reads) == 1


# The names of a function that nothing reads


@dataclass(frozen=True, slots=True)
class UnreadName:
    """A name that a function or a program sets and none of its statements reads, and the line that sets it first.

    `is_given` is whether a caller or the head of a loop gives it, and not a statement of its own.
    """

    name: str
    at: Frame
    is_given: bool


@dataclass(frozen=True, slots=True)
class NamesOfFunction:
    """The names that a function reads, and those of its own that it does not."""

    read: frozenset[str] = frozenset()
    unread: tuple[UnreadName, ...] = ()


def unread_names(timeline: Timeline, at: Frame) -> NamesOfFunction:
    """Return the names of the function in which a frame is, or of the program outside of functions.

    A parameter with a default may be for other callers.
    """
    text = program_text(timeline, at)
    one = text.at(at.line, at.column) if text is not None else None
    if text is None or one is None:
        return NamesOfFunction()
    outer = function_of(one)
    function = outer if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef) else None
    body = (function or text.tree).body
    read = frozenset(name for part in body for name in (*names_read(part), *_named(part)))
    given, own = list[UnreadName](), list[UnreadName]()
    if function is not None:
        args = [*function.args.posonlyargs, *function.args.args]
        required = args[: len(args) - len(function.args.defaults)]
        given = [UnreadName(arg.arg, frame_of(at, function.lineno, text), True) for arg in required]
    for statement in text.by_function.get(outer, ()):
        line = frame_of(at, statement.first, text)
        if isinstance(statement.around[-1], ast.ClassDef):
            continue  # fields of a class
        if isinstance(statement.node, ast.For):
            bound = {part.id for part in ast.walk(statement.node.target) if isinstance(part, ast.Name)}
            given += [UnreadName(name, line, True) for name in sorted(bound)]
        own += [UnreadName(name, line, False) for name in sorted(names_set(statement.node))]
    return NamesOfFunction(read, tuple(each for each in (*given, *own) if each.name not in read))


def _named(part: ast.AST) -> Iterator[str]:
    """Yield the attributes that a part of a program reads, and the names that it deletes."""
    for one in ast.walk(part):
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load):
            yield one.attr
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Del):
            yield one.id


# Pairs of arrays, one of them shuffled


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A line that shuffles an array, the other array of a pair, and a line that uses them as one.

    `both` is whether another line shuffles the other array, too, by a draw of its own.
    """

    at: Frame
    name: str
    other: str
    pair: Frame
    both: bool


_PERMUTING = ("permutation", "randperm")
_MOST_SHUFFLES = 20
_PAIRING = ("TensorDataset", "zip", "train_test_split")
_AS_COPIES = ("copy", "clone", "deepcopy", "list", "sorted", "array", "tuple")


def shuffles_of_one(timeline: Timeline, at: Frame) -> Iterator[Shuffle]:
    """Yield the shuffles of one of two names that the same function uses as a pair afterwards.

    A pair has one index, ``x[idx], y[idx]``, or is given to ``TensorDataset(x, y)``, ``zip`` or ``train_test_split``.
    Neither may be changed between the shuffle and the pair, as ``y = f(x)`` does. A copy is shuffled on purpose. What
    runs under a condition is left out.
    """
    text = program_text(timeline, at)
    if text is None:
        return
    shuffled = {name: one for one in text.statements if (name := _shuffled_by(one.node))}
    if not shuffled or _are_made_equal(text, shuffled.values()):
        return
    for name, one in islice(shuffled.items(), _MOST_SHUFFLES):
        of_function = text.by_function.get(function_of(one), ())
        if any(isinstance(part, ast.If) for part in one.around):
            continue
        made = [other for other in of_function if other.first < one.first and name in names_set(other.node)]
        if made and any(called_name(call) in _AS_COPIES for call in made[-1].parts(ast.Call)):
            continue
        changed: set[str] = set()
        for other in of_function:
            if other.first <= one.last:
                continue
            partners = {*_partners(text, other, name)} - changed
            if len(partners) == 1 and name not in changed:
                (partner,) = partners
                if partner not in shuffled or shuffled[partner].first > one.first:
                    pair = frame_of(at, other.first, text)
                    yield Shuffle(frame_of(at, one.first, text), name, partner, pair, partner in shuffled)
                break
            changed |= {*_changed(other.node)} if not _shuffled_by(other.node) else set()


def _changed(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement sets, or whose elements it writes to."""
    for target in _targets(node):
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names


def _are_made_equal(text: ProgramText, shuffles: Iterable[Statement]) -> bool:
    """Return whether the program sets one seed or state of the numbers that it shuffles by more than once."""
    of_torch = any(called_name(call) == "randperm" for one in shuffles for call in one.parts(ast.Call))
    seeds = ("seed", "default_rng", "RandomState", "Random", *(("manual_seed",) if of_torch else ()))
    calls = [call for one in text.statements for call in one.parts(ast.Call)]
    seeding = [ast.unparse(call.func) for call in calls if called_name(call) in seeds]
    restores = any(called_name(call) in ("set_state", "setstate") for call in calls)
    return restores or len(seeding) > len({*seeding})


def _shuffled_by(node: ast.stmt) -> str:
    """Return the name that a statement shuffles: ``np.random.shuffle(x)``, ``x = x[np.random.permutation(n)]``."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="shuffle"), args=[ast.Name(id=name), *_])):
            return name
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Subscript(value=ast.Name(id=read), slice=ast.Call() as call),
        ) if name == read and called_name(call) in _PERMUTING:
            return name
    return ""


def _partners(text: ProgramText, one: Statement, name: str) -> Iterator[str]:
    """Yield the names that a statement reads as a pair with a name."""
    indices: dict[str, str] = {}
    for part in one.parts(ast.Subscript):
        if isinstance(part.value, ast.Name) and isinstance(part.ctx, ast.Load):
            indices.setdefault(part.value.id, text.segment(part.slice))
    if name in indices:
        yield from (other for other, index in indices.items() if other != name and index == indices[name])
    for call in one.parts(ast.Call):
        names = [arg.id for arg in call.args if isinstance(arg, ast.Name)]
        if called_name(call) in _PAIRING and name in names:
            yield from (other for other in names if other != name)


def argument_read_later(timeline: Timeline, call: Frame, use: Frame) -> str:
    """Return the variable that is an argument of a call and that a later expression of the function reads; else empty.

    ``skip = x`` is another name of it. A result without a name, as of ``relu(x)`` on a line of its own, is that of a
    call for its effect, and so does not count. Neither does a variable that is set again in between.
    """
    called, used = statement_at(timeline, call), statement_at(timeline, use)
    if called is None or used is None or function_of(called[1]) is not function_of(used[1]):
        return ""
    text, one = called
    calls = list(one.parts(ast.Call))
    calls = [part for part in calls if is_at(part, call)] or calls
    if len(calls) != 1 or isinstance(one.node, ast.Expr) or used[1].first < one.first:
        return ""
    running = calls[0]
    values = [*running.args, *(keyword.value for keyword in running.keywords)]
    given = {part.id for part in values if isinstance(part, ast.Name)}
    own = [part for part in text.statements if function_of(part) is function_of(one)]
    for part in own:
        if given and part.first < one.first and isinstance(part.node, ast.Assign):
            value = part.node.value
            others = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            is_alias = any(isinstance(other, ast.Name) and other.id in given for other in others)
            given = given | names_set(part.node) if is_alias else given - names_set(part.node)
    if used[1].node is one.node:
        inside = {id(part) for part in ast.walk(running)}
        read = {part.id for part in one.parts(ast.Name) if id(part) not in inside and isinstance(part.ctx, ast.Load)}
        return next(iter(sorted(given & read)), "")
    for part in own:
        if one.first <= part.first < used[1].first:
            given -= names_set(part.node)
    read = {part.id for part in used[1].parts(ast.Name) if isinstance(part.ctx, ast.Load)}
    return next(iter(sorted(given & read)), "")


def is_at(part: ast.expr, at: Frame) -> bool:
    """Return whether an expression is the one that a frame ran."""
    place = part.lineno, part.end_lineno, part.col_offset, part.end_col_offset
    return place == (at.line, at.end_line, at.column, at.end_column)


# An assignment to the variable of a loop that nothing reads: what the loop goes through stays as it was


@dataclass(frozen=True, slots=True)
class LostAssignment:
    """An assignment to the variable of a loop that nothing reads afterwards, and whether its value reads the variable.

    `at` is its first line, and `value` the text of the value on one line.
    """

    at: Frame
    name: str
    value: str
    reads_itself: bool


_OF_MODELS = ("parameters", "named_parameters", "buffers", "named_buffers", "state_dict")

_IN_VAIN = ("requires_grad_", "retain_grad", "detach_", "zero_")
"""Methods that only change the tensor, or the ``.grad`` of the tensor, that is lost."""


def lost_assignment(timeline: Timeline, at: Frame | None) -> LostAssignment | None:
    """Return the assignment on a line that only replaces the variable of the loop around it: ``p = p - lr * p.grad``.

    Its value reads the variable, or the loop goes through the parameters of a model.
    """
    source = statement_at(timeline, at)
    match source[1].node if source is not None else None:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) as node:
            pass
        case _:
            return None
    if source is None or at is None:
        return None
    text, one = source
    loops = [outer for outer in one.around if isinstance(outer, (ast.For, ast.While, *FUNCTION_NODES))]
    loop = loops[-1] if loops else None
    if (
        not isinstance(loop, ast.For)
        or not _binds(loop.target, name)
        or not any(node is part for body in loop.body for part in ast.walk(body))
    ):
        return None
    reads_itself = name in names_read(value)
    if not reads_itself and not any(called_name(call) in _OF_MODELS for call in _calls(loop.iter)):
        return None
    if any(called_name(call).endswith("_") for call in _calls(value)):
        return None  # a method in place has written before the assignment
    end, scope = (node.end_lineno or node.lineno, node.end_col_offset or 0), scope_of(text, one, name)
    if any(place > end for part in loop.body for place in _reads(part, name)):
        return None
    is_repeated = any(not isinstance(outer, FUNCTION_NODES) for outer in loops[:-1])
    outside = (place for part in ast.iter_child_nodes(scope) for place in _reads(part, name, without=loop))
    if any(is_repeated or place > end for place in outside):
        return None
    is_short = value.lineno == value.end_lineno
    written = text.segment(value) if is_short else ast.unparse(value)
    return LostAssignment(frame_of(at, one.first, text), name, written, reads_itself)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Call))


def _binds(target: ast.expr, name: str) -> bool:
    """Return whether the target of a loop has a name."""
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))


_Position = tuple[float, int]

_LATER: _Position = (float("inf"), 0)
"""The position of a read in a function that may run at any time."""


def _reads(node: ast.AST, name: str, without: ast.AST | None = None) -> Iterator[_Position]:
    """Yield where a part of the syntax tree reads a variable, without the loops and functions whose own variable it is.

    What only changes a lost tensor is left out: ``p.grad = None``, ``p.grad.zero_()``, ``p.requires_grad_()``.
    """
    parts = list(ast.iter_child_nodes(node))
    match node:
        case ast.Name(id=other, ctx=ast.Load()) if other == name:
            yield node.lineno, node.col_offset
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=other))], value=value) if other == name:
            parts = [value]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=tensor, attr=attr), args=arguments)) if (
            attr in _IN_VAIN and ast.unparse(tensor) in (name, f"{name}.grad")
        ):
            parts = list(arguments)
        case ast.For(target=target, iter=items) if node is not without and _binds(target, name):
            parts = [items]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            if any(_binds(one.target, name) for one in node.generators):
                parts = [node.generators[0].iter]
        case ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef():
            stores = (
                part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            )
            is_own = name in stores or any(part.arg == name for part in ast.walk(node) if isinstance(part, ast.arg))
            if not is_own and name in names_read(node):
                yield _LATER
            parts = []
    if node is not without:
        for part in parts:
            yield from _reads(part, name, without)


# Assignments of a flag to modules and tensors: ``model.encoder.requires_grad = False``


@dataclass(frozen=True, slots=True)
class FlagAssignment:
    """A line that sets ``requires_grad`` of something to a constant.

    `target` is its text, `loop` what a loop around the line goes through if the target is its variable, and `owner` the
    class of ``self``.
    """

    at: Frame
    target: str
    flag: bool
    loop: str
    owner: str

    def rank(self, path: str, kind: str) -> int:
        """Return how well it fits the module of a class at a path: 1 is best, and 0 means that it is of no module."""
        own, last = self.target.rpartition(".")[2], path.rpartition(".")[2]
        if own == last or (self.owner and self.owner == kind):
            return 1
        if own in ("weight", "bias", "data") or "parameters(" in self.loop:
            return 0
        return 2 if self.loop else 3


def flag_assignments(timeline: Timeline) -> Iterator[FlagAssignment]:
    """Yield the lines of a program that set ``requires_grad`` to True or False as an attribute."""
    for path in timeline.sources:
        text = parsed_program(path, timeline.source(path) or "")
        for one in text.statements if text is not None else ():
            match one.node:
                case ast.Assign(
                    targets=[ast.Attribute(value=target, attr="requires_grad")],
                    value=ast.Constant(value=bool() as flag),
                ) if text is not None:
                    names = names_read(target)
                    loops = (outer for outer in reversed(one.around) if isinstance(outer, ast.For))
                    loop = next((each for each in loops if any(_binds(each.target, name) for name in names)), None)
                    items = text.segment(loop.iter) if loop is not None else ""
                    frame = Frame(path, "", one.first, one.first, -1, -1)
                    owner = method_class(one) if ast.unparse(target) == "self" else ""
                    yield FlagAssignment(frame, text.segment(target), flag, items, owner)


def method_class(one: Statement) -> str:
    """Return the name of the innermost class around a statement; empty outside of classes."""
    return next((outer.name for outer in reversed(one.around) if isinstance(outer, ast.ClassDef)), "")


def classes_named(timeline: Timeline, name: str) -> Iterator[tuple[ProgramText, ast.ClassDef]]:
    """Yield the classes of the program with a name, each with the text of its file."""
    for path in timeline.sources:
        text = parsed_program(path, timeline.source(path) or "")
        for one in text.statements if text is not None else ():
            if isinstance(one.node, ast.ClassDef) and one.node.name == name and text is not None:
                yield text, one.node


def methods_of(owner: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """Return the functions in the body of a class by name."""
    return {part.name: part for part in owner.body if isinstance(part, ast.FunctionDef)}


def class_reads(timeline: Timeline, name: str, attribute: str) -> bool:
    """Return whether a class of the program reads an attribute of ``self``."""
    parts = (part for _, owner in classes_named(timeline, name) for part in ast.walk(owner))
    reads = (part for part in parts if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load))
    return any(part.attr == attribute and ast.unparse(part.value) == "self" for part in reads)
