"""Adam (Kingma and Ba, 2014)."""

from __future__ import annotations

from gviz.engine.ops.limits import maximum
from gviz.engine.ops.powers import sqrt
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


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_adaptive(lr, betas, eps, weight_decay=weight_decay)
        if not all(isinstance(beta, float) for beta in betas) and not all(isinstance(beta, Tensor) for beta in betas):
            raise ValueError("betas must be either both floats or both Tensors")
        check_kind(foreach, fused, capturable, differentiable)
        options = {"lr": lr, "betas": tuple(map(scalar, betas)), "eps": eps, "weight_decay": weight_decay}
        ways = {"foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused}
        kind = {"amsgrad": amsgrad, "maximize": maximize}
        super().__init__(params, {**options, **kind, **ways, "decoupled_weight_decay": decoupled_weight_decay})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """One step."""
        memory = self.state[parameter] or self._begin(parameter, group)
        beta1, beta2 = group["betas"]
        steps = counted(memory)
        grad = decayed(parameter, grad, group, self._workspace)
        memory["exp_avg"].lerp_(grad, 1 - beta1)
        memory["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        size = scalar(group["lr"]) / (1 - beta1**steps)
        square = self._largest(memory) if group["amsgrad"] else memory["exp_avg_sq"]
        scale = self._workspace(sqrt, square).div_((1 - beta2**steps) ** 0.5).add_(group["eps"])
        parameter.addcdiv_(memory["exp_avg"], scale, value=-size)

    def _begin(self, parameter: Tensor, group: Group) -> Memory:
        memory = self.state[parameter]
        memory.update(step=counter(), exp_avg=zeros(parameter), exp_avg_sq=zeros(parameter))
        if group["amsgrad"]:
            memory["max_exp_avg_sq"] = zeros(parameter)
        return memory

    def _largest(self, memory: Memory) -> Tensor:
        largest: Tensor = memory["max_exp_avg_sq"]
        return largest.copy_(self._workspace(maximum, largest, memory["exp_avg_sq"]))
