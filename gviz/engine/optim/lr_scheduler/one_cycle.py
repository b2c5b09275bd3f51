"""A scheduler that goes up and down once (Smith and Topin, 2017)."""

from __future__ import annotations

from math import cos, pi
from typing import Any

from gviz.engine.optim.lr_scheduler.momentum import set_momentum, start_momentum, uses_beta1
from gviz.engine.optim.lr_scheduler.scheduler import LRScheduler, check_optimizer, one_a_group
from gviz.engine.optim.optimizer import Optimizer

Phase = dict[str, Any]


class OneCycleLR(LRScheduler):
    """Up to `max_lr`, then down far below the start, in `total_steps`; the momentum the other way round."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(pct_start, self.total_steps, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        largest = one_a_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, largest, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = uses_beta1(optimizer)
            bounds = [("max_momentum", max_momentum), ("base_momentum", base_momentum)]
            high, low = (one_a_group(name, optimizer, value) for name, value in bounds)
            if last_epoch == -1:
                start_momentum(optimizer, high, low)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates; the momentum changes with them."""
        self._warn_if_asked()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        phase, part = self._place(step)
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            ends = [(group[phase["start_momentum"]], group[phase["end_momentum"]]) for group in groups]
            set_momentum(self.optimizer, [self._between(start, end, part) for start, end in ends])
        return [self._between(group[phase["start_lr"]], group[phase["end_lr"]], part) for group in groups]

    def _place(self, step: int) -> tuple[Phase, float]:
        """The phase a step is in, and how much of it is over."""
        start: float = 0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                return phase, (step - start) / (end - start)
            start = end
        raise AssertionError("there is always a last phase")

    def _between(self, start: Any, end: Any, part: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (cos(pi * part) + 1)


def _total(steps: int | None, epochs: int | None, per_epoch: int | None) -> int:
    if steps is not None:
        if steps <= 0 or not isinstance(steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {steps}")
        return steps
    if epochs is None or per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in (("epochs", epochs), ("steps_per_epoch", per_epoch)):
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return epochs * per_epoch


def _phases(pct_start: float, total: int, three_phase: bool) -> list[Phase]:
    up = _phase(float(pct_start * total) - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
    if not three_phase:
        return [up, _phase(total - 1, ("max_lr", "min_lr"), ("base_momentum", "max_momentum"))]
    down = _phase(float(2 * pct_start * total) - 2, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum"))
    return [up, down, _phase(total - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum"))]


def _phase(end: float, rates: tuple[str, str], momentums: tuple[str, str]) -> Phase:
    names = ("start_lr", "end_lr", "start_momentum", "end_momentum")
    return {"end_step": end, **dict(zip(names, (*rates, *momentums), strict=True))}
