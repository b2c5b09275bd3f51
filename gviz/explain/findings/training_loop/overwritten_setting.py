"""A setting that its own warm-up overwrites: each call starts from the result of the last one.

Idea. The decay of an average often grows with the number of steps: ``min(self.decay, (1 + n) / (10 + n))``. If the
result is assigned to ``self.decay``, the next call takes the minimum with that result, and the factor never reaches the
value that was set. The program's text shows such an assignment. Whether it matters is computed: the setting is followed
through some steps, once as the program does it and once from the value that was set.

Example. ``self.decay = 1 - min(self.decay, (1 + n) / (10 + n))`` ends at 0.5, whatever the decay is.

Limits. Only numbers that depend on nothing but a counter and on constants are followed. A running minimum of data, a
setting that is multiplied in each step, and a minimum with a falling number are no mistakes and give no finding.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gviz.explain.display_names import titled
from gviz.explain.finding import Finding, Number
from gviz.explain.program_text import (
    ProgramText,
    called_name,
    frame_of,
    methods_of,
    positional_parameters,
    program_text,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import Edit, nodes_replaced
from gviz.explain.source_frames import own_frames
from gviz.source.call_stack import Frame
from gviz.values.number_text import number
from gviz.values.plain_text import shown

_STEPS = 40
_ANY_SETTING = 0.99
"""The setting that is followed if its value is not in the text."""


def overwritten_settings(survey: Survey) -> Iterator[Finding | None]:
    """Yield the lines of methods that ran which assign a limited setting to the setting itself."""
    timeline = survey.timeline
    stacks = {record.created.stack for record in survey.nodes.values()}
    frames = {(one.path, one.function): one for stack in stacks for one in own_frames(timeline.stack(stack))}
    for (_, function), frame in frames.items():
        yield None
        owner, _, method = function.rpartition(".")
        text = program_text(timeline, frame) if owner else None
        if text is None:
            continue
        name = owner.rpartition(".")[2]
        classes = [part for part in ast.walk(text.tree) if isinstance(part, ast.ClassDef) and part.name == name]
        for each in classes if len(classes) == 1 else ():
            for found in _overwritten(text, each, method):
                yield _finding(survey, found, frame)


def _finding(survey: Survey, found: _Overwritten, frame: Frame) -> Finding:
    name = shown(found.name)
    text = titled("self.{} is overwritten by a number that is computed from it", name)
    values = f"from {number(found.start)}, {_STEPS} calls make {number(found.last)} of it"
    part = Finding("beside", f"{values}; from the value that was set each time: {number(found.meant)}", survey.end)
    fix = f"keep the result in a variable of its own, and leave self.{name} as it was set"
    at = frame_of(frame, found.line, found.text)
    numbers = (Number("after the calls", found.last), Number("meant", found.meant))
    return Finding(
        "overwritten-setting", text, survey.end, 0, (part,), fix, at, numbers, suspected=True, edit=found.edit
    )


# What the program's source code shows


@dataclass(frozen=True, slots=True)
class _Overwritten:
    """A line that overwrites a setting: what it begins with, what it becomes, and what it would be without that."""

    text: ProgramText
    name: str
    line: int
    start: float
    last: float
    meant: float
    edit: Edit | None


def _overwritten(text: ProgramText, owner: ast.ClassDef, method: str) -> Iterator[_Overwritten]:
    methods = methods_of(owner)
    function, begin = methods.get(method), methods.get("__init__")
    if function is None or begin is None or function is begin:
        return
    settings, counters = _settings(begin), _counters(owner)
    for one in ast.walk(function):
        match one:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name) as target], value=value):
                pass
            case _:
                continue
        reads = [*_reads(value, name), *(read for call in _own_calls(value, methods) for read in _reads(call, name))]
        if (
            not reads
            or name not in settings
            or name in counters
            or not all(_is_limited(methods, value, r) for r in reads)
        ):
            continue
        setting = settings[name]
        start = setting if setting is not None else _ANY_SETTING
        known = {key: one for key, one in settings.items() if one is not None}
        last = meant = start
        try:
            for step in range(1, _STEPS + 1):
                counted = dict.fromkeys(counters, float(step))
                last = _Numbers(methods, {**known, **counted, name: last}).of(value, {})
                meant = _Numbers(methods, {**known, **counted, name: start}).of(value, {})
        except (ValueError, TypeError, ArithmeticError, KeyError, RecursionError):
            continue
        if not math.isclose(last, meant, rel_tol=1e-3):
            yield _Overwritten(text, name, one.lineno, start, last, meant, _edit(text, owner, function, target, name))


def _reads(node: ast.AST, name: str) -> Iterator[ast.Attribute]:
    """Yield the places that read an attribute of the object itself."""
    for part in ast.walk(node):
        match part:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Load()) if attr == name:
                yield part


def _own_calls(node: ast.AST, methods: Mapping[str, ast.FunctionDef]) -> Iterator[ast.FunctionDef]:
    """Yield the methods of the object itself that an expression calls."""
    for part in ast.walk(node):
        match part:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=attr)) if attr in methods:
                yield methods[attr]


def _is_limited(methods: Mapping[str, ast.FunctionDef], value: ast.AST, read: ast.Attribute) -> bool:
    """Return whether a setting is read as one argument of ``min`` or ``max``, and its limit does not depend on it."""
    nodes = (part for node in (value, *_own_calls(value, methods)) for part in ast.walk(node))
    calls = (part for part in nodes if isinstance(part, ast.Call) and called_name(part) in ("min", "max"))
    return any(read is arg for call in calls if len(call.args) == 2 for arg in call.args)


def _settings(begin: ast.FunctionDef) -> dict[str, float | None]:
    """Return the attributes that ``__init__`` sets to a parameter or to a number, with the number if it is known."""
    arguments = [*begin.args.posonlyargs, *begin.args.args]
    values: dict[str, ast.expr | None] = dict.fromkeys((one.arg for one in arguments), None)
    values |= dict(zip([one.arg for one in arguments[-len(begin.args.defaults) :]], begin.args.defaults, strict=False))
    values |= {one.arg: value for one, value in zip(begin.args.kwonlyargs, begin.args.kw_defaults, strict=True)}
    found: dict[str, float | None] = {}
    for part in ast.walk(begin):
        match part:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)], value=ast.Name(id=name)) if (
                name in values
            ):
                found[attr] = _constant(values[name])
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)], value=ast.Constant() as value
            ):
                found[attr] = _constant(value)
    return found


def _constant(value: ast.expr | None) -> float | None:
    match value:
        case ast.Constant(value=float() | int() as known) if not isinstance(known, bool):
            return float(known)
    return None


def _counters(owner: ast.ClassDef) -> set[str]:
    """Return the attributes that a method counts up: ``self.step += 1``."""
    found = set()
    for part in ast.walk(owner):
        match part:
            case ast.AugAssign(
                target=ast.Attribute(value=ast.Name(id="self"), attr=attr), op=ast.Add(), value=ast.Constant(value=1)
            ):
                found.add(attr)
    return found


_OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: math.pow, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "min": min, "max": max, "abs": abs, "float": float, "int": float, "exp": math.exp, "sqrt": math.sqrt,
    "pow": math.pow, "log": math.log, "tanh": math.tanh,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Computes expressions of numbers, with the attributes of the object; raises ValueError for anything else."""

    methods: Mapping[str, ast.FunctionDef]
    attributes: Mapping[str, float]

    def of(self, node: ast.expr, variables: Mapping[str, float]) -> float:
        """Return the number of an expression."""
        match node:
            case ast.Constant():
                known = _constant(node)
                if known is not None:
                    return known
            case ast.Name(id=name):
                return variables[name]
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                return self.attributes[attr]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self.of(inner, variables)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                return _OPERATIONS[type(op)](self.of(left, variables), self.of(right, variables))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=attr), args=args, keywords=[]) if (
                attr in self.methods
            ):
                return self._returned(self.methods[attr], [self.of(arg, variables) for arg in args])
            case ast.Call(
                func=ast.Name() | ast.Attribute(value=ast.Name(id="math" | "np" | "numpy")), args=[*args], keywords=[]
            ) if args and called_name(node) in _FUNCTIONS:
                return _FUNCTIONS[called_name(node)](*(self.of(arg, variables) for arg in args))
        raise ValueError

    def _returned(self, function: ast.FunctionDef, given: list[float]) -> float:
        """Return what a method without branches returns."""
        names = positional_parameters(function)[1:]
        variables = dict(zip(names, given, strict=True))
        for one in function.body:
            match one:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    variables[name] = self.of(value, variables)
                case ast.Return(value=ast.expr() as value):
                    return self.of(value, variables)
                case ast.Expr(value=ast.Constant()):
                    pass
                case _:
                    raise ValueError
        raise ValueError


def _edit(
    text: ProgramText, owner: ast.ClassDef, function: ast.FunctionDef, target: ast.Attribute, name: str
) -> Edit | None:
    """Give the result a variable of its own, which the rest of the method reads.

    Another method may read the setting only in a minimum or a maximum: else it may want the result.
    """
    new, methods = f"{name}_now", methods_of(owner)
    others = [each for key, each in methods.items() if key not in (function.name, "__init__")]
    if not all(_is_limited({}, each, read) for each in others for read in _reads(each, name)):
        return None
    if any(isinstance(part, ast.Name) and part.id == new for part in ast.walk(function)):
        return None
    later = [part for part in _reads(function, name) if part.lineno > target.lineno]
    return nodes_replaced(text, [(target, new), *((part, new) for part in later)])
