"""The backward pass: ``backward()`` and ``autograd.grad`` from their arguments to what lies in ``.grad``.

As PyTorch's engine does it: count how many edges lead to each node, start at the roots, run a node when all its
contributions have arrived, newest node first, and every leaf as soon as it is complete. What is freed is freed node by
node; what failed leaves the rest as it is. Nothing here recurses, so a chain of a million nodes works.

`backward` starts a `Pass`; for each node the pass runs hooks before, the node's `vjp`, hooks after, and hands each part
on; at a leaf, `accumulate` adds what has arrived to ``.grad``.
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
from gviz.engine import anomaly, dtypes, emission, messages, watchers
from gviz.engine.broadcasting import broadcast_error, reducible, sum_to
from gviz.engine.emission import PassReport
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
# Adding to a leaf's ``.grad``: what is taken over as it is, what is copied, what is written in place.
#
# PyTorch takes a gradient over if nothing else refers to it and it is laid out like the leaf, and otherwise copies it;
# ``.grad._version`` shows which. PyTorch decides by counting references, and so does this module.


_IN_LIST = 2
_NAMED = 3
"""References to what only a list holds; to what a caller names and hands to the function that counts."""


def accumulate(leaf: Tensor, arrived: list[Grad | None], written: int, create_graph: bool) -> None:
    """Add what has arrived to a leaf's ``.grad``: in place, or out of place when the pass builds a graph.

    `written` says how often what arrived was added to in place (see `adds_in_place`).
    """
    before = leaf._grad
    if watchers.watchers and watchers.is_recording():
        _accumulate_recorded(leaf, arrived[0])
    elif create_graph:
        grad: Grad = arrived[0]
        leaf._set_grad(_recorded_copy(leaf, grad) if before is None else before + grad)
    elif before is None:
        shared = getrefcount(arrived[0]) > _IN_LIST
        leaf._set_grad(_taken(leaf, arrived[0], shared, written))
    else:
        _add(before, arrived[0])


def _accumulate_recorded(leaf: Tensor, grad: Grad) -> None:
    """As a pass without a graph does it, with operations: a copy the first time, then writes to its memory."""
    part = grad._alias()
    if leaf._grad is None:
        leaf._set_grad(_recorded_copy(leaf, part))
    else:
        leaf._grad.add_(part)


def adds_in_place(before: Grad, parts: Sequence[Grad | None]) -> bool:
    """Whether PyTorch adds a second contribution into the memory of the first, because only the caller refers to it.

    The first may be of the same step as the second, one of its `parts`.
    """
    alone = _NAMED + any(part is before for part in parts)
    return getrefcount(before) <= alone and not isinstance(before, Tensor) and before.base is None


def _taken(leaf: Tensor, grad: Grad, shared: bool, version: int) -> Tensor:
    if shared or grad.shape != leaf._array.shape or not _obeys(grad, leaf._array):
        return _copied(leaf, grad)
    # PyTorch takes over views, too, and so lets two leaves share a gradient; here each has its own.
    taken = new_tensor(grad if isinstance(grad, np.ndarray) and grad.base is None else np.array(grad))
    taken._counter[0] = version
    return taken


def _copied(leaf: Tensor, grad: Grad) -> Tensor:
    if not _is_dense(leaf._array):
        return new_tensor(np.array(grad, order="C"))
    copy = new_tensor(np.empty_like(leaf._array))
    try:
        copy._array[...] = grad
    except ValueError:
        raise RuntimeError(_unfit(leaf._array.shape, np.shape(grad))) from None
    copy._counter[0] = 1
    return copy


def _recorded_copy(leaf: Tensor, grad: Tensor) -> Tensor:
    if not _is_dense(leaf._array):
        return grad.clone()
    return new_tensor(np.zeros_like(leaf._array)).copy_(grad)  # a recording shows what it was before


def _add(to: Tensor, grad: Grad) -> None:
    array = to._array
    if to.is_inference() and not thread.inference:
        raise RuntimeError(messages.INFERENCE_IN_PLACE)
    if overlaps_itself(array):
        raise RuntimeError(messages.OVERLAPPING_WRITE)
    try:
        np.add(array, grad, out=array)
    except ValueError:
        raise RuntimeError(_unfit(array.shape, np.shape(grad))) from None
    to._counter[0] += 1


def _unfit(own: tuple[int, ...], part: tuple[int, ...]) -> str:
    """PyTorch's words for a gradient that does not fit: ``.data`` gave its leaf or the ``.grad`` another shape."""
    try:
        result = np.broadcast_shapes(own, part)
    except ValueError:
        return broadcast_error(own, part)
    return messages.OUTPUT_SHAPE.format(own=list(own), result=list(result))


