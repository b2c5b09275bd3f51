"""Adamax (Kingma and Ba, 2014): Adam with the largest gradient in place of the mean square."""

from __future__ import annotations

from gviz.engine.ops.limits import maximum
from gviz.engine.ops.signs import absolute
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


class Adamax(Optimizer):
    """Steps scaled by a running mean of the gradient over its largest size, which fades."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_adaptive(lr, betas, eps, weight_decay=weight_decay)
        check_kind(foreach, None, capturable, differentiable)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach}
        ways = {"maximize": maximize, "differentiable": differentiable, "capturable": capturable}
        super().__init__(params, {**options, **ways})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """One step."""
        memory = self.state[parameter] or self._begin(parameter)
        beta1, beta2 = group["betas"]
        steps = counted(memory)
        grad = decayed(parameter, grad, group, self._workspace)
        memory["exp_avg"].lerp_(grad, 1 - beta1)
        largest: Tensor = memory["exp_inf"].mul_(beta2)
        largest.copy_(self._workspace(maximum, largest, self._workspace(absolute, grad).add_(group["eps"])))
        size = scalar(group["lr"]) / (1 - beta1**steps)
        parameter.addcdiv_(memory["exp_avg"], largest, value=-size)

    def _begin(self, parameter: Tensor) -> Memory:
        memory = self.state[parameter]
        memory.update(step=counter(), exp_avg=zeros(parameter), exp_inf=zeros(parameter))
        return memory
