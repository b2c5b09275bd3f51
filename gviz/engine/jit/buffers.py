"""Assigns the results of a plan to buffers, by how long each memory is needed."""

from __future__ import annotations

from gviz.engine.jit.static_graph import Form, Node, StaticGraph


class Buffers:
    """Assigns buffers to results, and takes them back after the last use of everything in them.

    `forms` are the buffers that must exist, by name. `escaping` is the memory that outlives a run, which gets no
    buffer.
    """

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.forms: dict[str, Form] = {}
        self.escaping = frozenset([graph.form(ref).storage for ref in graph.outputs])
        self._last = _last_uses(graph)
        self._ending: dict[int, list[int]] = {}
        for storage, number in self._last.items():
            self._ending.setdefault(number, []).append(storage)
        self._names: dict[int, str] = {}
        self._free: dict[tuple[object, ...], list[str]] = {}
        self._dropped: dict[int, list[int]] = _dropped(graph, self._last, self.escaping)

    def for_result(self, number: int, node: Node) -> str | None:
        """The buffer for the result of a pointwise operation, or None if it must have its own memory.

        It may be the buffer of an operand whose last use this is.
        """
        self._take_back(number)
        form = node.outputs[0]
        if form.storage in self.escaping or not _is_dense(form):
            return None
        free = self._free.setdefault((form.shape, form.dtype, form.strides), [])
        if free:
            name = free.pop()
        else:
            name = f"b{len(self.forms)}"
            self.forms[name] = form
        self._names[form.storage] = name
        return name

    def dropped_after(self, number: int) -> list[int]:
        """The nodes whose results, in memory of their own, are not needed after this one."""
        self._take_back(number)
        owned = self._names
        return [n for n in self._dropped.get(number, ()) if self.graph.nodes[n].outputs[0].storage not in owned]

    def _take_back(self, number: int) -> None:
        for storage in self._ending.pop(number, ()):
            name = self._names.pop(storage, None)
            if name is not None:
                form = self.forms[name]
                self._free.setdefault((form.shape, form.dtype, form.strides), []).append(name)


def _last_uses(graph: StaticGraph) -> dict[int, int]:
    """Return the last node that makes, reads or writes each memory."""
    last: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):
        for form in (*node.outputs, *[graph.form(ref) for ref in node.inputs]):
            last[form.storage] = number
    return last


def _dropped(graph: StaticGraph, last: dict[int, int], escaping: frozenset[int]) -> dict[int, list[int]]:
    """Return the arrays that can be freed after each node: those of nodes with one output that is not returned."""
    dropped: dict[int, list[int]] = {}
    for number, node in graph.operations():
        form = node.outputs[0]
        if len(node.outputs) == 1 and form.shape and form.storage not in escaping:
            dropped.setdefault(last[form.storage], []).append(number)
    return dropped


def _is_dense(form: Form) -> bool:
    """Return whether the elements have no gaps, in any order of dimensions."""
    expected = form.dtype.itemsize
    for stride, size in sorted(zip(form.strides, form.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return expected > 0
