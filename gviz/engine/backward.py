"""The backward pass: ``backward()`` and ``autograd.grad``, from their arguments to ``.grad``.

It works like PyTorch's engine. It counts the edges to each node, starts at the roots, and runs a node when all its
contributions have arrived. Complete leaves run at once; of the other complete nodes, the newest runs first. Each node
releases its saved tensors after its rule. After a failure, the nodes that have not run keep theirs. Nothing here
recurses, so a chain of a million nodes works.

`backward` starts a `Pass`. For each node the pass runs the hooks before it, the node's `vjp` and the hooks after it,
and passes each outgoing gradient on. At a leaf, `accumulate` adds the incoming gradient to ``.grad``.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from math import prod
from sys import getrefcount
from typing import Any, TypeAlias

import numpy as np

from gviz import emit
from gviz.engine import anomaly_detection, dtypes, instrumentation, messages, watchers
from gviz.engine.broadcasting import broadcast_error, reducible, sum_to
from gviz.engine.instrumentation import PassReport
from gviz.engine.layout import empty_as, strides_of
from gviz.engine.modes import thread
from gviz.engine.node import (
    Edge,
    Extras,
    Grad,
    GradientEdge,
    Metadata,
    Node,
    Registered,
    Values,
    hook_name,
)
from gviz.engine.ops.strided import overlaps_itself
from gviz.engine.tensor import AccumulateGrad, Tensor, new_tensor
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Accumulation into a leaf's ``.grad``: when it steals the gradient, copies it, or writes in place.
#
# PyTorch steals a gradient if nothing else refers to it and it has the layout of the leaf, and otherwise copies it;
# ``.grad._version`` shows which. PyTorch decides by reference counts, and so does this module.


_IN_LIST = 2
"""What `getrefcount` returns for an object that only a list refers to."""
_NAMED = 3
"""What `getrefcount` returns for an object that only a caller's variable and a parameter refer to."""


def accumulate(leaf: Tensor, arrived: list[Grad | None], written: int, create_graph: bool) -> None:
    """Adds the incoming gradient to a leaf's ``.grad``: in place, or out of place if the pass builds a graph.

    `written` is the number of in-place additions to the incoming gradient (see `adds_in_place`).
    """
    before = leaf._grad
    if watchers.watchers and watchers.is_recording():
        _accumulate_recorded(leaf, arrived[0])
    elif before is None and create_graph:
        first: Grad = arrived[0]
        leaf._set_grad(_recorded_copy(leaf, first))
    elif before is None:
        shared = getrefcount(arrived[0]) > _IN_LIST
        leaf._set_grad(_taken(leaf, arrived[0], shared, written))
    elif create_graph:
        grad: Grad = arrived[0]
        total = before + grad
        _warn_of_layout(total._array, leaf._array)
        leaf._set_grad(total)
    else:
        _add(before, arrived[0])
        _warn_of_layout(before._array, leaf._array)


def _accumulate_recorded(leaf: Tensor, grad: Grad) -> None:
    """Accumulate as a pass without a graph does, with recorded operations: a copy first, then in-place additions."""
    part = grad._alias()
    if leaf._grad is None:
        leaf._set_grad(_recorded_copy(leaf, part))
    else:
        leaf._grad.add_(part)


def adds_in_place(before: Grad, parts: Sequence[Grad | None]) -> bool:
    """Whether PyTorch adds a second contribution in place to `before`, because only the caller refers to `before`.

    If the same step also sent `before`, it is one of the step's `parts`. That is one more reference.
    """
    alone = _NAMED + any(part is before for part in parts)
    return getrefcount(before) <= alone and not isinstance(before, Tensor) and before.base is None


