"""Running the hooks of a node in a backward pass: of its tensors, before it, after it.

Hooks see tensors, rules of an ordinary pass arrays; what a hook gives back takes the place of what it was given, after
the checks PyTorch makes, in its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gviz.engine import messages
from gviz.engine.hooks import Extras, Registered, Values, hook_name
from gviz.engine.node import AccumulateGrad, Grad, Node
from gviz.engine.tensor import Tensor, new_tensor

if TYPE_CHECKING:
    from gviz.engine.announce_pass import PassReport
    from gviz.engine.graph_pass import Pass


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
    """What has arrived at an output as hooks see it; a leaf's gradient tells how often it was added to in place."""
    if grad is None:
        return None
    value = as_tensor(grad)
    if node.__class__ is AccumulateGrad and value is not grad:
        value._counter[0] = current.written.get(node, 0)
    return value


def _put_back(current: Pass, node: Node, value: Tensor | None) -> Grad | None:
    """What hooks saw or gave, as the pass goes on with it."""
    if node.__class__ is AccumulateGrad and not current.create_graph:
        current.written[node] = _version(value)
    return _plain(value, current.create_graph)


def _version(value: Tensor | None) -> int:
    return 0 if value is None else value._counter[0]


def _plain(value: Tensor | None, create_graph: bool) -> Grad | None:
    """What a hook saw or gave, as the pass has gradients."""
    return value if value is None or create_graph else value._array


def _checked_all(given: object, values: Values, hook: object) -> Values:
    """What a node's hook gave in place of `values`. TypeError or RuntimeError if it cannot stand there."""
    if not isinstance(given, tuple):
        raise TypeError(messages.HOOK_TUPLE.format(name=type(given).__name__))
    if len(given) != len(values):
        counts = {"got": len(given), "expected": len(values)}
        raise RuntimeError(messages.HOOK_COUNT.format(name=hook_name(hook), **counts))
    return tuple([_checked(one, value, hook) for one, value in zip(given, values, strict=True)])


def _checked(given: object, value: Tensor | None, hook: object) -> Tensor | None:
    """What a hook gave in place of `value`. TypeError or RuntimeError if it cannot stand there."""
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
