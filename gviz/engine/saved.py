"""Hooks of saved tensors: what a pair of them makes of a tensor that a node saves, and of it a tensor again.

A pair of hooks may be in force in a thread for all nodes made meanwhile, or be registered for one saved tensor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from gviz.engine import messages, watching
from gviz.engine.modes import thread

if TYPE_CHECKING:
    from gviz.engine.node import Node
    from gviz.engine.tensor import Tensor


class Pair(NamedTuple):
    """Hooks of saved tensors that belong together."""

    pack: Callable[[Tensor], Any]
    unpack: Callable[[Any], Tensor]


class _Hooks(threading.local):
    """The pairs in force in a thread, innermost last; `refusal` is why there may be none."""

    refusal: str | None = None

    def __init__(self) -> None:
        self.pairs: list[Pair] = []


hooks = _Hooks()


def push(pair: Pair) -> None:
    """Put a pair in force. RuntimeError if that was forbidden."""
    if not (callable(pair.pack) and callable(pair.unpack)):
        raise TypeError(messages.SAVED_HOOKS_CALLABLE.format(pack=repr(pair.pack), unpack=repr(pair.unpack)))
    if hooks.refusal is not None:
        raise RuntimeError(hooks.refusal)
    hooks.pairs.append(pair)
    watching.add(1)


def pop() -> None:
    """Take the innermost pair out of force."""
    hooks.pairs.pop()
    watching.add(-1)


class Packed:
    """A saved tensor as its pack hook left it, and what else it takes to make the tensor again."""

    __slots__ = ("accumulator", "content", "grad_fn", "is_output", "output_nr", "requires_grad", "unpack")

    def __init__(self, tensor: Tensor, pair: Pair, shown: Tensor, *, is_output: bool) -> None:
        self.is_output, self.output_nr, self.requires_grad = is_output, tensor._output_nr, tensor._requires_grad
        self.grad_fn = None if is_output else tensor.grad_fn  # an output's would be a cycle
        self.accumulator = tensor._accumulator
        self.unpack = pair.unpack
        version = shown._counter[0]
        before, thread.grad_enabled = thread.grad_enabled, False
        try:
            self.content = pair.pack(shown)
        finally:
            thread.grad_enabled = before
        if shown._counter[0] != version:
            raise RuntimeError(messages.PACK_IN_PLACE)

    def restored(self, of: Node) -> Tensor:
        """The tensor again, with its place in the graph. TypeError if the unpack hook gives none."""
        from gviz.engine.tensor import Tensor  # tensors have nodes, and nodes know this module

        data = self.unpack(self.content)
        if not isinstance(data, Tensor):
            raise TypeError(messages.UNPACK_TYPE.format(name=type(data).__name__))
        if self.is_output:
            return of.placed(data._alias(), self.output_nr)
        if not self.requires_grad and not data.requires_grad:
            return data
        tensor = data._alias()
        tensor._grad_fn, tensor._output_nr = self.grad_fn, self.output_nr
        tensor._requires_grad, tensor._accumulator = self.requires_grad, self.accumulator
        return tensor


class Packing(list[Any]):
    """What a node saved, of which something is packed: a `Packed`, a tensor, or None for each."""

    def tensors(self, of: Node) -> list[Tensor | None]:
        """All of it as tensors, unpacked in PyTorch's order."""
        restored: list[Tensor | None] = [None] * len(self)
        for position in of.order_of_saved():
            restored[position] = of.saved_tensor(position)
        return restored

    def arrays(self, of: Node) -> list[Any]:
        """All of it as arrays, scalars where they have no dimensions."""
        arrays = [None if t is None else t._array for t in self.tensors(of)]
        return [a if a is None or a.ndim else a[()] for a in arrays]


def pack(node: Node, outputs: bool | None = None) -> None:
    """Let the pair in force in this thread have what a new node saved: all of it, only its outputs, or all but them."""
    if not hooks.pairs or not node.saved:
        return
    saved = Packing(node.saved)
    for position in node.order_of_saved():
        tensor, output_nr = saved[position], node.saved_outputs.get(position)
        if tensor is None or isinstance(tensor, Packed) or tensor._is_number or outputs is (output_nr is None):
            continue
        whole = tensor if output_nr is None else node.placed(tensor, output_nr)
        saved[position] = Packed(whole, hooks.pairs[-1], whole, is_output=output_nr is not None)
    node.saved = saved


class SavedTensor:
    """One tensor that a node saved, ``grad_fn._raw_saved_<name>``; here it can be given hooks of its own."""

    def __init__(self, node: Node, position: int) -> None:
        self._node = node
        self._position = position

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Pack this tensor now, unpack it when it is needed. RuntimeError if it is freed, packed, or not there."""
        node, position = self._node, self._position
        if node.saved is None:
            raise RuntimeError(messages.SAVED_FREED)
        tensor = node.saved[position]
        if tensor is None:
            raise RuntimeError(messages.SAVED_NONE)
        if isinstance(tensor, Packed):
            raise RuntimeError(messages.SAVED_HOOKS_TWICE)
        output_nr = node.saved_outputs.get(position)
        whole = tensor if output_nr is None else node.placed(tensor, output_nr)
        packed = Packed(whole, Pair(pack_hook, unpack_hook), tensor._alias(), is_output=output_nr is not None)
        node.saved = Packing([packed if i == position else t for i, t in enumerate(node.saved)])


def in_order(names: Iterable[str], outputs: Iterable[int]) -> list[int]:
    """The positions of saved tensors as PyTorch takes them: inputs by name, then outputs."""
    last = set(outputs)
    named = sorted(enumerate(names), key=lambda pair: (pair[0] in last, pair[1]))
    return [position for position, _ in named]
