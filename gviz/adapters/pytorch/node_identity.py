"""Which node of the trace a tensor or a graph node of PyTorch is.

A tracked tensor is an output of its ``grad_fn``, and the C++ node carries the number in its `metadata`, so that both
have one lifetime. Any other tensor is known by its identity, and so is the memory of each, in a table that refers to it
weakly. What has died is taken out when the next one comes: no Python code runs in a destructor.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from gviz.adapters.pytorch.tensor_properties import dtype_of, grad_fn_of, grad_of, lies_in, overlap
from gviz.adapters.pytorch.values import as_it_lies
from gviz.emit import Channel, Seen
from gviz.events import Output
from gviz.values.value import Value

Grads = tuple[torch.Tensor | None, ...]

KEY = "gviz"
"""Where a graph node's `metadata` holds its mark."""


class Mark(Seen):
    """The announcement of a node. `uses` counts the edges that lead to it; `kept` lives as long as it does; `told` is
    the ``.grad`` that was told last, of a buffer what it then held, `named` its path in a model, `sought` whether a
    model that has it was looked for. `is_first` says that it is of one of the first calls of a function of the program.
    `width` is the number of outputs it was announced with, where PyTorch may come up with more.
    """

    __slots__ = ("is_first", "kept", "named", "retained", "sought", "told", "uses", "width")

    def __init__(self, node: int) -> None:
        super().__init__(node)
        self.is_first = False
        self.uses = 0
        self.width = 1 << 30
        self.named = ""
        self.sought = False
        self.told: Value | None = None
        self.kept: Sequence[Seen] = ()
        self.retained: dict[int, weakref.ref[torch.Tensor]] | None = None


class _Known(weakref.ref[Any]):
    """A weak reference to a living object, in the `table` that it is known by."""

    __slots__ = ("key", "table")
    key: int
    table: dict[int, Any]


class _Tensor(_Known):
    """A tensor, with what is known of it: the stacks in which it was made, and frozen before it was announced."""

    __slots__ = ("born", "frozen", "mark", "output_nr", "owner")
    born: int
    frozen: int
    mark: Mark | None
    output_nr: int
    owner: weakref.ref[torch.Tensor] | None


class _Memory(_Known):
    """A tensor's memory: its number, and the tensors whose ``.grad`` lay in it when they were last looked at.

    Recorded outputs never change their memory: `moved` are the tensors that have come here since they were announced
    (``x.data = v``), or have another form here (``x.t_()``). `number` is 0 until a recorded output lies here.
    PyTorch keeps the Python object of a memory for as long as it is used. `transposed` is what the transposition of the
    last leaf here gave, until somebody writes here.

    If the elements of the memory are kept, they give the value of every output in it. If it is too large, only its
    statistics are kept. These are right only for a tensor that fills the memory; `whole` is the last such tensor. The
    values of the `parts` are read again after each write.
    """

    __slots__ = ("moved", "number", "owners", "parts", "transposed", "whole")
    transposed: Output | None
    moved: tuple[weakref.ref[torch.Tensor], ...]
    number: int
    owners: tuple[weakref.ref[torch.Tensor], ...]
    parts: tuple[_Part, ...]
    whole: weakref.ref[torch.Tensor] | None


class _Part(weakref.ref[torch.Tensor]):
    """A tensor that shows a part of its memory; `is_apart` once its own value has been reported after a write."""

    __slots__ = ("is_apart",)
    is_apart: bool


def _present(memory: _Memory, known: weakref.ref[torch.Tensor]) -> torch.Tensor | None:
    """A tensor, if it is alive and still lies in a memory."""
    tensor = known()
    return tensor if tensor is not None and lies_in(tensor, memory()) else None


def _may_share(one: torch.Tensor, written: torch.Tensor) -> bool:
    """Whether a tensor may show elements that were written through another one."""
    return overlap(as_it_lies(one), written)


class Written(NamedTuple):
    """A write to memory `number` (0: no recorded output lies there), and the tensors that show it.

    `whole` is a tensor that shows the whole memory, in the dtype of the report; None if only `parts` show it. `parts`
    are the tensors that show something of what was written. The first write reports all parts, because from then on the
    value of the memory no longer gives theirs. `moved` are tensors that came there, or have another form there.
    """

    number: int
    whole: torch.Tensor | None
    moved: list[torch.Tensor]
    parts: list[torch.Tensor]


