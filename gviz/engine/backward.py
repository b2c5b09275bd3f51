"""The backward pass behind ``backward()`` and ``autograd.grad``.

It checks their arguments, computes the gradients, and adds them to ``.grad`` or returns them. It works like PyTorch's
engine: it counts the edges to each node, starts at the roots, and runs a node when all its contributions have arrived.
Complete leaves run at once; of the other complete nodes, the newest runs first. Each node releases its saved tensors
after its rule. After a failure, the nodes that have not run keep theirs. Nothing here recurses, so a chain of a million
nodes works.

`backward` starts a `Pass`. For each node the pass runs the hooks before it, the node's `vjp` and the hooks after it.
Then it adds each outgoing gradient to the incoming gradient of the next node. At a leaf, `accumulate` adds the incoming
gradient to ``.grad``.
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
from gviz.engine import anomaly_detection, dtypes, instrumentation, messages, operation_watchers
from gviz.engine.broadcasting import broadcast_error, reducible, sum_to
from gviz.engine.instrumentation import PassReport
from gviz.engine.memory_format import empty_as, strides_of
from gviz.engine.modes import thread
from gviz.engine.node import (
    Edge,
    Extras,
    Grad,
    GradientEdge,
    HooksById,
    Metadata,
    Node,
    Values,
    hook_name,
)
from gviz.engine.ops.strided import overlaps_itself
from gviz.engine.tensor import AccumulateGrad, Tensor, new_tensor
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Accumulation into a leaf's ``.grad``: when it steals the gradient, copies it, or writes in place.
#
# PyTorch steals the first gradient, which means that ``.grad`` uses its memory, if nothing else refers to it and it has
# the layout of the leaf. Otherwise PyTorch copies it; ``.grad._version`` shows which. PyTorch decides by reference
# counts, and so does this module.


_COUNT_IN_LIST = 2
"""What `getrefcount` returns for an object that only a list refers to."""
_COUNT_IN_CALLER = 3
"""What `getrefcount` returns for an object that only a caller's variable and a parameter refer to."""


def accumulate(leaf: Tensor, incoming: list[Grad | None], in_place_additions: int, create_graph: bool) -> None:
    """Adds the incoming gradient to a leaf's ``.grad``: in place, or out of place if the pass builds a graph.

    `in_place_additions` is the number of in-place additions to the incoming gradient (see `adds_in_place`).
    """
    accumulated = leaf._grad
    if operation_watchers.watchers and operation_watchers.is_recording():
        _accumulate_recorded(leaf, incoming[0])
    elif accumulated is None and create_graph:
        first: Grad = incoming[0]
        leaf._set_grad(_record_copy(leaf, first))
    elif accumulated is None:
        shared = getrefcount(incoming[0]) > _COUNT_IN_LIST
        leaf._set_grad(_steal_or_copy(leaf, incoming[0], shared, in_place_additions))
    elif create_graph:
        grad: Grad = incoming[0]
        total = accumulated + grad
        _warn_of_layout(total._array, leaf._array)
        leaf._set_grad(total)
    else:
        _add(accumulated, incoming[0])
        _warn_of_layout(accumulated._array, leaf._array)


def _accumulate_recorded(leaf: Tensor, grad: Grad) -> None:
    """Accumulate with operations that the static graph records.

    They are those of a pass without ``create_graph``: a copy of the first gradient, in-place additions of the others.
    """
    alias = grad._alias()
    if leaf._grad is None:
        leaf._set_grad(_record_copy(leaf, alias))
    else:
        leaf._grad.add_(alias)


def adds_in_place(incoming: Grad, outgoing: Sequence[Grad | None]) -> bool:
    """Whether PyTorch would add the next contribution to `incoming` in place.

    It would if nothing but the caller refers to `incoming`. The list `outgoing` may refer to it, too: it does if
    `incoming` is a contribution of the same backward rule.
    """
    allowed = _COUNT_IN_CALLER + any(contribution is incoming for contribution in outgoing)
    return getrefcount(incoming) <= allowed and not isinstance(incoming, Tensor) and incoming.base is None


