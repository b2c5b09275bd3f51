"""Runs a static graph on arrays: without tensors, nodes or the user's Python code, in planned buffers.

The plan is a straight-line function on local variables, generated as text and compiled once (`execution_plan`). The
text contains nothing from the graph but numbers. Buffers belong to one running plan: a second thread gets its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine.jit.execution_plan import Plan, planned
from gviz.engine.jit.static_graph import StaticGraph
from gviz.engine.modes import thread
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values.value import Array

Run = Callable[..., tuple[Any, ...]]


class Executor:
    """The plan of one graph, made at its first run, and its idle instances."""

    def __init__(self, graph: StaticGraph) -> None:
        self._graph = graph
        self._plan: Plan | None = None
        self._idle: list[Run] = []

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for inputs of the recorded shapes, dtypes and layouts. Raises what the operations raise."""
        try:
            run = self._idle.pop()
        except IndexError:
            run = self.instance()
        try:
            results = thread.quietly(run, *[t._array for t in inputs])
        except ValueError as error:
            raise RuntimeError(str(error)) from error
        finally:
            self._idle.append(run)
        assert self._plan is not None
        for written in self._plan.written:
            written._counter[0] += 1
        for place in self._plan.written_inputs:
            inputs[place]._counter[0] += 1
        return [new_tensor(a if a.__class__ is np.ndarray else np.asarray(a)) for a in results]

    def instance(self) -> Run:
        """The plan as a function of the input arrays, with its own buffers."""
        if self._plan is None:
            self._plan = planned(self._graph)
        space = dict(self._plan.names)
        for name, form in self._plan.buffers.items():
            space[name] = buffer(form.shape, form.dtype, form.strides)
        exec(self._plan.code, space)
        run: Run = space["run"]
        return run


def buffer(shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...]) -> Array:
    """New uninitialized memory for a dense array with these strides."""
    order = sorted(range(len(shape)), key=lambda dim: -strides[dim])
    memory = np.empty([shape[dim] for dim in order], dtype)
    return memory.transpose(np.argsort(order)) if order else memory


def is_planned(graph: StaticGraph) -> bool:
    """Whether a plan gives the same as the operations: sizes are known, and no output shares memory with anything."""
    if graph.dynamic:
        return False
    outside = {node.outputs[0].storage for node in graph.nodes if node.op is None and not node.fresh}
    if any(node.effect == "become" and node.outputs[0].storage in outside for node in graph.nodes):
        return False
    storages = [graph.form(ref).storage for ref in graph.outputs]
    return len(set(storages)) == len(storages) and outside.isdisjoint(storages)
