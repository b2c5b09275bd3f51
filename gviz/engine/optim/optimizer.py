"""The base of all optimizers: groups of parameters with options, a state for each parameter, hooks, and the step.

An optimizer is an update rule with a common stepping loop. `Optimizer.step` calls the closure, then the rule (`update`)
for every parameter with a gradient, without recording. `_observed` wraps each `step`: it runs the hooks and emits
`OptimizerStarted` and `OptimizerStepped`. A rule keeps its state of a parameter in ``state[parameter]``, and its
intermediate results in a `Workspace`, which allocates no new arrays from step to step.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import numpy as np

from gviz import emit
from gviz.engine import instrumentation, operation_watchers
from gviz.engine.functions_and_methods import operand
from gviz.engine.modes import enable_grad, no_grad, thread
from gviz.engine.nn.module import typename
from gviz.engine.nn.parameter import clear_grad
from gviz.engine.node import RemovableHandle
from gviz.engine.op import Op, operands
from gviz.engine.pointwise_blocks import BLOCK, fit_blocks, run_in_blocks
from gviz.engine.tensor import Tensor, new_tensor
from gviz.events import OptimizerStarted, OptimizerStepped
from gviz.events.optimizer_options import options_of, per_group
from gviz.source.call_stack import warn
from gviz.values.value import Array

Hook = Callable[..., Any]
Group = dict[str, Any]
Memory = dict[str, Any]
Parameters = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]

_HOOKS = ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post")
_EVERY_STEP_PRE: dict[int, Hook] = {}
_EVERY_STEP_POST: dict[int, Hook] = {}
"""The hooks of all optimizers' steps."""


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` before every optimizer's step."""
    return RemovableHandle(_EVERY_STEP_PRE, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` after every optimizer's step."""
    return RemovableHandle(_EVERY_STEP_POST, hook)


