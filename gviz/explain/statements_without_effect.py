"""Statements that only compute something: an operation on a line of its own, whose result no variable gets.

The text of the program shows that nothing can read the result, and whether the statement is there for another reason:
to measure time, to raise an error, or to be shown by a notebook.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gviz.explain.program_text import (
    FUNCTION_NODES,
    ProgramText,
    Statement,
    called_name,
    classes_named,
    imported_names,
    is_at,
    method_class,
    methods_of,
    names_read,
    names_set,
    positional_parameters,
    statement_at,
)
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline

APPLY = "apply"
"""The name of the call of a `torch.autograd.Function`."""

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
NAMES_OF_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_OTHER_NAMES = {
    "clip": "clamp",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "negative": "neg",
    "absolute": "abs",
    "arctan": "atan",
    "swapaxes": "transpose",
}
"""Further names of functions -> the name of the operation."""

_MEASURING = frozenset(
    {"time", "perf_counter", "perf_counter_ns", "monotonic", "process_time", "synchronize", "elapsed_time", "record",
     "timeit", "repeat", "blocked_autorange"}
)  # fmt: skip
_EXPECTING = re.compile(r"raises|warns|profil|timer|bench|record_function|nvtx|no_hooks", re.IGNORECASE)
_TRYING = re.compile(r"^test|^check|bench|warm|profil|timed?(?:_|$)|_test$", re.IGNORECASE)
_CELL = re.compile(r"^#\s*(?:%%|In\[)")
_PURE = frozenset(
    {"size", "dim", "numel", "len", "float", "int", "abs", "max", "min", "sum", "mean", "norm", "item", "bool",
     "detach", "unsqueeze", "view", "range", "isnan", "logical_not", "eq", "expand", "expand_as", "sqrt", "rsqrt",
     "ones_like", "zeros_like", "tensor", "to", "transpose", "log", "exp", "t", "std", "var"}
)  # fmt: skip
"""Functions without an effect, which may be in the statement, too."""


@dataclass(frozen=True, slots=True)
class Discarded:
    """A statement that is one operation.

    `name` is that of the operation, as `APPLY` or ``clamp``, and `called` as the program writes it. `operand` is the
    text of the tensor that the result would replace, empty if it is no variable. `rest` are its further arguments on
    one line, and `operator` is set for ``x / n``. `is_shown` means that the statement is outside of blocks, where a
    notebook shows its result. `is_argument` means that its operand is a parameter of the function, and `returns` that
    the function returns something. `is_last` is whether it is the last statement of its function.
    """

    name: str
    called: str
    whole: str
    operand: str
    rest: str
    operator: str
    is_shown: bool
    is_argument: bool
    returns: bool
    is_last: bool

    @property
    def assigned(self) -> str:
        """The statement that keeps the result: ``x = x.masked_fill(mask, 0)``; empty if it has no variable."""
        return f"{self.operand} = {self.whole}" if self.operand else ""

    @property
    def in_place(self) -> str:
        """The statement that writes to the operand: ``x.clamp_(-1, 1)``; empty if it is no variable."""
        if not self.operand:
            return ""
        if self.operator:
            return f"{self.operand} {self.operator}= {self.rest}"
        return f"{self.operand}.{self.name}_({self.rest})"


def discarded(timeline: Timeline, at: Frame | None) -> Discarded | None:
    """Return the statement that is the operation at a frame, and nothing else; None if it has another purpose."""
    source = statement_at(timeline, at)
    if source is None or at is None or at.column < 0:
        return None
    text, one = source
    if not isinstance(one.node, ast.Expr) or not is_at(one.node.value, at) or _is_intended(text, one):
        return None
    parts = _parts(text, one.node.value)
    if parts is None:
        return None
    name, called, operand, rest, operator = parts
    function = next((outer for outer in reversed(one.around) if isinstance(outer, FUNCTION_NODES)), None)
    parameters = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)} if function else set()
    own = list(_own_statements(text, function))
    return Discarded(
        name,
        called,
        text.segment(one.node.value) if one.node.lineno == one.node.end_lineno else ast.unparse(one.node.value),
        ast.unparse(operand) if _is_variable(operand) else "",
        rest,
        operator,
        _is_shown(one),
        isinstance(operand, ast.Name) and operand.id in parameters,
        any(isinstance(each.node, ast.Return) and each.node.value is not None for each in own),
        function is not None and function.body[-1] is one.node,
    )


def _parts(text: ProgramText, value: ast.expr) -> tuple[str, str, ast.expr, str, str] | None:
    """Return operation, name, operand, further arguments and operator of an expression that is one operation."""
    owner: ast.expr | None
    match value:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS and not _has_effects(value):
            operator = _OPERATORS[type(op)]
            return NAMES_OF_OPERATORS[operator], operator, left, ast.unparse(right), operator
        case ast.Call(func=ast.Attribute(value=owner, attr=name)):
            pass
        case ast.Call(func=ast.Name(id=name)) if name in _imported(text):
            owner = None
        case _:
            return None
    if not isinstance(value, ast.Call) or name.endswith("_") or any(_has_effects(part) for part in _inside(value)):
        return None
    if any(keyword.arg in (None, "out", "inplace") for keyword in value.keywords):
        return None
    known = _OTHER_NAMES.get(name, name)
    is_function = owner is None or _root(owner) in _modules(text) or name == APPLY
    if not is_function and _root(owner) in ("self", "") and isinstance(owner, ast.Name):
        return None  # a module of the program with the name of an operation
    arguments = list(value.args)
    if is_function and (not arguments or isinstance(arguments[0], ast.Starred)):
        return None
    operand = arguments.pop(0) if is_function else owner
    rest = [ast.unparse(part) for part in arguments]
    rest += [f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in value.keywords]
    return (known, name, operand, ", ".join(rest), "") if operand is not None else None


def _inside(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the parts of a call without the call itself."""
    yield from (call.func, *call.args, *(keyword.value for keyword in call.keywords))


