"""RAdam (Liu and others, 2019): Adam whose first steps are not scaled yet."""

from __future__ import annotations

from gviz.engine.ops.division import div
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


class RAdam(Optimizer):
    """`Adam` that scales its steps only once it has seen enough."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adaptive(lr, betas, eps, weight_decay=weight_decay)
        check_kind(foreach, None, capturable, differentiable)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        ways = {"foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, {**options, **ways, "differentiable": differentiable})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """One step."""
        memory = self.state[parameter] or self._begin(parameter)
        beta1, beta2 = group["betas"]
        steps = counted(memory)
        grad = decayed(parameter, grad, group, self._workspace)
        memory["exp_avg"].lerp_(grad, 1 - beta1)
        square = memory["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        change = self._workspace(div, memory["exp_avg"], 1 - beta1**steps).mul_(scalar(group["lr"]))
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * steps * beta2**steps / (1 - beta2**steps)
        if length > 5.0:
            scale = self._workspace(sqrt, square).add_(group["eps"]).reciprocal_().mul_((1 - beta2**steps) ** 0.5)
            change.mul_(scale).mul_(_rect(length, longest))
        parameter.add_(change, alpha=-1.0)

    def _begin(self, parameter: Tensor) -> Memory:
        memory = self.state[parameter]
        memory.update(step=counter(), exp_avg=zeros(parameter), exp_avg_sq=zeros(parameter))
        return memory


def _rect(length: float, longest: float) -> float:
    """How much a mean over so few squares is to be trusted."""
    seen = (length - 4) * (length - 2) * longest
    rect: float = (seen / ((longest - 4) * (longest - 2) * length)) ** 0.5
    return rect
