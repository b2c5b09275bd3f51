"""Runs one iteration of a recording again: its operations and passes, never the program.

The engine runs each recorded operation on the tensors of the branch and emits events to a separate log. Random numbers
are inputs of the operations that use them, so the branch has the recording's. Everything else that the program did (an
assignment to ``.data``, a hook) is known only by its effect. If that depends on the change, the branch stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gviz import emit
from gviz import events as e
from gviz.engine import autograd, instrumentation
from gviz.engine.modes import enable_grad
from gviz.engine.nn.parameter import Parameter
from gviz.engine.op import Op
from gviz.engine.operation_lookup import VIEW, is_in_place, recorded_operation
from gviz.engine.tensor import Tensor, WrappedNumber, new_tensor
from gviz.errors import KEEP_ALL
from gviz.rerun import node_forward
from gviz.rerun.branch import Branch, Decision, Decisions, Stop, with_ancestors
from gviz.rerun.branch_recording import BranchLog
from gviz.rerun.change_parser import Change, RequestedChanges
from gviz.rerun.node_forward import FAILURES
from gviz.trace.graph_state import Iteration, NodeInfo, NodeState
from gviz.trace.timeline import Timeline
from gviz.values.value import Array, Value

NOT_STORED = f"its value was not stored: {KEEP_ALL}"


def rerun_iteration(timeline: Timeline, iteration: Iteration, changes: Sequence[Change]) -> Branch:
    """Run an iteration of the built-in engine again with `changes`. Raises GvizError if a change does not fit."""
    rerun = Rerun(timeline, iteration, changes)
    with emit.detour(rerun.log.channel):
        for n in range(iteration.start, iteration.end + 1):
            rerun.process(n, timeline.event(n))
    nodes = set(timeline.nodes.of(iteration))
    rerun.requests.refuse_unused(timeline, nodes, rerun.log.numbers, stopped=bool(rerun.stopped))
    return rerun.branch(tuple(rerun.decisions.unused(timeline, nodes)))


# What the branch knows of a node
#
# Each node of the recording has a value state and a gradient state in the branch, and both only ever get worse:
#
#   value:     as recorded  ->  changed (in `changed`)  ->  unknown (in `changed`, its tensors are None)
#   gradient:  known  ->  cut (in `_cut`: gradients beyond it are unknown)  ->  lost (in `_lost`: its own is, too)
#
#   what happens                                                    value          gradient
#   the user changes it, or it is computed from what changed        changed
#   its operation is not the engine's, its inputs are as recorded   as recorded    cut
#   its operation is not the engine's, an input is changed          unknown
#   its value was not stored, or is in forgotten memory             unknown
#   an earlier iteration made it with an operation                  as recorded    cut
#   a hook changed its gradient, or its pass cannot be run          as recorded    cut, lost
#
# Example: ``y = f(x); z = y * w; z.backward()`` with a function ``f`` of the program. With ``w`` changed, ``y`` keeps
# its recorded value and cuts the gradient: ``w.grad`` is known, ``x.grad`` is not. With ``x`` changed, ``y`` and ``z``
# are unknown. Every step to the right is reported once, as a `Stop`.


class Rerun:
    """A run in progress: the tensors so far, by node of the recording, and the state of each node (see above)."""

    def __init__(self, timeline: Timeline, iteration: Iteration, changes: Sequence[Change]) -> None:
        self.timeline = timeline
        self.iteration = iteration
        self.log = BranchLog(timeline)
        self.stopped: list[Stop] = []
        self.requests = RequestedChanges(changes)
        self.tensors: dict[int, list[Tensor | None]] = {}
        self.changed: set[int] = set()
        self._cut: set[int] = set()
        self._lost: set[int] = set()
        self._forgotten: set[int] = set()
        self.decisions = Decisions()
        self._passes = _BackwardPasses(self)
        self._older = _EarlierTensors(self)

    def process(self, n: int, event: e.Event) -> None:
        """Repeat what event `n` of the recording did."""
        if n <= self._passes.end:
            return
        match event:
            case e.NodeCreated(kind="op"):
                self._run(n, event)
            case e.NodeCreated():
                with self.log.as_node(event):
                    self._enter(event)
            case e.BackwardStarted():
                self._passes.run(n, event)
            case e.GradSet():
                with self.log.at(event.stack):
                    _set_grad(self, n, event)
            case e.RequiresGradSet():
                _set_requires_grad(self, n, event)
            case e.StorageWritten():
                _set_memory(self, event)
            case e.DataSet():
                _set_data(self, n, event)
            case (
                e.ScopeEntered()
                | e.ScopeLeft()
                | e.Named()
                | e.Returned()
                | e.Marked()
                | e.OptimizerStarted()
                | e.OptimizerStepped()
            ):
                self.log.repeat(event)

    def output(self, node: int, nr: int, n: int) -> Tensor | None:
        """Return an output of a node at event `n`, created from the recording on first use; None if unknown."""
        if node not in self.tensors:
            if node in self.log.numbers:
                self.tensors[node] = [self._pass_result(node)]
            else:
                self._older.enter(node, n)
        outputs = self.tensors[node]
        return outputs[nr] if nr < len(outputs) else None

    def stop(self, node: int, why: str, *, of_gradient: bool = False, itself: bool = False) -> None:
        """Report that the branch ends at a node; with `itself`, its own incoming gradient is unknown too."""
        self.stopped.append(Stop(node, why, of_gradient))
        self.log.stopped(node, why, of_gradient=of_gradient)
        if of_gradient:
            self._cut.add(node)
        if itself:
            self._lost.add(node)

    def lose(self, node: int) -> None:
        """Make the node of a ``.grad`` unknown, because its gradient is unknown."""
        self.stop(node, "it is a gradient that is not known")
        self.changed.add(node)
        self.tensors[node] = [None]

    def depends_on_change(self, nodes: Iterable[int]) -> bool:
        """Return whether the value of any of these nodes differs, or may differ, from the recording."""
        return not self.changed.isdisjoint(nodes)

    def unknown(self) -> frozenset[int]:
        """Return the nodes whose gradients went through something that was not run again."""
        return frozenset(with_ancestors(self.timeline, self._cut) - self._cut | self._lost)

    def branch(self, decisions: tuple[Decision, ...]) -> Branch:
        """Return the branch, once all events were repeated."""
        log, forgotten = self.log, frozenset(self._forgotten)
        return Branch(
            log.events, dict(log.numbers), tuple(self.stopped), self.unknown(), decisions, forgotten,
            frozenset(self.requests.values),
        )  # fmt: skip

    def _enter(self, created: e.NodeCreated) -> None:
        """Create a leaf or constant again."""
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
            tensor = self.leaf(created.node, created.outputs[0].value, created.kind, created.requires_grad)
        if tensor is not None and attrs.get("number"):
            tensor = new_tensor(tensor._array, WrappedNumber)
        self.tensors[created.node] = [tensor]
        self.log.number(created.node, tensor)

    def _grad_of(self, leaf: int) -> Tensor | None:
        outputs = self.tensors.get(leaf)
        return outputs[0].grad if outputs and outputs[0] is not None else None

    def compare(self, node: int, value: Value | None, tensor: Tensor) -> None:
        """Mark a node as changed if a pass of the branch gave it another value than the recorded one."""
        recorded = self._recorded(value)
        if recorded is None or not np.array_equal(recorded, tensor._array, equal_nan=True):
            self.changed.add(node)

    def _pass_result(self, node: int) -> Tensor | None:
        """Return a tensor created by a pass of the branch, if it is its result or a ``.grad``; others cannot be
        used.
        """
        tensors = [tensor for outputs in self.tensors.values() for tensor in outputs if tensor is not None]
        for tensor in (*self._passes.gradients, *[tensor._grad for tensor in tensors if tensor._grad is not None]):
            if tensor._seen is not None and tensor._seen.node == self.log.numbers[node]:
                return tensor
        self.stop(node, "a pass made it, and it cannot be followed")
        self.changed.add(node)
        return None

    def forget(self, storage: int) -> None:
        """Make everything in this memory unknown, because something unknown is written to it."""
        self._forgotten.add(storage)
        for node, outputs in self.tensors.items():
            for nr, output in enumerate(self.timeline.info(node).created.outputs[: len(outputs)]):
                if output.storage == storage:
                    outputs[nr] = None
                    self.changed.add(node)
                    self.log.lose_memory(node, nr)

    def leaf(self, node: int, value: Value | None, kind: str, requires_grad: bool, nr: int = 0) -> Tensor | None:
        """Return a leaf or constant with the recorded value, changed if requested; None if it was not stored."""
        array = self._recorded(value)
        change = self.requests.values.get(node, {}).get(nr)
        if array is None:
            self.stop(node, NOT_STORED)
            self.changed.add(node)
            return None
        if change is not None:
            recorded, array = array, change.applied(array)
            self.decisions.note(node, recorded, array)
            self.changed.add(node)
            self.requests.note_reached(node)
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
        if node in self.requests.values or self.depends_on_change([source for source, _ in created.inputs]):
            self.changed.add(node)
        self.tensors[node] = [None] * len(created.outputs)
        present = [tensor for tensor in inputs if tensor is not None]
        moved = self.decisions.source(created.attrs)
        if moved:
            self.stop(node, f"its index may have been taken out of #{moved}, which is another number now")
            self.changed.add(node)
        if moved or len(present) < len(inputs):
            if is_in_place(seen) and created.inputs[0][0]:
                source, nr = created.inputs[0]
                self.forget(self.timeline.info(source).created.outputs[nr].storage)
            return
        op = recorded_operation(seen, dict(created.attrs))
        if op is None:
            self._stand_in(created, f"{seen.name} is not an operation of the engine")
            return
        with self.log.as_node(created):
            try:
                self.tensors[node] = [*self._outputs(op, created, present)]
            except node_forward.FAILURES as error:
                self.stop(node, f"it failed: {error}")

    def _outputs(self, op: Op, created: e.NodeCreated, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the outputs of an engine operation on these operands."""
        node, seen = created.node, self.timeline.info(created.node).op
        changes = self.requests.values.get(node, {})
        in_own_memory = op.memory == "new" and not is_in_place(seen)
        if changes and in_own_memory:
            op = node_forward.with_changed_results(op, changes)
        outputs = self._refreshed(created, inputs) or node_forward.run_operation(op, seen, created, inputs)
        self.log.number_last(node)
        self.requests.note_reached(node)
        for nr, change in changes.items() if not in_own_memory else ():
            outputs[nr]._array[...] = change.applied(outputs[nr]._array)
            instrumentation.memory_written(self.log.channel, outputs[nr], self.log.numbers[node])
        for nr, (output, tensor) in enumerate(zip(created.outputs, outputs, strict=False)):
            self._hook(node, nr, tensor)
            self.decisions.note(node, self._recorded(output.value), tensor._array)
        return outputs

    def _refreshed(self, created: e.NodeCreated, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the view that was updated after a write to its base, if this node is one."""
        if not node_forward.is_regenerated(created):
            return []
        for outputs in self.tensors.values():
            for tensor in outputs:
                if (
                    tensor is not None
                    and node_forward.is_view(tensor, inputs[0], created)
                    and tensor.grad_fn is not None
                ):
                    return [tensor]
        return []

    def _stand_in(self, created: e.NodeCreated, why: str) -> None:
        """Use a node's recorded values for an operation that cannot be run, unless they depend on the change."""
        if created.node in self.changed:
            self.stop(created.node, why)
            return
        self.stop(created.node, why, of_gradient=True)
        with self.log.as_node(created):
            stand_ins = [
                self.leaf(created.node, output.value, "op", created.requires_grad, nr)
                for nr, output in enumerate(created.outputs)
            ]
            self.tensors[created.node] = stand_ins
            self.log.number(created.node, stand_ins[0] if stand_ins else None)

    def _hook(self, node: int, nr: int, tensor: Tensor) -> None:
        change = self.requests.gradients.get(node, {}).get(nr)
        if change is None or not tensor.requires_grad:
            return

        def arrived(grad: Tensor) -> Tensor:
            self.requests.arrived(node)
            return new_tensor(change.applied(grad._array))

        self.changed.add(node)
        tensor.register_hook(arrived)

    def grad(self, value: Value | None) -> Tensor | None:
        """Return a recorded ``.grad`` as a tensor; None if there was none, or it was not stored."""
        array = self._recorded(value)
        return None if array is None else new_tensor(np.array(array))

    def _recorded(self, value: Value | None) -> Array | None:
        return None if value is None else self.timeline.array(value)


# Effects: what the program did besides operations and passes, repeated as far as the recording shows it


def _set_grad(rerun: Rerun, n: int, event: e.GradSet) -> None:
    """Drop or replace a ``.grad``. A write to its memory is an operation of its own."""
    tensor = rerun.output(event.node, event.output_nr, n)
    if tensor is None or event.how not in _REPLACED:
        return
    recorded = event.value
    if recorded is None or not rerun.changed:
        tensor.grad = rerun.grad(recorded)
    else:
        tensor.grad = None
        rerun.stop(event.node, "the program assigned to its .grad, and what is not known", itself=True)
        rerun.log.lose_grad(event.node, event.output_nr, recorded)


def _set_requires_grad(rerun: Rerun, n: int, event: e.RequiresGradSet) -> None:
    """Set ``requires_grad`` of a tensor."""
    tensor = rerun.output(event.node, 0, n)
    if tensor is not None:
        tensor.requires_grad_(event.requires_grad) if tensor.grad_fn is None else tensor.detach_()


def _set_data(rerun: Rerun, n: int, event: e.DataSet) -> None:
    """Set a tensor's data to the recorded new data, unless the branch has the same or the tensor changed."""
    node, array = event.node, rerun.timeline.array(event.value)
    tensor = rerun.output(node, event.output_nr, n)
    if tensor is None or array is None or node in rerun.changed:
        return
    if tensor._array.shape == array.shape and np.array_equal(tensor._array, array, equal_nan=True):
        return
    rerun.stop(node, "the program assigned to its .data; the recorded value is taken")
    if tensor._array.shape == array.shape:
        tensor._array[...] = array
    else:
        tensor.data = new_tensor(np.array(array))


def _set_memory(rerun: Rerun, event: e.StorageWritten) -> None:
    """Set a tensor's memory to numbers that the program wrote without an operation: ``x.data = ...``."""
    node = event.node
    if is_in_place(rerun.timeline.info(node).op):
        return  # the operation wrote it, and has been run
    rerun.stop(node, "the program assigned to its .data; the recorded value is taken")
    tensor = rerun.tensors.get(node, [None])[0]
    array = rerun.timeline.array(event.value)
    if tensor is None or array is None or array.size != tensor._array.size:
        return
    if not np.array_equal(tensor._array.reshape(-1), array, equal_nan=True) and node not in rerun.changed:
        tensor._array[...] = array.reshape(tensor._array.shape)


# Tensors of earlier iterations

_REPLACED = ("none", "assigned")
"""The ways to set a ``.grad`` that replace it by another tensor, or None."""


class _EarlierTensors:
    """The tensors that the branch starts with, created when they are first used."""

    def __init__(self, rerun: Rerun) -> None:
        self._rerun = rerun
        self._began: dict[int, tuple[int, Tensor | None]] = {}

    def enter(self, node: int, n: int) -> None:
        """Create a tensor of an earlier iteration as it was before event `n`."""
        info = self._rerun.timeline.info(node)
        state, grad = self._rerun.timeline.at(max(n - 1, 0)).state(node), self._initial_grad(info, n)
        if grad is not None and dict(info.created.attrs)["grad_of"] in self._rerun.unknown():
            self._rerun.lose(node)
            return
        if grad is not None:
            self._rerun.compare(node, None if state is None else state.outputs[0].value, grad)
            self._rerun.tensors[node] = [grad]
            self._rerun.log.number(node, grad)
            return
        with self._rerun.log.as_node(info.created):
            self._begin_with(info, state)
        self._began[node] = n, next((tensor.grad for tensor in self._rerun.tensors[node] if tensor is not None), None)
        if info.created.kind == "op" and info.created.requires_grad:
            self._rerun.stop(node, "an earlier iteration made it, which is not run again", of_gradient=True)
        if any(output.view_of for output in info.created.outputs) and self._is_written(node, n) and self._shares(info):
            self._rerun.stop(node, "an earlier iteration made it as a view of memory that is written to here")
            self._rerun.forget(info.created.outputs[0].storage)

    def _initial_grad(self, info: NodeInfo, n: int) -> Tensor | None:
        """Return the ``.grad`` with which the branch started, if an older node is that ``.grad``."""
        leaf = dict(info.created.attrs).get("grad_of", 0)
        if not leaf or self._rerun.output(leaf, 0, n) is None:
            return None
        timeline = self._rerun.timeline
        began, grad = self._began.get(leaf, (0, None))
        between = [timeline.event(seq) for seq in timeline.events_of(leaf) if info.born < seq < began]
        let_go = any(isinstance(event, e.GradSet) and event.how in _REPLACED for event in between)
        return None if info.born > began or let_go else grad

    def _is_written(self, node: int, n: int) -> bool:
        later = [seq for seq in self._rerun.timeline.events_of(node) if seq >= n]
        return any(isinstance(self._rerun.timeline.event(seq), e.StorageWritten | e.DataSet) for seq in later)

    def _shares(self, info: NodeInfo) -> bool:
        """Return whether the iteration uses another older tensor in the same memory. If not, the view can
        stand alone.
        """
        timeline, iteration = self._rerun.timeline, self._rerun.iteration
        own = {output.storage for output in info.created.outputs}
        used = (timeline.info(node) for node in timeline.nodes.of(iteration) if node != info.node)
        older = (other.created.outputs for other in used if other.born < iteration.start)
        return any(output.storage in own for outputs in older for output in outputs)

    def _begin_with(self, info: NodeInfo, state: NodeState | None) -> None:
        self._rerun.tensors[info.node] = outputs = list[Tensor | None]()
        for nr, output in enumerate(info.created.outputs):
            value = output.value if state is None else state.outputs[nr].value
            requires_grad = info.created.requires_grad if state is None else state.requires_grad
            tensor = self._rerun.leaf(info.node, value, info.created.kind, requires_grad)
            if tensor is not None and state is not None:
                tensor._set_grad(self._rerun.grad(state.outputs[nr].grad))  # recorded together with the tensor
            outputs.append(tensor)
        self._rerun.log.number(info.node, outputs[0] if outputs else None)


# Backward passes

_NOT_FOLLOWED = "the graph that its pass built cannot be followed"


class _BackwardPasses:
    """The backward passes of the recording, and their results in the branch."""

    def __init__(self, rerun: Rerun) -> None:
        self.end = 0
        """The event that ended the last pass that was run again. The recorded events up to it belong to that pass."""
        self.gradients: list[Tensor] = []
        """The results of ``autograd.grad``."""
        self._rerun = rerun
        self._results: list[tuple[Value, Tensor | None]] = []

    def captured(self, created: e.NodeCreated) -> list[Tensor | None]:
        """Return the result of ``autograd.grad`` that a new constant is, found by its value; [None] if that is unknown.

        Empty if it is not one of them.
        """
        value = created.outputs[0].value
        for place, (recorded, tensor) in enumerate(self._results):
            if recorded == value:
                del self._results[place]
                return [tensor]
        return []

    def run(self, n: int, started: e.BackwardStarted) -> None:
        """Run the pass that starts at event `n`."""
        rerun = self._rerun
        events = self._events(n, started.pass_nr)
        self.end = n + len(events)
        roots, inputs = self._tensors(started.roots, n), self._tensors(started.inputs, n)
        seeds = [rerun.timeline.array(seed) for seed in started.seeds]
        self._prepare(events)
        if roots is None or inputs is None or any(seed is None for seed in seeds):
            self._leave_out(started, events, "a pass that began here could not be run again")
            return
        if started.create_graph and rerun.unknown():
            self._leave_out(started, events, _NOT_FOLLOWED)
            return
        gradients = [new_tensor(np.array(seed)) for seed in seeds]
        count = len(rerun.log.creations)
        with rerun.log.at(started.stack), rerun.log.without_numbers(rerun.unknown()), enable_grad():
            try:
                self._backward(started, events, roots, inputs, gradients)
            except FAILURES as error:
                if str(error) != self._error(events):
                    self._leave_out(started, events, f"its pass failed: {error}")
        self._log_unknown_gradients(events)
        if started.create_graph:
            self._number(started, events, count)

    def _leave_out(self, started: e.BackwardStarted, events: list[e.Event], why: str) -> None:
        """Make all results of a pass unknown."""
        for node, _ in started.roots:
            self._rerun.stop(node, why, of_gradient=True, itself=True)
        for event in events:
            match event:
                case e.GradCaptured(value=value):
                    self._results.append((value, None))
                case e.NodeCreated(node=node, outputs=outputs):
                    self._rerun.tensors[node] = [None] * len(outputs)
                    self._rerun.changed.add(node)
        self._log_unknown_gradients(events)

    def _log_unknown_gradients(self, events: list[e.Event]) -> None:
        """Log each ``.grad`` that the pass set in the recording and that is unknown here, without its numbers."""
        unknown = self._rerun.unknown()
        for event in events:
            match event:
                case e.GradAccumulated(node=node, part=value) if node in unknown:
                    self._rerun.log.lose_grad(node, 0, value)
                case e.GradRetained(node=node, output_nr=nr, value=value) if node in unknown:
                    self._rerun.log.lose_grad(node, nr, value)

    def _tensors(self, edges: Sequence[e.Edge], n: int) -> list[Tensor] | None:
        """Return the tensors of these outputs at event `n`; None if one of them is unknown."""
        tensors = [self._rerun.output(node, nr, n) for node, nr in edges]
        known = [tensor for tensor in tensors if tensor is not None]
        return known if len(known) == len(tensors) else None

    def _backward(
        self,
        started: e.BackwardStarted,
        events: list[e.Event],
        roots: list[Tensor],
        inputs: list[Tensor],
        seeds: list[Tensor],
    ) -> None:
        retain, create = started.retain_graph, started.create_graph
        captures = [event for event in events if isinstance(event, e.GradCaptured)]
        if not captures:
            autograd.backward(roots, seeds, retain, create, inputs=inputs or None)
            return
        results = autograd.grad(roots, inputs, seeds, retain, create, allow_unused=True)
        self.gradients += [result for result in results if result is not None]
        recorded = {(event.node, event.output_nr): event.value for event in captures}
        unknown = self._rerun.unknown()
        for edge, result in zip(started.inputs, results, strict=True):
            if edge in recorded and result is not None:
                self._results.append((recorded[edge], None if edge[0] in unknown else result))

    def _prepare(self, events: list[e.Event]) -> None:
        """Repeat ``retain_grad()``, and report the hooks that do not run again."""
        for event in events:
            match event:
                case e.GradRetained(node=node, output_nr=nr):
                    tensor = self._rerun.output(node, nr, 0)
                    if tensor is not None and tensor.requires_grad and tensor.grad_fn is not None:
                        tensor.retain_grad()
                case e.HookRan(node=node, value=Value()):
                    self._rerun.stop(node, "a hook of the program changed its gradient", of_gradient=True, itself=True)

    def _number(self, started: e.BackwardStarted, events: list[e.Event], count: int) -> None:
        """Number the nodes of the graph that the pass built; their order is the same as in the recording."""
        log, recorded = self._rerun.log, [event for event in events if isinstance(event, e.NodeCreated)]
        new = log.creations[count:]
        names = [self._rerun.timeline.info(old.node).op.name for old in recorded]
        if names == [log.events.ops[node.op].name for node in new]:
            log.numbers.update(zip([old.node for old in recorded], [node.node for node in new], strict=True))
        else:
            self._leave_out(started, events, _NOT_FOLLOWED)

    def _events(self, n: int, pass_nr: int) -> list[e.Event]:
        """Return the events of the pass, up to its end."""
        timeline, events = self._rerun.timeline, list[e.Event]()
        for seq in range(n + 1, len(timeline) + 1):
            events.append(timeline.event(seq))
            if isinstance(events[-1], e.BackwardFinished) and events[-1].pass_nr == pass_nr:
                break
        return events

    def _error(self, events: list[e.Event]) -> str:
        last = events[-1] if events else None
        return last.error if isinstance(last, e.BackwardFinished) else ""
