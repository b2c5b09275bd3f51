"""Comparisons and choices. Their results are booleans, through which no gradient flows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine.apply import apply, zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.surface import Number, derive, derive_all, front, number, operator
from gviz.engine.tensor import Tensor

eq: Op = Op("eq(self, other)", grad_fn="", formula="self == other", forward=np.equal, promotes=True)
ne: Op = Op("ne(self, other)", grad_fn="", formula="self != other", forward=np.not_equal, promotes=True)
lt: Op = Op("lt(self, other)", grad_fn="", formula="self < other", forward=np.less, promotes=True)
le: Op = Op("le(self, other)", grad_fn="", formula="self <= other", forward=np.less_equal, promotes=True)
gt: Op = Op("gt(self, other)", grad_fn="", formula="self > other", forward=np.greater, promotes=True)
ge: Op = Op("ge(self, other)", grad_fn="", formula="self >= other", forward=np.greater_equal, promotes=True)
logical_not: Op = Op("logical_not(self)", grad_fn="", formula="not self", forward=np.logical_not)
isnan: Op = Op("isnan(self)", grad_fn="", formula="is nan", forward=np.isnan)
isinf: Op = Op("isinf(self)", grad_fn="", formula="is infinite", forward=np.isinf)
isfinite: Op = Op("isfinite(self)", grad_fn="", formula="is finite", forward=np.isfinite)

for op in (eq, ne, lt, le, gt, ge):
    derive(op)
    front(f"__{op.name}__", function=False)(operator(op))
for op in (logical_not, isnan, isinf, isfinite):
    derive(op)

where_op: Op = Op(
    "where(condition, self, other)",
    grad_fn="WhereBackward0",
    formula="self where condition, else other",
    forward=np.where,
    rules=(
        Rule("self", "g where condition, else 0", lambda g, condition: where_op(condition, g, zeros(g, ()))),
        Rule("other", "0 where condition, else g", lambda g, condition: where_op(condition, zeros(g, ()), g)),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3) > 0, normal(2, 3), normal(3)), {})],
)


@front("where", method=False)
def where(condition: Tensor, input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`input` where `condition` holds, else `other`, element by element."""
    like: Any = input if isinstance(input, Tensor) else other if isinstance(other, Tensor) else None
    array = np.zeros((), np.float32) if like is None else like._array
    chosen, rejected = (v if isinstance(v, Tensor) else number(v, array) for v in (input, other))
    result: Tensor = apply(where_op, (condition, chosen, rejected))
    return result


def _larger(name: str, grad_fn: str, forward: Callable[..., Any], loses: Op) -> Op:
    """The larger or smaller of two, element by element; where they are equal, each gets half of the gradient."""

    def share(g: Any, mine: Any, its: Any) -> Any:
        return where_op(loses(mine, its), zeros(g, ()), where_op(eq(mine, its), g / 2, g))

    sign = ">" if name == "maximum" else "<"
    return Op(
        f"{name}(self, other)",
        grad_fn=grad_fn,
        formula=f"{name} of self and other",
        forward=forward,
        rules=(
            Rule("self", f"g where self {sign} other, half where equal", lambda g, self, other: share(g, self, other)),
            Rule("other", f"g where other {sign} self, half where equal", lambda g, self, other: share(g, other, self)),
        ),
        promotes=True,
        examples=lambda: [Example((normal(2, 3), normal(3)), {}), Example((normal(), normal()), {})],
    )


maximum = _larger("maximum", "MaximumBackward0", np.maximum, lt)
minimum = _larger("minimum", "MinimumBackward0", np.minimum, gt)
derive_all(maximum, minimum)
