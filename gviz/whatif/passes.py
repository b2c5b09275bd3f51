"""The backward passes of a recording, run again by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gviz import events as e
from gviz.engine import autograd
from gviz.engine.modes import enable_grad
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Value
from gviz.whatif.operations import FAILURES

if TYPE_CHECKING:
    from gviz.whatif.rerun import Rerun

NOT_FOLLOWED = "the graph that its pass built cannot be followed"


class Passes:
    """What the recording says of its passes, and what they gave in the branch."""

    def __init__(self, rerun: Rerun) -> None:
        self.end = 0
        """The event that ended the last pass that was run again: what the recording says up to it was part of that."""
        self.made: list[Tensor] = []
        """The results of ``autograd.grad``."""
        self._rerun = rerun
        self._results: list[tuple[Value, Tensor | None]] = []

    def captured(self, created: e.NodeCreated) -> list[Tensor | None]:
        """The result of ``autograd.grad`` that a new constant is, by its value: None in it if that is not known.

        Empty if it is none of them.
        """
        value = created.outputs[0].value
        for place, (recorded, tensor) in enumerate(self._results):
            if recorded == value:
                del self._results[place]
                return [tensor]
        return []

    def run(self, n: int, started: e.BackwardStarted) -> None:
        """Run the pass that begins with event `n`."""
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
            self._leave_out(started, events, NOT_FOLLOWED)
            return
        given = [new_tensor(np.array(seed)) for seed in seeds]
        made = len(rerun.told.made)
        with rerun.told.at(started.stack), rerun.told.without_numbers(rerun.unknown()), enable_grad():
            try:
                self._backward(started, events, roots, inputs, given)
            except FAILURES as error:
                if str(error) != self._error(events):
                    self._leave_out(started, events, f"its pass failed: {error}")
        self._tell_unknown(events)
        if started.create_graph:
            self._number(started, events, made)

    def _leave_out(self, started: e.BackwardStarted, events: list[e.Event], why: str) -> None:
        """Nothing that a pass gave is known."""
        for node, _ in started.roots:
            self._rerun.stop(node, why, of_gradient=True, itself=True)
        for event in events:
            match event:
                case e.GradCaptured(value=value):
                    self._results.append((value, None))
                case e.NodeCreated(node=node, outputs=outputs):
                    self._rerun.tensors[node] = [None] * len(outputs)
                    self._rerun.changed.add(node)
        self._tell_unknown(events)

    def _tell_unknown(self, events: list[e.Event]) -> None:
        """Every ``.grad`` that the pass gave in the recording, and that is not known here, is one without numbers."""
        unknown = self._rerun.unknown()
        for event in events:
            match event:
                case e.GradAccumulated(node=node, part=value) if node in unknown:
                    self._rerun.told.lose_grad(node, 0, value)
                case e.GradRetained(node=node, output_nr=nr, value=value) if node in unknown:
                    self._rerun.told.lose_grad(node, nr, value)

    def _tensors(self, edges: Sequence[e.Edge], n: int) -> list[Tensor] | None:
        """The tensors at these places at event `n`; None if one of them is not known."""
        found = [self._rerun.output(node, nr, n) for node, nr in edges]
        known = [tensor for tensor in found if tensor is not None]
        return known if len(known) == len(found) else None

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
        self.made += [result for result in results if result is not None]
        recorded = {(event.node, event.output_nr): event.value for event in captures}
        unknown = self._rerun.unknown()
        for edge, result in zip(started.inputs, results, strict=True):
            if edge in recorded and result is not None:
                self._results.append((recorded[edge], None if edge[0] in unknown else result))

    def _prepare(self, events: list[e.Event]) -> None:
        """Retain what was retained; say which hooks are not run again."""
        for event in events:
            match event:
                case e.GradRetained(node=node, output_nr=nr):
                    tensor = self._rerun.output(node, nr, 0)
                    if tensor is not None and tensor.requires_grad and tensor.grad_fn is not None:
                        tensor.retain_grad()
                case e.HookRan(node=node, value=Value()):
                    self._rerun.stop(node, "a hook of the program changed its gradient", of_gradient=True, itself=True)

    def _number(self, started: e.BackwardStarted, events: list[e.Event], made: int) -> None:
        """Number the nodes of the graph that the pass built: they come in the same order again."""
        told, recorded = self._rerun.told, [event for event in events if isinstance(event, e.NodeCreated)]
        new = told.made[made:]
        names = [self._rerun.timeline.info(old.node).op.name for old in recorded]
        if names == [told.log.ops[node.op].name for node in new]:
            told.numbers.update(zip([old.node for old in recorded], [node.node for node in new], strict=True))
        else:
            self._leave_out(started, events, NOT_FOLLOWED)

    def _events(self, n: int, pass_nr: int) -> list[e.Event]:
        """What happened in the pass, up to its end."""
        timeline, events = self._rerun.timeline, list[e.Event]()
        for seq in range(n + 1, len(timeline) + 1):
            events.append(timeline.event(seq))
            if isinstance(events[-1], e.BackwardFinished) and events[-1].pass_nr == pass_nr:
                break
        return events

    def _error(self, events: list[e.Event]) -> str:
        last = events[-1] if events else None
        return last.error if isinstance(last, e.BackwardFinished) else ""
