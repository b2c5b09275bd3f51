"""The initialization of a parameter: the line of the program that set its first numbers, ``nn.init.zeros_(m.weight)``.

PyTorch's parameters are recorded when they are first used, so their initialization is known only from the program's
text. A function for ``model.apply`` names no parameter: it writes to the weight of whatever module it gets. So a write
to ``m.weight`` may be one to ``encoder.fc1.weight``, unless a condition around it says otherwise:
``isinstance(m, nn.Conv2d)``, ``if "bias" in name``. A write to ``self.fc1.weight`` itself is preferred to it.

Limits. Conditions on numbers are not evaluated, and calls are not followed, except that of a function which writes to
its argument. If several lines could have initialized a parameter, the last one counts. Memory from ``torch.empty`` that
is filled later is another subject: `findings.gradient_values.harmless_nan`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from gviz.events import ScopeEntered, StorageWritten
from gviz.explain.parameter_updates import write_place
from gviz.explain.program_text import (
    FUNCTION_NODES,
    ProgramText,
    Statement,
    assigned_parts,
    called_name,
    frame_of_part,
    function_name,
    function_of,
    method_class,
    own_programs,
    parameters_of,
    passed_arguments,
)
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class InitialWrite:
    """A line that sets the numbers of a parameter, and how.

    `how` is the function that does, as ``normal_``, or the operator of an assignment: ``=``, ``*=``. `values` are its
    arguments without the parameter, or what is assigned, and `named` those that have a name.
    """

    at: Frame
    how: str
    values: tuple[ast.expr, ...]
    named: tuple[tuple[str, ast.expr], ...] = ()

    def value(self, place: int, *names: str) -> ast.expr | None:
        """Return an argument by its place, or by one of its names."""
        known = dict(self.named)
        named = next((known[name] for name in names if name in known), None)
        return named if named is not None else next(iter(self.values[place : place + 1]), None)


def written_at(timeline: Timeline, info: NodeInfo, is_wanted: Callable[[InitialWrite], bool]) -> Frame | None:
    """Return the line that set the first numbers of a leaf after it was made; None if none did.

    It is the last recorded write before the leaf was used, or else a line of the program: PyTorch's parameters are
    recorded when they are first used. One that surely writes in the wanted way comes before one that may.
    """
    used = first_use(timeline, info.node)
    until = used.born if used is not None else len(timeline) + 1
    for seq in reversed([seq for seq in timeline.events_of(info.node) if seq < until]):
        write = timeline.event(seq)
        if isinstance(write, StorageWritten):
            return next(iter(write_place(timeline, seq, write)), None)
    if info.created.kind != "parameter":
        return None
    line = initial_write(timeline, info, is_wanted) or initial_write(timeline, info, writes_all)
    return line.at if line is not None else None


def first_use(timeline: Timeline, node: int) -> NodeInfo | None:
    """Return the first tracked operation on a leaf: those before it only set its numbers."""
    users = map(timeline.info, timeline.nodes.users(node))
    return next((user for user in users if user.created.requires_grad), None)


def initial_write(timeline: Timeline, info: NodeInfo, is_wanted: Callable[[InitialWrite], bool]) -> InitialWrite | None:
    """Return the line that sets the numbers of a parameter in a wanted way; None if there is none."""
    found = [(rank, write) for rank, write in _writes(timeline, info) if is_wanted(write)]
    best = max((rank for rank, _ in found), default=0)
    return next((write for rank, write in reversed(found) if rank == best), None)


def writes_zeros(write: InitialWrite) -> bool:
    """Return whether a line surely sets all numbers to 0."""
    if write.how == "load_state_dict":
        return any(_filled_with(part) == 0 for value in write.values for part in ast.walk(value) if _makes(part))
    return write.how in ("zeros_", "zero_") or _constant(write) == 0


def writes_constant(write: InitialWrite) -> bool:
    """Return whether a line surely sets all numbers to the same one."""
    return write.how in ("zeros_", "zero_", "ones_") or _constant(write) is not None


_FILLS = ("zeros_", "zero_", "ones_", "constant_", "fill_", "eye_", "dirac_")
_DRAWS = ("normal_", "uniform_", "trunc_normal_", "log_normal_", "exponential_")
_SCALED = ("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "sparse_")


def writes_random(write: InitialWrite) -> bool:
    """Return whether a line draws all numbers."""
    return write.how in (*_DRAWS, *_SCALED)


def writes_all(write: InitialWrite) -> bool:
    """Return whether a line sets all numbers anew, to whatever it is: an update of a loop by hand does not."""
    return writes_random(write) or write.how in _FILLS


def _makes(part: ast.AST) -> TypeGuard[ast.Call | ast.BinOp]:
    return isinstance(part, ast.Call | ast.BinOp)


def _constant(write: InitialWrite) -> float | None:
    """Return the number to which a line sets all elements; None if it does not, or the number is unknown."""
    first = write.value(0, "val", "value")
    if write.how in ("constant_", "fill_"):
        return constant_number(first)
    if write.how in ("mul_", "*="):
        return 0 if constant_number(first) == 0 else None
    return _filled_with(first) if write.how in ("copy_", "=") else None


def _filled_with(made: ast.expr | None) -> float | None:
    """Return the one number that fills the tensor of an expression: ``torch.zeros(3)``, ``0 * w``."""
    match made:
        case ast.Call(args=args, keywords=keywords) as call:
            name = called_name(call)
            if name in ("Parameter", "clone", "detach", "to", "float"):
                of_method = [call.func.value] if isinstance(call.func, ast.Attribute) else []
                return _filled_with(next(iter(args if name == "Parameter" else of_method), None))
            if name in ("zeros", "zeros_like", "ones", "ones_like"):
                return float(name.startswith("ones"))
            if name in ("full", "full_like"):
                value = [key.value for key in keywords if key.arg == "fill_value"] or args[1:2]
                return constant_number(next(iter(value), None))
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return 0 if 0 in (constant_number(left), constant_number(right)) else None
    return constant_number(made)


def constant_number(part: ast.expr | None) -> float | None:
    """Return the number that is written in a program; None for any other expression."""
    match part:
        case ast.Constant(value=value) if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = constant_number(operand)
            return -value if value is not None else None
    return None


# Which lines write to a parameter

_EXACT, _ONE_OF_MANY = 2, 1
"""How well a target names a parameter: by its path, or as the parameter of whatever module a variable refers to."""


def _writes(timeline: Timeline, info: NodeInfo) -> Iterator[tuple[int, InitialWrite]]:
    """Yield the lines that may write to a parameter, each with how well it names this one."""
    names = [name for name in (info.name, *info.also) if name]
    for text, one, target, write in timeline.once(_all_writes, len(timeline)):
        if write.how == "load_state_dict":
            rank = _ONE_OF_MANY * any(_is_module_of(target, name) for name in names)
        else:
            rank = max((_rank(timeline, text, one, target, name) for name in names), default=0)
        if rank:
            yield rank, write


def _all_writes(timeline: Timeline, _: int) -> list[tuple[ProgramText, Statement, ast.expr, InitialWrite]]:
    """Return everything that a line of the program writes to, in order, whatever it is."""
    statements = ((text, one) for text in own_programs(timeline) for one in text.statements)
    return [(text, one, *write) for text, one in statements for write in _writes_of(text, one)]


_NOT_NUMBERS = ("requires_grad_", "detach_", "retain_grad_", "share_memory_", "clip_grad_norm_", "clip_grad_value_")


def _writes_of(text: ProgramText, one: Statement) -> Iterator[tuple[ast.expr, InitialWrite]]:
    """Yield what a statement writes to, with the write."""
    for call in one.parts(ast.Call):
        name, args = called_name(call), list(call.args)
        if name == "load_state_dict" and isinstance(call.func, ast.Attribute):
            yield call.func.value, InitialWrite(frame_of_part(text, call, function_name(one)), name, tuple(args))
        if not name.endswith("_") or name.startswith("_") or name in _NOT_NUMBERS:
            continue
        is_function = isinstance(call.func, ast.Name) or (
            isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value).split(".")[-1] == "init"
        )
        targets = args[:1] if is_function else [call.func.value] if isinstance(call.func, ast.Attribute) else []
        named = tuple((key.arg, key.value) for key in call.keywords if key.arg is not None)
        for target in targets:
            values = tuple(args[1:] if is_function else args)
            yield target, InitialWrite(frame_of_part(text, call, function_name(one)), name, values, named)
    value = getattr(one.node, "value", None)
    if isinstance(one.node, ast.Assign | ast.AugAssign | ast.AnnAssign) and isinstance(value, ast.expr):
        operators = {ast.Mult: "*=", ast.Div: "/=", ast.Add: "+=", ast.Sub: "-="}
        how = operators.get(type(one.node.op), "") if isinstance(one.node, ast.AugAssign) else "="
        for target in assigned_parts(one.node) if how else ():
            yield target, InitialWrite(frame_of_part(text, one.node, function_name(one)), how, (value,))


def _rank(timeline: Timeline, text: ProgramText, one: Statement, target: ast.expr, name: str) -> int:
    """Return how well the target of a write in a statement names a parameter; 0 if it is another."""
    base, parts = target_path(target)
    if not base:
        return 0
    names = name.split(".")
    if not parts:
        if _is_loop_over_parameters(one, base):
            return 0 if _excludes(timeline, text, one, base, name) else _ONE_OF_MANY
        if base in parameters_of(function_of(one)):
            return _ONE_OF_MANY if _is_passed(text, one, base, name) else 0
        return _EXACT if names[-1] == base else 0
    if not _fits(names, parts):
        return 0
    module = ".".join(names[: len(names) - len(parts)])
    if base == "self":
        kind, owner = _kind_of_module(timeline, module), method_class(one)
        return _EXACT if not kind or not owner or kind == owner else 0
    is_variable = base in parameters_of(function_of(one)) or _is_loop_variable(one, base)
    if is_variable and len(parts) == 1:
        return 0 if _excludes(timeline, text, one, base, name) else _ONE_OF_MANY
    if len(names) == len(parts) or _fits(names, [base, *parts]):
        return _EXACT
    return _ONE_OF_MANY if len(parts) > 1 or _is_other_name(names, base) else 0


def _is_other_name(names: Sequence[str], base: str) -> bool:
    """Return whether a variable may refer to the module of a parameter, whose own name there is a number."""
    return len(names) > 1 and names[-2] != base and names[-2].isdecimal()


def target_path(target: ast.expr) -> tuple[str, list[str]]:
    """Return the variable and the attributes of a target, ``("self", ["fc1", "weight"])``; an empty variable if other.

    Indices are names, too; an unknown index is ``*``. ``.data`` and the whole slice of ``w[:]`` are left out.
    """
    parts: list[str] = []
    while True:
        match target:
            case ast.Name(id=name):
                return name, parts[::-1]
            case ast.Attribute(value=target, attr=attr):
                parts += [attr] if attr != "data" or parts else []
            case ast.Subscript(
                value=target, slice=ast.Slice(lower=None, upper=None) | ast.Constant(value=ast.Ellipsis)
            ):
                pass
            case ast.Subscript(value=target, slice=ast.Constant(value=int(at))) if parts and at >= 0:
                parts.append(str(at))
            case ast.Subscript(value=target, slice=index) if parts and not isinstance(index, ast.Slice | ast.Tuple):
                parts.append("*")
            case _:
                return "", []


def _is_module_of(target: ast.expr, name: str) -> bool:
    """Return whether a target may be a module with a parameter of this name: a variable for the whole model may be."""
    base, parts = target_path(target)
    names = name.split(".")[:-1]
    return bool(base) and (not parts or any(_fits(names[: at + 1], parts) for at in range(len(names))))


def names_parameter(part: ast.AST, info: NodeInfo) -> bool:
    """Return whether an expression is the path of a parameter, as far as its attributes say: ``self.emb.weight``.

    The ``state_dict()`` of its module has it, too.
    """
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "state_dict":
        base, parts = target_path(part.func.value)
        of_module = [name.split(".")[:-1] for name in (info.name, *info.also) if name]
        return bool(base) and any(_fits(names, parts or [base]) for names in of_module)
    if not isinstance(part, ast.Attribute | ast.Subscript) or (isinstance(part, ast.Attribute) and part.attr == "data"):
        return False
    base, parts = target_path(part)
    return bool(base and parts) and any(_fits(name.split("."), parts) for name in (info.name, *info.also) if name)


def _fits(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Return whether a path ends with these parts."""
    end = names[-len(parts) :]
    return len(end) == len(parts) and all(part in (name, "*") for name, part in zip(end, parts, strict=True))


