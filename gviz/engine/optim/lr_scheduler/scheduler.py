"""What all schedulers have: the learning rates of an optimizer's groups, changed step by step."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from gviz.engine.optim.optimizer import Optimizer
from gviz.engine.optim.options import scalar
from gviz.engine.tensor import Tensor

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
EPOCH_GIVEN = (
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
    """Base of schedulers: `get_lr` says the next learning rates, one a group, from those of now and `last_epoch`.

    `closed_form`, where a scheduler has one, says them from `last_epoch` alone.
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _step_count: int
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(NO_FIRST_RATE.format(position))
        self.base_lrs: list[Any] = values_of(optimizer, "initial_lr")
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
        """Everything but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The learning rates of now, one a group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The next learning rates, one a group; for `step` to ask."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next learning rates."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_GIVEN, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _warn_of_order(self) -> None:
        if "step" in vars(self.optimizer):
            warnings.warn(OVERRIDDEN, UserWarning, stacklevel=3)
        elif not self.optimizer._opt_called:
            warnings.warn(STEPPED_EARLY, UserWarning, stacklevel=3)

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
            set_value(group, "lr", value)
        self._last_lr = values_of(self.optimizer, "lr")

    def _now(self) -> list[Any]:
        """The learning rates as they are."""
        return values_of(self.optimizer, "lr")

    def _times(self, factor: float) -> list[Any]:
        """The learning rates as they are, times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _warn_if_asked(self) -> None:
        """`get_lr` is for `step`; others see what it says too early."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )


def check_optimizer(optimizer: object) -> None:
    """TypeError for what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def values_of(optimizer: Optimizer, name: str) -> list[Any]:
    """One option of every group."""
    return [_copied(group[name]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], name: str, value: Any) -> None:
    """Change an option of a group; where it is a tensor, in place."""
    if isinstance(group[name], Tensor):
        group[name].fill_(scalar(value))
    else:
        group[name] = value


def one_a_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """An option given once for all groups, or one by one. ValueError for another number of them."""
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
