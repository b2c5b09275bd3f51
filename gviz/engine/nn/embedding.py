"""Embeddings: look up rows of a table by integers; as functions and as a module."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import front
from gviz.engine.modes import no_grad
from gviz.engine.nn import functional as F
from gviz.engine.nn import init
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter, begin, empty
from gviz.engine.ops import embedding as ops
from gviz.engine.ops.shape import run
from gviz.engine.tensor import Tensor, count_writes
from gviz.engine.views import apply_in_place


class Embedding(Module):
    """A table whose rows are looked up by integers."""

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < max(num_embeddings, 1):
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            sizes = (num_embeddings, embedding_dim)
            self.weight = empty(*sizes, device=device, dtype=dtype, requires_grad=not _freeze)
            begin(self)
        elif list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        else:
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Initializes the table; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is None:
            return
        if self.weight._unborn:
            self.weight._array[self.padding_idx] = 0
            count_writes(self.weight, 1)
        else:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """An embedding with these rows; they are not trained if `freeze`."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, _freeze=freeze
        )

    def forward(self, input: Tensor) -> Tensor:
        """Looks up the rows."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """The sizes, and options that differ from the default."""
        defaults = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "sparse": False}
        parts = [f"{name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *parts])


@F._declare
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at the indices `input`; row `padding_idx` gets no gradient."""
    skipped = -1
    if padding_idx is not None:
        rows = weight.shape[0]
        assert -rows <= padding_idx < rows, "Padding_idx must be within num_embeddings"
        skipped = padding_idx % rows
    if max_norm is not None:
        _check_renorm(weight, input)
        with no_grad():
            apply_in_place(ops.renormed, (weight, input), {"max_norm": max_norm, "norm_type": norm_type})
    return torch_embedding(weight, input, skipped, scale_grad_by_freq, sparse)


def _check_renorm(weight: Tensor, indices: Tensor) -> None:
    """Raise PyTorch's error for a table whose rows cannot be shortened, or for indices that are not of its rows."""
    if weight.ndim != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {weight.ndim}-dimensional tensor for argument #1 'self' (while "
            "checking arguments for embedding_renorm_)"
        )
    _check_indices(indices, 2, "embedding_renorm_")
    length = len(weight)
    for index in np.unique(indices._array):  # in the order in which PyTorch shortens the rows
        if not -length <= index < length:
            raise IndexError(
                f"select(): index {index} out of range for tensor of size {list(weight.shape)} at dimension 0"
            )
    if indices.numel() and not weight.dtype.is_floating_point:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {weight.dtype.tensor_type} instead."
        )


def _check_indices(indices: Tensor, position: int, function: str) -> None:
    if indices.dtype.name not in ("int32", "int64"):
        kind = "CPUBoolType" if indices.dtype.name == "bool" else f"torch.{indices.dtype.tensor_type}Tensor"
        raise RuntimeError(
            f"Expected tensor for argument #{position} 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {kind} instead (while checking arguments for {function})"
        )


@front("embedding", method=False)
def torch_embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """`embedding` with the table as its first argument."""
    if sparse:
        raise NotImplementedError("the built-in engine has no sparse gradients; embed with sparse=False")
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(indices, 1, "embedding")
    attrs = {"padding_idx": padding_idx, "scale_grad_by_freq": scale_grad_by_freq, "sparse": False}
    return run(ops.embedding, weight, indices, **attrs)


@F._declare
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class of each element, 0 elsewhere, along a new last dimension."""
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
    return count_writes(run(ops.one_hot, tensor, num_classes=num_classes), 2 if array.size else 0)
