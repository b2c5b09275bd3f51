"""Maps PyTorch's tensors and graph nodes to nodes of the trace.

A tracked tensor is an output of its ``grad_fn``, and the C++ node carries the mark in its `metadata`, so both have the
same lifetime. Any other tensor, and the memory of each, is found by identity in a table of weak references. Dead
entries are removed when the next one is added, because no Python code should run in a destructor.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from gviz.adapters.pytorch.private_api import base_of
from gviz.adapters.pytorch.tensor_properties import dtype_of, grad_fn_of, grad_of, lies_in, overlap
from gviz.adapters.pytorch.value_capture import as_it_lies
from gviz.emit import Channel, Seen
from gviz.events import Output
from gviz.values.value import Value

Grads = tuple[torch.Tensor | None, ...]

KEY = "gviz"
"""The key of the mark in a graph node's `metadata`."""


class Mark(Seen, eq=False):
    """The announcement of a node.

    `uses` counts the edges that lead to it. `kept` lives as long as the mark. `recorded` is the last ``.grad`` in
    the trace, or the last value of a buffer. `named` is its path in a model, and `sought` is set once its model was
    searched for. `is_first` marks one of the first calls of a custom function. `width` is the number of outputs it was
    announced with; PyTorch may show more later.
    """

    is_first: bool = False
    uses: int = 0
    width: int = 1 << 30
    named: str = ""
    sought: bool = False
    recorded: Value | None = None
    kept: Sequence[Seen] = ()
    retained: dict[int, weakref.ref[torch.Tensor]] | None = None


class _Known(weakref.ref[Any]):
    """A weak reference to an object, and the `table` that has it."""

    __slots__ = ("key", "table")
    key: int
    table: dict[int, Any]


class _Tensor(_Known):
    """A tensor's mark, and the call stacks of its creation and of freezing before it was announced.

    `version` is that of its memory at its creation, -1 if that is not known.
    """

    __slots__ = ("born", "frozen", "mark", "output_nr", "owner", "version")
    born: int
    frozen: int
    version: int
    mark: Mark | None
    output_nr: int
    owner: weakref.ref[torch.Tensor] | None


class _Memory(_Known):
    """What is known of a tensor's memory: its number, and the tensors whose ``.grad`` was last seen in it.

    Recorded outputs never change their memory. `moved` are tensors that came here after they were announced (``x.data =
    v``), or changed their shape here (``x.t_()``). `number` is 0 until a recorded output is here. PyTorch keeps the
    Python object of a memory alive as long as it is used. `transposed` is the output of the last transposition of a
    leaf here, valid until the next write.

    If the elements of the memory are recorded, they give the value of every output in it. If it is too large, only its
    statistics are recorded. These are right only for a tensor that fills the memory; `whole` is the last such tensor.
    The values of the `parts` are read again after each write.
    """

    __slots__ = ("moved", "number", "owners", "parts", "transposed", "whole")
    transposed: Output | None
    moved: tuple[weakref.ref[torch.Tensor], ...]
    number: int
    owners: tuple[weakref.ref[torch.Tensor], ...]
    parts: dict[int, _Part]
    whole: weakref.ref[torch.Tensor] | None


class _Part(weakref.ref[torch.Tensor]):
    """A tensor that covers a part of its memory; `is_apart` once its own value was recorded after a write."""

    __slots__ = ("is_apart",)
    is_apart: bool


def _present(memory: _Memory, known: weakref.ref[torch.Tensor]) -> torch.Tensor | None:
    """Return the tensor, if it is alive and still in `memory`; otherwise None."""
    tensor = known()
    return tensor if tensor is not None and lies_in(tensor, memory()) else None


def _may_share(one: torch.Tensor, written: torch.Tensor) -> bool:
    """Return whether a tensor may share elements that were written through another one."""
    return overlap(as_it_lies(one), written)


