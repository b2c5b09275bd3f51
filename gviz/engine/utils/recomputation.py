"""What a checkpoint does not keep: holders in place of saved tensors, filled when a pass asks for the first of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary, ref

from gviz.engine import watching
from gviz.engine.autograd.graph import saved_tensors_hooks
from gviz.engine.graph_pass import Pass, running
from gviz.engine.modes import enable_grad
from gviz.engine.node import Node
from gviz.engine.saved import pack
from gviz.engine.tensor import Tensor
from gviz.engine.utils import messages

Form = Callable[[Tensor], Any]
"""What must be the same of a tensor when it is computed again."""


class CheckpointError(RuntimeError):
    """What was computed again is not what was computed first."""


def default_form(tensor: Tensor) -> dict[str, Any]:
    """What is compared unless the program says otherwise."""
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class _EnoughComputed(Exception):
    """Everything that was saved in forward has been computed again."""


_stops_early: list[bool] = []


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether checkpoints made within it stop computing again as soon as everything needed is there."""
    _stops_early.append(enable)
    try:
        yield
    finally:
        _stops_early.pop()


class _Round:
    """One time of computing again, for one pass; `count` tensors were saved in it so far."""

    __slots__ = ("__weakref__", "count")

    def __init__(self) -> None:
        self.count = 0


class _Holder:
    """Stands for one saved tensor; the tensor itself by round, None once it was given away."""

    __slots__ = ("__weakref__", "found")

    def __init__(self) -> None:
        self.found: WeakKeyDictionary[_Round, Tensor | None] = WeakKeyDictionary()


class _Inputs(Node):
    """Keeps the tensors a checkpoint was called with as a node keeps what it saved: a checkpoint around packs them."""

    __slots__ = ()

    def __init__(self, tensors: Sequence[Tensor | None]) -> None:
        super().__init__()
        self.saved, self.versions = tensors, [0 if t is None else t._counter[0] for t in tensors]
        if watching.watchers:
            pack(self)

    @property
    def saved_outputs(self) -> dict[int, int]:
        return {}


class Frame:
    """One checkpointed call. `again` runs it once more; it `is_complete` when its forward has ended."""

    def __init__(self, again: Callable[..., None], args: Sequence[Any], form: Form | None, early_stop: bool) -> None:
        self._again = again
        self._others = [None if isinstance(arg, Tensor) else arg for arg in args]
        self._inputs = _Inputs([arg if isinstance(arg, Tensor) else None for arg in args])
        self._form = form
        self._early_stop = _stops_early[-1] if _stops_early else early_stop
        self._holders: list[ref[_Holder]] = []
        self._forms: list[Any] = []
        self._rounds: WeakKeyDictionary[Pass, _Round] = WeakKeyDictionary()
        self._ignores_mismatch = False
        self.is_complete = False

    def hold(self, tensor: Tensor) -> _Holder:
        """The pack hook in forward: forget the tensor, remember what it looks like."""
        holder = _Holder()
        self._holders.append(ref(holder))
        self._forms.append(None if self._form is None else self._form(tensor))
        return holder

    def give(self, holder: _Holder) -> Tensor:
        """The unpack hook: the tensor of a holder, after computing all of them again if this pass has not yet."""
        current = running.innermost
        found = None if current is None else self._rounds.get(current)
        if found is None:
            found = _Round()
            if current is not None:
                self._rounds[current] = found
            self._compute(found)
        tensor = holder.found.get(found)
        if tensor is None:
            raise CheckpointError(messages.CHECKPOINT_UNPACKED_TWICE)
        holder.found[found] = None
        return tensor

    def _compute(self, current: _Round) -> None:
        hooks = saved_tensors_hooks(lambda tensor: self._keep(current, tensor), lambda tensor: tensor)
        with suppress(_EnoughComputed), hooks, enable_grad():
            self._again(*self._args())
        if not self._ignores_mismatch:
            self._check(current)

    def _args(self) -> list[Any]:
        tensors = [self._inputs.saved_tensor(place) for place in range(len(self._others))]
        return [other if tensor is None else tensor for tensor, other in zip(tensors, self._others, strict=True)]

    def _keep(self, current: _Round, tensor: Tensor) -> Tensor:
        """The pack hook while computing again: put the tensor where it is waited for."""
        kept = tensor.detach() if tensor.requires_grad else tensor
        index, current.count = current.count, current.count + 1
        if index >= len(self._holders):
            if self.is_complete:
                raise CheckpointError(messages.CHECKPOINT_SAVES_MORE + messages.CHECKPOINT_TIP)
            self._ignores_mismatch = True
            return kept
        holder = self._holders[index]()
        if holder is not None:
            holder.found[current] = kept
        if self._early_stop and current.count == len(self._holders):
            raise _EnoughComputed
        return kept

    def _check(self, current: _Round) -> None:
        if len(self._holders) != current.count:
            counts = {"forward": len(self._holders), "again": current.count}
            raise CheckpointError(messages.CHECKPOINT_COUNT.format(**counts) + messages.CHECKPOINT_TIP)
        if self._form is None:
            return
        different = ""
        for index, (reference, form) in enumerate(zip(self._holders, self._forms, strict=True)):
            holder = reference()
            tensor = None if holder is None else holder.found.get(current)
            if tensor is not None and self._form(tensor) != form:
                different += (
                    f"tensor at position {index}:\nsaved metadata: {form}\nrecomputed metadata: {self._form(tensor)}\n"
                )
        if different:
            text = messages.CHECKPOINT_FORMS.format(different=different)
            raise CheckpointError(text + messages.CHECKPOINT_TIP)
