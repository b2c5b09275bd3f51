"""Dropout as a product with a mask that was drawn before: PyTorch's node of it is that of a product, too."""

from __future__ import annotations

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.tensor import Tensor


class Mask(Tensor):
    """What was drawn for one dropout: 0 for what is dropped, ``1 / (1 - p)`` for what is kept."""

    __slots__ = ()
    _is_mask = True


class Dropout(Op):
    """A product whose node shows its operands, as PyTorch's does, and not its `p`."""

    def shown(self) -> dict[str, property]:
        return {name: read for name, read in super().shown().items() if name != "p"}


def _declared(name: str) -> Op:
    return Dropout(
        f"{name}(self, other, *, p)",
        grad_fn="MulBackward0",
        formula="self * other",
        forward=lambda self, other, p: np.multiply(self, other),
        rules=(
            Rule("self", "g * other", lambda g, other: g * other),
            Rule("other", "g * self", lambda g, self: g * self),
        ),
        promotes=True,
        public=False,
        in_place=True,
        drawn="other",
        examples=lambda: [Example((normal(2, 3), 2.0 * (normal(2, 3) > 0)), {"p": 0.5})],
    )


DROPOUTS = {name: _declared(name) for name in ("dropout", "dropout1d", "dropout2d", "dropout3d")}
"""Dropout of single elements and of whole channels, by the name of its function."""
