"""What schedulers do that change the momentum, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gviz.engine.optim.optimizer import Optimizer


def uses_beta1(optimizer: Optimizer) -> bool:
    """Whether an optimizer's momentum is its first beta. ValueError if it has none at all."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def start_momentum(optimizer: Optimizer, largest: Sequence[float], smallest: Sequence[float]) -> None:
    """Begin with the largest momentum, and note both in the groups."""
    set_momentum(optimizer, largest)
    for group, high, low in zip(optimizer.param_groups, largest, smallest, strict=True):
        group["max_momentum"] = high
        group["base_momentum"] = low


def set_momentum(optimizer: Optimizer, values: Sequence[Any]) -> None:
    """One momentum a group."""
    beta1 = uses_beta1(optimizer)
    for group, value in zip(optimizer.param_groups, values, strict=True):
        if beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value
