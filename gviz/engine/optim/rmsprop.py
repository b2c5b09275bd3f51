"""RMSprop (Hinton)."""

from __future__ import annotations

from gviz.engine.ops.fused import addcmul
from gviz.engine.ops.powers import sqrt
from gviz.engine.optim.optimizer import Group, Memory, Optimizer, Parameters
from gviz.engine.optim.options import check, check_kind, check_lr, counter, decayed, scalar, zeros
from gviz.engine.tensor import Tensor


class RMSprop(Optimizer):
    """Steps divided by the root of a running mean of squared gradients."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check(eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        check_kind(foreach, None, capturable, differentiable)
        options = {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered}
        ways = {"capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable}
        super().__init__(params, {**options, "weight_decay": weight_decay, **ways})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """One step."""
        memory, alpha = self.state[parameter] or self._begin(parameter, group), group["alpha"]
        memory["step"] += 1
        grad = decayed(parameter, grad, group, self._workspace)
        square: Tensor = memory["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = memory["grad_avg"].lerp_(grad, 1 - alpha)
            scale = self._workspace(addcmul, square, mean, mean, value=-1).sqrt_()
        else:
            scale = self._workspace(sqrt, square)
        scale.add_(group["eps"])
        if group["momentum"] > 0:
            velocity = memory["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, scale)
            parameter.add_(velocity, alpha=-scalar(group["lr"]))
        else:
            parameter.addcdiv_(grad, scale, value=-scalar(group["lr"]))

    def _begin(self, parameter: Tensor, group: Group) -> Memory:
        memory = self.state[parameter]
        memory.update(step=counter(), square_avg=zeros(parameter))
        if group["momentum"] > 0:
            memory["momentum_buffer"] = zeros(parameter)
        if group["centered"]:
            memory["grad_avg"] = zeros(parameter)
        return memory