def _steal_or_copy(leaf: Tensor, grad: Grad, shared: bool, version: int) -> Tensor:
    """Return the first ``.grad`` of a leaf. If the gradient is stolen, its version is `version`."""
    leaf_array = leaf._array
    if (
        shared
        or grad.shape != leaf_array.shape
        or (leaf_array.size and _is_expanded(grad))
        or not _has_layout_of(grad, leaf_array)
    ):
        return _copy_for_leaf(leaf, grad)
    # PyTorch steals views too, so two leaves can share a gradient; here each has its own.
    grad_tensor = new_tensor(grad if isinstance(grad, np.ndarray) and grad.base is None else np.array(grad))
    if not leaf_array.size:
        grad_tensor._array = empty_as(leaf_array)
    grad_tensor._counter[0] = version
    return grad_tensor


def _copy_for_leaf(leaf: Tensor, grad: Grad) -> Tensor:
    if not _is_dense(leaf._array):
        return new_tensor(np.array(grad, order="C"))
    copy = new_tensor(np.empty_like(leaf._array) if leaf._array.size else empty_as(leaf._array))
    try:
        copy._array[...] = grad
    except ValueError:
        raise RuntimeError(_shape_error(leaf._array.shape, np.shape(grad))) from None
    copy._counter[0] = 1
    return copy


def _warn_of_layout(grad: Array, leaf_array: Array) -> None:
    """Warn, as PyTorch does, if the ``.grad`` of a leaf has another layout than the leaf after an addition."""
    if not _has_layout_of(grad, leaf_array) and grad.shape == leaf_array.shape:
        strides = {"strides": list(strides_of(grad)), "own": list(strides_of(leaf_array))}
        messages.warn_once(messages.GRADIENT_LAYOUT.format(shape=list(leaf_array.shape), **strides))


def _record_copy(leaf: Tensor, grad: Tensor) -> Tensor:
    if not _is_dense(leaf._array):
        return grad.clone()
    zeros = np.zeros_like(leaf._array) if leaf._array.size else empty_as(leaf._array)
    return new_tensor(zeros).copy_(grad)  # a recording shows the value that ``copy_`` overwrites: zeros, not garbage


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


def _shape_error(shape: tuple[int, ...], grad_shape: tuple[int, ...]) -> str:
    """Return PyTorch's error text for a gradient whose shape does not match.

    This happens if ``.data`` changed the shape of its leaf or ``.grad``.
    """
    try:
        result = np.broadcast_shapes(shape, grad_shape)
    except ValueError:
        return broadcast_error(shape, grad_shape)
    return messages.OUTPUT_SHAPE.format(own=list(shape), result=list(result))


def _has_layout_of(grad: Any, leaf_array: Array) -> bool:
    """Return whether a gradient has the layout of its leaf, or C order if the leaf has gaps or overlaps.

    In a dimension of size 1, any stride but 0 is accepted, as in PyTorch.
    """
    if grad.flags.c_contiguous and leaf_array.flags.c_contiguous and leaf_array.size:
        return True
    if not _is_dense(leaf_array):
        return bool(grad.flags.c_contiguous)
    pairs = zip(leaf_array.shape, strides_of(grad), strides_of(leaf_array), strict=False)
    return all((stride != 0) if n == 1 else stride == expected for n, stride, expected in pairs)


def _is_expanded(grad: Any) -> bool:
    """Return whether a gradient is one number in memory that was expanded to a shape."""
    return bool(grad.base is not None and grad.ndim and not any(grad.strides))


def _is_dense(array: Array) -> bool:
    """Return whether the elements of an array fill its memory, each once, in any order of the dimensions."""
    flags = array.flags
    if flags.c_contiguous or flags.f_contiguous:
        return True
    return _significant_strides(array) == _significant_strides(np.empty_like(array))


def _significant_strides(array: Any) -> list[int]:
    """Return the strides of the dimensions that have more than one element."""
    return [stride for stride, size in zip(array.strides, array.shape, strict=True) if size != 1]


# ----------------------------------------------------------------------------------------------------------------------
# The shape and dtype of a gradient.


