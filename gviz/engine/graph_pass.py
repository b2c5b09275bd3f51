"""The backward pass.

As PyTorch's engine does it: count how many edges lead to each node, start at the roots, run a node when all its
contributions have arrived, newest node first, and every leaf as soon as it is complete. What is freed is freed node by
node; what failed leaves the rest as it is. Nothing here recurses, so a chain of a million nodes works.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from gviz import emit
from gviz.engine import anomaly, messages
from gviz.engine.accumulation import accumulate, adds_in_place
from gviz.engine.announce_pass import PassReport
from gviz.engine.broadcasting import conformed
from gviz.engine.hooks import Extras
from gviz.engine.modes import thread
from gviz.engine.node import AccumulateGrad, Edge, Grad, Node
from gviz.engine.run_hooks import run_accumulated_hooks, run_posthooks, run_prehooks, run_tensor_hooks, shown
from gviz.engine.tensor import Tensor
from gviz.values import Array


class Pass:
    """One backward pass: what has arrived where, and what is ready to run.

    `wanted` limits it to what leads to these edges (None: every leaf); `capture` keeps what arrives there as a result
    instead of accumulating it, and raises RuntimeError where nothing does, unless that is allowed by `allow_unused`.
    `written` says how often what has arrived at a leaf was added to in place, as PyTorch would have done it.
    """

    def __init__(
        self,
        roots: Sequence[Edge],
        seeds: Sequence[Grad],
        *,
        retain_graph: bool,
        create_graph: bool,
        wanted: Sequence[Edge] | None = None,
        capture: bool = False,
        allow_unused: bool = True,
    ) -> None:
        self.roots = roots
        self.seeds = seeds
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.wanted = wanted
        self.captures: dict[Edge, Tensor | None] = {}
        self.written: dict[Node, int] = {}
        self.report: PassReport | None = None
        self._capturing = set(wanted or ()) if capture else set()
        self._required = () if allow_unused else tuple(wanted or ())
        self._waiting: dict[Node, int] = {}
        self._arrived: dict[Node, list[Grad | None]] = {}
        self._ready: list[tuple[int, Node]] = []
        self._leaves: deque[Node] = deque()
        self._needed: set[Node] | None = None
        self._refuses_nan = False

    def run(self) -> None:
        """Run to the end. Raises what a rule or hook raises; what ran by then stays freed and accumulated."""
        channel = emit.channel
        if channel is not None:
            self.report = PassReport(channel)
            modes = {"retain_graph": self.retain_graph, "create_graph": self.create_graph}
            self.report.started(self.roots, self.seeds, self.wanted or (), **modes)
        self._refuses_nan = anomaly.mode.enabled and anomaly.mode.check_nan
        before = thread.grad_enabled, thread.during, running.innermost, anomaly.evaluated.node
        thread.grad_enabled, running.innermost = self.create_graph, self
        error = "interrupted", ""
        try:
            with np.errstate(all="ignore"):  # PyTorch, too, says nothing of 0/0
                self._count_edges()
                self._start()
                self._drain()
            self._require_used()
            error = "", ""
        except BaseException as raised:
            error = str(raised) or type(raised).__name__, type(raised).__name__
            raise
        finally:
            thread.grad_enabled, thread.during, running.innermost, anomaly.evaluated.node = before
            if self.report is not None and emit.channel is channel:
                self.report.finished(*error)

    def _require_used(self) -> None:
        unused = (index for index, edge in enumerate(self._required) if self.captures.get(edge) is None)
        if (index := next(unused, None)) is not None:
            raise RuntimeError(messages.UNUSED_INPUT.format(index=index))

    def will_run(self, node: Node | None) -> bool:
        """Whether this pass comes to a node and runs it or takes a result there.

        It starts at a single root, and does not come to it: so PyTorch counts, and a hook for several gradients does
        not wait for that of the root. RuntimeError for a leaf of which it is a result.
        """
        if node is None or node not in self._waiting or self._is_only_root(node):
            return False
        captured = any((node, output_nr) in self._capturing for output_nr in range(len(node.outputs)))
        if captured and node.__class__ is AccumulateGrad:
            raise RuntimeError(messages.LEAF_OF_GRAD)
        return captured or self._needed is None or node in self._needed

    def _count_edges(self) -> None:
        waiting = self._waiting
        order: list[Node] = []
        stack = []
        for node, _ in self.roots:
            if node not in waiting:
                waiting[node] = 0
                stack.append(node)
        while stack:
            node = stack.pop()
            if self.wanted is not None:
                order.append(node)
            for edge in node.next_edges:
                if edge is not None:
                    target = edge[0]
                    count = waiting.get(target)
                    if count is None:
                        waiting[target] = 1
                        stack.append(target)
                    else:
                        waiting[target] = count + 1
        if self.wanted is not None:
            self._needed = self._leading_to(order, self.wanted)

    def _leading_to(self, nodes: list[Node], wanted: Sequence[Edge]) -> set[Node]:
        """The nodes to run: those on a way to a wanted edge; the wanted ones themselves unless they are captured."""
        users: dict[Node, list[Node]] = {}
        for node in nodes:
            for edge in node.next_edges:
                if edge is not None:
                    users.setdefault(edge[0], []).append(node)
        targets = {node for node, _ in wanted}
        leading: set[Node] = set()
        stack = list(targets)
        while stack:
            for user in users.get(stack.pop(), ()):
                if user not in leading:
                    leading.add(user)
                    stack.append(user)
        return leading if self._capturing else leading | targets

    def _start(self) -> None:
        for (node, output_nr), seed in zip(self.roots, self.seeds, strict=True):
            grads = self._arrived.setdefault(node, [None] * len(node.outputs))
            grads[output_nr] = seed if grads[output_nr] is None else grads[output_nr] + seed
        for node in dict.fromkeys([node for node, _ in self.roots]):
            if self._waiting[node] == 0:
                self._enqueue(node)

    def _enqueue(self, node: Node) -> None:
        if node.__class__ is AccumulateGrad:
            self._leaves.append(node)
        else:
            heappush(self._ready, (-node.sequence_nr, node))

    def _drain(self) -> None:
        leaves, ready, arrived = self._leaves, self._ready, self._arrived
        every_node, watched = self._needed is None, anomaly.mode.enabled
        node: Node | None = None
        try:
            while leaves or ready:
                node = leaves.popleft() if leaves else heappop(ready)[1]
                if watched:
                    anomaly.evaluated.node = node
                grads = arrived.pop(node, None) or [None] * len(node.outputs)
                if not (every_node or self._is_needed(node, grads)):
                    continue
                if node.extras is not None:
                    self._before(node, node.extras, grads)
                if node.__class__ is AccumulateGrad:
                    self._accumulate(node, grads)
                else:
                    self._step(node, grads)
        except Exception:
            if anomaly.mode.enabled and node is not None:
                anomaly.warn_of(node)
            raise

    def _before(self, node: Node, extras: Extras, grads: list[Grad | None]) -> None:
        """Run the hooks that come before a node's rule."""
        self._run_tensor_hooks(node, extras, grads)
        if extras.before:
            run_prehooks(self, node, extras.before, grads)
        thread.grad_enabled = self.create_graph  # whatever a hook made of it

    def _run_tensor_hooks(self, node: Node, extras: Extras, grads: list[Grad | None]) -> None:
        if self.report is not None:
            thread.during = self.report.during(node)
        run_tensor_hooks(self, node, extras, grads)

    def _step(self, node: Node, grads: list[Grad | None]) -> None:
        """Run a node's rule, release what it saved, pass its gradients on."""
        report, number = self.report, 0
        if report is not None:
            number = report.step_started(node, grads)
            thread.during = (report.number, number)
        parts = node.vjp(grads, self.create_graph)
        if self._refuses_nan or (node.extras is not None and node.extras.after):
            parts = self._after(node, grads, parts)
        freed = not self.retain_graph and node.release()
        if self._refuses_nan:
            anomaly.refuse_nan(node, parts)
        waiting, arrived, slot = self._waiting, self._arrived, -1
        for edge in node.next_edges:
            slot += 1
            if edge is None:
                continue
            target, output_nr = edge
            part = parts[slot]
            if part is not None:
                shape, kind = target.outputs[output_nr]
                if part.shape != shape or part.dtype is not kind:
                    part = conformed(part, node, slot, edge)
                there = arrived.get(target)
                if there is None:
                    there = arrived[target] = [None] * len(target.outputs)
                before = there[output_nr]
                if before is None:
                    total = None
                    there[output_nr] = part
                else:
                    total = there[output_nr] = before + part
                    if target.__class__ is AccumulateGrad and (target in self.written or adds_in_place(before, parts)):
                        self.written[target] = self.written.get(target, 0) + 1
                if report is not None:
                    report.flowed(number, slot, edge, part, total)
            left = waiting[target] - 1
            if left:
                waiting[target] = left
            elif target.__class__ is AccumulateGrad:
                self._leaves.append(target)
            else:
                heappush(self._ready, (-target.sequence_nr, target))
        if report is not None:
            report.step_finished(number, freed=freed)

    def _after(self, node: Node, grads: list[Grad | None], parts: Sequence[Grad | None]) -> Sequence[Grad | None]:
        """What a node's rule gave as its inputs have it, after the hooks that come then."""
        slots = enumerate(zip(parts, node.next_edges, strict=True))
        fit = [self._fitted(part, node, slot, edge) for slot, (part, edge) in slots]
        if node.extras is None or not node.extras.after:
            return fit
        result = run_posthooks(self, node, node.extras.after, fit, grads)
        thread.grad_enabled = self.create_graph  # whatever a hook made of it
        return result

    def _fitted(self, part: Grad | None, node: Node, slot: int, edge: Edge | None) -> Grad | None:
        """A gradient as its input has it; None where this pass does not go on."""
        if part is None or edge is None:
            return part
        goes_on = self._needed is None or edge[0] in self._needed or edge in self._capturing
        return conformed(part, node, slot, edge) if goes_on else None

    def _accumulate(self, node: AccumulateGrad, grads: list[Grad | None]) -> None:
        """Add to a leaf's ``.grad``, unless it was frozen since, and run the hooks that wait for it.

        Nothing if no gradient came.
        """
        leaf, report = node.variable, self.report
        if grads[0] is not None:
            if leaf._requires_grad:
                first = leaf._grad is None
                accumulate(leaf, grads, self.written.get(node, 0), self.create_graph)
                if report is not None:
                    report.accumulated(node, leaf, grads[0], first=first)
            if leaf._accumulated_hooks:
                run_accumulated_hooks(node, report)
        if node.extras is not None and node.extras.after:
            run_posthooks(self, node, node.extras.after, (), grads)
        thread.grad_enabled = self.create_graph

    def _is_needed(self, node: Node, grads: list[Grad | None]) -> bool:
        """Whether a node runs in a limited pass; captures what arrived, after its hooks unless the node itself runs.

        The hooks of a root run even if nothing is wanted of it. Of several roots PyTorch leaves such a one out.
        """
        runs = self._needed is None or node in self._needed
        captures = any((node, output_nr) in self._capturing for output_nr in range(len(grads)))
        if not runs and (captures or self._is_only_root(node)) and node.extras is not None:
            self._run_tensor_hooks(node, node.extras, grads)
        if captures:
            self._capture(node, grads)
        return runs

    def _is_only_root(self, node: Node) -> bool:
        return len(self.roots) == 1 and node is self.roots[0][0]

    def _capture(self, node: Node, grads: list[Grad | None]) -> None:
        for output_nr, grad in enumerate(grads):
            edge = (node, output_nr)
            if edge in self._capturing and grad is not None:
                self.captures[edge] = shown(self, node, grad)
                if self.report is not None:
                    self.report.captured(edge, grad)


class _Running(threading.local):
    """The innermost pass that a thread is in."""

    innermost: Pass | None = None


running = _Running()


def scalar_or_array(array: Array) -> Grad:
    """A 0-dimensional array as a numpy scalar, whose arithmetic is ten times as fast."""
    return array if array.ndim else array[()]
