"""Expressions over the tensors of a moment: ``x.grad * 2``, ``net.fc1.weight.grad.max()``, ``#4 - #3``.

An expression uses Python's syntax and is read as a tree. Names of tensors are replaced by plain names whose values are
looked up. `gviz.query_syntax.safe_expression` evaluates the rest; it allows only arithmetic and a closed list of
functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from typing import Any

import numpy as np

from gviz.errors import GvizError, NotStored
from gviz.events import Edge
from gviz.events.optimizer_options import option_text, options_in
from gviz.query.nodes import BEFORE_FIRST_TENSOR, NamedNodes, last
from gviz.query_syntax import safe_expression as guarded
from gviz.query_syntax.condition import NAMES, holds
from gviz.query_syntax.expression_limits import Budget, TooMuch
from gviz.query_syntax.expression_names import FACTS, METHODS, as_python, as_written, node_of
from gviz.query_syntax.expression_operations import FUNCTIONS, OF_NUMPY, TYPES, Numbers
from gviz.query_syntax.place import ASPECTS, Aspect, place, split_aspect
from gviz.query_syntax.safe_expression import bound_names
from gviz.query_syntax.statistics_proxy import StatisticsProxy, summarized
from gviz.query_syntax.stop_condition import AtChange, AtExpression, Stop
from gviz.trace.breakpoint_hits import STRETCH, Hit, Hits
from gviz.trace.graph_state import NodeState
from gviz.trace.timeline import Moment, Timeline
from gviz.values.plain_text import clipped, shown, text_of
from gviz.values.value import NUMPY_DTYPES, Array, Value, capture
from gviz.values.value_text import short

States = Callable[[Sequence[int]], Sequence[NodeState | None]]
"""Returns nodes at one moment."""

_NAMES_OF_DTYPES = {np.dtype(code) for code in NUMPY_DTYPES.values()}


def value_of(timeline: Timeline, names: NamedNodes, n: int, text: str, states: States | None = None) -> Any:
    """Return the value of a user's expression at moment `n`: arrays for tensors, numbers for scalars.

    `states` replaces the states of the nodes, for a changed course of events; None uses the timeline's. Raises
    GvizError for unknown names and for any error in the expression, and NotStored if numbers were not stored.
    """
    result = _result_of(timeline, names, n, text, states)
    return result.refuse() if isinstance(result, StatisticsProxy) else result


def _result_of(timeline: Timeline, names: NamedNodes, n: int, text: str, states: States | None = None) -> Any:
    """Return the same as `value_of`, or the statistics of a tensor whose numbers were not stored."""
    moment = timeline.at(n)
    tree = parse_expression(text)
    environment: dict[str, Any] = {}
    resolver = _Resolver(timeline, names, moment, environment, bound_names(tree), states)
    try:
        return guarded.evaluate(guarded.compiled(resolver.visit(tree)), environment)
    except GvizError:
        raise
    except Exception as error:  # the expression may raise anything; the error is shown
        missing = next((name for name, value in environment.items() if value is None), None)
        if missing is not None:
            raise GvizError(f"{clipped(text, 40)}: {resolver.written(missing)} is None here", exit_code=2) from None
        message = f"{clipped(text, 40)}: {clipped(text_of(error).strip(), 110)}"
        raise GvizError(message, hint=_hint(error), exit_code=2) from None


def _hint(error: Exception) -> str:
    """Return what to write instead of PyTorch syntax, or ""."""
    if isinstance(error, guarded.RefusedExpression | TooMuch):
        return error.hint
    if isinstance(error, TypeError) and "keyword argument 'dim'" in str(error):
        return "the dimension is called axis here, as in numpy"
    return "x.shape, x.size is the number of elements" if "'int' object is not callable" in str(error) else ""


def as_value(result: Any) -> Value | None:
    """Return a result as a value that can be shown like any other; None if it is not an array or number."""
    array = np.asarray(result) if isinstance(result, (np.ndarray, np.generic, bool, int, float)) else None
    return None if array is None or array.dtype not in _NAMES_OF_DTYPES else capture(array)


def parse_expression(text: str) -> ast.Expression:
    """Parse an expression. Raises GvizError if it is not one."""
    try:
        tree = guarded.parsed(as_python(guarded.check_length(text.strip())))
    except guarded.NoPython:
        hint = "x.grad, #4, x * 2, norm(x.grad), net.fc1.weight.grad"
        if _ASSIGNED.match(text):
            hint = "set x = 5 asks what would follow from a value; == compares"
        raise GvizError(f"{clipped(text, 40) or 'nothing'} is no expression", hint=hint, exit_code=2) from None
    except guarded.RefusedExpression as refusal:
        raise GvizError(f"{clipped(text, 40)} is no expression", why=str(refusal), exit_code=2) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in FUNCTIONS:
            raise _no_function(node.func.id)
    return tree


def _steps_with(timeline: Timeline, name: str, n: int) -> Iterator[str]:
    """Describe the values of an option with this name in the last optimizer step and in the next one."""
    for seq, step in timeline.contexts.steps_around(n):
        groups = [options_in(step.options, group) for group in range(len(step.options))]
        texts = dict.fromkeys(option_text(options[name]) for options in groups if name in options)
        if texts:
            yield f"{shown(step.kind)} has {' and '.join(texts)} in its step at @{seq}"


_LIBRARIES = ("torch", "math", "numpy", "F")
_ASSIGNED = re.compile(r"\s*[\w.#\[\], ]+=(?!=)")


def _no_function(name: str) -> GvizError:
    known = ", ".join(sorted(FUNCTIONS.keys() - {"np"}))
    hint = f"np.{name}" if name in OF_NUMPY else f"there are {known}, and np's own"
    return GvizError(f"there is no function {clipped(name, 40)}", hint=hint, exit_code=2)


class _Resolver(ast.NodeTransformer):
    """Replaces each tensor by a plain name, and puts its numbers into `environment` under that name."""

    def __init__(
        self,
        timeline: Timeline,
        names: NamedNodes,
        moment: Moment,
        environment: dict[str, Any],
        bound: frozenset[str],
        states: States | None,
    ) -> None:
        self._timeline, self._names, self._moment, self._environment = timeline, names, moment, environment
        self._bound, self._states = bound, states or moment.states
        self._reads: dict[str, tuple[Edge, Aspect]] = {}

    def written(self, name: str) -> str:
        """Return the text that a plain name replaced: ``x.grad``."""
        (node, nr), aspect = self._reads[name]
        return f"{self._timeline.info(node).output_name(nr) or f'#{node}'}.{aspect}"

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Resolve ``net.fc1.weight.grad``: the longest prefix that names a tensor, then ``.grad`` or ``.value``."""
        path = dotted(node)
        if path and path[0] in self._bound:
            return self.generic_visit(node)  # type: ignore[return-value]  # an attribute stays one
        for length in range(len(path), 0, -1):
            if path[length - 1] in ASPECTS and self._tensor(".".join(path[: length - 1])):
                continue  # ``x.grad`` is also the name of a node that was x's gradient once
            if tensor := self._tensor(".".join(path[:length])):
                return self._read(tensor, path[length:])
        if path and path[0] not in FUNCTIONS:
            raise self._unknown(".".join(path))
        return self.generic_visit(node)  # type: ignore[return-value]  # an attribute stays one

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Resolve the name of a called function, even if a tensor has the same name: ``norm =
        clip_grad_norm_(...)``.
        """
        return transformed_call(self, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Resolve ``parts[0]``: a part of a call's return value if one has that name, otherwise an index into a
        tensor.
        """
        if isinstance(node.value, ast.Name) and node.value.id not in self._bound:
            tensor = self._tensor(as_written(ast.unparse(node)))
            if tensor is not None:
                return self._read(tensor, [])
        return self.generic_visit(node)  # type: ignore[return-value]  # a subscript stays one

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return a tensor's value, unless the expression binds the name itself."""
        if node.id in self._bound:
            return node
        if tensor := self._tensor(node.id):
            return self._read(tensor, [])
        if node.id in FUNCTIONS:
            return node
        raise self._unknown(node.id)

    def _unknown(self, name: str) -> GvizError:
        n = self._moment.n
        later = next(
            iter(self._names.called(split_aspect(name)[0], len(self._timeline))), 0
        )  # none is earlier: it would have been found
        if not self._timeline.nodes and self._timeline.growing:
            raise GvizError(f"there is no {clipped(name, 40)} yet", hint=BEFORE_FIRST_TENSOR, exit_code=2)
        if later:
            why = f"#{later} is made by event {self._timeline.nodes.born(later)}"
            raise GvizError(f"there is no {clipped(name, 40)} yet", why=why, hint=f"goto #{later}", exit_code=2)
        near, word = self._names.near(name, n), name.partition(".")[0]
        of_every = f"conditions ask for {word}, as break if value.max() > 3: here it is of x, x.grad or #4"
        function = name.rpartition(".")[2]
        listed = of_every if word in NAMES else "only tensors are recorded, the tape lists them"
        if steps := ", ".join(_steps_with(self._timeline, name, n)):
            listed = f"it is an option: {steps}"
        if word in _LIBRARIES and function in OF_NUMPY:
            listed = f"np.{function}"
        hint = f"did you mean {near}?" if near and not steps else listed
        return GvizError(f"there is no {clipped(name, 40)} here", hint=hint, exit_code=2)

    def _read(self, tensor: Edge, rest: list[str]) -> ast.expr:
        explicit = next((aspect for aspect in ASPECTS if rest[:1] == [aspect]), None)
        aspect, (node, nr) = explicit or "value", tensor
        name = f"node_{node}_{nr}_{aspect}"
        self._reads[name] = tensor, aspect
        self._environment[name] = _numbers(self._timeline, self._states([node])[0], tensor, aspect, self._moment.n)
        read: ast.expr = ast.Name(name, ast.Load())
        for attribute in rest[1:] if explicit else rest:
            read = ast.Attribute(read, attribute, ast.Load())
        return read

    def _tensor(self, name: str) -> Edge | None:
        numbered = node_of(name)
        if not numbered:
            n = self._moment.n
            node = (
                self._names.node_of_variable(name, n) or self._names.last(name, n) or self._names.of_a_module(name, n)
            )
            return (node, self._names.output_nr(node, name, self._moment.n)) if node else None
        if numbered not in self._timeline.nodes:
            raise self._unknown(f"#{numbered}")
        return numbered, 0