class MemoryWrite(NamedTuple):
    """A write to memory `number` (0: no recorded output is in it), and the tensors affected.

    `whole` is a tensor that covers the whole memory, in the dtype to record; None if only `parts` cover it. `parts` are
    the tensors that overlap the write. The first write reports all parts, since the value of the memory no longer gives
    theirs. `moved` are tensors that came here or changed their shape here.
    """

    number: int
    whole: torch.Tensor | None
    moved: list[torch.Tensor]
    parts: list[torch.Tensor]


class Hooks(Protocol):
    """The hooks that a graph node calls before and after its backward rule."""

    def before(self, grads: Grads, /) -> None: ...
    def after(self, outgoing: Grads, grads: Grads, /) -> None: ...


class Marks:
    """The marks of one recording: of tensors without a graph node, of graph nodes, and the numbers of memories."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._known: dict[int, _Tensor] = {}
        self._memories: dict[int, _Memory] = {}
        self._dead: deque[weakref.ref[Any]] = deque()
        self._bury = self._dead.append
        self._unnamed: list[weakref.ref[torch.Tensor]] = []

    def of_node(self, node: Any) -> Mark | None:
        """Return the mark of a graph node, or None if it was not announced."""
        mark = node.metadata.get(KEY)
        return mark if mark is not None and mark.channel is self.channel else None

    def put(self, node: Any, mark: Mark, hooks: Hooks) -> None:
        """Map a graph node to a node of the trace, and register its hooks."""
        node.metadata[KEY] = mark
        node.register_prehook(hooks.before)
        node.register_hook(hooks.after)

    def of_tensor(self, tensor: torch.Tensor) -> Mark | None:
        """Return the mark of a tensor without a graph node, or None if it was not announced."""
        known = self._known.get(id(tensor))
        return known.mark if known is not None and known() is tensor else None

    def tensors(self) -> list[tuple[Mark, torch.Tensor]]:
        """Return the living tensors without a graph node that were announced, in the order of their nodes."""
        entries = [(known.mark, known()) for known in [*self._known.values()] if known.mark is not None]
        alive = [(mark, tensor) for mark, tensor in entries if tensor is not None]
        return sorted(alive, key=lambda entry: entry[0].node)

    def of(self, tensor: torch.Tensor) -> Mark | None:
        """Return the mark of a tensor or of its graph node, or None if it was not announced."""
        node = grad_fn_of(tensor)
        return self.of_tensor(tensor) if node is None else self.of_node(node)

    def output_nr(self, tensor: torch.Tensor) -> int:
        """Return the output number of a tensor without a graph node."""
        known = self._known.get(id(tensor))
        return known.output_nr if known is not None and known() is tensor else 0

    def remember(self, tensor: torch.Tensor, mark: Mark, output_nr: int = 0) -> None:
        """Map a tensor without a graph node to an output of a node."""
        entry = self._entry(tensor)
        entry.mark, entry.output_nr = mark, output_nr

    def owner_of(self, grad: torch.Tensor) -> torch.Tensor | None:
        """Return the leaf whose ``.grad`` this tensor was when last seen, or None."""
        known = self._known.get(id(grad))
        if known is None or known.owner is None or known() is not grad:
            return None
        return known.owner()

    def own(self, grad: torch.Tensor, owner: torch.Tensor) -> None:
        """Remember whose ``.grad`` a tensor and its memory are."""
        entry, memory = self._entry(grad), self.memory(grad)
        if entry.owner is None or entry.owner() is not owner:
            entry.owner = weakref.ref(owner)
        if memory is not None and not any(known() is owner for known in memory.owners):
            memory.owners = (*[known for known in memory.owners if known() is not None], entry.owner)

    def owners(self, written: torch.Tensor) -> list[torch.Tensor]:
        """Return the tensors whose ``.grad`` is the one written to, or overlaps it.

        The gradients of a whole model may share one memory (``gradient_as_bucket_view``), and are written one by one.
        """
        memory = self.memory(written)
        if memory is None:
            owner = self.owner_of(written)
            return [owner] if owner is not None and grad_of(owner) is written else []
        alive = [owner for known in memory.owners if (owner := known()) is not None]
        here, grads = as_it_lies(written), [(owner, grad_of(owner)) for owner in alive]
        return [o for o, it in grads if it is not None and self.memory(it) is memory and _may_share(it, here)]

    def bear(self, tensor: torch.Tensor, stack: int, version: int = -1) -> None:
        """Remember the call stack of a tensor's creation, and its version; it is announced only when used."""
        entry = self._entry(tensor)
        entry.born, entry.version = stack, version

    def birthplace(self, tensor: torch.Tensor) -> int:
        """Return the call stack of a tensor's creation, or 0 if unknown."""
        known = self._known.get(id(tensor))
        return known.born if known is not None and known() is tensor else 0

    def version_at_birth(self, tensor: torch.Tensor) -> int:
        """Return the version of a tensor's memory at its creation, or -1 if unknown."""
        known = self._known.get(id(tensor))
        return known.version if known is not None and known() is tensor else -1

    def freeze(self, tensor: torch.Tensor, stack: int) -> None:
        """Remember where ``requires_grad`` was switched off on a tensor that is announced only when used."""
        self._entry(tensor).frozen = stack

    def frozen_at(self, tensor: torch.Tensor) -> int:
        """Return the call stack in which a tensor was frozen before it was announced; 0 if it was not, or if
        unknown.
        """
        known = self._known.get(id(tensor))
        return known.frozen if known is not None and known() is tensor else 0

    def storage(self, tensor: torch.Tensor) -> int:
        """Return the number of a tensor's memory, a new one if the memory is new."""
        return self.number_of(self.memory(tensor))

    def number_of(self, memory: _Memory | None) -> int:
        """Return the number of a memory, a new one if it has none yet."""
        if memory is None:
            return self.channel.next_storage()
        memory.number = memory.number or self.channel.next_storage()
        return memory.number

    def is_numbered(self, tensor: torch.Tensor) -> bool:
        """Return whether a recorded output is in a tensor's memory."""
        memory = self.memory(tensor)
        return memory is not None and memory.number > 0

    def is_new(self, tensor: torch.Tensor) -> bool:
        """Return whether nothing is known of a tensor, its memory, the tensor it is a view of, and its graph node."""
        try:
            memory = torch.Tensor.untyped_storage(tensor)
        except (NotImplementedError, RuntimeError):
            return False
        known = self._memories.get(id(memory))
        if (known is not None and known() is memory) or grad_fn_of(tensor) is not None:
            return False
        base = base_of(tensor)
        for one in (tensor,) if base is None else (tensor, base):
            entry = self._known.get(id(one))
            if entry is not None and entry() is one:
                return False
        return True

    def share_memory(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        """Return whether two tensors share one memory."""
        memory = self.memory(one)
        return memory is not None and memory is self.memory(other)

    def transposed(self, leaf: torch.Tensor, node: int, version: int, look: Callable[[], Output]) -> Output:
        """Return the output of a leaf's transposition; computed once between two writes."""
        memory = self.memory(leaf)
        known = None if memory is None else memory.transposed
        if known is None or known.version != version or known.view_of != node:
            known = look()
            if memory is not None:
                memory.transposed = known
        return known

    def note_extent(self, memory: _Memory, tensor: torch.Tensor, *, fills: bool) -> None:
        """Remember whether an announced tensor `fills` its memory, or covers a part of it or has another dtype.

        Parts are remembered only for a memory too large for its elements to be recorded.
        """
        if fills and memory.whole is None:
            memory.whole = weakref.ref(tensor)
            return
        storage = memory()
        if storage is None:
            return
        whole = None if memory.whole is None else _present(memory, memory.whole)
        if fills and (whole is None or dtype_of(whole) is dtype_of(tensor)):
            memory.whole = weakref.ref(tensor)
        elif storage.nbytes() > self.channel.limit:
            part, parts = _Part(tensor), memory.parts
            part.is_apart = False
            if not len(parts) & (len(parts) - 1):  # at 1, 2, 4 …: a memory may have thousands of views
                for key in [key for key, known in [*parts.items()] if known() is None]:  # other threads may add some
                    parts.pop(key, None)
            parts.pop(id(tensor), None)
            parts[id(tensor)] = part

    def written(self, tensor: torch.Tensor) -> MemoryWrite:
        """Return what to record for a write to the memory of a tensor."""
        memory = self.memory(tensor)
        if memory is None:
            return MemoryWrite(self.channel.next_storage(), None, [], [])
        memory.transposed = None
        here = as_it_lies(tensor)
        moved = [it for known in memory.moved if (it := _present(memory, known)) is not None and _may_share(it, here)]
        parts = []
        for known in [*memory.parts.values()]:
            part = _present(memory, known)
            if part is None or any(part is it for it in moved) or (known.is_apart and not _may_share(part, here)):
                continue
            known.is_apart = True
            parts.append(part)
        whole = None if memory.whole is None else _present(memory, memory.whole)
        return MemoryWrite(memory.number, tensor if whole is None and not memory.parts else whole, moved, parts)

    def move(self, tensor: torch.Tensor) -> None:
        """Note that a tensor got other memory, or changed its shape in place, after it was announced."""
        memory = self.memory(tensor)
        if memory is not None:
            known = [(it, it()) for it in memory.moved]
            others = [it for it, one in known if one is not None and one is not tensor and lies_in(one, memory())]
            memory.moved = (*others, weakref.ref(tensor))

    def memory(self, tensor: torch.Tensor) -> _Memory | None:
        """Return what is known of a tensor's memory; None for a sparse tensor or a wrapper, which has none of
        its own.
        """
        try:
            memory = torch.Tensor.untyped_storage(tensor)
        except (NotImplementedError, RuntimeError):
            return None
        known = self._memories.get(id(memory))
        if known is None or known() is not memory:
            self.remove_dead()
            known = _Memory(memory, self._bury)
            known.key, known.table, known.owners, known.moved = id(memory), self._memories, (), ()
            known.transposed, known.number, known.parts, known.whole = None, 0, {}, None
            self._memories[known.key] = known
        return known

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget a tensor as if it had never been seen."""
        self._known.pop(id(tensor), None)
        for known in list(self._known.values()):
            if known.owner is not None and known.owner() is tensor:
                known.owner = None
        for memory in list(self._memories.values()):
            memory.owners = tuple(owner for owner in memory.owners if owner() is not tensor)
            memory.moved = tuple(moved for moved in memory.moved if moved() is not tensor)
            for key in [key for key, part in [*memory.parts.items()] if part() is tensor]:
                memory.parts.pop(key, None)
            if memory.whole is not None and memory.whole() is tensor:
                memory.whole = None

    def let_go(self) -> None:
        """Drop all references to tensors."""
        self._known.clear()
        self._memories.clear()

    def add_unnamed(self, parameter: torch.Tensor) -> None:
        """Note a parameter without a name that is used or ends a graph."""
        self._unnamed.append(weakref.ref(parameter))

    def take_unnamed(self) -> list[torch.Tensor]:
        """Return the living parameters without a name that were noted since the last call."""
        references, self._unnamed = self._unnamed, []
        return [it for known in references if (it := known()) is not None]

    def _entry(self, tensor: torch.Tensor) -> _Tensor:
        known = self._known.get(id(tensor))
        if known is None or known() is not tensor:
            self.remove_dead()
            known = _Tensor(tensor, self._bury)
            known.key, known.table, known.mark, known.owner = id(tensor), self._known, None, None
            known.born = known.frozen = known.output_nr = 0
            known.version = -1
            self._known[known.key] = known
        return known

    def remove_dead(self) -> None:
        """Remove dead entries, unless a new object has taken their place."""
        while self._dead:
            known = self._dead.popleft()
            if isinstance(known, _Known) and known.table.get(known.key) is known:
                del known.table[known.key]
