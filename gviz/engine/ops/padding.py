"""Tensors with a border: of one value, mirrored, of their edge, or of their other end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.adding import added_rows
from gviz.engine.ops.examples import normal
from gviz.engine.ops.memory import copy_
from gviz.engine.ops.selecting import sliced
from gviz.engine.ops.shape import run
from gviz.engine.surface import Number, front
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array

Shape = tuple[int, ...]
Padding = Sequence[int]
Source = Callable[[int, int, int], Array]
"""Where each element of a padded dimension comes from, by its length before and what is added at its ends."""


def _pairs(padding: Padding) -> list[tuple[int, int]]:
    """Before and after, the last dimension first."""
    return list(zip(padding[::2], padding[1::2], strict=True))


def _with_constant(self: Array, pad: Padding, value: Number) -> Array:
    pairs = [(0, 0)] * (self.ndim - len(pad) // 2) + _pairs(pad)[::-1]
    cropped = self[tuple([slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(self.shape, pairs, strict=True)])]
    result = np.full([n + a + b for n, (a, b) in zip(self.shape, pairs, strict=True)], value, self.dtype)
    inner = [slice(max(a, 0), n - max(b, 0)) for n, (a, b) in zip(result.shape, pairs, strict=True)]
    result[tuple(inner)] = cropped
    return result


constant_pad: Op = Op(
    "constant_pad_nd(self, *, pad, value=0)",
    grad_fn="ConstantPadNdBackward0",
    formula="self with a border of value",
    forward=_with_constant,
    rules=(
        Rule("self", "g without the border", lambda g, pad: constant_pad(g, pad=tuple([-n for n in pad]), value=0)),
    ),
    public=False,
    torch="constant_pad_nd",
    examples=lambda: [
        Example((normal(2, 3),), {"pad": (1, 2, 0, 1), "value": 1.5}),
        Example((normal(2, 3),), {"pad": (-1, 2), "value": 0}),
    ],
)


def _mirrored(length: int, before: int, after: int) -> Array:
    places = np.abs(np.arange(-before, length + after))
    return np.where(places >= length, 2 * (length - 1) - places, places)


def _repeated(length: int, before: int, after: int) -> Array:
    return np.clip(np.arange(-before, length + after), 0, length - 1)


def _padded(self: Array, padding: Padding, source: Source) -> Array:
    for i, (before, after) in enumerate(_pairs(padding)):
        dim = self.ndim - 1 - i
        self = self.take(source(self.shape[dim], before, after), dim)
    return self


def _summed(g: Array, sizes: Shape, padding: Padding, source: Source) -> Array:
    for i, (before, after) in enumerate(_pairs(padding)):
        dim = g.ndim - 1 - i
        rows = added_rows(sizes[dim], source(sizes[dim], before, after), np.moveaxis(g, dim, 0))
        g = np.moveaxis(rows, 0, dim)
    return g


def _bordered(name: str, grad_fn: str, what: str, source: Source, dims: int) -> Op:
    """Padding of the last `dims` dimensions with elements of the tensor itself."""
    shape, padding = (2, 2, 3, 4)[3 - dims :], (1, 2, 1, 0, 0, 1)[: 2 * dims]
    back: Op = Op(
        f"{name}_backward(self, *, sizes, padding)",
        grad_fn=f"{grad_fn}BackwardBackward0",
        formula=f"self without its border, which is added to {what}",
        forward=lambda self, sizes, padding: _summed(self, sizes, padding, source),
        rules=(Rule("self", f"g with a border of {what}", lambda g, padding: op(g, padding=padding)),),
        public=False,
        examples=lambda: [Example((op.forward(normal(*shape), padding),), {"sizes": shape, "padding": padding})],
    )
    op: Op = Op(
        f"{name}(self, *, padding)",
        grad_fn=f"{grad_fn}Backward0",
        formula=f"self with a border of {what}",
        forward=lambda self, padding: _padded(self, padding, source),
        rules=(
            Rule(
                "self",
                f"g without its border, which is added to {what}",
                lambda g, self, self_sym_sizes, padding: back(g, sizes=self_sym_sizes, padding=padding),
            ),
        ),
        public=False,
        examples=lambda: [Example((normal(*shape),), {"padding": padding})],
    )
    return op


_REFLECT = {d: _bordered(f"reflection_pad{d}d", f"ReflectionPad{d}D", "its mirror", _mirrored, d) for d in (1, 2, 3)}
_REPLICATE = {d: _bordered(f"replication_pad{d}d", f"ReplicationPad{d}D", "its edge", _repeated, d) for d in (1, 2, 3)}


@front("constant_pad_nd", method=False)
def constant_pad_nd(input: Tensor, pad: Padding, value: Number = 0) -> Tensor:
    """`input` with a border of `value`; sizes count from the last dimension, negative ones cut off."""
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    _check_length(input, pad, "Length of pad should be no more than twice the number of dimensions of the input. ")
    for n, (before, after) in zip(input.shape[::-1], _pairs(pad), strict=False):
        if n - max(-before, 0) - max(-after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
    return run(constant_pad, input, pad=tuple(pad), value=value)


def _check_length(input: Tensor, pad: Padding, text: str) -> None:
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(f"{text}Pad length is {len(pad)}while the input has {input.ndim}dimensions.")


def pad(input: Tensor, pad: Padding, mode: str = "constant", value: Number | None = None) -> Tensor:
    """`input` with a border, as ``torch.nn.functional.pad`` makes it."""
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.ndim}"
        )
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if (len(pad), input.ndim) not in ((2, 2), (2, 3), (4, 3), (4, 4), (6, 4), (6, 5)):
        raise NotImplementedError(_UNSUPPORTED.format(size=len(pad), ndim=input.ndim))
    if mode == "circular":
        return _circular(input, pad)
    if mode not in ("reflect", "replicate"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _check_border(input, pad, mode)
    return run((_REFLECT if mode == "reflect" else _REPLICATE)[len(pad) // 2], input, padding=tuple(pad))


_UNSUPPORTED = (
    "Padding size {size} is not supported for {ndim}D input tensor.\nSupported combinations for non-constant padding:\n"
    "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
    "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
    "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
)


def _check_border(input: Tensor, pad: Padding, mode: str) -> None:
    """RuntimeError, in PyTorch's words, for a border of more than there is."""
    dims = len(pad) // 2
    if 0 in input.shape[-dims - (input.ndim == dims + 1) :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    for i, (before, after) in enumerate(_pairs(pad)):
        dim = input.ndim - 1 - i
        if mode == "reflect" and max(before, after) >= input.shape[dim]:
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {after}) at dimension {dim} of input {list(input.shape)}"
            )