def _observed(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a step so that it runs the hooks and emits the events."""

    @functools.wraps(step)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        self: Optimizer = args[0]  # hooks receive it with the arguments, and may replace it
        if self._is_stepping:  # a step that calls the one it overrides is one step
            return step(*args, **kwargs)
        channel, versions = emit.channel, {}
        if channel is not None:
            versions = {id(p): p._version for p in _parameters(self)}
            options = options_of(self.param_groups, _number_in)
            before = channel.earlier_options.replaced(self, options)
            channel.emit(OptimizerStarted(type(self).__name__, channel.stack(), options, before))
        try:
            for hook in (*_EVERY_STEP_PRE.values(), *self._hooks["step_pre"].values()):
                answer = hook(self, args, kwargs)
                if answer is None:
                    continue
                if not (isinstance(answer, tuple) and len(answer) == 2):
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {answer}."
                    )
                args, kwargs = answer
            self._opt_called = True
            self._is_stepping = True
            try:
                result = step(*args, **kwargs)
            finally:
                self._is_stepping = False
        except BaseException as error:
            if channel is not None and emit.channel is channel:
                _emit_raised(channel, self, versions, error)
            raise
        if emit.channel is not None:
            _emit_stepped(emit.channel, self)
        for hook in (*self._hooks["step_post"].values(), *_EVERY_STEP_POST.values()):
            hook(self, args, kwargs)
        return result

    return wrapper


def _emit_stepped(channel: emit.Channel, optimizer: Optimizer) -> None:
    """Emit that a step has updated the parameters with a gradient and skipped the others."""
    parameters = _parameters(optimizer)
    updated = [p for p in parameters if p.grad is not None]
    nodes = tuple([instrumentation.seen(channel, p).node for p in updated])
    known = [p._seen for p in parameters if p.grad is None]
    skipped = tuple([mark.node for mark in known if mark is not None and mark.channel is channel])
    counts, kind = per_group(optimizer.param_groups, updated), type(optimizer).__name__
    channel.emit(OptimizerStepped(kind, nodes, channel.stack(), skipped, per_group=counts))


def _emit_raised(channel: emit.Channel, optimizer: Optimizer, before: dict[int, int], error: BaseException) -> None:
    """Emit that an exception ended a step; it had updated the parameters whose version differs from `before`."""
    changed = [p for p in _parameters(optimizer) if before.get(id(p), p._version) != p._version]
    nodes = tuple([instrumentation.seen(channel, p).node for p in changed])
    kind, counts = type(optimizer).__name__, per_group(optimizer.param_groups, changed)
    channel.emit(OptimizerStepped(kind, nodes, channel.stack(), raised=type(error).__name__, per_group=counts))


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _number_in(thing: object) -> object:
    """Return the number in a one-element tensor; any other object unchanged."""
    return thing._array.item() if isinstance(thing, Tensor) and thing._array.size == 1 else thing


class Optimizer:
    """Base class of optimizers: groups of parameters with options, and a state for each parameter.

    A subclass defines `update`, which changes one parameter in place with recording disabled. Or it defines `step` and
    does everything itself. Such a step also runs the hooks and emits events, and only once if it calls the step of its
    base class.
    """

    _is_stepping = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = _observed(cls.step)  # type: ignore[method-assign]  # a wrapper of the same signature

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{typename(params)}"
            )
        self.defaults = defaults
        self._hooks: dict[str, dict[int, Hook]] = {name: {} for name in _HOOKS}
        self._opt_called = self._watched = False
        self._workspace = Workspace()
        self.state: defaultdict[Tensor, Memory] = defaultdict(dict)
        self.param_groups: list[Group] = []
        listed: list[Any] = list(params)
        if not listed:
            raise ValueError("optimizer got an empty parameter list")
        for group in listed if isinstance(listed[0], dict) else [{"params": listed}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Adds parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        listed = [params] if isinstance(params, Tensor) else list(params)
        names = [entry[0] for entry in listed if isinstance(entry, tuple)]
        if names and len(names) != len(listed):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        parameters = param_group["params"] = [entry[1] if isinstance(entry, tuple) else entry for entry in listed]
        if names:
            param_group["param_names"] = names
        for parameter in parameters:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(parameter)}")
            if not (parameter.is_leaf or parameter.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        named = "param_names" in param_group
        if any(("param_names" in other) != named for other in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with names' if named else 'without names'} to the optimizer"
            )
        if len({id(p) for p in parameters}) != len(parameters):
            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if known & {id(p) for p in parameters}:
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients of all parameters to None, or to zero."""
        for group in self.param_groups:
            for parameter in group["params"]:
                clear_grad(parameter, set_to_none)

    @_observed
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient. `closure`, if given, computes the loss first; it is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._workspace.reset()
                        self.update(parameter, parameter.grad, group)
        return loss

    def _watch_steps(self) -> None:
        """Start noting whether a step has run, when the first scheduler is attached."""
        if not self._watched:
            self._watched, self._opt_called = True, False

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """Updates one parameter in place."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The options and the state, with parameters numbered in the order in which they were given."""
        for hook in self._hooks["state_dict_pre"].values():
            hook(self)
        numbers: dict[int, int] = {}
        groups: list[Group] = []
        for group in self.param_groups:
            start = sum(len(other["params"]) for other in groups)
            for position, parameter in enumerate(group["params"], start):
                numbers.setdefault(id(parameter), position)
            options = {name: value for name, value in group.items() if name != "params"}
            groups.append({**options, "params": [numbers[id(p)] for p in group["params"]]})
        memory = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        state: dict[str, Any] = {"state": memory, "param_groups": groups}
        for hook in self._hooks["state_dict_post"].values():
            state = hook(self, state) or state
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads options and state from the result of `state_dict`. Tensors are copied only if their dtype changes.

        Raises ValueError if the groups do not match.
        """
        source = state_dict.copy()
        for hook in self._hooks["load_state_dict_pre"].values():
            source = hook(self, source) or source
        groups = deepcopy(source["param_groups"])
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, self.param_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        numbers = [number for group in groups for number in group["params"]]
        own = [parameter for group in self.param_groups for parameter in group["params"]]
        parameters = dict(zip(numbers, own, strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in source["state"].items():
            if key in parameters:
                state[parameters[key]] = _cast(parameters[key], value)
            else:
                state[key] = value
        for group, loaded in zip(self.param_groups, groups, strict=True):
            loaded["params"] = group["params"]
            if "param_names" in group:
                loaded.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._hooks["load_state_dict_post"].values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_hooks", {name: {} for name in _HOOKS})
        self.__dict__.setdefault("_opt_called", False)
        self.__dict__.setdefault("_watched", False)
        self.__dict__.setdefault("_workspace", Workspace())

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` before a step; a pair that it returns replaces the arguments."""
        return RemovableHandle(self._hooks["step_pre"], hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` after a step."""
        return RemovableHandle(self._hooks["step_post"], hook)

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Calls ``hook(optimizer)`` before `state_dict`."""
        return RemovableHandle(self._hooks["state_dict_pre"], hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)`` after `state_dict`; a value that it returns replaces the state."""
        return RemovableHandle(self._hooks["state_dict_post"], hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)`` before a state is loaded; its result replaces the state."""
        return RemovableHandle(self._hooks["load_state_dict_pre"], hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Calls ``hook(optimizer)`` after a state was loaded."""
        return RemovableHandle(self._hooks["load_state_dict_post"], hook)

    def __repr__(self) -> str:
        groups = []
        for number, group in enumerate(self.param_groups):
            options = [f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params"]
            groups.append(f"\nParameter Group {number}\n" + "".join(options))
        return f"{type(self).__name__} (" + "".join(groups) + ")"


def _cast(parameter: Tensor, value: Any, key: str = "") -> Any:
    """Convert the tensors of a loaded state to the dtype of their parameter, except for step counters."""
    if isinstance(value, Tensor):
        keep = key == "step" or not parameter.dtype.is_floating_point
        return value if keep else value.to(parameter.dtype)
    if isinstance(value, dict):
        return {name: _cast(parameter, item, name) for name, item in value.items()}
    if isinstance(value, Iterable):
        return type(value)(_cast(parameter, item) for item in value)  # type: ignore[call-arg]  # a list or a tuple
    return value


class Workspace:
    """Keeps one array for each intermediate result of an update, sized for the largest parameter.

    An update calls the workspace instead of creating a tensor: ``square.sqrt()`` becomes ``workspace(sqrt, square)``.
    The returned tensor is valid until `reset`, which the next update calls first, and may be written in place. During a
    recording or in a static graph, each result has its own memory, so that they see the same tensors as with PyTorch's
    optimizers.
    """

    def __init__(self) -> None:
        self._arrays: list[Array] = []
        self._used = 0

    def reset(self) -> None:
        """Makes the memory of the earlier results available again."""
        self._used = 0

    def __call__(self, op: Op, tensor: Tensor, *others: Tensor | float, **attrs: Any) -> Tensor:
        """The result of a pointwise op whose first operand has the shape and dtype of the result."""
        tensors = [tensor, *[operand(op, other, tensor) for other in others]]
        like = tensor._array
        if like.size > BLOCK and emit.channel is None and not operation_watchers.watchers:
            if self._used == len(self._arrays):
                self._arrays.append(np.empty(0, like.dtype))
            array = self._arrays[self._used]
            if array.dtype != like.dtype or array.size < like.size:
                array = self._arrays[self._used] = np.empty(like.size, like.dtype)
            out = array[: like.size].reshape(like.shape)
            arrays = operands(op, tensors)
            if fit_blocks(op, arrays, out):
                self._used += 1
                thread.quietly(run_in_blocks, op, arrays, attrs, out)
                return new_tensor(out)
        result: Tensor = op(*tensors, **attrs)
        return result
