"""Runs a function and its trace on the same inputs, and reports the first operation where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gviz.engine import random
from gviz.engine.jit import notices
from gviz.engine.jit.graph_tracer import RecordedGraph, copied, record
from gviz.engine.jit.nested_tensors import flat
from gviz.engine.jit.static_graph import Names, Node, StaticGraph
from gviz.engine.jit.tensor_interpreter import interpret, scope
from gviz.engine.jit.traced_function import TracedFunction
from gviz.engine.tensor import Tensor
from gviz.values.plain_text import file_line
from gviz.values.value import Array, capture
from gviz.values.value_text import short

DIFFERENT_GRAPHS = "Tracing failed sanity checks!\nERROR: Graphs differed across invocations!\n{why}"
DIFFERENT_OUTPUT = (
    "Output nr {nr}. of the traced function does not match the corresponding output of the Python function. {why}"
)
ATOL = 1e-5


class TracingCheckError(Exception):
    """Raised if the function runs other operations on these inputs than those recorded."""

    __module__ = "torch.jit"


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a function and its traced graph differ: at `node` of the graph (its length: the function runs longer).

    With `is_structural` the function ran another operation there; otherwise the same operation returned another value.
    """

    node: int
    is_structural: bool
    text: str

    def __str__(self) -> str:
        return self.text


def compare(
    function: Callable[..., Any], graph: StaticGraph, args: tuple[Any, ...], *, rtol: float = 0, atol: float = 0
) -> Difference | None:
    """Runs both on copies of `args`, from the same state. Returns the first operation where they differ, or None."""
    names = [node.name for node in graph.inputs]
    parameters = {id(tensor): name for name, tensor in graph.parameters.items()}
    with _left_as_it_was(graph):
        eager = record(function, args, name=graph.name, input_names=names, parameter_names=parameters, keep=True)
    return _difference(eager, graph, _values(graph, args), rtol, atol)


def check(
    function: Callable[..., Any], cases: Sequence[Any], traced: TracedFunction, state: Tensor, tolerance: float
) -> None:
    """The check at the end of `trace`. Raises TracingCheckError if the graphs differ, and warns if values do.

    `state` is the state of the random number generator before the function was traced.
    """
    for args in cases:
        with random.fork_rng():
            random.set_rng_state(state)
            difference = compare(function, traced.graph, args, rtol=tolerance, atol=ATOL)
        if difference is None:
            continue
        if difference.is_structural:
            raise TracingCheckError(DIFFERENT_GRAPHS.format(why=difference.text))
        notices.warn(DIFFERENT_OUTPUT.format(nr=1, why=difference.text))


def _values(graph: StaticGraph, args: tuple[Any, ...]) -> list[list[Array]]:
    """Return the outputs of each node of the graph."""
    values: list[list[Array]] = []

    def seen(_: int, outputs: Sequence[Tensor]) -> None:
        values.append([np.array(t._array) for t in outputs])

    with _left_as_it_was(graph), scope(graph.name, "checking"):
        interpret(graph, [copied(tensor) for tensor in flat(args)[0]], seen)
    return values


def _difference(
    eager: RecordedGraph, graph: StaticGraph, values: list[list[Array]], rtol: float, atol: float
) -> Difference | None:
    left, right = Names(eager.graph), Names(graph)
    for number, (theirs, ours) in enumerate(zip(eager.graph.nodes, graph.nodes, strict=False)):
        if not _same_operation(theirs, ours):
            ran, has = _next(left, number), _next(right, number)
            return Difference(number, True, f"the function {ran} where the traced graph {has}")
        if theirs.kind in ("input", "op") and not _same_values(eager.values[number], values[number], rtol, atol):
            gave = f"the function gives {_texts(eager.values[number])}, the traced graph {_texts(values[number])}"
            return Difference(number, False, f"They part at {_at(right, number, ours)}: {gave}")
    return _of_lengths(eager.graph, graph, left, right)


def _of_lengths(eager: StaticGraph, graph: StaticGraph, left: Names, right: Names) -> Difference | None:
    theirs, ours = len(eager.nodes), len(graph.nodes)
    if theirs > ours:
        return Difference(ours, True, f"the function {_next(left, ours)} where the traced graph ends")
    if ours > theirs:
        return Difference(theirs, True, f"the function ends where the traced graph {_next(right, theirs)}")
    if eager.outputs != graph.outputs:
        return Difference(ours, True, "the function returns the results of other operations")
    return None


def _same_operation(theirs: Node, ours: Node) -> bool:
    """Return whether two nodes do the same to the same operands. Values from outside only need the same kind and
    dtypes.
    """
    if theirs.op is None or ours.op is None:
        return theirs.kind == ours.kind and [f.dtype for f in theirs.outputs] == [f.dtype for f in ours.outputs]
    same = theirs.op is ours.op and theirs.inputs == ours.inputs and theirs.effect == ours.effect
    return same and repr(theirs.attrs) == repr(ours.attrs)


def _same_values(theirs: Sequence[Array], ours: Sequence[Array], rtol: float, atol: float) -> bool:
    pairs = zip(theirs, ours, strict=True)
    return all(a.shape == b.shape and np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True) for a, b in pairs)


def _next(names: Names, number: int) -> str:
    """Describe what a graph does from a node on."""
    for n, node in enumerate(names.graph.nodes[number:], number):
        if node.op is not None:
            return f"runs {_at(names, n, node)}"
    return "ends"


def _at(names: Names, number: int, node: Node) -> str:
    """Return an operation and its source position."""
    what = names.call(number) if node.op is not None else f"the {node.kind} {names.values[number]}"
    place = node.place
    return what if place is None else f"{what} ({file_line(place.path, place.line)}:{place.column + 1})"


def _texts(arrays: Sequence[Array]) -> str:
    return ", ".join(short(capture(array), 40) for array in arrays)


@contextmanager
def _left_as_it_was(graph: StaticGraph) -> Iterator[None]:
    """Restore the elements of shared tensors that the graph writes to."""
    written = {graph.form(node.inputs[0]).storage for _, node in graph.operations() if node.effect == "write"}
    shared = [n.tensor._array for n in graph.nodes if n.tensor is not None and n.outputs[0].storage in written]
    before = [np.array(array) for array in shared]
    try:
        yield
    finally:
        for array, elements in zip(shared, before, strict=True):
            array[...] = elements
