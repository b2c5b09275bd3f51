"""What an earlier iteration left, as the iteration that is run again begins with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gviz import events as e
from gviz.engine.tensor import Tensor
from gviz.trace.state import NodeInfo, NodeState

if TYPE_CHECKING:
    from gviz.whatif.rerun import Rerun

LET_GO = ("none", "assigned")
"""How a ``.grad`` is set when another tensor, or none, takes its place."""


class Older:
    """The tensors that the branch begins with, entered when they are first used."""

    def __init__(self, rerun: Rerun) -> None:
        self._rerun = rerun
        self._began: dict[int, tuple[int, Tensor | None]] = {}

    def enter(self, node: int, n: int) -> None:
        """Begin with what an earlier iteration left, as it was before event `n`."""
        info = self._rerun.timeline.info(node)
        state, held = self._rerun.timeline.at(max(n - 1, 0)).state(node), self._held(info, n)
        if held is not None and dict(info.created.attrs)["grad_of"] in self._rerun.unknown():
            self._rerun.lose(node)
            return
        if held is not None:
            self._rerun.compare(node, None if state is None else state.outputs[0].value, held)
            self._rerun.tensors[node] = [held]
            self._rerun.told.number(node, held)
            return
        with self._rerun.told.as_node(info.created):
            self._begin_with(info, state)
        self._began[node] = n, next((tensor.grad for tensor in self._rerun.tensors[node] if tensor is not None), None)
        if info.created.kind == "op" and info.created.requires_grad:
            self._rerun.stop(node, "an earlier iteration made it, which is not run again", of_gradient=True)
        if any(output.view_of for output in info.created.outputs) and self._is_written(node, n) and self._shares(info):
            self._rerun.stop(node, "an earlier iteration made it as a view of memory that is written to here")
            self._rerun.forget(info.created.outputs[0].storage)

    def _held(self, info: NodeInfo, n: int) -> Tensor | None:
        """The ``.grad`` with which the branch began, if that is what an older node is."""
        leaf = dict(info.created.attrs).get("grad_of", 0)
        if not leaf or self._rerun.output(leaf, 0, n) is None:
            return None
        timeline = self._rerun.timeline
        began, grad = self._began.get(leaf, (0, None))
        between = [timeline.event(seq) for seq in timeline.events_of(leaf) if info.born < seq < began]
        let_go = any(isinstance(event, e.GradSet) and event.how in LET_GO for event in between)
        return None if info.born > began or let_go else grad

    def _is_written(self, node: int, n: int) -> bool:
        later = [seq for seq in self._rerun.timeline.events_of(node) if seq >= n]
        return any(isinstance(self._rerun.timeline.event(seq), e.StorageWritten | e.DataSet) for seq in later)

    def _shares(self, info: NodeInfo) -> bool:
        """Whether the iteration uses anything older besides that lies in the same memory: else a view is as good."""
        timeline, iteration = self._rerun.timeline, self._rerun.iteration
        own = {output.storage for output in info.created.outputs}
        used = (timeline.info(node) for node in timeline.nodes.of(iteration) if node != info.node)
        older = (other.created.outputs for other in used if other.born < iteration.start)
        return any(output.storage in own for outputs in older for output in outputs)

    def _begin_with(self, info: NodeInfo, state: NodeState | None) -> None:
        self._rerun.tensors[info.node] = outputs = list[Tensor | None]()
        for nr, made in enumerate(info.created.outputs):
            value = made.value if state is None else state.outputs[nr].value
            requires_grad = info.created.requires_grad if state is None else state.requires_grad
            tensor = self._rerun.made(info.node, value, info.created.kind, requires_grad)
            if tensor is not None and state is not None:
                tensor._set_grad(self._rerun.grad(state.outputs[nr].grad))  # announced with the tensor
            outputs.append(tensor)
        self._rerun.told.number(info.node, outputs[0] if outputs else None)