def conform(grad: Grad, node: Node, slot: int, edge: Edge) -> Grad:
    """Returns an outgoing gradient in the shape and dtype of its target: what was broadcast forward is summed backward.

    `slot` is the input of `node` to which it belongs.
    """
    shape, dtype = edge[0].outputs[edge[1]]
    if isinstance(grad, Tensor):
        array = grad._array
        if array.shape != shape:
            grad = (
                grad.sum_to_size(shape)
                if reducible(array.shape, shape)
                else _raise_invalid(node, slot, array.shape, shape)
            )
        return grad if array.dtype == dtype else grad.to(dtypes.of_numpy(dtype))
    if grad.shape != shape:
        grad = sum_to(grad, shape) if reducible(grad.shape, shape) else _raise_invalid(node, slot, grad.shape, shape)
    return grad if grad.dtype == dtype else grad.astype(dtype)


def conform_seed(seed: Tensor, edge: Edge, index: int) -> Tensor:
    """Returns the user's initial gradient in the shape and dtype of its root."""
    shape, dtype = edge[0].outputs[edge[1]]
    if seed._array.shape != shape:  # an operation under no_grad changed the shape of the root in place
        seed_shape = seed._array.shape
        if not reducible(seed_shape, shape):
            raise RuntimeError(messages.INVALID_SEED.format(index=index, got=list(seed_shape), expected=list(shape)))
        seed = seed.sum_to_size(shape)
    return seed if seed._array.dtype == dtype else seed.to(dtypes.of_numpy(dtype))


def _raise_invalid(node: Node, slot: int, got: tuple[int, ...], expected: tuple[int, ...]) -> Grad:
    text = messages.INVALID_GRADIENT.format(name=node.name(), index=slot, got=list(got), expected=list(expected))
    raise RuntimeError(text)


# ----------------------------------------------------------------------------------------------------------------------
# Runs the hooks of a node in a backward pass: those of its tensors, those before it, those after it.
#
# Hooks receive tensors, while the rules of an ordinary pass use arrays. A value that a hook returns replaces the
# gradient. It is checked first, as in PyTorch and with PyTorch's error texts.


def as_tensor(grad: Grad) -> Tensor:
    """A gradient as a tensor, for hooks and results."""
    return grad if isinstance(grad, Tensor) else new_tensor(np.asarray(grad))


def run_tensor_hooks(current: Pass, node: Node, extras: Extras, grads: list[Grad | None]) -> None:
    """Runs the hooks of a node's outputs, which may replace the incoming gradients; then stores retained gradients."""
    for output_nr, hooks in extras.tensor_hooks.items():
        value = tensor_for_hooks(current, node, grads[output_nr])
        for number, hook in list(hooks.items()):
            version_before = _version(value)
            result = hook(value)
            if result is not None and result is not value:
                value = _check_value(result, value, hook)
            if current.report is not None:
                changed = result is not None or _version(value) != version_before
                current.report.hook_ran(node, output_nr, "tensor", hook, value if changed else None, number)
        grads[output_nr] = _grad_after_hooks(current, node, value)
    if extras.retaining_tensors:
        _retain(node, extras, grads, current.report)


def run_prehooks(current: Pass, node: Node, hooks: HooksById, grads: list[Grad | None]) -> None:
    """Runs a node's prehooks, which may replace all incoming gradients, before its backward rule."""
    values: Values = tuple([tensor_for_hooks(current, node, grad) for grad in grads])
    for number, hook in list(hooks.items()):
        result = hook(values)
        replaced = result is not None and result is not values
        values = _check_values(result, values, hook) if replaced else values
        if current.report is not None:
            current.report.node_hook_ran(node, "pre", hook, values if replaced else (), number)
    grads[:] = [_grad_after_hooks(current, node, value) for value in values]


def run_posthooks(
    current: Pass, node: Node, hooks: HooksById, outgoing: Sequence[Grad | None], grads: Sequence[Grad | None]
) -> list[Grad | None]:
    """Runs a node's posthooks, which may replace the outgoing gradients, and returns the outgoing gradients."""
    positions = node.by_argument(range(len(outgoing)))
    values: Values = tuple([None if p is None or outgoing[p] is None else as_tensor(outgoing[p]) for p in positions])
    incoming_values: Values = tuple([tensor_for_hooks(current, node, grad) for grad in grads])
    for number, hook in list(hooks.items()):
        answer = hook(values, incoming_values)
        replaced = answer is not None and answer is not values
        values = _check_values(answer, values, hook) if replaced else values
        if current.report is not None:
            current.report.node_hook_ran(node, "post", hook, values if replaced else (), number)
    result = list(outgoing)
    for position, value in zip(positions, values, strict=True):
        if position is not None:
            result[position] = _unwrap(value, current.create_graph)
    return result


