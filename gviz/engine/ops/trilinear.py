"""The sum of products of three tensors, of which each lacks some of the dimensions."""

from __future__ import annotations

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.kernels import refuse_unless
from gviz.values import Array

Dims = tuple[int, ...]


def _sum(i1: Array, i2: Array, i3: Array, expand1: Dims, expand2: Dims, expand3: Dims, sumdim: Dims) -> Array:
    refuse_unless(i1.dtype != bool, "bmm", i1)
    dims = range(i1.ndim + len(expand1))
    first, second, third, left = (
        [dim for dim in dims if dim not in lacking] for lacking in (expand1, expand2, expand3, sumdim)
    )
    result: Array = np.einsum(i1, first, i2, second, i3, third, left, optimize=True)
    return result


trilinear: Op = Op(
    "trilinear(i1, i2, i3, *, expand1, expand2, expand3, sumdim)",
    grad_fn="TrilinearBackward0",
    formula="sum of i1 * i2 * i3 over sumdim, each expanded to all dimensions",
    forward=_sum,
    rules=(
        Rule(
            "i1",
            "sum of g * i2 * i3 over expand1",
            lambda g, i2, i3, expand1, expand2, expand3, sumdim: trilinear(
                g, i2, i3, expand1=sumdim, expand2=expand2, expand3=expand3, sumdim=expand1
            ),
        ),
        Rule(
            "i2",
            "sum of i1 * g * i3 over expand2",
            lambda g, i1, i3, expand1, expand2, expand3, sumdim: trilinear(
                i1, g, i3, expand1=expand1, expand2=sumdim, expand3=expand3, sumdim=expand2
            ),
        ),
        Rule(
            "i3",
            "sum of i1 * i2 * g over expand3",
            lambda g, i1, i2, expand1, expand2, expand3, sumdim: trilinear(
                i1, i2, g, expand1=expand1, expand2=expand2, expand3=sumdim, sumdim=expand3
            ),
        ),
    ),
    public=False,
    examples=lambda: [
        Example(
            (normal(2, 3), normal(2, 3, 4), normal(2, 4)),
            {"expand1": (1, 3), "expand2": (0,), "expand3": (1, 2), "sumdim": (2, 3)},
        )
    ],
)