class Hooks(Protocol):
    """What a graph node calls before and after its rule runs."""

    def before(self, grads: Grads, /) -> None: ...
    def after(self, given: Grads, grads: Grads, /) -> None: ...


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
        """The mark of a graph node, if it was announced."""
        mark = node.metadata.get(KEY)
        return mark if mark is not None and mark.channel is self.channel else None

    def put(self, node: Any, mark: Mark, hooks: Hooks) -> None:
        """From now on this graph node is that node of the trace, and its hooks say what becomes of it."""
        node.metadata[KEY] = mark
        node.register_prehook(hooks.before)
        node.register_hook(hooks.after)

    def of_tensor(self, tensor: torch.Tensor) -> Mark | None:
        """The mark of a tensor that has no graph node, if it was announced."""
        known = self._known.get(id(tensor))
        return known.mark if known is not None and known() is tensor else None

    def of(self, tensor: torch.Tensor) -> Mark | None:
        """The mark of a tensor or of the graph node that made it, if that was announced."""
        node = grad_fn_of(tensor)
        return self.of_tensor(tensor) if node is None else self.of_node(node)

    def output_nr(self, tensor: torch.Tensor) -> int:
        """Which output of its node a tensor is that has no graph node."""
        known = self._known.get(id(tensor))
        return known.output_nr if known is not None and known() is tensor else 0

    def remember(self, tensor: torch.Tensor, mark: Mark, output_nr: int = 0) -> None:
        """From now on this tensor, while it has no graph node, is that output of that node."""
        entry = self._entry(tensor)
        entry.mark, entry.output_nr = mark, output_nr

    def owner_of(self, grad: torch.Tensor) -> torch.Tensor | None:
        """The leaf whose ``.grad`` this tensor was when it was last looked at."""
        known = self._known.get(id(grad))
        if known is None or known.owner is None or known() is not grad:
            return None
        return known.owner()

    def own(self, grad: torch.Tensor, owner: torch.Tensor) -> None:
        """Remember whose ``.grad`` a tensor is, and its memory."""
        entry, memory = self._entry(grad), self._memory(grad)
        if entry.owner is None or entry.owner() is not owner:
            entry.owner = weakref.ref(owner)
        if memory is not None and not any(known() is owner for known in memory.owners):
            memory.owners = (*[known for known in memory.owners if known() is not None], entry.owner)

    def owners(self, written: torch.Tensor) -> list[torch.Tensor]:
        """The tensors whose ``.grad`` is the one that was written to, or shows elements of it.

        The ``.grad``s of a whole model may lie in one memory (``gradient_as_bucket_view``), and are written one by one.
        """
        memory = self._memory(written)
        if memory is None:
            owner = self.owner_of(written)
            return [owner] if owner is not None and grad_of(owner) is written else []
        alive = [owner for known in memory.owners if (owner := known()) is not None]
        here, grads = as_it_lies(written), [(owner, grad_of(owner)) for owner in alive]
        return [o for o, it in grads if it is not None and self._memory(it) is memory and _may_share(it, here)]

    def bear(self, tensor: torch.Tensor, stack: int) -> None:
        """Remember where a tensor was made that is announced only when it is used."""
        self._entry(tensor).born = stack

    def birthplace(self, tensor: torch.Tensor) -> int:
        """The stack in which a tensor was made, 0 if that is not known."""
        known = self._known.get(id(tensor))
        return known.born if known is not None and known() is tensor else 0

    def freeze(self, tensor: torch.Tensor, stack: int) -> None:
        """Remember where ``requires_grad`` was taken from a tensor that is announced only when it is used."""
        self._entry(tensor).frozen = stack

    def frozen_at(self, tensor: torch.Tensor) -> int:
        """The stack in which a tensor was frozen before it was announced, 0 if it was not, or that is not known."""
        known = self._known.get(id(tensor))
        return known.frozen if known is not None and known() is tensor else 0

    def storage(self, tensor: torch.Tensor) -> int:
        """The number of a tensor's memory, a new one if it was not seen before."""
        memory = self._memory(tensor)
        if memory is None:
            return self.channel.next_storage()
        memory.number = memory.number or self.channel.next_storage()
        return memory.number

    def is_numbered(self, tensor: torch.Tensor) -> bool:
        """Whether a recorded output lies in a tensor's memory."""
        memory = self._memory(tensor)
        return memory is not None and memory.number > 0

    def share_memory(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        """Whether two tensors lie in one memory."""
        memory = self._memory(one)
        return memory is not None and memory is self._memory(other)

    def transposed(self, leaf: torch.Tensor, node: int, version: int, look: Callable[[], Output]) -> Output:
        """What the transposition of a leaf, which is that node, gives: looked at once between two writes."""
        memory = self._memory(leaf)
        known = None if memory is None else memory.transposed
        if known is None or known.version != version or known.view_of != node:
            known = look()
            if memory is not None:
                memory.transposed = known
        return known

    def note_extent(self, tensor: torch.Tensor, *, fills: bool) -> None:
        """Remember whether an announced tensor `fills` its memory, or shows a part of it or another dtype.

        Parts are remembered only for a memory too large for its elements to be kept.
        """
        memory = self._memory(tensor)
        storage = None if memory is None else memory()
        if memory is None or storage is None:
            return
        whole = None if memory.whole is None else _present(memory, memory.whole)
        if fills and (whole is None or dtype_of(whole) is dtype_of(tensor)):
            memory.whole = weakref.ref(tensor)
        elif storage.nbytes() > self.channel.limit:
            part = _Part(tensor)
            part.is_apart = False
            alive = [(known, known()) for known in memory.parts]
            memory.parts = (*[known for known, it in alive if it is not None and it is not tensor], part)

    def written(self, tensor: torch.Tensor) -> Written:
        """What to report about a write to the memory of a tensor."""
        memory = self._memory(tensor)
        if memory is None:
            return Written(self.channel.next_storage(), None, [], [])
        memory.transposed = None
        here = as_it_lies(tensor)
        moved = [it for known in memory.moved if (it := _present(memory, known)) is not None and _may_share(it, here)]
        parts = []
        for known in memory.parts:
            part = _present(memory, known)
            if part is None or any(part is it for it in moved) or (known.is_apart and not _may_share(part, here)):
                continue
            known.is_apart = True
            parts.append(part)
        whole = None if memory.whole is None else _present(memory, memory.whole)
        return Written(memory.number, tensor if whole is None and not memory.parts else whole, moved, parts)

    def move(self, tensor: torch.Tensor) -> None:
        """A tensor has come to the memory that it lies in, or has another form there, since it was announced."""
        memory = self._memory(tensor)
        if memory is not None:
            known = [(it, it()) for it in memory.moved]
            others = [it for it, one in known if one is not None and one is not tensor and lies_in(one, memory())]
            memory.moved = (*others, weakref.ref(tensor))

    def _memory(self, tensor: torch.Tensor) -> _Memory | None:
        """What is known of a tensor's memory; None where it has none of its own: sparse, or a wrapper."""
        try:
            memory = torch.Tensor.untyped_storage(tensor)
        except (NotImplementedError, RuntimeError):
            return None
        known = self._memories.get(id(memory))
        if known is None or known() is not memory:
            self._clear()
            known = _Memory(memory, self._bury)
            known.key, known.table, known.owners, known.moved = id(memory), self._memories, (), ()
            known.transposed, known.number, known.parts, known.whole = None, 0, (), None
            self._memories[known.key] = known
        return known

    def forget(self, tensor: torch.Tensor) -> None:
        """Let go of a tensor as if it had never been seen."""
        self._known.pop(id(tensor), None)
        for known in list(self._known.values()):
            if known.owner is not None and known.owner() is tensor:
                known.owner = None
        for memory in list(self._memories.values()):
            memory.owners = tuple(owner for owner in memory.owners if owner() is not tensor)
            memory.moved = tuple(moved for moved in memory.moved if moved() is not tensor)
            memory.parts = tuple(part for part in memory.parts if part() is not tensor)
            if memory.whole is not None and memory.whole() is tensor:
                memory.whole = None

    def let_go(self) -> None:
        """Refer to no tensor any more."""
        self._known.clear()
        self._memories.clear()

    def met_unnamed(self, parameter: torch.Tensor) -> None:
        """A parameter without a name is used, or a graph ends there."""
        self._unnamed.append(weakref.ref(parameter))

    def take_unnamed(self) -> list[torch.Tensor]:
        """The parameters without a name that were met since this was asked last, as far as they live."""
        found, self._unnamed = self._unnamed, []
        return [it for known in found if (it := known()) is not None]

    def _entry(self, tensor: torch.Tensor) -> _Tensor:
        known = self._known.get(id(tensor))
        if known is None or known() is not tensor:
            self._clear()
            known = _Tensor(tensor, self._bury)
            known.key, known.table, known.mark, known.owner = id(tensor), self._known, None, None
            known.born = known.frozen = known.output_nr = 0
            self._known[known.key] = known
        return known

    def _clear(self) -> None:
        """Forget what has died, unless another has come in its place."""
        while self._dead:
            known = self._dead.popleft()
            if isinstance(known, _Known) and known.table.get(known.key) is known:
                del known.table[known.key]
