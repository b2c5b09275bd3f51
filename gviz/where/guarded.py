"""Expressions that people type, compiled so that no evaluation runs for long or reaches outside of its numbers.

They are a part of Python: numbers, comparisons, tensors' methods, some functions, a comprehension. Loops are
counted, and every operator and call is one of `gviz.where.measured`: measured before it is computed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextvars import copy_context
from itertools import chain
from types import CodeType
from typing import Any

import numpy as np

from gviz import syntax
from gviz.where import measured
from gviz.where.measured import MOST_BITS, TooMuch
from gviz.where.of_tensors import FACTS, METHODS
from gviz.where.spelling import as_written, node_of

LONGEST = 1000
"""Characters of an expression."""

DEEPEST = 2
"""Loops within each other."""

_MOST_LEVELS = 100
"""Of a tree: whoever visits it stands in several frames a level, below those of the program, which may be many."""


class Refused(Exception):
    """Something that is not part of the language; `hint` says what is, where that is known."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint


class NoPython(Refused):
    """A text that Python cannot read."""


_WIDER = {"e": np.float64, "f": np.float64, "F": np.complex128}


def _widened(numbers: Any) -> Any:
    """Numbers whose squares leave the range of their type only if they do themselves; any others as they are."""
    wider = _WIDER.get(numbers.dtype.char) if isinstance(numbers, np.ndarray) else None
    return numbers if wider is None else numbers.astype(wider)


def _over(function: Callable[[Any], Any], prepared: Callable[[Any], Any] = lambda given: given) -> Callable[..., Any]:
    """A function of numpy that also takes several numbers, or an iterator, as Python's own does."""

    def reduced(first: Any, *others: Any, **named: Any) -> Any:
        given = [first, *others] if others else list(first) if isinstance(first, Iterator) else first
        return measured.called(function, prepared(given), **named)

    return reduced


def _rounded(number: Any, digits: int = 0) -> Any:
    if not -MOST_BITS < digits < MOST_BITS:
        raise TooMuch("so many digits are too many")
    if isinstance(number, np.ndarray | np.generic):
        return np.round(number, digits)
    return round(number, digits) if digits else round(number)


class Numbers(np.ndarray[Any, Any]):
    """The elements of a tensor, with what PyTorch's users expect of them besides."""

    def norm(self) -> float:
        """The L2 norm of all elements."""
        return float(np.linalg.norm(_widened(np.asarray(self))))


def _where(condition: Any, *branches: Any) -> Any:
    """The indices at which a condition holds, a row for each; with two branches what is taken from these, as numpy."""
    return measured.called(np.where if branches else np.argwhere, condition, *branches)


def _zeros(numbers: Any) -> float:
    """The share of elements that are zero."""
    size = np.size(numbers)
    return 1 - np.count_nonzero(numbers) / size if size else 0.0


FUNCTIONS: dict[str, Any] = {
    "np": np, "isnan": np.isnan, "isinf": np.isinf, "norm": _over(np.linalg.norm, _widened), "any": _over(np.any),
    "all": _over(np.all), "min": _over(np.min), "max": _over(np.max), "mean": _over(np.mean), "sum": _over(np.sum),
    "argmin": np.argmin, "argmax": np.argmax, "where": _where, "abs": np.abs, "len": len, "zeros": _zeros,
    "round": _rounded, "float": float, "int": int, "bool": bool, "str": str,
}  # fmt: skip
"""What an expression may use besides tensors, in the place of Python's builtins."""
TYPES = frozenset(("float", "int", "bool", "str"))
"""Those that are also something to be handed on: ``x.astype(int)``."""
for _name, _function in FUNCTIONS.items():
    if getattr(_function, "__module__", "") == __name__:
        _function.__qualname__ = _name  # as Python calls it where it is called wrongly

_OF_NUMPY = """
abs absolute all allclose any arccos arcsin arctan arctan2 argmax argmin argsort argwhere around array array_equal
asarray average ceil clip cos cosh count_nonzero cumprod cumsum deg2rad diagonal diff dot e exp exp2
expm1 fabs float16 float32 float64 floor fmax fmin hypot inf int32 int64 isclose isfinite isinf isnan linalg
log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul max maximum mean median
min minimum nan nanmax nanmean nanmin nansum norm nonzero percentile pi prod ptp quantile ravel real round
sign sin sinh sort sqrt square std sum tan tanh trace transpose trunc unique var vdot where
"""
OF_NUMPY = frozenset(_OF_NUMPY.split())
"""What makes nothing out of all proportion to what it is given."""

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
"""By what PyTorch's users write of a tensor: what to write here."""