def run_accumulated_hooks(node: AccumulateGrad, report: PassReport | None) -> None:
    """Runs a leaf's post-accumulate hooks. Raises RuntimeError if one returns a value."""
    leaf = node.variable
    value: Tensor | None = leaf
    for number, hook in list((leaf._accumulated_hooks or {}).items()):
        result = hook(value)
        if result is not None and result is not value:
            value = _check_value(result, value, hook)
        if report is not None:
            report.hook_ran(node, 0, "post accumulate", hook, None, number)
    if value is not leaf:
        raise RuntimeError(messages.ACCUMULATED_HOOK_RESULT)


def _retain(node: Node, extras: Extras, grads: list[Grad | None], report: PassReport | None) -> None:
    for output_nr, reference in extras.retaining_tensors.items():
        tensor, grad = reference(), grads[output_nr]
        if tensor is None or grad is None:
            continue
        retained = grad.clone() if isinstance(grad, Tensor) else new_tensor(np.array(grad, order="C"))
        tensor._set_grad(retained if tensor._grad is None else tensor._grad + retained)
        if report is not None and tensor._grad is not None:
            report.retained(node, output_nr, tensor._grad)


def tensor_for_hooks(current: Pass, node: Node, grad: Grad | None) -> Tensor | None:
    """An incoming gradient as hooks see it: a tensor. At a leaf, its version is the number of in-place additions."""
    if grad is None:
        return None
    value = as_tensor(grad)
    if node.__class__ is AccumulateGrad and value is not grad:
        value._counter[0] = current.in_place_additions.get(node, 0)
    return value


def _grad_after_hooks(current: Pass, node: Node, value: Tensor | None) -> Grad | None:
    """Return the gradient with which the pass continues after the hooks; remember its version if the node is a leaf."""
    if node.__class__ is AccumulateGrad and not current.create_graph:
        current.in_place_additions[node] = _version(value)
    return _unwrap(value, current.create_graph)


def _version(value: Tensor | None) -> int:
    return 0 if value is None else value._counter[0]


def _unwrap(value: Tensor | None, create_graph: bool) -> Grad | None:
    """Return a tensor from a hook as a gradient of the pass: with `create_graph` the tensor, otherwise its array."""
    return value if value is None or create_graph else value._array


def _check_values(result: object, values: Values, hook: object) -> Values:
    """Return the values that a node's hook returned in place of `values`.

    Raises TypeError or RuntimeError if they do not match.
    """
    if not isinstance(result, tuple):
        raise TypeError(messages.HOOK_TUPLE.format(name=type(result).__name__))
    if len(result) != len(values):
        counts = {"got": len(result), "expected": len(values)}
        raise RuntimeError(messages.HOOK_COUNT.format(name=hook_name(hook), **counts))
    return tuple([_check_value(one, value, hook) for one, value in zip(result, values, strict=True)])


def _check_value(result: object, value: Tensor | None, hook: object) -> Tensor | None:
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
        types = {"was": value.dtype.tensor_type, "got": result.dtype.tensor_type}
        raise RuntimeError(messages.HOOK_DTYPE.format(name=name, **types))
    if result._array.shape != value._array.shape:
        raise RuntimeError(messages.HOOK_SIZE.format(name=name))
    return result


# ----------------------------------------------------------------------------------------------------------------------
# The backward pass: the algorithm is described at the top of this file.


