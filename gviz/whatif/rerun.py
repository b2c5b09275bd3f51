"""Runs one iteration of a recording again: its operations and passes, never the program.

The engine runs each recorded operation on the tensors of the branch and speaks to a log of the branch's own. Random
numbers are inputs of the operations that use them, so the branch has the recording's. What the program did besides (an
assignment to ``.data``, a hook) is known by its effect only (`effects`); where that depends on the change the branch
stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gviz import emit
from gviz import events as e
from gviz.engine import announce_memory
from gviz.engine.identify import VIEW, is_in_place, recorded_operation
from gviz.engine.nn.parameter import Parameter
from gviz.engine.op import Op
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.wrapped_number import WrappedNumber
from gviz.errors import KEEP_ALL
from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline
from gviz.values import Array, Value
from gviz.whatif import effects, operations
from gviz.whatif.asked import Asked
from gviz.whatif.branch import Branch, Stopped, beyond
from gviz.whatif.change import Change
from gviz.whatif.decisions import Decision, Decisions
from gviz.whatif.older import Older
from gviz.whatif.passes import Passes
from gviz.whatif.retelling import Retelling

NOT_STORED = f"its value was not stored: {KEEP_ALL}"


def branched(timeline: Timeline, iteration: Iteration, changes: Sequence[Change]) -> Branch:
    """Run `iteration` of a recording of gviz's engine again with `changes`. GvizError for one that does not fit."""
    rerun = Rerun(timeline, iteration, changes)
    with emit.aside(rerun.told.channel):
        for n in range(iteration.start, iteration.end + 1):
            rerun.happen(n, timeline.event(n))
    nodes = set(timeline.nodes.of(iteration))
    rerun.asked.refuse_unused(timeline, nodes, rerun.told.numbers, stopped=bool(rerun.stopped))
    return rerun.branch(tuple(rerun.decisions.unused(timeline, nodes)))