_PARTS = (
    ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.Attribute, ast.Subscript,
    ast.Slice, ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.GeneratorExp, ast.ListComp,
    ast.comprehension, ast.keyword, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


_PASSES, _GIVEN = "_passes", "_given"

BUILTINS: dict[str, Any] = {
    **FUNCTIONS,
    "_called": measured.called,
    "_compared": measured.compared,
    **{f"_{name}": operation for name, operation in measured.OPERATIONS.items()},
    "__import__": __import__,  # numpy imports parts of itself late, by the caller's builtins
}
_OWN = BUILTINS.keys() - FUNCTIONS.keys() | {_PASSES, _GIVEN}
"""The names that the guard writes into an expression, and nobody else may."""


def parsed(text: str) -> ast.Expression:
    """Read an expression; raises `Refused` with the reason for what is none."""
    if len(text) > LONGEST:
        raise Refused(f"it is longer than {LONGEST} characters")
    try:
        tree = syntax.expression(text)
    except SyntaxError as error:
        raise NoPython(error.msg) from None
    except (ValueError, RecursionError, MemoryError):
        raise NoPython("it cannot be read") from None
    if _levels(tree) > _MOST_LEVELS:
        raise Refused("it is nested too deeply")
    return tree


def _levels(tree: ast.AST) -> int:
    level, count = [tree], 0
    while level:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        count += 1
    return count


def bound_names(tree: ast.AST) -> frozenset[str]:
    """The names that an expression gives itself: ``v`` in ``any(v > 1 for v in value)``."""
    return frozenset(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def compiled(tree: ast.Expression) -> CodeType:
    """Code for `evaluate`; raises `Refused` where the expression leaves the language."""
    try:
        guarded = _Guard().visit(tree)
        with syntax.unwarned():  # what is warned of, such as 1[0], fails and says so
            return compile(ast.fix_missing_locations(guarded), "<expression>", "eval")
    except RecursionError:
        raise Refused("it is nested too deeply") from None


_SILENT = copy_context()
"""Where numpy warns of nothing. It is made once: to change that and back again takes longer than most expressions."""
_SILENT.run(np.seterr, all="ignore")


def evaluate(code: CodeType, names: dict[str, Any]) -> Any:
    """What the expression is where its names mean this; raises whatever it raises, `TooMuch` where it goes too far."""
    names["__builtins__"] = BUILTINS
    loops = measured.Loops()
    names[_PASSES], names[_GIVEN] = loops.passes, loops.given
    return _SILENT.copy().run(eval, code, names)


class _Guard(ast.NodeTransformer):
    """Refuses what is not of the language, and puts the measured operations in the place of the others."""

    def __init__(self) -> None:
        self._depth = 0

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, _PARTS):
            raise Refused(f"{_spoken(node)} is not part of an expression here")
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id.startswith("__") or node.id in _OWN or (isinstance(node.ctx, ast.Store) and node.id in BUILTINS):
            raise Refused(f"{node.id} has a meaning of its own here")
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _call(f"_{type(node.op).__name__}", node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        kinds = [type(kind).__name__ for kind in node.ops]
        if len(kinds) == 1:
            return _call(f"_{kinds[0]}", node.left, node.comparators[0])
        links = zip(map(ast.Constant, kinds), map(_later, node.comparators), strict=True)
        return _call("_compared", node.left, *chain.from_iterable(links))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        path = _of_numpy(node)
        if path is not None:
            if not OF_NUMPY.issuperset(path):
                raise Refused(f"np.{'.'.join(path)} is not among the functions it knows")
            return node
        self.generic_visit(node)
        if node.attr not in METHODS | FACTS:
            raise _no_attribute(node.attr)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name | ast.Attribute):
            raise Refused("only a function can be called")
        self.generic_visit(node)
        return ast.Call(ast.Name("_called", ast.Load()), [node.func, *node.args], node.keywords)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if any(isinstance(part, ast.Constant) and part.value is None for part in ast.walk(node.slice)):
            raise Refused("None adds no dimension here")
        self.generic_visit(node)
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self._loop(node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self._loop(node)

    def _loop(self, node: ast.GeneratorExp | ast.ListComp) -> ast.expr:
        self._depth += len(node.generators)
        if self._depth > DEEPEST:
            raise Refused(f"more than {DEEPEST} loops within each other take too long")
        self.generic_visit(node)
        self._depth -= len(node.generators)
        for loop in node.generators:
            loop.iter = _call(_PASSES, loop.iter)
        node.elt = _call(_GIVEN, node.elt)
        return node


def _no_attribute(name: str) -> Refused:
    if node_of(name):
        return Refused(f"#{node_of(name)} is a node, and no part of another", f"#{node_of(name)} alone")
    hint = _INSTEAD.get(name, "of a tensor it knows .sum() .max() .mean() .norm() .shape .T and others of numpy")
    return Refused(f".{as_written(name)} is not among what it knows of a tensor", hint)


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _later(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _of_numpy(node: ast.expr) -> list[str] | None:
    """``["linalg", "norm"]`` of ``np.linalg.norm``; None for what does not begin with ``np``."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    return path[::-1] if isinstance(node, ast.Name) and node.id == "np" else None


def _spoken(node: ast.AST) -> str:
    return {"Lambda": "lambda", "JoinedStr": "an f-string", "NamedExpr": ":="}.get(
        type(node).__name__, type(node).__name__.lower()
    )
