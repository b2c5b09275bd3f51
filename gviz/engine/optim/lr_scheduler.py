"""``torch.optim.lr_scheduler``: learning rates that change during training.

A scheduler changes the option ``lr`` of every group of its optimizer at each `step`. `LRScheduler` counts the steps in
`last_epoch`, warns about calls in the wrong order, and writes the rates. A subclass computes them in `get_lr` from the
current rates, so that several schedulers can act on one optimizer. `_get_closed_form_lr`, where it exists, computes
them from `last_epoch` only, for ``step(epoch)``. Both do PyTorch's arithmetic, so that the rates agree to the last bit.

For example, ``StepLR(SGD(..., lr=1.0), step_size=2, gamma=0.1)`` gives the rates 1, 1, 0.1, 0.1, 0.01, ….

`CyclicLR` and `OneCycleLR` also change the momentum (or Adam's first beta). `ReduceLROnPlateau` follows a metric
instead of the count. `SequentialLR` and `ChainedScheduler` combine other schedulers.
"""

from __future__ import annotations

import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import cos, floor, inf, log, pi
from typing import Any

from gviz.engine.optim.algorithms import scalar
from gviz.engine.optim.optimizer import Optimizer
from gviz.engine.tensor import Tensor
from gviz.engine.unsupported_names import lookup_in
from gviz.source.call_stack import warn

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

Factor = Callable[[int], float]
Phase = dict[str, Any]

ORDER = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
STEPPED_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
    f"PyTorch skipping the first value of the learning rate schedule. {ORDER}"
)
OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure "
    f"to call `optimizer.step()` before `lr_scheduler.step()`. {ORDER}"
)
EPOCH_DEPRECATED = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
NO_FIRST_RATE = (
    "param 'initial_lr' is not specified in param_groups[{}] when resuming scheduler with last_epoch >= 0.\n"
    "This typically happens when:\n1. You're trying to resume training from a checkpoint but haven't properly loaded "
    "the optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
)


