"""Records what a static graph cannot do while a program runs: as warnings with the call stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gviz import emit
from gviz.engine.operation_lookup import is_by_mask, is_sized_by_data
from gviz.engine.size import Size
from gviz.events import Warned

if TYPE_CHECKING:
    from gviz.engine.op import Op
    from gviz.engine.tensor import Tensor


CATEGORY = "GraphBreak"
"""The category of the warnings."""

_SIZES = frozenset({"len", "iteration"})  # sizes are fixed in a static graph, and so are loops over them


class BreakRecorder:
    """A recorder (`gviz.engine.operation_watchers.Recorder`) that builds no graph."""

    def read(self, tensor: Tensor, how: str) -> None:
        """Handle a conversion of a tensor to a Python value."""
        if how not in _SIZES and not tensor._is_number:
            self._note(how)

    def refs(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the tensors themselves."""
        return tuple(tensors)

    def ran(self, op: Op, refs: tuple[Any, ...], attrs: dict[str, Any], outputs: Sequence[Tensor]) -> None:
        """Handle an operation that created new tensors."""
        others = [tensor._array.dtype for tensor in refs[1:]]
        if is_sized_by_data(op, others):
            dimensions = f"{refs[1]._array.ndim} {refs[0]._array.ndim}" if len(refs) > 1 else ""
            self._note(f"mask {dimensions}" if is_by_mask(op, others) else op.name)

    def _note(self, what: str) -> None:
        channel = emit.channel
        if channel is not None:
            channel.emit(Warned(CATEGORY, what, channel.stack()))

    def shape(self, tensor: Tensor) -> Size:
        """Return the plain shape."""
        return Size(tensor._array.shape)

    # What a static graph can contain

    def wrote(self, op: Op, refs: tuple[Any, ...], attrs: dict[str, Any], target: Tensor) -> None:
        """Handle an operation that wrote to a tensor."""

    def became(self, op: Op, refs: tuple[Any, ...], attrs: dict[str, Any], target: Tensor) -> None:
        """Handle a tensor that became another view of its memory."""

    def copied(self, tensor: Tensor, copy: Tensor) -> None:
        """Handle a tensor that was copied before it was written."""

    def born(self, tensor: Tensor) -> None:
        """Handle a created tensor."""

    def switched(self, tensor: Tensor, how: str) -> None:
        """Handle a property of a tensor that was changed without an operation."""

    def drew(self) -> None:
        """Handle random numbers that were drawn."""

    def accumulated(self) -> None:
        """Handle a backward pass that added to ``.grad``."""

    def called(self, function: str) -> None:
        """Handle a call of a custom Function."""