def _taken(leaf: Tensor, grad: Grad, shared: bool, version: int) -> Tensor:
    own = leaf._array
    if shared or grad.shape != own.shape or (own.size and _is_expanded(grad)) or not _has_layout_of(grad, own):
        return _copied(leaf, grad)
    # PyTorch steals views too, so two leaves can share a gradient; here each has its own.
    taken = new_tensor(grad if isinstance(grad, np.ndarray) and grad.base is None else np.array(grad))
    if not own.size:
        taken._array = empty_as(own)
    taken._counter[0] = version
    return taken


def _copied(leaf: Tensor, grad: Grad) -> Tensor:
    if not _is_dense(leaf._array):
        return new_tensor(np.array(grad, order="C"))
    copy = new_tensor(np.empty_like(leaf._array) if leaf._array.size else empty_as(leaf._array))
    try:
        copy._array[...] = grad
    except ValueError:
        raise RuntimeError(_shape_error(leaf._array.shape, np.shape(grad))) from None
    copy._counter[0] = 1
    return copy


def _warn_of_layout(grad: Array, own: Array) -> None:
    """Warn, as PyTorch does, if the ``.grad`` of a leaf has another layout than the leaf after an addition."""
    if not _has_layout_of(grad, own) and grad.shape == own.shape:
        strides = {"strides": list(strides_of(grad)), "own": list(strides_of(own))}
        messages.warn_once(messages.GRADIENT_LAYOUT.format(shape=list(own.shape), **strides))


def _recorded_copy(leaf: Tensor, grad: Tensor) -> Tensor:
    if not _is_dense(leaf._array):
        return grad.clone()
    zeros = np.zeros_like(leaf._array) if leaf._array.size else empty_as(leaf._array)
    return new_tensor(zeros).copy_(grad)  # a recording shows the value before: zeros


def _add(to: Tensor, grad: Grad) -> None:
    array = to._array
    if to.is_inference() and not thread.inference:
        raise RuntimeError(messages.INFERENCE_IN_PLACE)
    if overlaps_itself(array):
        raise RuntimeError(messages.OVERLAPPING_WRITE)
    try:
        np.add(array, grad, out=array)
    except ValueError:
        raise RuntimeError(_shape_error(array.shape, np.shape(grad))) from None
    to._counter[0] += 1


def _shape_error(own: tuple[int, ...], part: tuple[int, ...]) -> str:
    """Return PyTorch's error text for a gradient whose shape does not match.

    This happens if ``.data`` changed the shape of its leaf or ``.grad``.
    """
    try:
        result = np.broadcast_shapes(own, part)
    except ValueError:
        return broadcast_error(own, part)
    return messages.OUTPUT_SHAPE.format(own=list(own), result=list(result))


def _has_layout_of(grad: Any, own: Array) -> bool:
    """Return whether a gradient has the layout of its leaf, or C order if the leaf has gaps or overlaps.

    Of a dimension of size 1, it only counts that the stride is not 0, as in PyTorch.
    """
    if grad.flags.c_contiguous and own.flags.c_contiguous and own.size:
        return True
    if not _is_dense(own):
        return bool(grad.flags.c_contiguous)
    pairs = zip(own.shape, strides_of(grad), strides_of(own), strict=False)
    return all((step != 0) if n == 1 else step == wanted for n, step, wanted in pairs)


def _is_expanded(grad: Any) -> bool:
    """Return whether a gradient is one number, expanded."""
    return bool(grad.base is not None and grad.ndim and not any(grad.strides))


def _is_dense(array: Array) -> bool:
    flags = array.flags
    return flags.c_contiguous or flags.f_contiguous or _steps(array) == _steps(np.empty_like(array))


def _steps(array: Any) -> list[int]:
    return [step for step, size in zip(array.strides, array.shape, strict=True) if size != 1]


# ----------------------------------------------------------------------------------------------------------------------
# The shape and dtype of a gradient.