def _circular(input: Tensor, pad: Padding) -> Tensor:
    """A border of the other end: written side by side into fresh memory, as PyTorch records it."""
    shape = list(input.shape)
    for dim, (before, after) in _by_dim(input, pad):
        if max(before, after) > input.shape[dim]:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        shape[dim] += before + after
        if shape[dim] < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    result = new_tensor(np.empty(shape, input._array.dtype))
    inside, inner = result, input
    for dim, (before, after) in _by_dim(input, pad):
        inside = sliced(inside, dim, max(before, 0), shape[dim] - max(after, 0))
        inner = sliced(inner, dim, max(-before, 0), input.shape[dim] - max(-after, 0))
    copy_(inside, inner)
    for dim, (before, after) in _by_dim(input, pad):
        end = shape[dim] - max(after, 0)
        if before > 0:
            _write(result, dim, (0, before), (end - before, end))
        if after > 0:
            start = max(before, 0)
            _write(result, dim, (shape[dim] - after, shape[dim]), (start, start + after))
    return result


def _by_dim(input: Tensor, pad: Padding) -> list[tuple[int, tuple[int, int]]]:
    return [(input.ndim - 1 - i, pair) for i, pair in enumerate(_pairs(pad))]


def _write(tensor: Tensor, dim: int, target: tuple[int, int], source: tuple[int, int]) -> None:
    """Write one stretch of a dimension over another."""
    copy_(sliced(tensor, dim, *target), sliced(tensor, dim, *source))
