"""Adam with decoupled weight decay (Loshchilov and Hutter, 2017)."""

from __future__ import annotations

from gviz.engine.optim.adam import Adam
from gviz.engine.optim.optimizer import Parameters
from gviz.engine.optim.options import Betas
from gviz.engine.tensor import Tensor


class AdamW(Adam):
    """`Adam` whose weight decay shrinks the parameter itself."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