def conformed(part: Grad, node: Node, slot: int, edge: Edge) -> Grad:
    """Returns a gradient in the shape and dtype of its target: what was broadcast forward is summed backward."""
    shape, kind = edge[0].outputs[edge[1]]
    if isinstance(part, Tensor):
        array = part._array
        if array.shape != shape:
            part = (
                part.sum_to_size(shape)
                if reducible(array.shape, shape)
                else _raise_invalid(node, slot, array.shape, shape)
            )
        return part if array.dtype == kind else part.to(dtypes.of_numpy(kind))
    if part.shape != shape:
        part = sum_to(part, shape) if reducible(part.shape, shape) else _raise_invalid(node, slot, part.shape, shape)
    return part if part.dtype == kind else part.astype(kind)


def in_form_of_root(seed: Tensor, edge: Edge, index: int) -> Tensor:
    """The user's initial gradient in the shape and dtype of its root."""
    shape, kind = edge[0].outputs[edge[1]]
    if seed._array.shape != shape:  # an operation under no_grad changed the shape of the root in place
        own = seed._array.shape
        if not reducible(own, shape):
            raise RuntimeError(messages.INVALID_SEED.format(index=index, got=list(own), expected=list(shape)))
        seed = seed.sum_to_size(shape)
    return seed if seed._array.dtype == kind else seed.to(dtypes.of_numpy(kind))


def _raise_invalid(node: Node, slot: int, got: tuple[int, ...], expected: tuple[int, ...]) -> Grad:
    text = messages.INVALID_GRADIENT.format(name=node.name(), index=slot, got=list(got), expected=list(expected))
    raise RuntimeError(text)


# ----------------------------------------------------------------------------------------------------------------------
# Runs the hooks of a node in a backward pass: those of its tensors, those before it, those after it.
#
# Hooks receive tensors, while the rules of an ordinary pass use arrays. A value that a hook returns replaces the
# gradient after the checks that PyTorch makes, with its error texts.


def as_tensor(grad: Grad) -> Tensor:
    """A gradient as a tensor, for hooks and results."""
    return grad if isinstance(grad, Tensor) else new_tensor(np.asarray(grad))


def run_tensor_hooks(current: Pass, node: Node, extras: Extras, grads: list[Grad | None]) -> None:
    """Runs the hooks of a node's outputs, which may replace the incoming gradients; then stores retained gradients."""
    for output_nr, hooks in extras.of_tensors.items():
        value = shown(current, node, grads[output_nr])
        for number, hook in list(hooks.items()):
            before = _version(value)
            result = hook(value)
            if result is not None and result is not value:
                value = _checked(result, value, hook)
            if current.report is not None:
                changed = result is not None or _version(value) != before
                current.report.hook_ran(node, output_nr, "tensor", hook, value if changed else None, number)
        grads[output_nr] = _put_back(current, node, value)
    if extras.retained:
        _retain(node, extras, grads, current.report)


def run_prehooks(current: Pass, node: Node, hooks: Registered, grads: list[Grad | None]) -> None:
    """Runs a node's prehooks, which may replace all incoming gradients, before its backward rule."""
    values: Values = tuple([shown(current, node, grad) for grad in grads])
    for number, hook in list(hooks.items()):
        result = hook(values)
        replaced = result is not None and result is not values
        values = _checked_all(result, values, hook) if replaced else values
        if current.report is not None:
            current.report.node_hook_ran(node, "pre", hook, values if replaced else (), number)
    grads[:] = [_put_back(current, node, value) for value in values]


def run_posthooks(
    current: Pass, node: Node, hooks: Registered, parts: Sequence[Grad | None], grads: Sequence[Grad | None]
) -> list[Grad | None]:
    """Runs a node's posthooks, which may replace the outgoing gradients, and returns the outgoing gradients."""
    places = node.places(range(len(parts)))
    outgoing: Values = tuple([None if p is None or parts[p] is None else as_tensor(parts[p]) for p in places])
    incoming: Values = tuple([shown(current, node, grad) for grad in grads])
    for number, hook in list(hooks.items()):
        given = hook(outgoing, incoming)
        replaced = given is not None and given is not outgoing
        outgoing = _checked_all(given, outgoing, hook) if replaced else outgoing
        if current.report is not None:
            current.report.node_hook_ran(node, "post", hook, outgoing if replaced else (), number)
    result = list(parts)
    for place, value in zip(places, outgoing, strict=True):
        if place is not None:
            result[place] = _plain(value, current.create_graph)
    return result


