"""Adagrad (Duchi and others, 2011)."""

from __future__ import annotations

from gviz.engine.creation import full
from gviz.engine.ops.powers import sqrt
from gviz.engine.optim.optimizer import Group, Optimizer, Parameters
from gviz.engine.optim.options import check, check_kind, check_lr, counted, counter, decayed, scalar
from gviz.engine.tensor import Tensor


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check(lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value)
        check(eps=eps)
        check_kind(foreach, fused, False, differentiable)
        options = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        ways = {"foreach": foreach, "maximize": maximize, "differentiable": differentiable, "fused": fused}
        super().__init__(params, {**options, "initial_accumulator_value": initial_accumulator_value, **ways})
        for group in self.param_groups:
            for parameter in group["params"]:
                self._begin(parameter, group["initial_accumulator_value"])

    def _begin(self, parameter: Tensor, first: float) -> None:
        total: Tensor = full(tuple(parameter.shape), first, dtype=parameter.dtype)
        self.state[parameter].update(step=counter(), sum=total)

    def share_memory(self) -> None:
        """RuntimeError: the engine's tensors live in one process."""
        raise RuntimeError("the built-in engine's tensors live in one process; share_memory() needs PyTorch")

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """One step."""
        if not self.state[parameter]:
            self._begin(parameter, self.defaults["initial_accumulator_value"])
        memory = self.state[parameter]
        steps = counted(memory)
        grad = decayed(parameter, grad, group, self._workspace)
        lr = scalar(group["lr"]) / (1 + (steps - 1) * group["lr_decay"])
        total = memory["sum"].addcmul_(grad, grad, value=1)
        parameter.addcdiv_(grad, self._workspace(sqrt, total).add_(group["eps"]), value=-lr)