def _obeys(grad: Any, own: Array) -> bool:
    """Whether a gradient is laid out as its leaf is, or in C order if the leaf has gaps or overlaps."""
    if grad.base is not None and grad.ndim and not any(grad.strides):  # one number, expanded
        return False
    if not _is_dense(own):
        return bool(grad.flags.c_contiguous)
    if own.size and grad.flags.c_contiguous and own.flags.c_contiguous:
        return True
    return _steps(grad) == _steps(own)


def _is_dense(array: Array) -> bool:
    flags = array.flags
    return flags.c_contiguous or flags.f_contiguous or _steps(array) == _steps(np.empty_like(array))


def _steps(array: Any) -> list[int]:
    return [step for step, size in zip(array.strides, array.shape, strict=True) if size != 1]


# ----------------------------------------------------------------------------------------------------------------------
# The shape and dtype of a gradient.


def conformed(part: Grad, node: Node, slot: int, edge: Edge) -> Grad:
    """A gradient in the shape and dtype of what it belongs to: what was broadcast forward is summed backward."""
    shape, kind = edge[0].outputs[edge[1]]
    if isinstance(part, Tensor):
        array = part._array
        if array.shape != shape:
            part = (
                part.sum_to_size(shape) if reducible(array.shape, shape) else _invalid(node, slot, array.shape, shape)
            )
        return part if array.dtype == kind else part.to(dtypes.of_numpy(kind))
    if part.shape != shape:
        part = sum_to(part, shape) if reducible(part.shape, shape) else _invalid(node, slot, part.shape, shape)
    return part if part.dtype == kind else part.astype(kind)


def in_form(seed: Tensor, edge: Edge) -> Tensor:
    """The program's gradient in the dtype of what it belongs to."""
    _, kind = edge[0].outputs[edge[1]]
    return seed if seed._array.dtype == kind else seed.to(dtypes.of_numpy(kind))


def _invalid(node: Node, slot: int, got: tuple[int, ...], expected: tuple[int, ...]) -> Grad:
    text = messages.INVALID_GRADIENT.format(name=node.name(), index=slot, got=list(got), expected=list(expected))
    raise RuntimeError(text)


# ----------------------------------------------------------------------------------------------------------------------
# Running the hooks of a node in a backward pass: of its tensors, before it, after it.
#
# Hooks see tensors, rules of an ordinary pass arrays; what a hook gives back takes the place of what it was given,
# after the checks PyTorch makes, in its words.


def as_tensor(grad: Grad) -> Tensor:
    """A gradient as a tensor, for hooks and results."""
    return grad if isinstance(grad, Tensor) else new_tensor(np.asarray(grad))


def run_tensor_hooks(current: Pass, node: Node, extras: Extras, grads: list[Grad | None]) -> None:
    """Let the hooks of a node's outputs see, and replace, what has arrived; then outputs keep what they retain."""
    for output_nr, hooks in extras.of_tensors.items():
        value = shown(current, node, grads[output_nr])
        for hook in list(hooks.values()):
            before = _version(value)
            given = hook(value)
            if given is not None and given is not value:
                value = _checked(given, value, hook)
            if current.report is not None:
                changed = given is not None or _version(value) != before
                current.report.hook_ran(node, output_nr, "tensor", hook, value if changed else None)
        grads[output_nr] = _put_back(current, node, value)
    if extras.retained:
        _retain(node, extras, grads, current.report)


def run_prehooks(current: Pass, node: Node, hooks: Registered, grads: list[Grad | None]) -> None:
    """Let a node's own hooks see, and replace, all that has arrived, before its rule runs."""
    values: Values = tuple([shown(current, node, grad) for grad in grads])
    for hook in list(hooks.values()):
        given = hook(values)
        replaced = given is not None and given is not values
        values = _checked_all(given, values, hook) if replaced else values
        if current.report is not None:
            current.report.node_hook_ran(node, "pre", hook, values if replaced else ())
    grads[:] = [_put_back(current, node, value) for value in values]


def run_posthooks(
    current: Pass, node: Node, hooks: Registered, parts: Sequence[Grad | None], grads: Sequence[Grad | None]
) -> list[Grad | None]:
    """Let a node's hooks see, and replace, what its rule gave for the inputs of the operation."""
    places = node.places(range(len(parts)))
    outgoing: Values = tuple([None if p is None or parts[p] is None else as_tensor(parts[p]) for p in places])
    incoming: Values = tuple([shown(current, node, grad) for grad in grads])
    for hook in list(hooks.values()):
        given = hook(outgoing, incoming)
        replaced = given is not None and given is not outgoing
        outgoing = _checked_all(given, outgoing, hook) if replaced else outgoing
        if current.report is not None:
            current.report.node_hook_ran(node, "post", hook, outgoing if replaced else ())
    result = list(parts)
    for place, value in zip(places, outgoing, strict=True):
        if place is not None:
            result[place] = _plain(value, current.create_graph)
    return result