def run_accumulated_hooks(node: AccumulateGrad, report: PassReport | None) -> None:
    """Runs a leaf's post-accumulate hooks. Raises RuntimeError if one returns a value."""
    leaf = node.variable
    value: Tensor | None = leaf
    for number, hook in list((leaf._accumulated_hooks or {}).items()):
        result = hook(value)
        if result is not None and result is not value:
            value = _checked(result, value, hook)
        if report is not None:
            report.hook_ran(node, 0, "post accumulate", hook, None, number)
    if value is not leaf:
        raise RuntimeError(messages.ACCUMULATED_HOOK_RESULT)


def _retain(node: Node, extras: Extras, grads: list[Grad | None], report: PassReport | None) -> None:
    for output_nr, reference in extras.retained.items():
        tensor, grad = reference(), grads[output_nr]
        if tensor is None or grad is None:
            continue
        retained = grad.clone() if isinstance(grad, Tensor) else new_tensor(np.array(grad, order="C"))
        tensor._set_grad(retained if tensor._grad is None else tensor._grad + retained)
        if report is not None and tensor._grad is not None:
            report.retained(node, output_nr, tensor._grad)


def shown(current: Pass, node: Node, grad: Grad | None) -> Tensor | None:
    """An incoming gradient as hooks see it. The version of a leaf's gradient counts the in-place additions."""
    if grad is None:
        return None
    value = as_tensor(grad)
    if node.__class__ is AccumulateGrad and value is not grad:
        value._counter[0] = current.written.get(node, 0)
    return value


def _put_back(current: Pass, node: Node, value: Tensor | None) -> Grad | None:
    """Return the gradient after the hooks, in the form in which the pass continues with it."""
    if node.__class__ is AccumulateGrad and not current.create_graph:
        current.written[node] = _version(value)
    return _plain(value, current.create_graph)


def _version(value: Tensor | None) -> int:
    return 0 if value is None else value._counter[0]


def _plain(value: Tensor | None, create_graph: bool) -> Grad | None:
    """Return a gradient from a hook in the form of the pass's gradients."""
    return value if value is None or create_graph else value._array


def _checked_all(result: object, values: Values, hook: object) -> Values:
    """Return the values that a node's hook returned in place of `values`.

    Raises TypeError or RuntimeError if they do not match.
    """
    if not isinstance(result, tuple):
        raise TypeError(messages.HOOK_TUPLE.format(name=type(result).__name__))
    if len(result) != len(values):
        counts = {"got": len(result), "expected": len(values)}
        raise RuntimeError(messages.HOOK_COUNT.format(name=hook_name(hook), **counts))
    return tuple([_checked(one, value, hook) for one, value in zip(result, values, strict=True)])


def _checked(result: object, value: Tensor | None, hook: object) -> Tensor | None:
    """Return the value that a hook returned in place of `value`. Raises TypeError or RuntimeError if it does
    not match.
    """
    if result is None:
        return None
    if value is None:
        raise RuntimeError(messages.HOOK_OF_NOTHING)
    if not isinstance(result, Tensor):
        raise TypeError(messages.HOOK_TYPE.format(name=type(result).__name__))
    name = hook_name(hook)
    if result._array.dtype != value._array.dtype:
        kinds = {"was": value.dtype.tensor_type, "got": result.dtype.tensor_type}
        raise RuntimeError(messages.HOOK_DTYPE.format(name=name, **kinds))
    if result._array.shape != value._array.shape:
        raise RuntimeError(messages.HOOK_SIZE.format(name=name))
    return result


# ----------------------------------------------------------------------------------------------------------------------
# The backward pass: the algorithm is described at the top of this file.


