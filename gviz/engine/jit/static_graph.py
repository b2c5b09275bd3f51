"""The static graph: the operations of one run, in their order, to be run again without the program.

A graph is data. Its nodes are numbered by their place in it. First come the inputs; parameters and constants come
before the first operation that uses them. An operation refers to its operands as `Ref`: which output of which earlier
node. What an operation writes is memory, as in the run: a node whose `effect` is ``"write"`` has put its result into
the memory of its first operand, and everything that lies in that memory (equal `Form.storage`) shows it from then on.
Running the operations in their order on real memory therefore gives what the program gave; `Node.after` says which
earlier writes an operation depends on without having their result as an operand. With the effect ``"become"`` the
operand itself has become the view that the operation makes (``t_``); otherwise an operation makes something new.

Shapes, dtypes and layouts are those of the recorded run. `StaticGraph.dynamic` names the operations whose sizes depend
on data; there the forms of a graph are those of the example alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from gviz.engine.op import Op
from gviz.engine.operation_lookup import Effect, is_sized_by_data
from gviz.engine.tensor import Tensor
from gviz.source.site import Frame, StackKey, frames
from gviz.values.plain_text import file_line, shown

Kind = Literal["input", "parameter", "constant", "op"]


class Ref(NamedTuple):
    """One output of one node."""

    node: int
    output_nr: int = 0


@dataclass(frozen=True, slots=True)
class Form:
    """What one output was in the recorded run; strides in bytes. Outputs of one `storage` share memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]
    storage: int


@dataclass(frozen=True, slots=True)
class Node:
    """One operation, or one value that operations start from.

    `name` is an input's or a parameter's. `tensor` is what a parameter or constant is, shared with the program; one
    that is `fresh` was made by the program in the run itself and is copied for every run. `untracked` operations ran
    without gradients although there were some to record. `stack` is where in the program it was, see `source.site`.
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
        """What to call it: the operation's name, with an underscore if it writes."""
        if self.op is None:
            return self.name or self.kind
        return self.op.name if self.effect == "new" else self.op.name.rstrip("_") + "_"

    @property
    def place(self) -> Frame | None:
        """The innermost place in the program, None where it is not known."""
        return next(iter(frames(self.stack)), None)


@dataclass(frozen=True, slots=True)
class StaticGraph:
    """The operations of one run of `name`. `outputs` are what it gave, in the order of the `Structure` it had."""

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[Ref, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """What it takes, in order; they are its first nodes."""
        return tuple([node for node in self.nodes if node.kind == "input"])

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The parameters it shares with the program, by name."""
        return {n.name: n.tensor for n in self.nodes if n.kind == "parameter" and n.tensor is not None}

    def form(self, ref: Ref) -> Form:
        """What an output of a node was in the recorded run."""
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
    """Whether an operation's output has as many elements as its data say."""
    assert node.op is not None
    return is_sized_by_data(node.op, [graph.form(ref).dtype for ref in node.inputs[1:]])


def needed(nodes: list[Node], outputs: tuple[Ref, ...]) -> list[int]:
    """The numbers of the nodes that outputs depend on, and of all inputs and writes."""
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
    """A graph of some of the nodes, numbered anew."""
    numbers = {old: new for new, old in enumerate(kept)}
    renumbered = tuple([_renumbered(nodes[old], numbers) for old in kept])
    return StaticGraph(name, renumbered, tuple([Ref(numbers[ref.node], ref.output_nr) for ref in outputs]))


def _renumbered(node: Node, numbers: Mapping[int, int]) -> Node:
    inputs = tuple([Ref(numbers[ref.node], ref.output_nr) for ref in node.inputs])
    return replace(node, inputs=inputs, after=tuple([numbers[n] for n in node.after]))


# ----------------------------------------------------------------------------------------------------------------------
# A static graph as readable code: one line an operation, with what it gives and where the program says so.


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
    """What the nodes of a graph are called in its text."""

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
        """An operand: a name, an output of several, or a number."""
        node = self.graph.nodes[ref.node]
        if "number" in node.attrs:
            return repr(node.attrs["number"])
        name = self.values[ref.node]
        return name if len(node.outputs) == 1 else f"{name}[{ref.output_nr}]"

    def call(self, number: int) -> str:
        """An operation with its operands and attributes."""
        node = self.graph.nodes[number]
        given = [self.ref(ref) for ref in node.inputs]
        given += [f"{name}={_attribute(value)}" for name, value in node.attrs.items()]
        return f"{node.title}({', '.join(given)})"


def is_inline(node: Node) -> bool:
    """Whether a node has no line of its own: an input, or a number in the middle of the code."""
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
    """dtype and shape: ``float32[2, 3]``."""
    return f"{form.dtype.name}{list(form.shape)}" if form.shape else form.dtype.name


def _attribute(value: Any) -> str:
    if isinstance(value, np.dtype):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return repr(tuple(getattr(value, field.name) for field in fields(value)))
    if isinstance(value, Mapping):
        return "{...}"
    return shown(repr(value))