class Pass:
    """One backward pass: the gradients that have arrived, and the nodes that are ready to run.

    With `targets`, only the nodes on a path to one of these edges run, the last node of the path included (None: every
    node). With `capture`, that last node does not run unless it leads to another target, and the gradients that arrive
    over the targets are kept in `captures` and not accumulated. If a target gets no gradient, the pass raises
    RuntimeError, unless `allow_unused`.

    For each leaf, `in_place_additions` is the number of additions to its incoming gradient that PyTorch would make in
    place.
    """

    def __init__(
        self,
        roots: Sequence[Edge],
        seeds: Sequence[Grad],
        *,
        retain_graph: bool,
        create_graph: bool,
        targets: Sequence[Edge] | None = None,
        capture: bool = False,
        allow_unused: bool = True,
    ) -> None:
        self.roots = roots
        self.seeds = seeds
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.targets = targets
        self.captures: dict[Edge, Tensor | None] = {}
        self.in_place_additions: dict[Node, int] = {}
        self.report: PassReport | None = None
        self._capturing = set(targets or ()) if capture else set()
        self._required = () if allow_unused else tuple(targets or ())
        self._waiting: dict[Node, int] = {}  # the number of edges to a node from nodes that have not run yet
        self._arrived: dict[Node, list[Grad | None]] = {}  # the incoming gradients of a node so far, by output
        self._ready: list[tuple[int, Node]] = []  # complete nodes, as a heap: the newest first
        self._leaves: deque[Node] = deque()  # complete leaves
        self._needed: set[Node] | None = None  # the nodes to run; None: every node
        self._refuses_nan = False

    def run(self) -> None:
        """Runs the pass. Raises what a rule or hook raises.

        Tensors released until then stay released, and gradients accumulated until then stay in ``.grad``.
        """
        channel = emit.channel
        if channel is not None:
            self.report = PassReport(channel)
            modes = {"retain_graph": self.retain_graph, "create_graph": self.create_graph}
            self.report.started(self.roots, self.seeds, self.targets or (), **modes)
        self._refuses_nan = anomaly_detection.mode.enabled and anomaly_detection.mode.check_nan
        outer_state = thread.grad_enabled, thread.running_step, running.innermost, anomaly_detection.evaluated.node
        thread.grad_enabled, running.innermost = self.create_graph, self
        error = "interrupted", ""
        try:
            with np.errstate(all="ignore"):  # PyTorch does not warn of 0/0 either
                self._count_edges()
                self._start()
                self._drain()
            self._check_targets_used()
            error = "", ""
        except BaseException as raised:
            error = str(raised) or type(raised).__name__, type(raised).__name__
            raise
        finally:
            thread.grad_enabled, thread.running_step, running.innermost, anomaly_detection.evaluated.node = outer_state
            if self.report is not None and emit.channel is channel:
                self.report.finished(*error)

    def _check_targets_used(self) -> None:
        """Raise RuntimeError if a target got no gradient but needs one."""
        unused = (index for index, edge in enumerate(self._required) if self.captures.get(edge) is None)
        if (index := next(unused, None)) is not None:
            raise RuntimeError(messages.UNUSED_INPUT.format(index=index))

    def will_run(self, node: Node | None) -> bool:
        """Whether this pass will reach a node, and run it or capture its gradient.

        The only root of a pass counts as not reached, as in PyTorch. So a hook on several tensors
        (``register_multi_grad_hook``) does not wait for the gradient of the root. Raises RuntimeError for a leaf whose
        gradient is captured.
        """
        if node is None or node not in self._waiting or self._is_only_root(node):
            return False
        is_captured = any((node, output_nr) in self._capturing for output_nr in range(len(node.outputs)))
        if is_captured and node.__class__ is AccumulateGrad:
            raise RuntimeError(messages.LEAF_OF_GRAD)
        return is_captured or self._needed is None or node in self._needed

    def _count_edges(self) -> None:
        """Count the edges to each node that can be reached from the roots, and find the nodes to run."""
        waiting = self._waiting
        order: list[Node] = []
        stack = []
        for node, _ in self.roots:
            if node not in waiting:
                waiting[node] = 0
                stack.append(node)
        while stack:
            node = stack.pop()
            if self.targets is not None:
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
        if self.targets is not None:
            self._needed = self._nodes_leading_to(order, self.targets)

    def _nodes_leading_to(self, nodes: list[Node], edges: Sequence[Edge]) -> set[Node]:
        """Return the nodes to run: those on a path to a target edge, and target nodes that are not captured."""
        users: dict[Node, list[Node]] = {}
        for node in nodes:
            for edge in node.next_edges:
                if edge is not None:
                    users.setdefault(edge[0], []).append(node)
        targets = {node for node, _ in edges}
        leading: set[Node] = set()
        stack = list(targets)
        while stack:
            for user in users.get(stack.pop(), ()):
                if user not in leading:
                    leading.add(user)
                    stack.append(user)
        return leading if self._capturing else leading | targets

    def _start(self) -> None:
        """Add up the initial gradients at the roots, and enqueue the roots to which no edges lead."""
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
        """Run the complete nodes until there are none."""
        leaves, ready, arrived = self._leaves, self._ready, self._arrived
        every_node, in_anomaly_mode = self._needed is None, anomaly_detection.mode.enabled
        node: Node | None = None
        try:
            while leaves or ready:
                node = leaves.popleft() if leaves else heappop(ready)[1]
                if in_anomaly_mode:
                    anomaly_detection.evaluated.node = node
                grads = arrived.pop(node, None) or [None] * len(node.outputs)
                if not (every_node or self._capture_if_requested(node, grads)):
                    continue
                if node.extras is not None:
                    self._run_hooks_before(node, node.extras, grads)
                if node.__class__ is AccumulateGrad:
                    self._accumulate(node, grads)
                else:
                    self._step(node, grads)
        except Exception:
            if anomaly_detection.mode.enabled and node is not None:
                anomaly_detection.warn_of(node)
            raise

    def _run_hooks_before(self, node: Node, extras: Extras, grads: list[Grad | None]) -> None:
        """Run the hooks that come before a node's backward rule."""
        self._run_tensor_hooks(node, extras, grads)
        if extras.prehooks:
            run_prehooks(self, node, extras.prehooks, grads)
        thread.grad_enabled = self.create_graph  # whatever a hook did to it

    def _run_tensor_hooks(self, node: Node, extras: Extras, grads: list[Grad | None]) -> None:
        if self.report is not None:
            thread.running_step = self.report.step_of(node)
        run_tensor_hooks(self, node, extras, grads)

    def _step(self, node: Node, grads: list[Grad | None]) -> None:
        """Run a node's backward rule, release its saved tensors, and send its outgoing gradients over its edges."""
        report, number = self.report, 0
        if report is not None:
            number = report.step_started(node, grads)
            thread.running_step = (report.number, number)
        outgoing = node.vjp(grads, self.create_graph)
        if self._refuses_nan or (node.extras is not None and node.extras.posthooks):
            outgoing = self._run_hooks_after(node, grads, outgoing)
        freed = not self.retain_graph and node.release()
        if self._refuses_nan:
            anomaly_detection.refuse_nan(node, outgoing)
        waiting, arrived, additions, slot = self._waiting, self._arrived, self.in_place_additions, -1
        for edge in node.next_edges:
            slot += 1
            if edge is None:
                continue
            target, output_nr = edge
            contribution = outgoing[slot]
            if contribution is not None:
                shape, dtype = target.outputs[output_nr]
                if contribution.shape != shape or contribution.dtype is not dtype:
                    contribution = conform(contribution, node, slot, edge)
                target_grads = arrived.get(target)
                if target_grads is None:
                    target_grads = arrived[target] = [None] * len(target.outputs)
                incoming = target_grads[output_nr]
                if incoming is None:
                    total = None
                    target_grads[output_nr] = contribution
                else:
                    total = target_grads[output_nr] = incoming + contribution
                    if target.__class__ is AccumulateGrad and (
                        target in additions or adds_in_place(incoming, outgoing)
                    ):
                        additions[target] = additions.get(target, 0) + 1
                if report is not None:
                    report.flowed(number, slot, edge, contribution, total)
            remaining = waiting[target] - 1
            if remaining:
                waiting[target] = remaining
            elif target.__class__ is AccumulateGrad:
                self._leaves.append(target)
            else:
                heappush(self._ready, (-target.sequence_nr, target))
        if report is not None:
            report.step_finished(number, freed=freed)

    def _run_hooks_after(
        self, node: Node, grads: list[Grad | None], outgoing: Sequence[Grad | None]
    ) -> Sequence[Grad | None]:
        """Run the node's posthooks. Return the outgoing gradients in the shapes and dtypes of the inputs."""
        slots = enumerate(zip(outgoing, node.next_edges, strict=True))
        conformed = [self._conform_if_needed(contribution, node, slot, edge) for slot, (contribution, edge) in slots]
        if node.extras is None or not node.extras.posthooks:
            return conformed
        replaced = run_posthooks(self, node, node.extras.posthooks, conformed, grads)
        thread.grad_enabled = self.create_graph  # whatever a hook did to it
        return replaced

    def _conform_if_needed(self, contribution: Grad | None, node: Node, slot: int, edge: Edge | None) -> Grad | None:
        """Return an outgoing gradient in the shape and dtype of its input; None if this pass does not need it."""
        if contribution is None or edge is None:
            return contribution
        is_needed = self._needed is None or edge[0] in self._needed or edge in self._capturing
        return conform(contribution, node, slot, edge) if is_needed else None

    def _accumulate(self, node: AccumulateGrad, grads: list[Grad | None]) -> None:
        """Add the incoming gradient, if there is one, to a leaf's ``.grad``, and run the hooks that follow.

        Nothing is added if ``requires_grad`` was set to False meanwhile.
        """
        leaf, report = node.variable, self.report
        if grads[0] is not None:
            if leaf._requires_grad:
                first = leaf._grad is None
                accumulate(leaf, grads, self.in_place_additions.get(node, 0), self.create_graph)
                if report is not None:
                    report.accumulated(node, leaf, grads[0], first=first)
            if leaf._accumulated_hooks:
                run_accumulated_hooks(node, report)
        if node.extras is not None and node.extras.posthooks:
            run_posthooks(self, node, node.extras.posthooks, (), grads)
        thread.grad_enabled = self.create_graph

    def _capture_if_requested(self, node: Node, grads: list[Grad | None]) -> bool:
        """Capture the incoming gradient of a node if that was requested, and return whether the node runs.

        If the node runs, its gradient is captured before its tensor hooks run, otherwise after them. If the node
        neither runs nor is captured, its tensor hooks run only if it is the only root. All this is as in PyTorch.
        """
        runs = self._needed is None or node in self._needed
        is_captured = any((node, output_nr) in self._capturing for output_nr in range(len(grads)))
        if not runs and (is_captured or self._is_only_root(node)) and node.extras is not None:
            self._run_tensor_hooks(node, node.extras, grads)
        if is_captured:
            self._capture(node, grads)
        return runs

    def _is_only_root(self, node: Node) -> bool:
        return len(self.roots) == 1 and node is self.roots[0][0]

    def _capture(self, node: Node, grads: list[Grad | None]) -> None:
        for output_nr, grad in enumerate(grads):
            edge = (node, output_nr)
            if edge in self._capturing and grad is not None:
                self.captures[edge] = tensor_for_hooks(self, node, grad)
                if self.report is not None:
                    self.report.captured(edge, grad)


