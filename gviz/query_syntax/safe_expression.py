"""Compiles expressions that users type, so that no evaluation runs for long or accesses anything but its numbers.

The language is a subset of Python: numbers, comparisons, tensor methods, some functions, comprehensions. The compiled
code computes nothing by itself. Every operator, call, index, attribute and loop iteration goes through an `Evaluation`.
It looks the operation up in the table of `gviz.query_syntax.expression_operations` and runs it if the `Budget` of
`gviz.query_syntax.expression_limits` covers it. For example, ``x.max() > 3`` becomes
``_evaluation.operate("Gt", _evaluation.method(x, "max"), 3)``.
"""

from __future__ import annotations

import ast
from contextvars import copy_context
from itertools import chain
from types import CodeType
from typing import Any

import numpy as np

from gviz.query_syntax import expression_operations
from gviz.query_syntax.expression_limits import STEP, Budget, TooMuch, is_small
from gviz.query_syntax.expression_names import FACTS, METHODS, as_written, node_of
from gviz.query_syntax.expression_operations import FUNCTIONS, GROWING, OF_NUMPY, OPERATORS
from gviz.source import parsing

LONGEST = 1000
"""The most characters of an expression."""

DEEPEST = 2
"""The deepest nesting of loops."""

_MOST_LEVELS = 100
"""The deepest tree. A visitor needs several frames per level, on top of those of the program, which may be many."""


class RefusedExpression(Exception):
    """Something that is not part of the language. `hint` is what to use instead, if known."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint


class NoPython(RefusedExpression):
    """A text that is not valid Python."""


_INSTEAD: dict[str, str] = {
    "grad": "a gradient of a gradient is a node of its own, which create_graph makes: the tape lists it",
    "value": "x is the value, x.grad the gradient",
    "backward": "nothing is run here: goto backward is where the program did",
    "numel": "x.size",
    "dim": "x.ndim",
    "t": "x.T",
    **dict.fromkeys(("grad_fn", "is_leaf", "requires_grad", "retains_grad", "_version"), "the command node shows it"),
    **dict.fromkeys(("detach", "data", "clone", "cpu", "numpy"), "leave it out: what is typed here has no history"),
}
"""What to write here, by what PyTorch users write."""


_PARTS = (
    ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.Attribute, ast.Subscript,
    ast.Slice, ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.GeneratorExp, ast.ListComp,
    ast.comprehension, ast.keyword, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


_EVALUATION = "_evaluation"
"""The name that the guard inserts into an expression; users cannot write it."""

_OWN = frozenset((_EVALUATION, "slice", "np"))
"""Names that an expression cannot use by themselves: ``np`` is only the start of a function's name."""

BUILTINS: dict[str, Any] = {
    **FUNCTIONS,
    "slice": slice,
    "__import__": __import__,  # numpy imports parts of itself late, with the caller's builtins
}


def check_length(text: str) -> str:
    """Return the text. Raises `RefusedExpression` if it is longer than `LONGEST`."""
    if len(text) > LONGEST:
        raise RefusedExpression(f"it is longer than {LONGEST} characters")
    return text


def parsed(text: str) -> ast.Expression:
    """Parse an expression. Raises `RefusedExpression` with the reason if it is not one."""
    try:
        tree = parsing.expression(check_length(text))
    except SyntaxError as error:
        raise NoPython(error.msg) from None
    except (ValueError, RecursionError, MemoryError):
        raise NoPython("it cannot be read") from None
    if _levels(tree) > _MOST_LEVELS:
        raise RefusedExpression("it is nested too deeply")
    return tree


def _levels(tree: ast.AST) -> int:
    level, count = [tree], 0
    while level:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        count += 1
    return count


