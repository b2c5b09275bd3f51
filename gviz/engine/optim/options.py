"""Options of optimizers: checked, and what several algorithms do with them."""

from __future__ import annotations

from typing import Any

from gviz.engine import dtypes
from gviz.engine.creation import full, zeros_like
from gviz.engine.ops.arithmetic import neg
from gviz.engine.ops.scaled_sums import add_scaled
from gviz.engine.optim.workspace import Workspace
from gviz.engine.tensor import Tensor

Betas = tuple[float, float]


def check(**values: Any) -> None:
    """ValueError, in PyTorch's words, for an option below zero. Underscores stand for spaces: ``learning_rate``."""
    for name, value in values.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {NAMES.get(name, name + ' value')}: {value}")


NAMES = {"lr": "learning rate", "eps": "epsilon value"}


def check_lr(lr: float | Tensor) -> None:
    """ValueError for a learning rate that is a tensor of several elements, or below zero."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check(lr=lr)


def check_betas(betas: Betas) -> None:
    """ValueError for a beta that is not from 0 up to but without 1."""
    for position, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {position}: {beta}")


def check_adaptive(lr: float | Tensor, betas: Betas, eps: float, **others: float) -> None:
    """ValueError for an option of Adam or its kin that makes no sense; `others` are at least zero."""
    check_lr(lr)
    check(eps=eps)
    check_betas(betas)
    check(**others)


def check_kind(foreach: bool | None, fused: bool | None, capturable: bool, differentiable: bool) -> None:
    """RuntimeError for ways of running that the engine does not have; `foreach` and `fused` give the same numbers."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    for name, wanted in (("differentiable", differentiable), ("capturable", capturable)):
        if wanted:
            raise RuntimeError(f"gviz's built-in engine has no {name}=True optimizers; leave it out")


def scalar(value: Any) -> Any:
    """An option that may be a tensor of one element, as a number."""
    return value.item() if isinstance(value, Tensor) else value


def counter(value: float = 0.0) -> Tensor:
    """A number that a state keeps: of double precision only where that is the default."""
    double = dtypes.get_default_dtype() is dtypes.float64
    made: Tensor = full((), value, dtype=dtypes.float64 if double else dtypes.float32)
    return made


def counted(memory: dict[str, Any]) -> float:
    """One more step; how many that makes."""
    memory["step"] += 1
    steps: float = memory["step"].item()
    return steps


def zeros(parameter: Tensor) -> Tensor:
    """Zeros in the shape of a parameter."""
    made: Tensor = zeros_like(parameter)
    return made


def decayed(parameter: Tensor, grad: Tensor, group: dict[str, Any], workspace: Workspace) -> Tensor:
    """The gradient to go down: turned round with `maximize`, and with what `weight_decay` adds to it."""
    if group["maximize"]:
        grad = workspace(neg, grad)
    if group["weight_decay"] == 0:
        return grad
    if group.get("decoupled_weight_decay"):
        parameter.mul_(1 - scalar(group["lr"]) * group["weight_decay"])
        return grad
    return workspace(add_scaled, grad, parameter, alpha=group["weight_decay"])