class _ThreadState(threading.local):
    """The innermost pass of a thread."""

    innermost: Pass | None = None


running = _ThreadState()


def scalar_or_array(array: Array) -> Grad:
    """A 0-dimensional array as a NumPy scalar, whose arithmetic is ten times as fast."""
    return array if array.ndim else array[()]


# ----------------------------------------------------------------------------------------------------------------------
# ``tensor.backward()`` and ``torch.autograd.backward``: checks, roots and initial gradients of a pass.


TensorOrEdge: TypeAlias = Tensor | GradientEdge
"""A root or a target of a pass: a tensor, or the graph edge at which the gradient of a tensor arrives."""
TensorsOrEdges: TypeAlias = TensorOrEdge | Sequence[TensorOrEdge]


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: TensorsOrEdges | dict[str, Tensor] | None = None,
) -> None:
    """Computes the gradient of this tensor with respect to the leaves of its graph, and adds it to their ``.grad``.

    `gradient` has this tensor's shape; it may be omitted for a one-element tensor. The graph is released afterwards
    unless `retain_graph` is True (default: `create_graph`). With `create_graph` the gradients can be differentiated in
    turn. `inputs` limits the accumulation to these tensors. Raises RuntimeError as PyTorch does.
    """
    backward_from([self], gradient, retain_graph, create_graph, inputs)


