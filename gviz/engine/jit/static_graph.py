"""The static graph: the operations of one run, in order, to be run again without the program.

A graph is data. Its nodes are numbered by their position. First come the inputs; parameters and constants come before
the first operation that uses them. An operation refers to its operands by `Ref`: the number of an earlier node and of
its output. Operations write to memory, as in the run. A node whose `effect` is ``"write"`` stores its result in the
memory of its first operand, and everything in that memory (equal `Form.storage`) changes with it. So running the
operations in order on real memory gives the same as the program. `Node.after` lists the earlier writes that an
operation depends on without having their result as an operand. With the effect ``"become"`` the operand itself becomes
the view that the operation makes (``t_``); otherwise an operation makes new tensors.

Shapes, dtypes and layouts are those of the recorded run. `StaticGraph.dynamic` lists the operations whose sizes depend
on data; a graph with such operations has the forms of the example only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from gviz.engine.op import Op
from gviz.engine.operation_lookup import Effect, is_sized_by_data
from gviz.engine.tensor import Tensor
from gviz.source.call_stack import Frame, StackKey, frames
from gviz.values.plain_text import file_line, shown

Kind = Literal["input", "parameter", "constant", "op"]


class Ref(NamedTuple):
    """One output of one node."""

    node: int
    output_nr: int = 0


@dataclass(frozen=True, slots=True)
class Form:
    """The shape, dtype and strides (in bytes) of one output in the recorded run.

    Outputs with one `storage` share memory.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]
    storage: int


@dataclass(frozen=True, slots=True)
class Node:
    """One operation, or one value that operations start from.

    `name` is that of an input or a parameter. `tensor` is the value of a parameter or constant, shared with the
    program; a `fresh` one was made by the program during the run and is copied for every run. `untracked` operations
    ran with recording disabled, although an input required grad. `stack` is the call stack in the program, see
    `source.call_stack`.
    """

    kind: Kind
    outputs: tuple[Form, ...]
    name: str = ""
    tensor: Tensor | None = None
    fresh: bool = False
    op: Op | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Ref, ...] = ()
    effect: Effect = "new"
    after: tuple[int, ...] = ()
    untracked: bool = False
    stack: StackKey = ()

    @property
    def title(self) -> str:
        """The name of the node: for operations with an underscore if it writes."""
        if self.op is None:
            return self.name or self.kind
        return self.op.name if self.effect == "new" else self.op.name.rstrip("_") + "_"

    @property
    def place(self) -> Frame | None:
        """The innermost source position, or None if unknown."""
        return next(iter(frames(self.stack)), None)