class LRScheduler:
    """Base class of schedulers: `get_lr` computes the next learning rates, one per group, from the current ones."""

    _get_lr_called_within_step = False
    _is_initial = False
    _step_count: int
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(NO_FIRST_RATE.format(position))
        self.base_lrs: list[Any] = _values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        optimizer._watch_steps()
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the scheduler, without the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state that `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The current learning rates, one per group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The next learning rates, one per group; `step` calls it."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Sets the next learning rates."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATED, UserWarning)
        self._update_lr(epoch)

    def _warn_of_order(self) -> None:
        if "step" in vars(self.optimizer):
            warn(OVERRIDDEN, UserWarning)
        elif not self.optimizer._opt_called:
            warn(STEPPED_EARLY, UserWarning)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = None if epoch is None else self._get_closed_form_lr()
            values = self.get_lr() if closed is None else closed
        finally:
            self._get_lr_called_within_step = False
        self._set(values)

    def _get_closed_form_lr(self) -> list[Any] | None:
        return None

    def _set(self, values: Sequence[Any]) -> None:
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            _set_value(group, "lr", value)
        self._last_lr = _values_of(self.optimizer, "lr")

    def _now(self) -> list[Any]:
        """Return the current learning rates."""
        return _values_of(self.optimizer, "lr")

    def _times(self, factor: float) -> list[Any]:
        """Return the current learning rates times `factor`."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _warn_outside_step(self) -> None:
        """Warn if `get_lr` is called outside `step`: it returns the next rates, not the current ones."""
        if not self._get_lr_called_within_step:
            warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
            )


class StepLR(LRScheduler):
    """Multiplies the learning rate by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_outside_step()
        changes = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self._times(self.gamma) if changes else self._now()

    def _get_closed_form_lr(self) -> list[Any]:
        return [rate * self.gamma ** (self.last_epoch // self.step_size) for rate in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the learning rate by `gamma` at every milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_outside_step()
        if self.last_epoch not in self.milestones:
            return self._now()
        return self._times(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [rate * self.gamma**passed for rate in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiplies the learning rate by `factor` for the first `total_iters` epochs."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._times(self.factor)
        return self._now() if self.last_epoch != self.total_iters else self._times(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [rate * factor for rate in self.base_lrs]


class LinearLR(LRScheduler):
    """Changes the learning rate linearly from `start_factor` to `end_factor` times its value."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._now()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._times(1.0 + rise / before)

    def _get_closed_form_lr(self) -> list[Any]:
        rise = (self.end_factor - self.start_factor) * min(self.total_iters, self.last_epoch) / self.total_iters
        return [rate * (self.start_factor + rise) for rate in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the learning rate by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_outside_step()
        return self._now() if self._is_initial else self._times(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [rate * self.gamma**self.last_epoch for rate in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Decreases the learning rate to zero as a power of the remaining part of `total_iters`."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._now()
        left, before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return self._times((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [rate * left**self.power for rate in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Decreases the learning rate to `eta_min` in `T_max` epochs along a cosine, and up again.

    Source: Loshchilov and Hutter, 2016.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_outside_step()
        if self._is_initial:
            return self._now()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        groups = self.optimizer.param_groups
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - cos(pi / self.T_max)) / 2
            pairs = zip(self.base_lrs, groups, strict=True)
            return [group["lr"] + (rate - self.eta_min) * rise for rate, group in pairs]
        now, before = (1 + cos(pi * epoch / self.T_max) for epoch in (self.last_epoch, self.last_epoch - 1))
        return [now / before * (group["lr"] - self.eta_min) + self.eta_min for group in groups]

    def _get_closed_form_lr(self) -> list[Any]:
        height = (1 + cos(pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (rate - self.eta_min) * height for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Decreases the learning rate to `eta_min` in `T_0` epochs, then restarts; periods grow by `T_mult`."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_outside_step()
        height = (1 + cos(pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (rate - self.eta_min) * height for rate in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Sets the next learning rates, or those of `epoch`, which may be fractional."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:  # periods of T_0, T_0 * T_mult, ...: `restarts` of them are over
            restarts = int(log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts
        self.last_epoch = floor(epoch)
        self._get_lr_called_within_step = True
        try:
            self._set(self.get_lr())
        finally:
            self._get_lr_called_within_step = False


class _FunctionLR(LRScheduler):
    """Base class of schedulers that call the program's functions, one per group."""

    lr_lambdas: list[Factor]

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != count:
                raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * count  # type: ignore[list-item]  # it is one function
        self._check()
        super().__init__(optimizer, last_epoch)

    def _check(self) -> None:
        """Raise TypeError for objects that are not callable."""

    def state_dict(self) -> dict[str, Any]:
        """Returns the state without the optimizer and plain functions; for other callables, their attributes."""
        saved = [None if isinstance(f, types.FunctionType) else vars(f).copy() for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state that `state_dict` returned."""
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for function, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if saved is not None:
                vars(function).update(saved)


class LambdaLR(_FunctionLR):
    """Sets the learning rate to the initial one times a function of the epoch."""

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_outside_step()
        return [rate * factor(self.last_epoch) for factor, rate in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_FunctionLR):
    """Multiplies the learning rate by a function of the epoch."""

    def _check(self) -> None:
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_outside_step()
        if self._is_initial:
            return self._now()
        pairs = zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)
        return [group["lr"] * factor(self.last_epoch) for factor, group in pairs]


class CyclicLR(LRScheduler):
    """Cycles the learning rate between `base_lr` and `max_lr` (Smith, 2015), in one of three modes or by `scale_fn`."""

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
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _one_a_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _set_value(group, "lr", rate)
        self.max_lrs = _one_a_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            self.base_momentums = _one_a_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = _one_a_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                _start_momentum(optimizer, self.max_momentums, self.base_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of cycle (or iteration) `x`, as a fraction of the full height."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        scale: float = 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x
        return scale

    def get_lr(self) -> list[Any]:
        """The next learning rates; also changes the momentum."""
        self._warn_outside_step()
        cycle = floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            pairs = zip(self.base_momentums, self.max_momentums, strict=True)
            _set_momentum(self.optimizer, [high - (high - low) * height * scale for low, high in pairs])
        rates = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height * scale for low, high in rates]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state without the optimizer and a plain function; for another callable, its attributes."""
        state = super().state_dict()
        own = state.pop("_scale_fn_custom")
        plain = own is None or isinstance(own, types.FunctionType)
        return {**state, "_scale_fn_custom": None if plain else vars(own).copy()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state that `state_dict` returned."""
        saved = state_dict.get("_scale_fn_custom")
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_scale_fn_custom"})
        if saved is not None:
            vars(self._scale_fn_custom).update(saved)


class OneCycleLR(LRScheduler):
    """Raises the learning rate to `max_lr` and lowers it far below the start, once; the momentum moves inversely.

    Source: Smith and Topin, 2017.
    """

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
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is not None:
            if total_steps <= 0 or not isinstance(total_steps, int):
                raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
            self.total_steps = total_steps
        elif epochs is None or steps_per_epoch is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        else:
            for name, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
                if not isinstance(value, int) or value <= 0:
                    raise ValueError(f"Expected positive integer {name}, but got {value}")
            self.total_steps = epochs * steps_per_epoch
        self._schedule_phases = self._phases(pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        largest = _one_a_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, largest, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            bounds = [("max_momentum", max_momentum), ("base_momentum", base_momentum)]
            high, low = (_one_a_group(name, optimizer, value) for name, value in bounds)
            if last_epoch == -1:
                _start_momentum(optimizer, high, low)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates; also changes the momentum."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start: float = 0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        part = (step - start) / (phase["end_step"] - start)
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            ends = [(group[phase["start_momentum"]], group[phase["end_momentum"]]) for group in groups]
            _set_momentum(self.optimizer, [self._between(first, last, part) for first, last in ends])
        return [self._between(group[phase["start_lr"]], group[phase["end_lr"]], part) for group in groups]

    def _phases(self, pct_start: float, three_phase: bool) -> list[Phase]:
        """Return the phases: up and far down, or up, down and far down. Each has its end and the values at
        both ends.
        """
        total = self.total_steps
        up = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
        rows: list[tuple[float, tuple[str, ...]]] = [(float(pct_start * total) - 1, up)]
        if three_phase:
            down = ("max_lr", "initial_lr", "base_momentum", "max_momentum")
            far = ("initial_lr", "min_lr", "max_momentum", "max_momentum")
            rows += [(float(2 * pct_start * total) - 2, down), (total - 1, far)]
        else:
            rows.append((total - 1, ("max_lr", "min_lr", "base_momentum", "max_momentum")))
        names = ("start_lr", "end_lr", "start_momentum", "end_momentum")
        return [{"end_step": end, **dict(zip(names, row, strict=True))} for end, row in rows]

    def _between(self, start: Any, end: Any, part: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (cos(pi * part) + 1)


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rate by `factor` once the metric has not improved for more than `patience` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        _check_optimizer(optimizer)
        self.factor = factor
        self.optimizer = optimizer
        count, listed = len(optimizer.param_groups), isinstance(min_lr, (list, tuple))
        if listed and len(min_lr) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
        self.default_min_lr = None if listed else min_lr
        self.min_lrs: list[float] = list(min_lr) if listed else [min_lr] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = _values_of(optimizer, "lr")
        self._set_modes(mode, threshold, threshold_mode)
        self._reset()

    def _set_modes(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = inf if mode == "min" else -inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]  # as in PyTorch
        """Takes the metric of an epoch, and reduces the learning rates if it has not improved."""
        current = float(metrics)
        if epoch is not None:
            warn(EPOCH_DEPRECATED, UserWarning)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = _values_of(self.optimizer, "lr")

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            before = float(group["lr"])
            after = max(before * self.factor, least)
            if before - after > self.eps:
                _set_value(group, "lr", after)

    @property
    def in_cooldown(self) -> bool:
        """Whether it is in the cooldown after reducing the learning rates."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            return sign * a > sign * best * (1.0 + sign * self.threshold)
        return sign * a > sign * best + self.threshold

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state that `state_dict` returned."""
        self.__dict__.update(state_dict)
        self._set_modes(self.mode, self.threshold, self.threshold_mode)


class _CombinedScheduler(LRScheduler):
    """Base class of schedulers that step other schedulers."""

    _schedulers: Sequence[LRScheduler]

    def _check(self, optimizer: Optimizer, schedulers: Sequence[Any]) -> None:
        own = type(self).__name__
        for position, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{own} at index {position} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{own} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {position} in the given schedulers sequence."
                )
            if optimizer is not scheduler.optimizer:
                raise ValueError(
                    f"{own} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {position} has {scheduler.optimizer}, which is different "
                    f"from {type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Returns the position and the state of every scheduler."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state that `state_dict` returned."""
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_CombinedScheduler):
    """Runs schedulers one after the other, switching at each milestone."""

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # undo what the schedulers did when they were created
            _set_value(group, "lr", group["initial_lr"])
        _undo(schedulers)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]  # as in PyTorch
        """Sets the next learning rates."""
        self.last_epoch += 1
        position = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[position]
        if position > 0 and self._milestones[position - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo(schedulers: Sequence[LRScheduler]) -> None:
    for scheduler in schedulers:
        if isinstance(scheduler, _CombinedScheduler):
            _undo(scheduler._schedulers)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1


class ChainedScheduler(_CombinedScheduler):
    """Steps all schedulers at every step."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        chosen = optimizer or schedulers[0].optimizer
        self._check(chosen, schedulers)
        self._schedulers = schedulers
        self.optimizer = chosen
        self._last_lr = _values_of(chosen, "lr")

    def step(self) -> None:  # type: ignore[override]  # as in PyTorch
        """Steps every scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _values_of(self.optimizer, "lr")


def _check_optimizer(optimizer: object) -> None:
    """Raise TypeError for anything but an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _values_of(optimizer: Optimizer, name: str) -> list[Any]:
    """Return one option of every group."""
    return [_copied(group[name]) for group in optimizer.param_groups]


def _set_value(group: dict[str, Any], name: str, value: Any) -> None:
    """Change an option of a group, in place if it is a tensor."""
    if isinstance(group[name], Tensor):
        group[name].fill_(scalar(value))
    else:
        group[name] = value


def _one_a_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return an option as one value per group, passed once or as a list. Raises ValueError for another number of
    values.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {count}."
        )
    return [_copied(item) for item in value]


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _uses_beta1(optimizer: Optimizer) -> bool:
    """Return whether an optimizer's momentum is its first beta. Raises ValueError if it has neither."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def _start_momentum(optimizer: Optimizer, largest: Sequence[float], smallest: Sequence[float]) -> None:
    """Start with the largest momentum, and store both bounds in the groups."""
    _set_momentum(optimizer, largest)
    for group, high, low in zip(optimizer.param_groups, largest, smallest, strict=True):
        group["max_momentum"] = high
        group["base_momentum"] = low


def _set_momentum(optimizer: Optimizer, values: Sequence[Any]) -> None:
    """Set the momentum of each group."""
    beta1 = _uses_beta1(optimizer)
    for group, value in zip(optimizer.param_groups, values, strict=True):
        if beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


_LRScheduler = LRScheduler
__getattr__ = lookup_in(__name__)