def backward_from(
    roots: Sequence[TensorOrEdge],
    gradients: Tensor | Sequence[Tensor | None] | None,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: TensorsOrEdges | dict[str, Tensor] | None,
) -> None:
    """``torch.autograd.backward``: several roots at once."""
    input_list = None if inputs is None else list_inputs(inputs, "backward")
    seeds = make_seeds(roots, list_gradients(gradients, len(roots)))
    retain = create_graph if retain_graph is None else retain_graph
    edges = root_edges(roots, seeds, retain_graph=retain, create_graph=create_graph)
    targets = None if input_list is None else [_retain_and_get_edge(target) for target in input_list]
    warns = create_graph
    if operation_watchers.watchers and (recorder := operation_watchers.recorder()) is not None:
        create_graph = True
        recorder.accumulated()
    initial_grads = initial_gradients(seeds, edges, create_graph)
    if warns:
        messages.warn_once(messages.CREATE_GRAPH)
    Pass(edges, initial_grads, retain_graph=retain, create_graph=create_graph, targets=targets).run()


def list_inputs(value: TensorsOrEdges | dict[str, Tensor], function: str) -> list[TensorOrEdge]:
    """The argument ``inputs``, one or several, as a list. Raises RuntimeError if it is empty."""
    if isinstance(value, (Tensor, GradientEdge)):
        return [value]
    if type(value) is not dict and isinstance(value, Mapping):
        raise TypeError(messages.INPUTS_MAPPING.format(function=function, name=type(value).__name__))
    items: list[TensorOrEdge] = list(value.values() if isinstance(value, dict) else value)
    if not items:
        raise RuntimeError(messages.EMPTY_INPUTS.format(function=function))
    return items