def transformed_call(transformer: ast.NodeTransformer, node: ast.Call) -> ast.Call:
    """Return a call with transformed arguments, and a plain function name left unchanged."""
    function = node.func if isinstance(node.func, ast.Name) else transformer.visit(node.func)
    named = [ast.keyword(word.arg, transformer.visit(word.value)) for word in node.keywords]
    return ast.Call(function, [transformer.visit(argument) for argument in node.args], named)


def dotted(node: ast.expr) -> list[str]:
    """Return the parts of ``a.b.c`` as users write them, empty for an attribute of anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(as_written(node.attr))
        node = node.value
    return [*reversed([*parts, as_written(node.id)])] if isinstance(node, ast.Name) else []


def _numbers(timeline: Timeline, state: NodeState | None, tensor: Edge, aspect: Aspect, n: int) -> Any:
    node, nr = tensor
    output = state.outputs[nr] if state is not None and nr < len(state.outputs) else None
    value = None if output is None else output.value if aspect == "value" else output.grad
    if value is None and output is not None and aspect == "grad":
        return None
    if value is None:
        raise GvizError(f"#{node} has no {aspect} at event {n}", exit_code=2)
    array = timeline.array(value)
    if array is None:
        return summarized(f"the {aspect} of #{node}", value)
    return array.view(Numbers) if array.ndim else array[()]


# Expressions as one line of text, or one number


class Evaluator:
    """Evaluates expressions about a timeline, and caches the names of its nodes."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.names = NamedNodes(timeline)

    def last(self, text: str, n: int) -> int:
        """Return the last node created by moment `n` that a place refers to, otherwise the first later one.

        Raises GvizError if there is none.
        """
        return last(self.names, text, n)

    def evaluated(self, text: str, n: int, states: States | None = None) -> str:
        """Return the value of an expression in one line; `states` as in `value_of`.

        A tensor whose numbers were not stored is shown by its statistics.
        """
        result = _result_of(self.timeline, self.names, n, text, states)
        if isinstance(result, StatisticsProxy):
            return short(result.recorded) if result.recorded is not None else shown(result.refuse())
        value = as_value(result)
        return shown(clipped(text_of(result), 200)) if value is None else short(value)

    def number(self, text: str, n: int, states: States | None = None) -> float:
        """Return an expression as one number; nan if it is not a single number. `states` as in `value_of`."""
        value = as_value(value_of(self.timeline, self.names, n, text, states))
        array = None if value is None or value.size != 1 else self.timeline.array(value)
        return float("nan") if array is None else float(array.item())

    def elements(self, text: str, n: int) -> int:
        """Return the number of elements of an expression."""
        value = as_value(value_of(self.timeline, self.names, n, text))
        return 0 if value is None else value.size