def _is_loop_over_parameters(one: Statement, variable: str) -> bool:
    return any(
        isinstance(loop, ast.For | ast.AsyncFor)
        and any(isinstance(part, ast.Name) and part.id == variable for part in ast.walk(loop.target))
        and any(
            isinstance(part, ast.Attribute) and part.attr in ("parameters", "named_parameters")
            for part in ast.walk(loop.iter)
        )
        for loop in one.around
    )


def _is_loop_variable(one: Statement, variable: str) -> bool:
    loops = (outer for outer in one.around if isinstance(outer, ast.For | ast.AsyncFor))
    return any(isinstance(part, ast.Name) and part.id == variable for loop in loops for part in ast.walk(loop.target))


def _is_passed(text: ProgramText, one: Statement, variable: str, name: str) -> bool:
    """Return whether a call of the function around a statement passes it a parameter of a model as this variable."""
    function = function_of(one)
    if not isinstance(function, FUNCTION_NODES):
        return False
    for other in text.statements:
        for call in other.parts(ast.Call):
            argument = passed_arguments(call, function).get(variable) if called_name(call) == function.name else None
            if argument is None:
                continue
            base, parts = target_path(argument)
            if base and parts and _fits(name.split("."), parts):
                return True
            if not parts and _is_loop_over_parameters(other, base):
                return True
    return False