@dataclass(frozen=True, slots=True)
class StaticGraph:
    """The operations of one run of `name`. `outputs` are its results, in the order of its `Structure`."""

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[Ref, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The input nodes, in order; they come first in the graph."""
        return tuple([node for node in self.nodes if node.kind == "input"])

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The parameters that the graph shares with the program, by name."""
        return {n.name: n.tensor for n in self.nodes if n.kind == "parameter" and n.tensor is not None}

    def form(self, ref: Ref) -> Form:
        """The form of an output in the recorded run."""
        return self.nodes[ref.node].outputs[ref.output_nr]

    def operations(self) -> Iterator[tuple[int, Node]]:
        """The operations with their numbers, in the order in which they run."""
        return ((number, node) for number, node in enumerate(self.nodes) if node.op is not None)

    @property
    def dynamic(self) -> tuple[int, ...]:
        """The operations whose sizes depend on data."""
        return tuple([number for number, node in self.operations() if is_dynamic(self, node)])

    def __str__(self) -> str:
        return code(self)


def is_dynamic(graph: StaticGraph, node: Node) -> bool:
    """Whether the output size of an operation depends on data."""
    assert node.op is not None
    return is_sized_by_data(node.op, [graph.form(ref).dtype for ref in node.inputs[1:]])


def needed(nodes: list[Node], outputs: tuple[Ref, ...]) -> list[int]:
    """The numbers of the nodes that the outputs depend on, and of all inputs and writes."""
    waiting = [ref.node for ref in outputs]
    waiting += [n for n, node in enumerate(nodes) if node.kind == "input" or node.effect != "new"]
    kept: set[int] = set()
    while waiting:
        number = waiting.pop()
        if number not in kept:
            kept.add(number)
            waiting += [ref.node for ref in nodes[number].inputs]
            waiting += nodes[number].after
    return sorted(kept)


def of_nodes(name: str, nodes: list[Node], kept: list[int], outputs: tuple[Ref, ...]) -> StaticGraph:
    """A graph of some of the nodes, renumbered."""
    numbers = {old: new for new, old in enumerate(kept)}
    renumbered = tuple([_renumbered(nodes[old], numbers) for old in kept])
    return StaticGraph(name, renumbered, tuple([Ref(numbers[ref.node], ref.output_nr) for ref in outputs]))


def _renumbered(node: Node, numbers: Mapping[int, int]) -> Node:
    inputs = tuple([Ref(numbers[ref.node], ref.output_nr) for ref in node.inputs])
    return replace(node, inputs=inputs, after=tuple([numbers[n] for n in node.after]))


# ----------------------------------------------------------------------------------------------------------------------
# A static graph as readable code: one line per operation, with the forms of its outputs and its source position.


def code(graph: StaticGraph) -> str:
    """The whole graph as the text of a function."""
    names = Names(graph)
    takes = ", ".join(f"{names.values[n]}: {kind(node.outputs[0])}" for n, node in _inputs(graph))
    lines = [f"def {shown(graph.name)}({takes}):"]
    rows = [_row(names, number) for number, node in enumerate(graph.nodes) if not is_inline(node)]
    width = min(max((len(left) for left, _ in rows), default=0), 60)
    lines += [f"    {left:<{width}}  # {right}".rstrip() for left, right in rows]
    results = [names.ref(ref) for ref in graph.outputs]
    return "\n".join([*lines, f"    return {', '.join(results)}"] if results else lines)


def _inputs(graph: StaticGraph) -> list[tuple[int, Node]]:
    return [(number, node) for number, node in enumerate(graph.nodes) if node.kind == "input"]


class Names:
    """The names of a graph's nodes in its text."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.values: dict[int, str] = {}
        operations = 0
        for number, node in enumerate(graph.nodes):
            if node.kind == "op":
                operations += 1
                self.values[number] = f"v{operations}"
            else:
                self.values[number] = shown(node.name) or f"c{number}"

    def ref(self, ref: Ref) -> str:
        """An operand as text: a name, a name with an index, or a number."""
        node = self.graph.nodes[ref.node]
        if "number" in node.attrs:
            return repr(node.attrs["number"])
        name = self.values[ref.node]
        return name if len(node.outputs) == 1 else f"{name}[{ref.output_nr}]"

    def call(self, number: int) -> str:
        """An operation as text, with its operands and attributes."""
        node = self.graph.nodes[number]
        arguments = [self.ref(ref) for ref in node.inputs]
        arguments += [f"{name}={_attribute(value)}" for name, value in node.attrs.items()]
        return f"{node.title}({', '.join(arguments)})"


def is_inline(node: Node) -> bool:
    """Whether a node has no line of its own: an input, or a number within an expression."""
    return node.kind == "input" or (node.op is None and "number" in node.attrs)


def _row(names: Names, number: int) -> tuple[str, str]:
    node = names.graph.nodes[number]
    forms = ", ".join(kind(form) for form in node.outputs)
    if node.kind != "op":
        how = "made anew in every run" if node.fresh else "shared with the program"
        return f"{names.values[number]} = {node.kind}", f"{forms}  {how}"
    place = node.place
    where = "" if place is None else f"  {file_line(place.path, place.line)}:{place.column + 1}"
    return f"{names.values[number]} = {names.call(number)}", f"{forms}{where}"


def kind(form: Form) -> str:
    """The dtype and shape as text: ``float32[2, 3]``."""
    return f"{form.dtype.name}{list(form.shape)}" if form.shape else form.dtype.name


def _attribute(value: Any) -> str:
    if isinstance(value, np.dtype):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return repr(tuple(getattr(value, field.name) for field in fields(value)))
    if isinstance(value, Mapping):
        return "{...}"
    return shown(repr(value))