def bound_names(tree: ast.AST) -> frozenset[str]:
    """Return the names that an expression binds itself: ``v`` in ``any(v > 1 for v in value)``."""
    return frozenset(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def compiled(tree: ast.Expression) -> CodeType:
    """Return code for `evaluate`. Raises `RefusedExpression` if the expression is not part of the language."""
    try:
        guarded = _Guard().visit(tree)
        with parsing.unwarned():  # what Python warns about, such as 1[0], fails later with an error
            return compile(ast.fix_missing_locations(guarded), "<expression>", "eval")
    except RecursionError:
        raise RefusedExpression("it is nested too deeply") from None


_SILENT = copy_context()
"""A context in which numpy does not warn. Created once: `np.errstate` takes longer than most expressions."""
_SILENT.run(np.seterr, all="ignore")


def evaluate(code: CodeType, names: dict[str, Any], evaluation: Evaluation | None = None) -> Any:
    """Return the value of an expression whose variables are `names`.

    Raises what the expression raises, and `TooMuch` beyond the budget. Afterwards `evaluation` has what was spent.
    """
    evaluation = evaluation or Evaluation(names)
    names["__builtins__"] = BUILTINS
    names[_EVALUATION] = evaluation
    try:
        return evaluation.budget.finish(_SILENT.copy().run(eval, code, names))
    finally:
        del names[_EVALUATION]  # it refers to `names`


class Evaluation:
    """One run of a compiled expression: charges each operation, then runs it."""

    __slots__ = ("_hold", "_spend", "budget", "collect", "iterate")

    def __init__(self, names: dict[str, Any]) -> None:
        self.budget = budget = Budget(names)
        self.iterate, self.collect = budget.iterate, budget.collect
        self._spend, self._hold = budget.spend, budget.hold

    def operate(self, name: str, one: Any, other: Any) -> Any:
        """Apply an operator with two operands."""
        run, cost = OPERATORS[name]
        if name not in GROWING and is_small(one) and is_small(other):
            self._spend(STEP)
            return run(one, other)
        if name in ("In", "NotIn"):
            [other] = expression_operations.materialize((other,))
        cost(self.budget, (one, other), {})
        return self._hold(run(one, other))

    def operate_unary(self, name: str, one: Any) -> Any:
        """Apply an operator with one operand."""
        run, cost = OPERATORS[name]
        if isinstance(one, np.ndarray):
            cost(self.budget, (one,), {})
        else:
            self._spend(STEP)
        return self._hold(run(one))

    def compare(self, left: Any, *rest: Any) -> Any:
        """Compare ``a < b < c`` as ``compare(a, "Lt", lambda: b, "Lt", lambda: c)``; ``c`` is evaluated only if ``a <
        b``.
        """
        result: Any = True
        for name, later in zip(rest[::2], rest[1::2], strict=True):
            if not result:
                return result
            right = later()
            result, left = self.operate(name, left, right), right
        return result

    def call(self, function: Any, *arguments: Any, **named: Any) -> Any:
        """Call a function."""
        arguments = expression_operations.materialize(arguments)
        run, cost = expression_operations.function(function, arguments, named)
        cost(self.budget, arguments, named)
        return self._hold(_of_numbers(run(*arguments, **named)))

    def method(self, of: Any, name: str, *arguments: Any, **named: Any) -> Any:
        """Call ``of.name(...)``."""
        operation = expression_operations.method(of, name)
        if operation is None:
            return self.call(getattr(of, name), *arguments, **named)  # this raises the right error
        arguments = expression_operations.materialize(arguments)
        run, cost = operation
        cost(self.budget, (of, *arguments), named)
        return self._hold(_of_numbers(run(of, *arguments, **named)))

    def fact(self, of: Any, name: str) -> Any:
        """Read ``of.name``."""
        return self._hold(expression_operations.fact(self.budget, of, name))

    def item(self, of: Any, index: Any) -> Any:
        """Read ``of[index]``."""
        expression_operations.charge_index(self.budget, of, index)
        return self._hold(of[index])

    def display(self, items: Any) -> Any:
        """Count a list, tuple, set or dictionary display."""
        self._spend(STEP)
        return self._hold(items)

    def make_set(self, *keys: Any) -> set[Any]:
        """Return the set of some values."""
        return self.display({*expression_operations.charge_keys(self.budget, keys)})  # type: ignore[no-any-return]

    def make_dict(self, *items: Any) -> dict[Any, Any]:
        """Return the dictionary of alternating keys and values."""
        expression_operations.charge_keys(self.budget, items[::2])
        return self.display(dict(zip(items[::2], items[1::2], strict=True)))  # type: ignore[no-any-return]


def _of_numbers(result: Any) -> Any:
    """Return the result of a numpy function: an array of numbers, or a number instead of a 0-dimensional array."""
    if isinstance(result, np.ndarray):
        if result.dtype.kind not in "biufc":
            raise TooMuch("an array holds numbers here, of at most 64 bits")
        return result if result.ndim else result[()]
    return result


class _Guard(ast.NodeTransformer):
    """Refuses what is not part of the language, and replaces all computation by calls of an `Evaluation`."""

    def __init__(self) -> None:
        self._depth = 0

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, _PARTS):
            raise RefusedExpression(f"{_spoken(node)} is not part of an expression here")
        return super().visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, bool | int | float | complex | str | None | type(...)):
            raise RefusedExpression(f"{type(node.value).__name__} is not part of an expression here")
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        stores = isinstance(node.ctx, ast.Store)
        if node.id.startswith("__") or node.id in _OWN or (stores and node.id in BUILTINS):
            raise RefusedExpression(f"{node.id} has a meaning of its own here")
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _call("operate", ast.Constant(type(node.op).__name__), node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _call("operate_unary", ast.Constant(type(node.op).__name__), node.operand)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        kinds = [ast.Constant(type(kind).__name__) for kind in node.ops]
        if len(kinds) == 1:
            return _call("operate", kinds[0], node.left, node.comparators[0])
        links = zip(kinds, map(_later, node.comparators), strict=True)
        return _call("compare", node.left, *chain.from_iterable(links))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        path = _of_numpy(node)
        if path is not None:
            return _known_to_numpy(node, path)
        if node.attr in METHODS:
            raise RefusedExpression(f".{node.attr} is a method", f"write .{node.attr}()")
        of = self._owner(node)
        return _call("fact", of, ast.Constant(node.attr))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name | ast.Attribute):
            raise RefusedExpression("only a function can be called")
        path = _of_numpy(node.func)
        if isinstance(node.func, ast.Attribute) and path is None:
            called = [self._owner(node.func), ast.Constant(node.func.attr)]
            name = "method"
        else:
            called, name = [self.visit(node.func)], "call"
        arguments = [self.visit(argument) for argument in node.args]
        if any(word.arg is None for word in node.keywords):
            raise RefusedExpression("** is not part of an expression here")
        named = [ast.keyword(word.arg, self.visit(word.value)) for word in node.keywords]
        return _call(name, *called, *arguments, named=named)

    def _owner(self, node: ast.Attribute) -> ast.expr:
        owner: ast.expr = self.visit(node.value)
        if node.attr not in METHODS | FACTS:
            raise _no_attribute(node.attr)
        if not isinstance(node.ctx, ast.Load):
            raise RefusedExpression("a loop gives names, and changes nothing else")
        return owner

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            raise RefusedExpression("a loop gives names, and changes nothing else")
        if any(isinstance(part, ast.Constant) and part.value is None for part in ast.walk(node.slice)):
            raise RefusedExpression("None adds no dimension here")
        self.generic_visit(node)
        return _call("item", node.value, node.slice)

    def visit_Slice(self, node: ast.Slice) -> ast.expr:
        self.generic_visit(node)
        ends = [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
        return ast.Call(ast.Name("slice", ast.Load()), ends, [])

    def visit_List(self, node: ast.List) -> ast.expr:
        return self._display(node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return self._display(node)

    def _display(self, node: ast.List | ast.Tuple) -> ast.expr:
        self.generic_visit(node)
        return _call("display", node) if isinstance(node.ctx, ast.Load) else node

    def visit_Set(self, node: ast.Set) -> ast.expr:
        self.generic_visit(node)
        return _call("make_set", *node.elts)

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        if any(key is None for key in node.keys):
            raise RefusedExpression("** is not part of an expression here")
        self.generic_visit(node)
        return _call("make_dict", *chain.from_iterable(zip(filter(None, node.keys), node.values, strict=True)))

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self._loop(node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self._loop(node)

    def _loop(self, node: ast.GeneratorExp | ast.ListComp) -> ast.expr:
        self._depth += len(node.generators)
        if self._depth > DEEPEST:
            raise RefusedExpression(f"more than {DEEPEST} loops within each other take too long")
        if any(loop.is_async for loop in node.generators):
            raise RefusedExpression("async is not part of an expression here")
        self.generic_visit(node)
        self._depth -= len(node.generators)
        for loop in node.generators:
            loop.iter = _call("iterate", loop.iter)
        node.elt = _call("collect", node.elt)
        return node


def _known_to_numpy(node: ast.Attribute, path: list[str]) -> ast.Attribute:
    if not OF_NUMPY.issuperset(path) or not isinstance(node.ctx, ast.Load):
        raise RefusedExpression(f"np.{'.'.join(path)} is no function of expressions here")
    return node


def _no_attribute(name: str) -> RefusedExpression:
    if node_of(name):
        return RefusedExpression(f"#{node_of(name)} is a node, not a part of another", f"only #{node_of(name)}")
    hint = _INSTEAD.get(name, "a tensor has .sum() .max() .mean() .norm() .shape .T and others of numpy")
    return RefusedExpression(f".{as_written(name)} is no attribute of a recorded tensor", hint)


def _call(name: str, *arguments: ast.expr, named: list[ast.keyword] | None = None) -> ast.expr:
    function = ast.Attribute(ast.Name(_EVALUATION, ast.Load()), name, ast.Load())
    return ast.Call(function, list(arguments), named or [])


def _later(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _of_numpy(node: ast.expr) -> list[str] | None:
    """Return ``["linalg", "norm"]`` for ``np.linalg.norm``; None if the expression does not start with ``np``."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    return path[::-1] if path and isinstance(node, ast.Name) and node.id == "np" else None


def _spoken(node: ast.AST) -> str:
    return {"Lambda": "lambda", "JoinedStr": "an f-string", "NamedExpr": ":="}.get(
        type(node).__name__, type(node).__name__.lower()
    )