# Conditions around a write


def _excludes(timeline: Timeline, text: ProgramText, one: Statement, base: str, name: str) -> bool:
    """Return whether a condition around a statement says that it does not write to a parameter."""
    inner: ast.AST = one.node
    for outer in reversed(one.around):
        if isinstance(outer, FUNCTION_NODES):
            return False
        if isinstance(outer, ast.If):
            holds = _holds(timeline, outer.test, base, name)
            if holds is not None and holds is not any(part is inner for part in outer.body):
                return True
        inner = outer
    return False


def _holds(timeline: Timeline, test: ast.expr, base: str, name: str) -> bool | None:
    """Return whether a condition holds for a parameter; None if it is unknown."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            holds = _holds(timeline, operand, base, name)
            return None if holds is None else not holds
        case ast.BoolOp(op=op, values=values):
            known = [_holds(timeline, one, base, name) for one in values]
            decisive = isinstance(op, ast.Or)
            return decisive if decisive in known else None if None in known else not decisive
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=variable), kinds]) if variable == base:
            return _is_of_kind(timeline, kinds, name)
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="type"), args=[ast.Name(id=variable)]),
            ops=[ast.Eq() | ast.Is() | ast.In()],
            comparators=[kinds],
        ) if variable == base:
            return _is_of_kind(timeline, kinds, name)
        case ast.Compare(
            left=ast.Constant(value=str(word)), ops=[ast.In() | ast.NotIn() as op], comparators=[ast.Name()]
        ):
            return (word in name) is isinstance(op, ast.In)
        case ast.Call(func=ast.Attribute(attr="endswith"), args=[ast.Constant(value=str(word))]):
            return name.endswith(word)
    return None


def _is_of_kind(timeline: Timeline, kinds: ast.expr, name: str) -> bool | None:
    """Return whether the module of a parameter is of one of these classes.

    None if it may be a subclass of one of them, as a class of the program is among them.
    """
    kind = _kind_of_module(timeline, name.rpartition(".")[0])
    parts = kinds.elts if isinstance(kinds, ast.Tuple | ast.List | ast.Set) else [kinds]
    names = {ast.unparse(part).split(".")[-1] for part in parts}
    if not kind or "Module" in names:
        return None
    if kind in names:
        return True
    return False if all(ast.unparse(part).startswith(("nn.", "torch.nn.")) for part in parts) else None


def _kind_of_module(timeline: Timeline, path: str) -> str:
    """Return the class of a module by its path, as far as it was called; empty if unknown."""
    known = timeline.once(_kinds_by_path, len(timeline))
    ends = {kind for name, kind in known.items() if path and f".{name}".endswith(f".{path}")}
    return ends.pop() if len(ends) == 1 else ""


def _kinds_by_path(timeline: Timeline, n: int) -> dict[str, str]:
    return {event.name: event.kind for _, event in timeline.select((ScopeEntered,), 1, n + 1)}
