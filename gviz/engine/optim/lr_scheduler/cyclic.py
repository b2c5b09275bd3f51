"""A scheduler that goes up and down between two learning rates (Smith, 2015)."""

from __future__ import annotations

import types
from collections.abc import Callable
from math import floor
from typing import Any

from gviz.engine.optim.lr_scheduler.momentum import set_momentum, start_momentum, uses_beta1
from gviz.engine.optim.lr_scheduler.scheduler import LRScheduler, check_optimizer, one_a_group, set_value
from gviz.engine.optim.optimizer import Optimizer

_MODES = ("triangular", "triangular2", "exp_range")


class CyclicLR(LRScheduler):
    """Up from `base_lr` to `max_lr` and down again, in one of three shapes or that of `scale_fn`."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: float = 2000,
        step_size_down: float | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = one_a_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", rate)
        self.max_lrs = one_a_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in _MODES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _start_momentum(self, smallest: Any, largest: Any, last_epoch: int) -> None:
        self.use_beta1 = uses_beta1(self.optimizer)
        self.base_momentums = one_a_group("base_momentum", self.optimizer, smallest)
        self.max_momentums = one_a_group("max_momentum", self.optimizer, largest)
        if last_epoch == -1:
            start_momentum(self.optimizer, self.max_momentums, self.base_momentums)

    def scale_fn(self, x: float) -> float:
        """How high cycle (or iteration) `x` goes, as a part of the whole height."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        scale: float = 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x
        return scale

    def get_lr(self) -> list[Any]:
        """The next learning rates; the momentum changes with them."""
        self._warn_if_asked()
        cycle = floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            pairs = zip(self.base_momentums, self.max_momentums, strict=True)
            set_momentum(self.optimizer, [high - (high - low) * height * scale for low, high in pairs])
        rates = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height * scale for low, high in rates]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and a plain function; another callable by its attributes."""
        state = super().state_dict()
        own = state.pop("_scale_fn_custom")
        plain = own is None or isinstance(own, types.FunctionType)
        return {**state, "_scale_fn_custom": None if plain else vars(own).copy()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        saved = state_dict.get("_scale_fn_custom")
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_scale_fn_custom"})
        if saved is not None:
            vars(self._scale_fn_custom).update(saved)
