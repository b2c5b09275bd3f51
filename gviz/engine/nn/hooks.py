"""Hooks of modules: the global ones, and backward hooks of one call.

`Module` calls forward hooks directly. Backward hooks need two places in the graph. The module's inputs pass through a
node that changes nothing, and so do its outputs::

    inputs --[node]--> forward --[node]--> outputs

In the backward pass, the node after the outputs runs first. It calls the pre-hooks, and stores the gradients of the
outputs. The node before the inputs runs last. It has the gradients of the inputs, and calls the hooks with both. If no
input requires grad, there is no such node, and the hooks run at the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gviz.engine.autograd.function import Function
from gviz.engine.modes import thread
from gviz.engine.node import Node, RemovableHandle
from gviz.engine.tensor import Tensor
from gviz.source.call_stack import warn

Hook = Callable[..., Any]
Grads = tuple[Tensor | None, ...]
Numbered = tuple[int, Hook]
"""A hook, after the number of its handle."""

EVERY_FORWARD_PRE: dict[int, Hook] = {}
EVERY_FORWARD: dict[int, Hook] = {}
EVERY_BACKWARD_PRE: dict[int, Hook] = {}
EVERY_BACKWARD: dict[int, Hook] = {}
"""The hooks of all modules, called before those of the module."""
EVERY_WITH_KWARGS: dict[int, bool] = {}
EVERY_ALWAYS_CALLED: dict[int, bool] = {}


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, args)`` before every module's `forward`."""
    return RemovableHandle(EVERY_FORWARD_PRE, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls ``hook(module, args, output)`` after every module's `forward`."""
    return add_hook(EVERY_FORWARD, hook, False, (EVERY_WITH_KWARGS, with_kwargs), (EVERY_ALWAYS_CALLED, always_call))


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, grad_output)`` before every module's backward."""
    return RemovableHandle(EVERY_BACKWARD_PRE, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, grad_input, grad_output)`` after every module's backward."""
    return RemovableHandle(EVERY_BACKWARD, hook)


def add_hook(
    hooks: dict[int, Hook], hook: Hook, prepend: bool, *marks: tuple[dict[int, bool], bool]
) -> RemovableHandle:
    """Adds a hook after or (`prepend`) before the others, and to each requested registry of `marks`."""
    before = dict(hooks)
    handle = RemovableHandle(hooks, hook)
    if prepend:
        for number in before:
            hooks[number] = hooks.pop(number)
    handle.mark(*[known for known, is_marked in marks if is_marked])
    return handle


class BackwardHookFunction(Function):
    """An identity function; its node has the hooks."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Returns the tensors."""
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Returns their gradients."""
        return grads


class BackwardHooks:
    """The hooks of one module call, and the gradients of its outputs, from the one node to the other.

    Each comes with the number of its handle. `last` is the one of them that gave a gradient last, for a recording.
    """

    def __init__(self, module: object, hooks: Sequence[Numbered], pre_hooks: Sequence[Numbered]) -> None:
        self.last: Numbered | None = None
        self._module = module
        self._hooks = hooks
        self._pre_hooks = pre_hooks
        self._grad_outputs: Grads | None = None
        self._inputs: list[int] | None = None
        self._input_count = 0

    def on_inputs(self, args: tuple[Any, ...]) -> Any:
        """The arguments, with the tensors passed through a node."""
        self._input_count = len(args)
        passed, self._inputs = _through_node(args, lambda node: node.register_hook(self._finish))
        return passed

    def on_outputs(self, result: Any) -> Any:
        """The result, with its tensors passed through a node."""
        if not isinstance(result, (Tensor, tuple)):
            warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
            )
        outputs = result if isinstance(result, tuple) else (result,)
        positions: list[int] = []

        def note(_: Grads, grads: Grads) -> Grads | None:
            return self._note(grads, positions, len(outputs))

        passed, places = _through_node(outputs, lambda node: node.register_hook(note))
        positions += places or ()
        return passed if isinstance(result, tuple) else passed[0]

    def _note(self, grads: Grads, positions: list[int], count: int) -> Grads | None:
        """Call the pre-hooks once the gradients of the outputs have arrived, and store these for the hooks."""
        known = self._grad_outputs = _spread(positions, grads, count)
        for number, hook in self._pre_hooks:
            result = hook(self._module, known)
            if result is None:
                continue
            self.last = number, hook
            if len(result) != count:
                raise RuntimeError(
                    f"Backward pre hook returned an invalid number of grad_output, got {len(result)}, but expected "
                    f"{count}"
                )
            known = self._grad_outputs = result
        if self._inputs is None:
            self._call_without_inputs(known)
        return tuple([known[position] for position in positions])

    def _call_without_inputs(self, grad_outputs: Grads) -> None:
        warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details.",
        )
        for _, hook in self._hooks:
            result = hook(self._module, (None,) * self._input_count, grad_outputs)
            if result is not None and not (isinstance(result, tuple) and all(g is None for g in result)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        self._grad_outputs = None

    def _finish(self, grad_inputs: Grads, _: Grads) -> Grads | None:
        """Call the hooks once the gradients of the inputs have arrived, unless none came through the outputs."""
        if self._grad_outputs is None or self._inputs is None:
            return None
        known = _spread(self._inputs, grad_inputs, self._input_count)
        for number, hook in self._hooks:
            result = hook(self._module, known, self._grad_outputs)
            if result is None:
                continue
            self.last = number, hook
            if len(result) != len(known):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(result)}, but expected "
                    f"{len(known)}"
                )
            known = result
        self._grad_outputs = None
        return tuple([known[position] for position in self._inputs])


def _through_node(values: tuple[Any, ...], register: Callable[[Node], Any]) -> tuple[Any, list[int] | None]:
    """`values` with its tensors as outputs of one node, and their positions; None instead of these without a node.

    `register` is called with the node.
    """
    places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not (thread.grad_enabled and any(values[i].requires_grad for i in places)):
        return values, None
    passed = BackwardHookFunction.apply(*[values[i] for i in places])
    register(next(t.grad_fn for t in passed if t.grad_fn is not None))
    replaced = list(values)
    for place, tensor in zip(places, passed, strict=True):
        replaced[place] = tensor
    kind = type(values)
    return (tuple(replaced) if kind is tuple else kind(*replaced)), places


def _spread(places: Sequence[int], grads: Sequence[Tensor | None], count: int) -> Grads:
    """Return the gradients at their positions among `count`, None elsewhere."""
    spread: list[Tensor | None] = [None] * count
    for place, grad in zip(places, grads, strict=True):
        spread[place] = grad
    return tuple(spread)


def register_on_result(module: object, hooks: Sequence[Hook], result: Any) -> None:
    """Registers hooks of the older kind on the last node of a module's result."""
    tensor = result
    while not isinstance(tensor, Tensor):
        parts = tensor.values() if isinstance(tensor, dict) else tensor
        tensor = next(part for part in parts if isinstance(part, Tensor) or not isinstance(tensor, dict))
    node = tensor.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda grad_input, grad_output, hook=hook: hook(module, grad_input, grad_output))
