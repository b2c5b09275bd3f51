"""Distances between vectors, as functions and as modules."""

from __future__ import annotations

from gviz.engine.functions_and_methods import front
from gviz.engine.modes import no_grad
from gviz.engine.nn import functional as F
from gviz.engine.nn.module import Module
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops._examples import spaced
from gviz.engine.ops.arithmetic import plus_number
from gviz.engine.ops.joining import broadcast_tensors
from gviz.engine.ops.norms_and_distances import read_by_order, vector_norm, vector_norm_op
from gviz.engine.ops.shape import normal_dims, run
from gviz.engine.promotion import result_type
from gviz.engine.tensor import Tensor


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along `dim`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Computes the cosines."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The norm of the difference of vectors."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Computes the distances."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


_through = vector_norm_op.rules[0].vjp

norm_op: Op = Op(
    "norm(self, *, p, dim, keepdim)",
    grad_fn="NormBackward1",
    formula="size of self over dim: (sum of |self|**p)**(1 / p)",
    readings=read_by_order("p"),
    forward=lambda self, p, dim, keepdim: vector_norm_op.forward(self, p, dim, keepdim),
    rules=(
        Rule(
            "self",
            "g * sign(self) * (|self| / result)**(p - 1)",
            lambda g, self, result, p, dim, keepdim: _through(g, self, result, p, dim, keepdim),
        ),
    ),
    public=False,
    examples=lambda: [Example((spaced(2, 3) + 0.06,), {"p": p, "dim": (1,), "keepdim": False}) for p in (1, 2, 3)],
)


@F._declare
@front("pairwise_distance", method=False)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norm of the differences of rows."""
    apart = run(plus_number, x1 - x2, other=eps)
    return run(norm_op, apart, p=p, dim=(apart.ndim - 1,) if apart.ndim else (), keepdim=keepdim)


@F._declare
@front("cosine_similarity", method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosines of the angles between vectors along `dim`."""
    common = result_type(x1, x2)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common.tensor_type}")
    first, second = (x if x.dtype.is_floating_point else x.to(common) for x in (x1, x2))
    if x1.shape != x2.shape:
        shape = broadcast_tensors(first, second)[0].shape
        first, second = first.expand(shape), second.expand(shape)
    (axis,) = normal_dims(dim, first.ndim)
    sizes = [vector_norm(t, 2, axis, keepdim=True).clone() for t in (first, second)]
    with no_grad():
        for size in sizes:
            size.clamp_min_(eps)
    return ((first / sizes[0]) * (second / sizes[1])).sum(axis)
