"""Schedulers that ask functions of the program."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from gviz.engine.optim.lr_scheduler.scheduler import LRScheduler
from gviz.engine.optim.optimizer import Optimizer

Factor = Callable[[int], float]


class _OfFunctions(LRScheduler):
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
        """TypeError for what cannot be called."""

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and plain functions; other callables by their attributes."""
        saved = [None if isinstance(f, types.FunctionType) else vars(f).copy() for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for function, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if saved is not None:
                vars(function).update(saved)


class LambdaLR(_OfFunctions):
    """The first learning rate times a function of the epoch."""

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_if_asked()
        return [rate * factor(self.last_epoch) for factor, rate in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_OfFunctions):
    """The last learning rate times a function of the epoch."""

    def _check(self) -> None:
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")

    def get_lr(self) -> list[Any]:
        """The next learning rates."""
        self._warn_if_asked()
        if self._is_initial:
            return self._now()
        pairs = zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)
        return [group["lr"] * factor(self.last_epoch) for factor, group in pairs]