def _has_effects(part: ast.expr) -> bool:
    """Return whether an expression calls anything that may have an effect of its own."""
    calls = (one for one in ast.walk(part) if isinstance(one, ast.Call | ast.Await | ast.Yield | ast.NamedExpr))
    return any(not isinstance(one, ast.Call) or called_name(one) not in _PURE for one in calls)


def _is_variable(operand: ast.expr) -> bool:
    """Return whether an expression can be assigned to: ``x``, ``self.h``, ``p.grad.data``, ``h[0]``."""
    match operand:
        case ast.Name(id=name):
            return name != "self"
        case ast.Attribute(value=value):
            return isinstance(value, ast.Name) or _is_variable(value)
        case ast.Subscript(value=value, slice=ast.Constant() | ast.Name()):
            return _is_variable(value)
    return False


def _root(owner: ast.expr | None) -> str:
    """Return the variable that an expression begins with; empty if it begins with something else."""
    while isinstance(owner, ast.Attribute | ast.Subscript):
        owner = owner.value
    return owner.id if isinstance(owner, ast.Name) else ""


def _imported(text: ProgramText) -> set[str]:
    """Return the functions of torch that a program has imported by name."""
    imports = (one.node for one in text.statements if isinstance(one.node, ast.ImportFrom))
    return {name.asname or name.name for one in imports if (one.module or "").startswith("torch") for name in one.names}


def _modules(text: ProgramText) -> set[str]:
    """Return the names by which a program has its modules: ``torch``, ``F``, ``nn``."""
    found = imported_names(text)
    for one in text.statements:
        match one.node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() as value) if _root(value) in found:
                found.add(name)  # F = nn.functional
    return found


@dataclass(frozen=True, slots=True)
class DroppedCall:
    """A call of a module as a statement of its own: its place and text, and the variable that it might replace.

    `variable` is the only argument, if it is a variable that the function reads afterwards as it was; else it is empty.
    `owner` is the class whose method has the statement; empty if it is in a function.
    """

    at: Frame
    whole: str
    variable: str
    owner: str


def dropped_call(timeline: Timeline, frames: Sequence[Frame]) -> DroppedCall | None:
    """Return the innermost call of a module around an operation whose result no variable gets; None if there is none.

    Outside of the ``forward`` of a module a statement may be there for many reasons.
    """
    for number, at in enumerate(frames):
        if number and frames[number - 1].function.rpartition(".")[2] != "forward":
            return None
        source = statement_at(timeline, at)
        match source[1].node if source is not None else None:
            case ast.Expr(value=ast.Call() as call) if source is not None and is_at(call, at):
                if _is_intended(*source) or called_name(call).endswith("_") or not source[1].around[1:]:
                    return None
                whole = source[0].segment(call) if call.lineno == call.end_lineno else ast.unparse(call)
                return DroppedCall(at, whole, _replaced(*source, call), method_class(source[1]))
    return None