def run_accumulated_hooks(node: AccumulateGrad, report: PassReport | None) -> None:
    """Let a leaf's hooks see it with its new ``.grad``. RuntimeError if one gives something back."""
    leaf = node.variable
    value: Tensor | None = leaf
    for hook in list((leaf._accumulated_hooks or {}).values()):
        given = hook(value)
        if given is not None and given is not value:
            value = _checked(given, value, hook)
        if report is not None:
            report.hook_ran(node, 0, "post accumulate", hook, None)
    if value is not leaf:
        raise RuntimeError(messages.ACCUMULATED_HOOK_RESULT)


def _retain(node: Node, extras: Extras, grads: list[Grad | None], report: PassReport | None) -> None:
    for output_nr, reference in extras.retained.items():
        tensor, grad = reference(), grads[output_nr]
        if tensor is None or grad is None:
            continue
        kept = grad.clone() if isinstance(grad, Tensor) else new_tensor(np.array(grad, order="C"))
        tensor._set_grad(kept if tensor._grad is None else tensor._grad + kept)
        if report is not None and tensor._grad is not None:
            report.retained(node, output_nr, tensor._grad)


def shown(current: Pass, node: Node, grad: Grad | None) -> Tensor | None:
    """What has arrived at an output as hooks see it; the version of a leaf's gradient counts the additions in place."""
    if grad is None:
        return None
    value = as_tensor(grad)
    if node.__class__ is AccumulateGrad and value is not grad:
        value._counter[0] = current.written.get(node, 0)
    return value


def _put_back(current: Pass, node: Node, value: Tensor | None) -> Grad | None:
    """What hooks saw or returned, as the pass continues with it."""
    if node.__class__ is AccumulateGrad and not current.create_graph:
        current.written[node] = _version(value)
    return _plain(value, current.create_graph)


def _version(value: Tensor | None) -> int:
    return 0 if value is None else value._counter[0]


def _plain(value: Tensor | None, create_graph: bool) -> Grad | None:
    """What a hook saw or returned, in the form of the pass's gradients."""
    return value if value is None or create_graph else value._array


def _checked_all(given: object, values: Values, hook: object) -> Values:
    """What a node's hook returned in place of `values`. TypeError or RuntimeError if it does not fit."""
    if not isinstance(given, tuple):
        raise TypeError(messages.HOOK_TUPLE.format(name=type(given).__name__))
    if len(given) != len(values):
        counts = {"got": len(given), "expected": len(values)}
        raise RuntimeError(messages.HOOK_COUNT.format(name=hook_name(hook), **counts))
    return tuple([_checked(one, value, hook) for one, value in zip(given, values, strict=True)])


def _checked(given: object, value: Tensor | None, hook: object) -> Tensor | None:
    """What a hook returned in place of `value`. TypeError or RuntimeError if it does not fit."""
    if given is None:
        return None
    if value is None:
        raise RuntimeError(messages.HOOK_OF_NOTHING)
    if not isinstance(given, Tensor):
        raise TypeError(messages.HOOK_TYPE.format(name=type(given).__name__))
    name = hook_name(hook)
    if given._array.dtype != value._array.dtype:
        kinds = {"was": value.dtype.tensor_type, "got": given.dtype.tensor_type}
        raise RuntimeError(messages.HOOK_DTYPE.format(name=name, **kinds))
    if given._array.shape != value._array.shape:
        raise RuntimeError(messages.HOOK_SIZE.format(name=name))
    return given


# ----------------------------------------------------------------------------------------------------------------------
# The backward pass.
#
# As PyTorch's engine does it: count how many edges lead to each node, start at the roots, run a node when all its
# contributions have arrived, newest node first, and every leaf as soon as it is complete. What is freed is freed node
# by node; what failed leaves the rest as it is. Nothing here recurses, so a chain of a million nodes works.


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
        not wait for that of the root. RuntimeError for a leaf that it was computed from.
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
        """A gradient as its input has it; None where this pass ends."""
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


# ----------------------------------------------------------------------------------------------------------------------
# ``tensor.backward()`` and its several-root form: checks, roots and seeds of a pass.


