"""Adadelta (Zeiler, 2012)."""

from __future__ import annotations

from gviz.engine.ops.arithmetic import add
from gviz.engine.optim.optimizer import Group, Memory, Optimizer, Parameters
from gviz.engine.optim.options import check, check_kind, check_lr, counter, decayed, scalar, zeros
from gviz.engine.tensor import Tensor


class Adadelta(Optimizer):
    """Steps scaled by running means of squared steps over running means of squared gradients."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check(eps=eps, weight_decay=weight_decay)
        check_kind(foreach, None, capturable, differentiable)
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(
            params, {**options, "capturable": capturable, "foreach": foreach, "differentiable": differentiable}
        )

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """One step."""
        memory, rho, eps = self.state[parameter] or self._begin(parameter), group["rho"], group["eps"]
        memory["step"] += 1
        grad = decayed(parameter, grad, group, self._workspace)
        square = memory["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        scale = self._workspace(add, square, eps).sqrt_()
        change = self._workspace(add, memory["acc_delta"], eps).sqrt_().div_(scale).mul_(grad)
        memory["acc_delta"].mul_(rho).addcmul_(change, change, value=1 - rho)
        parameter.add_(change, alpha=-scalar(group["lr"]))

    def _begin(self, parameter: Tensor) -> Memory:
        memory = self.state[parameter]
        memory.update(step=counter(), square_avg=zeros(parameter), acc_delta=zeros(parameter))
        return memory