def _replaced(text: ProgramText, one: Statement, call: ast.Call) -> str:
    """Return the only argument of a call, if the next statement of the function that has this variable reads it."""
    function = next((outer for outer in reversed(one.around) if isinstance(outer, FUNCTION_NODES)), None)
    match call.args, call.keywords:
        case [ast.Name(id=name)], []:
            later = [each.node for each in _own_statements(text, function) if each.node.lineno >= one.node.lineno]
            own = next((nr for nr, node in enumerate(later) if node is one.node), len(later))
            for node in later[own + 1 :]:
                if name in names_read(node):
                    return name
                if name in names_set(node):
                    return ""
    return ""


# Statements with another purpose


def _is_intended(text: ProgramText, one: Statement) -> bool:
    """Return whether a statement may be there to measure time, to warm up, to raise an error, or to be shown."""
    function = next((outer for outer in reversed(one.around) if isinstance(outer, FUNCTION_NODES)), None)
    if function is not None and _TRYING.search(function.name):
        return True
    for outer in reversed(one.around):
        if outer is function:
            break
        match outer:
            case ast.Try(body=body, handlers=handlers) if handlers and _is_in(one.node, body):
                return True
            case ast.With(items=items) if any(_EXPECTING.search(ast.unparse(item.context_expr)) for item in items):
                return True
    at = one.block.index(one.node)
    near = [*one.block[max(at - 1, 0) : at], *one.block[at + 1 : at + 2]]
    if any(isinstance(part, ast.Call) and called_name(part) in _MEASURING for each in near for part in ast.walk(each)):
        return True
    return _is_alone(one) or (_is_shown(one) and _ends_cell(text, one))


def is_asked_or_shown(text: ProgramText, one: Statement) -> bool:
    """Return whether a statement may be there to raise an error that the program handles, or to be shown."""
    for outer in reversed(one.around):
        match outer:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                break
            case ast.Try(body=body, handlers=handlers) if handlers and _is_in(one.node, body):
                return True
            case ast.With(items=items) if any(_EXPECTING.search(ast.unparse(item.context_expr)) for item in items):
                return True
    return _is_shown(one) and _ends_cell(text, one)


def _is_in(node: ast.stmt, body: list[ast.stmt]) -> bool:
    return any(node is part for each in body for part in ast.walk(each))


def _is_alone(one: Statement) -> bool:
    """Return whether a block only computes what nothing reads, and the same each time: a loop that measures."""
    outer = one.around[-1]
    if not all(isinstance(part, ast.Expr) for part in one.block) or isinstance(outer, ast.Module | ast.If):
        return False
    given: set[str] = set()
    match outer:
        case ast.For(target=target):
            given = {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
        case ast.With() if len(one.around) > 1:
            return False if not isinstance(one.around[-2], ast.Module) else not _is_gradless(outer)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            given = {part.arg for part in ast.walk(outer.args) if isinstance(part, ast.arg)} - {"self"}
    return given.isdisjoint(names_read(one.node))


def _is_gradless(block: ast.With) -> bool:
    return any("no_grad" in ast.unparse(item.context_expr) for item in block.items)


def _is_shown(one: Statement) -> bool:
    """Return whether a statement is outside of functions and loops."""
    return all(
        isinstance(outer, ast.Module) or (isinstance(outer, ast.If) and "__name__" in ast.unparse(outer.test))
        for outer in one.around
    )


def _ends_cell(text: ProgramText, one: Statement) -> bool:
    """Return whether a statement is the last one of a program, or of a cell of it."""
    after = text.rows[one.node.end_lineno or one.first :]
    following = next((row.strip() for row in after if row.strip()), "")
    return not following or bool(_CELL.match(following)) or one.block[-1] is one.node


def _own_statements(text: ProgramText, function: ast.AST | None) -> Iterator[Statement]:
    if function is not None:
        yield from text.by_function.get(function, ())


# The forward of a function of the program


_WRITING = ("mark_dirty", "print", "append", "extend", "setattr", "all_reduce", "write", "log")


def forward_has_effects(timeline: Timeline, name: str) -> bool | None:
    """Return whether the forward of a `torch.autograd.Function` changes anything; None if its text is unknown."""
    forward = next((methods_of(owner).get("forward") for _, owner in classes_named(timeline, name)), None)
    return None if forward is None else _changes_something(forward)


def _changes_something(forward: ast.FunctionDef) -> bool:
    context = next(iter(positional_parameters(forward)), "")
    for part in ast.walk(forward):
        match part:
            case ast.Call():
                called = called_name(part)
                if called in _WRITING or (called.endswith("_") and not called.startswith("_")):
                    return True
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                if _root(part) != context:
                    return True
            case ast.AugAssign() | ast.Global() | ast.Nonlocal():
                return True
    return False
