"""Stochastic gradient descent."""

from __future__ import annotations

from math import isnan

from gviz.engine.ops.scaled_sums import add_scaled
from gviz.engine.optim.optimizer import Group, Optimizer, Parameters
from gviz.engine.optim.options import check, check_kind, check_lr, decayed, scalar
from gviz.engine.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum.

    The order of operations is PyTorch's: weight decay is added to the gradient, the gradient to the decayed velocity,
    the velocity (with `nesterov`, once more to the gradient) to the parameter. The first velocity is the gradient.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if not (isinstance(lr, float) and isnan(lr)):  # which PyTorch takes here alone
            check_lr(lr)
        check(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_kind(foreach, fused, False, differentiable)
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        ways = {"maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused}
        super().__init__(params, {**options, "nesterov": nesterov, **ways})

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """One step down (or up) the gradient."""
        grad = decayed(parameter, grad, group, self._workspace)
        if group["momentum"] != 0:
            velocity = self._velocity(parameter, grad, group)
            ahead = group["nesterov"]
            grad = self._workspace(add_scaled, grad, velocity, alpha=group["momentum"]) if ahead else velocity
        parameter.add_(grad, alpha=-scalar(group["lr"]))

    def _velocity(self, parameter: Tensor, grad: Tensor, group: Group) -> Tensor:
        memory = self.state[parameter]
        velocity: Tensor | None = memory.get("momentum_buffer")
        if velocity is None:
            velocity = memory["momentum_buffer"] = grad.clone().detach()
        else:
            velocity.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
        return velocity