# Where the value of an expression changes: ``break change norm(w.grad) * 2``


def hits_of(timeline: Timeline, stop: Stop) -> Hits:
    """Return the moments at which a stop fits, unless it is a finding. Raises GvizError if it is not an expression."""
    return Changes(timeline, stop, stop.at) if isinstance(stop.at, AtExpression) else Hits(timeline, stop)


class Changes(Hits):
    """The moments at which an expression changes its value, or becomes true for a condition.

    Only events that change one of its tensors can change it, so it is evaluated only there. Raises GvizError if it is
    not an expression or names no tensor.
    """

    def __init__(self, timeline: Timeline, stop: Stop, computed: AtExpression) -> None:
        super().__init__(timeline, stop)
        self._undecided: set[int] = set()
        self._names = NamedNodes(timeline)
        self._computed = computed
        stops = [Stop(stop.head, AtChange(aspect, place(name))) for name, aspect in _tensors_in(computed.expression)]
        self._parts = [Hits(timeline, one) for one in stops]

    def _forget_from(self, first: int) -> None:
        super()._forget_from(first)
        self._undecided = {n for n in self._undecided if n < first}

    def undecided(self, n: float = inf) -> int:
        """Return at how many of the searched moments by `n` the needed numbers were not stored."""
        return sum(1 for moment in self._undecided if moment <= n)

    def missing(self) -> str:
        """Return what the expression needs but was not stored, at the first moment at which all its names exist."""
        there = max(next(part.after(0), Hit(0)).n for part in self._parts)
        try:
            self._value(there)
        except NotStored as error:
            return error.what
        return ""

    def unmatched_name(self) -> str:
        """Return the first of its names that no node has; "" if there is none."""
        return next(filter(None, (part.unmatched_name() for part in self._parts)), "")

    def matches(self, node: int) -> bool:
        """Return False: an expression has no place."""
        return False

    def _search(self, start: int, end: int) -> Iterator[Hit]:
        stretch = range(start // STRETCH * STRETCH, end)
        moments = {hit.n for hit in chain.from_iterable(part.in_stretch(stretch) for part in self._parts)}
        for n in sorted(moments):
            if start <= n < end and self._holds(n):
                hit = self._tested(n, self._timeline.at(n).node, self._timeline.event(n))
                if hit is not None:
                    yield hit

    def _holds(self, n: int) -> bool:
        try:
            if not self._computed.holds:
                return not _is_same(self._value(n - 1), self._value(n))
            value = self._value(n)
        except NotStored:
            self._undecided.add(n)
            return False
        return value is not None and holds(value)

    def _value(self, n: int) -> Array | None:
        """Return the value of the expression at a moment; None if it has none. Raises NotStored if numbers are
        missing.
        """
        try:
            result = value_of(self._timeline, self._names, n, self._computed.expression)
            holds_texts = isinstance(result, list | tuple | dict | set) and Budget({}).extent(result).bulky
            return np.asarray(text_of(result) if holds_texts else result)
        except NotStored:
            raise
        except GvizError:
            return None


def _is_same(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    numbers = one.dtype.kind in "fc" and other.dtype.kind in "fc"
    return np.array_equal(one, other, equal_nan=numbers)


def _tensors_in(text: str) -> Iterable[tuple[str, Aspect]]:
    """Return the tensors of an expression with the aspect it reads. Raises GvizError if there are none."""
    tree = parse_expression(text)
    tensors = _TensorNames(guarded.bound_names(tree))
    try:
        guarded.compiled(tensors.visit(tree))
    except guarded.RefusedExpression as refusal:
        raise GvizError(f"{clipped(text, 40)} is no expression", why=str(refusal), exit_code=2) from None
    if not tensors.named:
        raise GvizError(f"{clipped(text, 40)} names no tensor, and never changes", exit_code=2)
    return tensors.named


class _TensorNames(ast.NodeTransformer):
    """Collects what an expression names and replaces it by plain names; some may not be tensors."""

    def __init__(self, bound: frozenset[str]) -> None:
        self.named: dict[tuple[str, Aspect], None] = {}
        self._known = bound | {"np"}

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Return the path ``net.fc1.weight`` of ``net.fc1.weight.grad.max``, without methods and without ``.grad``."""
        path = dotted(node)
        if not path or path[0] in self._known:
            return self.generic_visit(node)  # type: ignore[return-value]  # an attribute stays one
        end = len(path)
        while end > 1 and path[end - 1] in METHODS | FACTS:
            end -= 1
        name, aspect = split_aspect(".".join(path[:end]))
        read = self._tensor_name(name, aspect or "value")
        for attribute in path[end:]:
            read = ast.Attribute(read, attribute, ast.Load())
        return read

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return a tensor's value, unless the expression binds the name itself, or it is a type."""
        return node if node.id in self._known | TYPES else self._tensor_name(node.id, "value")

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Resolve the name of a called function, whatever else has that name."""
        return transformed_call(self, node)

    def _tensor_name(self, name: str, aspect: Aspect) -> ast.expr:
        numbered = node_of(name)
        self.named[f"#{numbered}" if numbered else name, aspect] = None
        return ast.Name("tensor", ast.Load())
