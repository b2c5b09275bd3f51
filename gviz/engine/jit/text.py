"""A static graph as readable code: one line an operation, with what it gives and where the program says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from gviz.engine.jit.graph import Form, Node, Ref, StaticGraph
from gviz.plain_text import file_line, shown


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