class Pass:
    """One backward pass: the gradients that have arrived, and the nodes that are ready to run.

    `wanted` limits it to the nodes that lead to these edges (None: every leaf). With `capture` the gradients there are
    returned instead of accumulated; the pass raises RuntimeError if one of them gets none, unless `allow_unused`.
    `written` counts the in-place additions to a leaf's incoming gradient, as PyTorch would have made them.
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
        """Runs the pass. Raises what a rule or hook raises.

        Tensors released until then stay released, and gradients accumulated until then stay in ``.grad``.
        """
        channel = emit.channel
        if channel is not None:
            self.report = PassReport(channel)
            modes = {"retain_graph": self.retain_graph, "create_graph": self.create_graph}
            self.report.started(self.roots, self.seeds, self.wanted or (), **modes)
        self._refuses_nan = anomaly_detection.mode.enabled and anomaly_detection.mode.check_nan
        before = thread.grad_enabled, thread.during, running.innermost, anomaly_detection.evaluated.node
        thread.grad_enabled, running.innermost = self.create_graph, self
        error = "interrupted", ""
        try:
            with np.errstate(all="ignore"):  # PyTorch does not warn of 0/0 either
                self._count_edges()
                self._start()
                self._drain()
            self._require_used()
            error = "", ""
        except BaseException as raised:
            error = str(raised) or type(raised).__name__, type(raised).__name__
            raise
        finally:
            thread.grad_enabled, thread.during, running.innermost, anomaly_detection.evaluated.node = before
            if self.report is not None and emit.channel is channel:
                self.report.finished(*error)

    def _require_used(self) -> None:
        unused = (index for index, edge in enumerate(self._required) if self.captures.get(edge) is None)
        if (index := next(unused, None)) is not None:
            raise RuntimeError(messages.UNUSED_INPUT.format(index=index))

    def will_run(self, node: Node | None) -> bool:
        """Whether this pass will reach a node, and run it or capture its gradient.

        A single root counts as not reached, as in PyTorch, so a hook for several gradients does not wait for the
        root's. Raises RuntimeError for a leaf with a captured gradient.
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
        """Return the nodes to run: those on a path to a wanted edge, and wanted nodes that are not captured."""
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
        every_node, watched = self._needed is None, anomaly_detection.mode.enabled
        node: Node | None = None
        try:
            while leaves or ready:
                node = leaves.popleft() if leaves else heappop(ready)[1]
                if watched:
                    anomaly_detection.evaluated.node = node
                grads = arrived.pop(node, None) or [None] * len(node.outputs)
                if not (every_node or self._capture_if_requested(node, grads)):
                    continue
                if node.extras is not None:
                    self._before(node, node.extras, grads)
                if node.__class__ is AccumulateGrad:
                    self._accumulate(node, grads)
                else:
                    self._step(node, grads)
        except Exception:
            if anomaly_detection.mode.enabled and node is not None:
                anomaly_detection.warn_of(node)
            raise

    def _before(self, node: Node, extras: Extras, grads: list[Grad | None]) -> None:
        """Run the hooks that come before a node's backward rule."""
        self._run_tensor_hooks(node, extras, grads)
        if extras.before:
            run_prehooks(self, node, extras.before, grads)
        thread.grad_enabled = self.create_graph  # whatever a hook did to it

    def _run_tensor_hooks(self, node: Node, extras: Extras, grads: list[Grad | None]) -> None:
        if self.report is not None:
            thread.during = self.report.during(node)
        run_tensor_hooks(self, node, extras, grads)

    def _step(self, node: Node, grads: list[Grad | None]) -> None:
        """Run a node's backward rule, release what it saved, and pass its gradients on."""
        report, number = self.report, 0
        if report is not None:
            number = report.step_started(node, grads)
            thread.during = (report.number, number)
        parts = node.vjp(grads, self.create_graph)
        if self._refuses_nan or (node.extras is not None and node.extras.after):
            parts = self._after(node, grads, parts)
        freed = not self.retain_graph and node.release()
        if self._refuses_nan:
            anomaly_detection.refuse_nan(node, parts)
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
        """Runs the node's posthooks. Returns the outgoing gradients in the shapes and dtypes of the inputs."""
        slots = enumerate(zip(parts, node.next_edges, strict=True))
        fit = [self._fitted(part, node, slot, edge) for slot, (part, edge) in slots]
        if node.extras is None or not node.extras.after:
            return fit
        result = run_posthooks(self, node, node.extras.after, fit, grads)
        thread.grad_enabled = self.create_graph  # whatever a hook did to it
        return result

    def _fitted(self, part: Grad | None, node: Node, slot: int, edge: Edge | None) -> Grad | None:
        """Return an outgoing gradient in the shape and dtype of its input; None if this pass does not need it."""
        if part is None or edge is None:
            return part
        goes_on = self._needed is None or edge[0] in self._needed or edge in self._capturing
        return conformed(part, node, slot, edge) if goes_on else None

    def _accumulate(self, node: AccumulateGrad, grads: list[Grad | None]) -> None:
        """Add to a leaf's ``.grad``, unless it was frozen meanwhile, and run its post-accumulate hooks.

        Does nothing if no gradient arrived.
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

    def _capture_if_requested(self, node: Node, grads: list[Grad | None]) -> bool:
        """Return whether a node runs in a limited pass.

        Also captures the incoming gradient if it is wanted. If the node runs, this is done before its tensor hooks,
        otherwise after them. The hooks of a single root run even if its gradient is not wanted. With several roots,
        they do not run, as in PyTorch.
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
    """The innermost pass of a thread."""

    innermost: Pass | None = None


