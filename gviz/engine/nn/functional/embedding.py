"""Lookups of ``torch.nn.functional``."""

from __future__ import annotations

from gviz.engine.modes import no_grad
from gviz.engine.ops import embedding as ops
from gviz.engine.ops.shape import run
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor, count_writes
from gviz.engine.views import apply_in_place

__all__ = ["embedding", "one_hot"]


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` that `input` numbers; row `padding_idx` gets no gradient."""
    skipped = -1
    if padding_idx is not None:
        rows = weight.shape[0]
        assert -rows <= padding_idx < rows, "Padding_idx must be within num_embeddings"
        skipped = padding_idx % rows
    if max_norm is not None:
        with no_grad():
            apply_in_place(ops.renormed, (weight, input), {"max_norm": max_norm, "norm_type": norm_type})
    return torch_embedding(weight, input, skipped, scale_grad_by_freq, sparse)


@front("embedding", method=False)
def torch_embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """`embedding` with the table first."""
    if sparse:
        raise NotImplementedError("the built-in engine has no sparse gradients; embed with sparse=False")
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype.name not in ("int32", "int64"):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{indices.dtype.tensor_type}Tensor instead (while checking arguments for embedding)"
        )
    attrs = {"padding_idx": padding_idx, "scale_grad_by_freq": scale_grad_by_freq, "sparse": False}
    return run(ops.embedding, weight, indices, **attrs)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class that each element names, 0 elsewhere, along a new last dimension."""
    if tensor.dtype.name != "int64":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    array = tensor._array
    if not array.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if array.size and array.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(array.max()) + 1
    elif array.size and array.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return count_writes(run(ops.one_hot, tensor, num_classes=num_classes), 2)
