"""A step of an optimizer as the world hears of it: hooks before and after, and what is said to whoever listens."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gviz import emit
from gviz.engine import announce
from gviz.engine.hooks import RemovableHandle
from gviz.engine.tensor import Tensor
from gviz.events import OptimizerStarted, OptimizerStepped
from gviz.events.options import options_of, per_group

if TYPE_CHECKING:
    from gviz.engine.optim.optimizer import Optimizer

Hook = Callable[..., Any]

_before: dict[int, Hook] = {}
_after: dict[int, Hook] = {}
"""The hooks of all optimizers' steps."""


def heard(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step with its hooks, said to whoever listens."""

    @functools.wraps(step)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        self: Optimizer = args[0]  # one of the arguments that hooks are shown and may replace
        if self._is_stepping:
            return step(*args, **kwargs)
        channel, versions = emit.channel, {}
        if channel is not None:
            versions = {id(p): p._version for p in _parameters(self)}
            _say_start(channel, self, channel.stack())
        try:
            args, kwargs = _hooked(self, step, args, kwargs)
            self._opt_called = True
            self._is_stepping = True
            try:
                result = step(*args, **kwargs)
            finally:
                self._is_stepping = False
        except BaseException as error:
            if channel is not None and emit.channel is channel:
                _say_raised(channel, self, versions, error)
            raise
        if emit.channel is not None:
            _say(emit.channel, self)
        for hook in (*self._hooks["step_post"].values(), *_after.values()):
            hook(self, args, kwargs)
        return result

    return wrapper


def _hooked(
    optimizer: Optimizer, step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a step, after the hooks before it have had them."""
    for hook in (*_before.values(), *optimizer._hooks["step_pre"].values()):
        given = hook(optimizer, args, kwargs)
        if given is None:
            continue
        if not (isinstance(given, tuple) and len(given) == 2):
            raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {given}.")
        args, kwargs = given
    return args, kwargs


def _say_start(channel: emit.Channel, optimizer: Optimizer, stack: int) -> None:
    """A step begins, with what the optimizer is set to now."""
    options = options_of(optimizer.param_groups, _number_in)
    before = channel.earlier_options.replaced(optimizer, options)
    channel.say(OptimizerStarted(type(optimizer).__name__, stack, options, before))


def _number_in(thing: object) -> object:
    """The number in a tensor of one."""
    return thing._array.item() if isinstance(thing, Tensor) and thing._array.size == 1 else thing


def _say(channel: emit.Channel, optimizer: Optimizer) -> None:
    """A step is over: the parameters with a gradient were updated."""
    parameters = _parameters(optimizer)
    updated = [p for p in parameters if p.grad is not None]
    nodes = tuple([announce.seen(channel, p).node for p in updated])
    known = [p._seen for p in parameters if p.grad is None]
    skipped = tuple([mark.node for mark in known if mark is not None and mark.channel is channel])
    counts, kind = per_group(optimizer.param_groups, updated), type(optimizer).__name__
    channel.say(OptimizerStepped(kind, nodes, channel.stack(2), skipped, per_group=counts))


def _say_raised(channel: emit.Channel, optimizer: Optimizer, before: dict[int, int], error: BaseException) -> None:
    """An exception has ended a step: the parameters that are not of the version they were `before` were updated."""
    changed = [p for p in _parameters(optimizer) if before.get(id(p), p._version) != p._version]
    nodes = tuple([announce.seen(channel, p).node for p in changed])
    kind, stack = type(optimizer).__name__, channel.stack(2)
    counts = per_group(optimizer.param_groups, changed)
    channel.say(OptimizerStepped(kind, nodes, stack, raised=type(error).__name__, per_group=counts))


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every optimizer's step."""
    return RemovableHandle(_before, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every optimizer's step."""
    return RemovableHandle(_after, hook)