running = _Running()


def scalar_or_array(array: Array) -> Grad:
    """A 0-dimensional array as a NumPy scalar, whose arithmetic is ten times as fast."""
    return array if array.ndim else array[()]


# ----------------------------------------------------------------------------------------------------------------------
# ``tensor.backward()`` and ``torch.autograd.backward``: checks, roots and initial gradients of a pass.


Place: TypeAlias = Tensor | GradientEdge
"""Where a pass starts, or what it is limited to: a tensor, or the graph edge where its gradient arrives."""
Places: TypeAlias = Place | Sequence[Place]


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Places | dict[str, Tensor] | None = None,
) -> None:
    """Computes the gradient of this tensor with respect to the leaves of its graph, and adds it to their ``.grad``.

    `gradient` has this tensor's shape; it may be omitted for a one-element tensor. The graph is released afterwards
    unless `retain_graph` is True (default: `create_graph`). With `create_graph` the gradients can be differentiated in
    turn. `inputs` limits the accumulation to these tensors. Raises RuntimeError as PyTorch does.
    """
    backward_from([self], gradient, retain_graph, create_graph, inputs)


def backward_from(
    roots: Sequence[Place],
    gradients: Tensor | Sequence[Tensor | None] | None,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Places | dict[str, Tensor] | None,
) -> None:
    """``torch.autograd.backward``: several roots at once."""
    chosen = None if inputs is None else gradient_places(inputs, "backward")
    seeds = make_seeds(roots, listed(gradients, len(roots)))
    retain = create_graph if retain_graph is None else retain_graph
    edges = root_edges(roots, seeds, retain_graph=retain, create_graph=create_graph)
    wanted = None if chosen is None else [_retain_and_get_edge(place) for place in chosen]
    warns = create_graph
    if watchers.watchers and (recorder := watchers.recorder()) is not None:
        create_graph = True
        recorder.accumulated()
    initial = plain(seeds, edges, create_graph)
    if warns:
        messages.warn_once(messages.CREATE_GRAPH)
    Pass(edges, initial, retain_graph=retain, create_graph=create_graph, wanted=wanted).run()