Place: TypeAlias = Tensor | GradientEdge
"""Where a pass starts, or what it is limited to: a tensor, or the place in the graph where its gradient arrives."""
Places: TypeAlias = Place | Sequence[Place]


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Places | dict[str, Tensor] | None = None,
) -> None:
    """Compute the gradient of this tensor with respect to the leaves of its graph, and add it to their ``.grad``.

    `gradient` has this tensor's shape; it may be left out for a one-element tensor. The graph is freed afterwards
    unless `retain_graph` (default: `create_graph`). With `create_graph` the gradients can be differentiated in turn.
    `inputs` limits the accumulation to these tensors. Raises RuntimeError as PyTorch does.
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
    chosen = None if inputs is None else places(inputs, "backward")
    seeds = make_seeds(roots, listed(gradients, len(roots)))
    retain = create_graph if retain_graph is None else retain_graph
    edges = root_edges(roots, seeds, retain_graph=retain, create_graph=create_graph)
    wanted = None if chosen is None else [_retaining(place) for place in chosen]
    if create_graph:
        messages.warn_once(messages.CREATE_GRAPH)
    if watchers.watchers and (recorder := watchers.recorder()) is not None:
        create_graph = True
        recorder.accumulated()
    Pass(edges, plain(seeds, edges, create_graph), retain_graph=retain, create_graph=create_graph, wanted=wanted).run()


def places(given: Places | dict[str, Tensor], function: str) -> list[Place]:
    """The argument ``inputs``, one or several, as a list. RuntimeError if there are none."""
    if isinstance(given, (Tensor, GradientEdge)):
        return [given]
    if type(given) is not dict and isinstance(given, Mapping):
        raise TypeError(messages.INPUTS_MAPPING.format(function=function, name=type(given).__name__))
    chosen: list[Place] = list(given.values() if isinstance(given, dict) else given)
    if not chosen:
        raise RuntimeError(messages.EMPTY_INPUTS.format(function=function))
    return chosen


def listed(gradients: Tensor | Sequence[Tensor | None] | None, count: int) -> list[Tensor | None]:
    """Given gradients, one or several, as a list; None for each root where none are given."""
    if gradients is None:
        return [None] * count
    return [gradients] if isinstance(gradients, Tensor) else list(gradients)


def make_seeds(roots: Sequence[Place], gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The gradients a pass starts with: ones where none is given for one number. RuntimeError where that is unclear."""
    return [_seed(root, gradient, index) for index, (root, gradient) in enumerate(zip(roots, gradients, strict=False))]


def _seed(root: Place, gradient: object, index: int) -> Tensor | None:
    shape, kind = form(root)
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


def form(root: Place) -> Metadata:
    """The shape and dtype of a gradient that arrives there."""
    if isinstance(root, GradientEdge):
        return root.node.outputs[root.output_nr]
    if not isinstance(root, Tensor):
        raise AssertionError(messages.ROOT_KIND)
    return root._array.shape, root._array.dtype


def root_edges(
    roots: Sequence[Place], seeds: Sequence[Tensor | None], *, retain_graph: bool, create_graph: bool
) -> list[Edge]:
    """Where a pass starts. RuntimeError for a root without a graph, or with no seed."""
    if len(roots) != len(seeds):
        raise RuntimeError(messages.SEED_COUNT.format(roots=len(roots), seeds=len(seeds)))
    for index, root in enumerate(roots):
        if isinstance(root, Tensor) and root.grad_fn is None and not root._requires_grad:
            error = messages.UNTRACKED_ROOT.format(index=index)
            if emit.channel is not None:
                modes = {"retain_graph": retain_graph, "create_graph": create_graph}
                emission.refused(emit.channel, roots, seeds, error, **modes)
            raise RuntimeError(error)
    return [edge_of(root) for root in roots]


def edge_of(place: Place) -> Edge:
    """Where the gradient of a tensor arrives, or the place of a `GradientEdge`. RuntimeError for anything else."""
    if isinstance(place, Tensor):
        return place._edge()
    if not isinstance(place, GradientEdge):
        raise RuntimeError(messages.INPUT_KIND.format(name=type(place).__name__))
    return place.node, place.output_nr


def plain(seeds: Sequence[Tensor | None], edges: Sequence[Edge], create_graph: bool) -> list[Grad]:
    """Seeds as the pass has gradients, in the dtypes of their roots."""
    present = [in_form(seed, edge) for seed, edge in zip(seeds, edges, strict=True) if seed is not None]
    return present if create_graph else [scalar_or_array(seed._array) for seed in present]


def _retaining(place: Place) -> Edge:
    if isinstance(place, Tensor):
        place.retain_grad()
    return edge_of(place)