class Rerun:
    """A run in progress: the tensors so far, by the recording's nodes, and the nodes that have `changed` with them."""

    def __init__(self, timeline: Timeline, iteration: Iteration, changes: Sequence[Change]) -> None:
        self.timeline = timeline
        self.iteration = iteration
        self.told = Retelling(timeline)
        self.stopped: list[Stopped] = []
        self.asked = Asked(changes)
        self.tensors: dict[int, list[Tensor | None]] = {}
        self.changed: set[int] = set()
        self._cut: set[int] = set()
        self._lost: set[int] = set()
        self._forgotten: set[int] = set()
        self.decisions = Decisions()
        self._passes = Passes(self)
        self._older = Older(self)

    def happen(self, n: int, event: e.Event) -> None:
        """Do again what event number `n` says."""
        if n <= self._passes.end:
            return
        match event:
            case e.NodeCreated(kind="op"):
                self._run(n, event)
            case e.NodeCreated():
                with self.told.as_node(event):
                    self._enter(event)
            case e.BackwardStarted():
                self._passes.run(n, event)
            case e.GradSet():
                with self.told.at(event.stack):
                    effects.set_grad(self, n, event)
            case e.RequiresGradSet():
                effects.switch_grad(self, n, event)
            case e.StorageWritten():
                effects.replace_memory(self, event)
            case e.DataSet():
                effects.set_data(self, n, event)
            case (
                e.ScopeEntered()
                | e.ScopeLeft()
                | e.Named()
                | e.Returned()
                | e.Marked()
                | e.OptimizerStarted()
                | e.OptimizerStepped()
            ):
                self.told.repeat(event)

    def output(self, node: int, nr: int, n: int) -> Tensor | None:
        """An output of a node at event `n`, made from the recording if the branch has not met it; None if unknown."""
        if node not in self.tensors:
            if node in self.told.numbers:
                self.tensors[node] = [self._made_by_pass(node)]
            else:
                self._older.enter(node, n)
        outputs = self.tensors[node]
        return outputs[nr] if nr < len(outputs) else None

    def stop(self, node: int, why: str, *, of_gradient: bool = False, itself: bool = False) -> None:
        """The branch ends at a node; with `itself` the gradient that arrives there is not known either."""
        self.stopped.append(Stopped(node, why, of_gradient))
        self.told.stopped(node, why, of_gradient=of_gradient)
        if of_gradient:
            self._cut.add(node)
        if itself:
            self._lost.add(node)

    def lose(self, node: int) -> None:
        """A ``.grad`` is not known, as what was to arrive there is not."""
        self.stop(node, "it is a gradient that is not known")
        self.changed.add(node)
        self.tensors[node] = [None]

    def depends_on_change(self, nodes: Iterable[int]) -> bool:
        """Whether any of these nodes has another value than in the recording, or may have."""
        return not self.changed.isdisjoint(nodes)

    def unknown(self) -> frozenset[int]:
        """The nodes whose gradients went through something that was not run again."""
        return frozenset(beyond(self.timeline, self._cut) - self._cut | self._lost)

    def branch(self, decisions: tuple[Decision, ...]) -> Branch:
        """What came of it."""
        told, forgotten = self.told, frozenset(self._forgotten)
        return Branch(told.log, dict(told.numbers), tuple(self.stopped), self.unknown(), decisions, forgotten)

    def _enter(self, created: e.NodeCreated) -> None:
        """Make a leaf or constant again."""
        attrs = dict(created.attrs)
        if attrs.get("grad_of") in self.unknown():
            self.lose(created.node)
            return
        results = [] if "grad_of" in attrs else self._passes.captured(created)
        if results == [None]:
            self.lose(created.node)
            return
        tensor = results[0] if results else self._grad_of(attrs.get("grad_of", 0))
        if tensor is not None:
            self.compare(created.node, created.outputs[0].value, tensor)
        else:
            tensor = self.made(created.node, created.outputs[0].value, created.kind, created.requires_grad)
        if tensor is not None and attrs.get("number"):
            tensor = new_tensor(tensor._array, WrappedNumber)
        self.tensors[created.node] = [tensor]
        self.told.number(created.node, tensor)

    def _grad_of(self, leaf: int) -> Tensor | None:
        outputs = self.tensors.get(leaf)
        return outputs[0].grad if outputs and outputs[0] is not None else None

    def compare(self, node: int, value: Value | None, tensor: Tensor) -> None:
        """Note whether what a pass of the branch made for a node is another than the recorded value."""
        recorded = self._recorded(value)
        if recorded is None or not np.array_equal(recorded, tensor._array, equal_nan=True):
            self.changed.add(node)

    def _made_by_pass(self, node: int) -> Tensor | None:
        """What a pass of the branch made, if it is its result or a ``.grad``; nothing else of it can be used."""
        held = [tensor for outputs in self.tensors.values() for tensor in outputs if tensor is not None]
        for tensor in (*self._passes.made, *[tensor._grad for tensor in held if tensor._grad is not None]):
            if tensor._seen is not None and tensor._seen.node == self.told.numbers[node]:
                return tensor
        self.stop(node, "a pass made it, and it cannot be followed")
        self.changed.add(node)
        return None

    def forget(self, storage: int) -> None:
        """What lies in this memory is not known from here on: it is written to, and with what is not known."""
        self._forgotten.add(storage)
        for node, outputs in self.tensors.items():
            for nr, made in enumerate(self.timeline.info(node).created.outputs[: len(outputs)]):
                if made.storage == storage:
                    outputs[nr] = None
                    self.changed.add(node)
                    self.told.lose_memory(node, nr)

    def made(self, node: int, value: Value | None, kind: str, requires_grad: bool, nr: int = 0) -> Tensor | None:
        """A leaf or constant of the recorded value, changed where that is asked for; None if it was not stored."""
        array = self._recorded(value)
        change = self.asked.values.get(node, {}).get(nr)
        if array is None:
            self.stop(node, NOT_STORED)
            self.changed.add(node)
            return None
        if change is not None:
            recorded, array = array, change.applied(array)
            self.decisions.note(node, recorded, array)
            self.changed.add(node)
            self.asked.made(node)
        tensor = new_tensor(np.array(array))
        if kind == "parameter":
            tensor = Parameter(tensor, requires_grad)
        elif requires_grad and tensor._array.dtype.kind == "f":
            tensor.requires_grad_()
        self._hook(node, nr, tensor)
        return tensor

    def _run(self, n: int, created: e.NodeCreated) -> None:
        node, seen = created.node, self.timeline.info(created.node).op
        inputs = [self.output(source, nr, n) for source, nr in created.inputs]
        view = dict(created.attrs).get(VIEW)
        if view is not None:
            inputs[0] = self.output(view, 0, n)
        if node in self.asked.values or self.depends_on_change([source for source, _ in created.inputs]):
            self.changed.add(node)
        self.tensors[node] = [None] * len(created.outputs)
        given = [tensor for tensor in inputs if tensor is not None]
        moved = self.decisions.source(created.attrs)
        if moved:
            self.stop(node, f"its index may have been taken out of #{moved}, which is another number now")
            self.changed.add(node)
        if moved or len(given) < len(inputs):
            if is_in_place(seen) and created.inputs[0][0]:
                source, nr = created.inputs[0]
                self.forget(self.timeline.info(source).created.outputs[nr].storage)
            return
        op = recorded_operation(seen, dict(created.attrs))
        if op is None:
            self._stand_in(created, f"{seen.name} is not an operation of the engine")
            return
        with self.told.as_node(created):
            try:
                self.tensors[node] = [*self._outputs(op, created, given)]
            except operations.FAILURES as error:
                self.stop(node, f"it failed: {error}")

    def _outputs(self, op: Op, created: e.NodeCreated, inputs: Sequence[Tensor]) -> list[Tensor]:
        """What an operation of the engine gives on these operands."""
        node, seen = created.node, self.timeline.info(created.node).op
        changes = self.asked.values.get(node, {})
        in_own_memory = op.memory == "new" and not is_in_place(seen)
        if changes and in_own_memory:
            op = operations.corrected(op, changes)
        outputs = self._refreshed(created, inputs) or operations.run(op, seen, created, inputs)
        self.told.number_last(node)
        self.asked.made(node)
        for nr, change in changes.items() if not in_own_memory else ():
            outputs[nr]._array[...] = change.applied(outputs[nr]._array)
            announce_memory.memory_written(self.told.channel, outputs[nr], self.told.numbers[node])
        for nr, (made, tensor) in enumerate(zip(created.outputs, outputs, strict=False)):
            self._hook(node, nr, tensor)
            self.decisions.note(node, self._recorded(made.value), tensor._array)
        return outputs

    def _refreshed(self, created: e.NodeCreated, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The view that became up to date with what was written to its base, if that is what this node is."""
        if not operations.is_regenerated(created):
            return []
        for outputs in self.tensors.values():
            for tensor in outputs:
                if tensor is not None and operations.is_view(tensor, inputs[0], created) and tensor.grad_fn is not None:
                    return [tensor]
        return []

    def _stand_in(self, created: e.NodeCreated, why: str) -> None:
        """Take a node's recorded values for an operation that cannot be run, unless they depend on the change."""
        if created.node in self.changed:
            self.stop(created.node, why)
            return
        self.stop(created.node, why, of_gradient=True)
        with self.told.as_node(created):
            made = [
                self.made(created.node, output.value, "op", created.requires_grad, nr)
                for nr, output in enumerate(created.outputs)
            ]
            self.tensors[created.node] = made
            self.told.number(created.node, made[0] if made else None)

    def _hook(self, node: int, nr: int, tensor: Tensor) -> None:
        change = self.asked.gradients.get(node, {}).get(nr)
        if change is None or not tensor.requires_grad:
            return

        def arrived(grad: Tensor) -> Tensor:
            self.asked.arrived(node)
            return new_tensor(change.applied(grad._array))

        self.changed.add(node)
        tensor.register_hook(arrived)

    def grad(self, value: Value | None) -> Tensor | None:
        """A recorded ``.grad`` as a tensor; None if there was none, or it was not stored."""
        array = self._recorded(value)
        return None if array is None else new_tensor(np.array(array))

    def _recorded(self, value: Value | None) -> Array | None:
        return None if value is None else self.timeline.array(value)