def list_gradients(gradients: Tensor | Sequence[Tensor | None] | None, count: int) -> list[Tensor | None]:
    """The gradients passed, one or several, as a list; None for each root if none were passed."""
    if gradients is None:
        return [None] * count
    return [gradients] if isinstance(gradients, Tensor) else list(gradients)


def make_seeds(roots: Sequence[TensorOrEdge], gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The initial gradient of each root: the given one, or 1 for a root with one element.

    Raises RuntimeError for a larger root without a given gradient. A root that requires no gradient has None.
    """
    return [_seed(root, gradient, index) for index, (root, gradient) in enumerate(zip(roots, gradients, strict=False))]


def _seed(root: TensorOrEdge, gradient: object, index: int) -> Tensor | None:
    shape, dtype = metadata_of(root)
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
    return new_tensor(np.ones(shape, dtype))


def metadata_of(root: TensorOrEdge) -> Metadata:
    """The shape and dtype of the gradient of a root."""
    if isinstance(root, GradientEdge):
        return root.node.outputs[root.output_nr]
    if not isinstance(root, Tensor):
        raise AssertionError(messages.ROOT_KIND)
    return root._array.shape, root._array.dtype


def root_edges(
    roots: Sequence[TensorOrEdge], seeds: Sequence[Tensor | None], *, retain_graph: bool, create_graph: bool
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


def edge_of(tensor: TensorOrEdge) -> Edge:
    """The edge of a tensor or of a `GradientEdge`. Raises RuntimeError for anything else."""
    if isinstance(tensor, Tensor):
        return tensor._edge()
    if not isinstance(tensor, GradientEdge):
        raise RuntimeError(messages.INPUT_KIND.format(name=type(tensor).__name__))
    return tensor.node, tensor.output_nr


def initial_gradients(seeds: Sequence[Tensor | None], edges: Sequence[Edge], create_graph: bool) -> list[Grad]:
    """The gradients with which a pass starts: `seeds` in the shapes and dtypes of their roots.

    They are tensors with `create_graph`, otherwise arrays or scalars.
    """
    numbered = enumerate(zip(seeds, edges, strict=True))
    present = [conform_seed(seed, edge, index) for index, (seed, edge) in numbered if seed is not None]
    return present if create_graph else [scalar_or_array(seed._array) for seed in present]


def _retain_and_get_edge(target: TensorOrEdge) -> Edge:
    if isinstance(target, Tensor):
        target.retain_grad()
    return edge_of(target)