def gradient_places(value: Places | dict[str, Tensor], function: str) -> list[Place]:
    """The argument ``inputs``, one or several, as a list. Raises RuntimeError if it is empty."""
    if isinstance(value, (Tensor, GradientEdge)):
        return [value]
    if type(value) is not dict and isinstance(value, Mapping):
        raise TypeError(messages.INPUTS_MAPPING.format(function=function, name=type(value).__name__))
    chosen: list[Place] = list(value.values() if isinstance(value, dict) else value)
    if not chosen:
        raise RuntimeError(messages.EMPTY_INPUTS.format(function=function))
    return chosen


def listed(gradients: Tensor | Sequence[Tensor | None] | None, count: int) -> list[Tensor | None]:
    """The gradients passed, one or several, as a list; None for each root if none were passed."""
    if gradients is None:
        return [None] * count
    return [gradients] if isinstance(gradients, Tensor) else list(gradients)


def make_seeds(roots: Sequence[Place], gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The initial gradients; a one-element root defaults to ones. Raises RuntimeError for a larger root without one."""
    return [_seed(root, gradient, index) for index, (root, gradient) in enumerate(zip(roots, gradients, strict=False))]


def _seed(root: Place, gradient: object, index: int) -> Tensor | None:
    shape, kind = metadata_of(root)
    if isinstance(gradient, Tensor):
        if gradient.shape != shape:
            shapes = {"grad": list(gradient.shape), "output": list(shape)}
            raise RuntimeError(messages.GRAD_SHAPE.format(index=index, **shapes))
        return gradient
    if gradient is not None:
        raise TypeError(messages.GRADIENT_KIND.format(name=type(gradient).__name__))
    if isinstance(root, Tensor) and not root.requires_grad:
        return None
    if prod(shape) != 1:
        raise RuntimeError(messages.NON_SCALAR_ROOT)
    return new_tensor(np.ones(shape, kind))


def metadata_of(root: Place) -> Metadata:
    """The shape and dtype of the gradient at a place."""
    if isinstance(root, GradientEdge):
        return root.node.outputs[root.output_nr]
    if not isinstance(root, Tensor):
        raise AssertionError(messages.ROOT_KIND)
    return root._array.shape, root._array.dtype


def root_edges(
    roots: Sequence[Place], seeds: Sequence[Tensor | None], *, retain_graph: bool, create_graph: bool
) -> list[Edge]:
    """The edges where a pass starts. Raises RuntimeError for a root without a graph, or if the counts differ."""
    if len(roots) != len(seeds):
        raise RuntimeError(messages.SEED_COUNT.format(roots=len(roots), seeds=len(seeds)))
    for index, root in enumerate(roots):
        if isinstance(root, Tensor) and root.grad_fn is None and not root._requires_grad:
            error = messages.UNTRACKED_ROOT.format(index=index)
            if emit.channel is not None:
                modes = {"retain_graph": retain_graph, "create_graph": create_graph}
                instrumentation.refused(emit.channel, roots, seeds, error, **modes)
            raise RuntimeError(error)
    return [edge_of(root) for root in roots]


def edge_of(place: Place) -> Edge:
    """The edge of a tensor or of a `GradientEdge`. Raises RuntimeError for anything else."""
    if isinstance(place, Tensor):
        return place._edge()
    if not isinstance(place, GradientEdge):
        raise RuntimeError(messages.INPUT_KIND.format(name=type(place).__name__))
    return place.node, place.output_nr


def plain(seeds: Sequence[Tensor | None], edges: Sequence[Edge], create_graph: bool) -> list[Grad]:
    """The initial gradients in the dtypes of their roots: tensors with `create_graph`, otherwise arrays or scalars."""
    numbered = enumerate(zip(seeds, edges, strict=True))
    present = [in_form_of_root(seed, edge, index) for index, (seed, edge) in numbered if seed is not None]
    return present if create_graph else [scalar_or_array(seed._array) for seed in present]


def _retain_and_get_edge(place: Place) -> Edge:
    if isinstance(place, Tensor):
        place.retain_grad()
    return edge_of(place)
