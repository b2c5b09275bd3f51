"""NAdam (Dozat, 2016): Adam with Nesterov's momentum."""

from __future__ import annotations

from gviz.engine.ops.division import div
from gviz.engine.optim.optimizer import Group, Memory, Optimizer, Parameters
from gviz.engine.optim.options import (
    Betas,
    check_adaptive,
    check_kind,
    counted,
    counter,
    decayed,
    scalar,
    zeros,
)
from gviz.engine.tensor import Tensor


class NAdam(Optimizer):
    """`Adam` that looks one step ahead."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adaptive(lr, betas, eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        check_kind(foreach, None, capturable, differentiable)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        kind = {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        ways = {"foreach": foreach, "capturable": capturable, "differentiable": differentiable}
        super().__init__(params, {**options, **kind, "maximize": maximize, **ways})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """One step."""
        memory = self.state[parameter] or self._begin(parameter)
        beta1, beta2 = group["betas"]
        lr, steps = scalar(group["lr"]), counted(memory)
        grad = decayed(parameter, grad, group, self._workspace)
        now, ahead = (beta1 * (1.0 - 0.5 * 0.96 ** (n * group["momentum_decay"])) for n in (steps, steps + 1))
        memory["mu_product"] *= now
        memory["exp_avg"].lerp_(grad, 1 - beta1)
        square = memory["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale = self._workspace(div, square, 1 - beta2**steps).sqrt_().add_(group["eps"])
        product = memory["mu_product"].item()
        parameter.addcdiv_(grad, scale, value=-lr * (1.0 - now) / (1.0 - product))
        parameter.addcdiv_(memory["exp_avg"], scale, value=-lr * ahead / (1.0 - product * ahead))

    def _begin(self, parameter: Tensor) -> Memory:
        memory = self.state[parameter]
        memory.update(step=counter(), mu_product=counter(1.0))
        memory.update(exp_avg=zeros(parameter), exp_avg_sq=zeros(parameter))
        return memory
