"""``torch.autograd.graph``: graph edges, hooks of saved tensors, hooks for several gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NoReturn
from weakref import WeakKeyDictionary, ref

from gviz.engine import messages
from gviz.engine.backward import Pass, TensorOrEdge, running
from gviz.engine.modes import is_inference_mode_enabled
from gviz.engine.node import GradientEdge as GradientEdge
from gviz.engine.node import HookPair, RemovableHandle, active_hooks, pop_hooks, push_hooks
from gviz.engine.node import Node as Node
from gviz.engine.tensor import AccumulateGrad, Tensor
from gviz.engine.unsupported_names import lookup_in


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The graph edge where the gradient of a tensor arrives. Raises RuntimeError if it requires none."""
    if not tensor.requires_grad:
        raise RuntimeError(messages.NO_EDGE)
    _refuse_without_graph(tensor)
    return GradientEdge(*tensor._edge())


def _refuse_without_graph(tensor: Any) -> None:
    """Raise PyTorch's error for a leaf in `inference_mode`: PyTorch finds its node through a view, which has none."""
    if isinstance(tensor, Tensor) and tensor.is_leaf and is_inference_mode_enabled():
        raise AttributeError("'NoneType' object has no attribute 'next_functions'")


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Counts a write to the memory of one or several tensors that the engine did not see."""
    if not isinstance(tensor, (Tensor, Iterable)):
        raise RuntimeError(messages.VERSION_OF_TENSORS)
    for one in [tensor] if isinstance(tensor, Tensor) else tensor:
        if not isinstance(one, Tensor):
            raise RuntimeError(messages.VERSION_OF_EACH)
        if not one.is_inference():
            one._counter[0] += 1


class saved_tensors_hooks:
    """In the block, tensors that operations save go to `pack_hook`, and its result to `unpack_hook` when needed."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        push_hooks(HookPair(self.pack_hook, self.unpack_hook))

    def __exit__(self, *exc: object) -> None:
        pop_hooks()


class save_on_cpu(saved_tensors_hooks):
    """In the block, saved tensors are kept on the CPU, where they already are."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: tensor.detach(), lambda tensor: tensor)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """In the block, activating hooks of saved tensors raises RuntimeError with this message."""
    before, active_hooks.refusal = active_hooks.refusal, error_message
    try:
        if active_hooks.pairs:
            raise RuntimeError(error_message)
        yield
    finally:
        active_hooks.refusal = before


def allow_mutation_on_saved_tensors() -> NoReturn:
    """Raises NotImplementedError: PyTorch has it, the engine does not."""
    raise NotImplementedError(messages.NO_MUTATION)


def register_multi_grad_hook(
    tensors: Sequence[TensorOrEdge], fn: Callable[[Any], None], *, mode: str = "all"
) -> MultiHandle:
    """Calls `fn` once per pass: with all gradients of `tensors` when the last arrives, or with the first (``any``).

    With ``all``, the gradient is None for tensors that the pass does not reach.
    """
    if mode not in ("all", "any"):
        raise ValueError(messages.HOOK_MODE.format(mode=mode))
    return MultiHandle(_when_all(tensors, fn) if mode == "all" else _when_any(tensors, fn))


class MultiHandle:
    """Removes several hooks together."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Removes the hooks."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def _when_all(tensors: Sequence[Any], fn: Callable[[list[Tensor | None]], None]) -> list[RemovableHandle]:
    if not all(t.requires_grad for t in tensors):
        raise AssertionError(messages.NOT_IN_GRAPH)
    nodes = [_node_of(t) for t in tensors]
    count = len(tensors)
    come: WeakKeyDictionary[Pass, list[Tensor | None]] = WeakKeyDictionary()
    missing: WeakKeyDictionary[Pass, int] = WeakKeyDictionary()

    def hook_of(position: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            run = _current_pass()
            if run not in come:
                come[run], missing[run] = [None] * count, sum([run.will_run(node()) for node in nodes])
            come[run][position] = grad
            missing[run] -= 1
            if not missing[run]:
                fn(come.pop(run))

        hook.__qualname__ = "register_multi_grad_hook.<locals>.get_inner_hook.<locals>.inner_hook"  # shown in a warning
        return hook

    return [t.register_hook(hook_of(position)) for position, t in enumerate(tensors)]


def _node_of(tensor: Tensor) -> Callable[[], Node | None]:
    """Return a function that gives the node where the gradient of a tensor arrives. It refers to the node weakly.

    The hook that calls it is kept by that node. A leaf has a new node in each graph if none is alive in between, and
    none before the first.
    """
    _refuse_without_graph(tensor)
    node, _ = tensor._edge()
    if not isinstance(node, AccumulateGrad):
        return ref(node)
    leaf = ref(tensor)

    def present() -> Node | None:
        alive = leaf()
        known = None if alive is None else alive._accumulator
        return None if known is None else known()

    return present


def _when_any(tensors: Sequence[Any], fn: Callable[[Tensor], None]) -> list[RemovableHandle]:
    passes: WeakKeyDictionary[Pass, bool] = WeakKeyDictionary()

    @wraps(fn)  # so that a warning shows its name, as in PyTorch
    def hook(grad: Tensor) -> None:
        run = _current_pass()
        if run not in passes:
            passes[run] = True
            fn(grad)

    return [t.register_hook(hook) for t in tensors if t.requires_grad]


def _current_pass() -> Pass:
    run = running.innermost
    assert run is not None, "a hook runs inside a pass"
    return run


__getattr__ = lookup_in(__name__)
