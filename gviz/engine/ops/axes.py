"""The same elements with dimensions in another order, as views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gviz.engine import messages
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.shape import alias, normal_dims, run, sizes_of
from gviz.engine.surface import attribute, front
from gviz.engine.tensor import Tensor

transpose: Op = Op(
    "transpose(self, *, dim0, dim1)",
    grad_fn="TransposeBackward0",
    formula="self with dim0 and dim1 exchanged",
    forward=lambda self, dim0, dim1: self.swapaxes(dim0, dim1) if self.ndim else self.view(),
    rules=(Rule("self", "g exchanged back", lambda g, dim0, dim1: transpose(g, dim0=dim0, dim1=dim1)),),
    memory="view",
    public=False,
    torch="transpose",
    examples=lambda: [Example((normal(2, 3),), {"dim0": 0, "dim1": 1})],
)
t: Op = Op(
    "t(self)",
    grad_fn="TBackward0",
    formula="self transposed",
    forward=np.transpose,
    rules=(Rule("self", "g transposed", lambda g: t(g)),),
    memory="view",
    public=False,
    torch="t",
    examples=lambda: [Example((normal(2, 3),), {})],
)
permute: Op = Op(
    "permute(self, *, dims)",
    grad_fn="PermuteBackward0",
    formula="self with its dimensions in the order dims",
    forward=lambda self, dims: np.transpose(self, dims),
    rules=(Rule("self", "g in the old order", lambda g, dims: permute(g, dims=tuple(np.argsort(dims).tolist()))),),
    memory="view",
    public=False,
    torch="permute",
    examples=lambda: [Example((normal(2, 3, 4),), {"dims": (2, 0, 1)}), Example((normal(),), {"dims": ()})],
)


@front("transpose", "swapaxes", "swapdims")
def transpose_front(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged."""
    first, second = normal_dims((dim0, dim1), self.ndim)
    return run(transpose, self, dim0=first, dim1=second)


@front("t")
def t_front(self: Tensor) -> Tensor:
    """A matrix transposed, as a view."""
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return run(t, self)


@front("permute")
def permute_front(self: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """A view with the dimensions in another order."""
    wanted = sizes_of(order if dims is None else (dims,))
    if len(wanted) != self.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(wanted)}"
        )
    normal_order = normal_dims(wanted, self.ndim)
    if len(set(normal_order)) < len(normal_order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return run(permute, self, dims=normal_order)


@front("movedim", "moveaxis")
def movedim(self: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """A view with the dimensions `source` at the places `destination`, the others in their order."""
    sources, places = normal_dims(source, self.ndim), normal_dims(destination, self.ndim)
    if len(sources) != len(places):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(_listed(source))} dims) should contain the same number of dims as destination "
            f"({list(_listed(destination))} dims)"
        )
    for dims, name, given in ((sources, "source", source), (places, "destination", destination)):
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(_listed(given))})")
    if not self.ndim:
        return run(alias, self)
    order = [d for d in range(self.ndim) if d not in sources]
    for place, dim in sorted(zip(places, sources, strict=True)):
        order.insert(place, dim)
    return run(permute, self, dims=tuple(order))


def _listed(dim: int | Sequence[int]) -> Sequence[int]:
    return (dim,) if isinstance(dim, int) else dim


@front("adjoint")
def adjoint(self: Tensor) -> Tensor:
    """Matrices transposed (real numbers are their own conjugates), as a view."""
    if self.ndim == 1:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    if not self.ndim:
        messages.warn_once("adjoint() is deprecated on 0-D tensors. Consider using x.conj().")
        return self
    return transpose_front(self, -2, -1)


def _reversed(self: Tensor) -> Tensor:
    """A view with all dimensions in reverse order."""
    if self.ndim != 2:
        messages.warn_once(_OF_NUMBER["T"] if not self.ndim else messages.REVERSED_DIMS)
    return run(permute, self, dims=tuple(range(self.ndim))[::-1])


def _matrices_transposed(name: str) -> Any:
    def read(self: Tensor) -> Tensor:
        if self.ndim == 1:
            raise RuntimeError(
                f"tensor.{name} is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
            )
        if self.ndim:
            return transpose_front(self, -2, -1)
        messages.warn_once(_OF_NUMBER[name])
        return self

    return read


def _matrix_adjoint(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        batches = " For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.{batches}")
    if self.ndim:
        return transpose_front(self, 0, 1)
    messages.warn_once(_OF_NUMBER["H"])
    return self


_IDENTITY = "Tensor.{name} is deprecated on 0-D tensors. This function is the identity in these cases."
_CONJUGATE = "Tensor.{name} is deprecated on 0-D tensors. Consider using x.conj()."
_OF_NUMBER = {name: _IDENTITY.format(name=name) for name in ("T", "mT")}
_OF_NUMBER |= {name: _CONJUGATE.format(name=name) for name in ("H", "mH")}

attribute("T", _reversed)
attribute("H", _matrix_adjoint)
attribute("mT", _matrices_transposed("mT"))
attribute("mH", _matrices_transposed("mH"))
