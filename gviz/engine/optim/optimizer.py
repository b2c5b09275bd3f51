"""What all optimizers have: groups of parameters with options, a memory for each parameter, steps and states."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from gviz.engine.hooks import RemovableHandle
from gviz.engine.modes import enable_grad, no_grad
from gviz.engine.nn.gradients import clear_grad
from gviz.engine.nn.members import typename
from gviz.engine.optim.loading import adapted, packed
from gviz.engine.optim.stepping import Hook, heard
from gviz.engine.optim.stepping import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from gviz.engine.optim.stepping import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from gviz.engine.optim.workspace import Workspace
from gviz.engine.tensor import Tensor

Group = dict[str, Any]
Memory = dict[str, Any]
Parameters = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]

_HOOKS = ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post")


class Optimizer:
    """Base of optimizers: groups of parameters, each with its options, and what is remembered about each parameter.

    Subclasses define `update`, which changes one parameter in place; it runs outside the graph. Those that define
    `step` instead do all of it themselves; hooks and listeners hear of it all the same, and once where such a step
    calls that of the class it extends.
    """

    _is_stepping = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = heard(cls.step)  # type: ignore[method-assign]  # a wrapper of the same signature

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
        given: list[Any] = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Take in more parameters, with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        _list_parameters(param_group)
        for parameter in param_group["params"]:
            _check_parameter(parameter)
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self._check_names(param_group)
        self._check_repeats(param_group["params"])
        self.param_groups.append(param_group)

    def _check_names(self, group: Group) -> None:
        named = "param_names" in group
        if any(("param_names" in other) != named for other in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with names' if named else 'without names'} to the optimizer"
            )

    def _check_repeats(self, parameters: list[Tensor]) -> None:
        if len({id(p) for p in parameters}) != len(parameters):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if known & {id(p) for p in parameters}:
            raise ValueError("some parameters appear in more than one parameter group")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            for parameter in group["params"]:
                clear_grad(parameter, set_to_none)

    @heard
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; `closure`, if given, computes the loss first."""
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
        """From the first scheduler on, it counts whether there was a step."""
        if not self._watched:
            self._watched, self._opt_called = True, False

    def update(self, parameter: Tensor, grad: Tensor, group: Group) -> None:
        """Change one parameter in place."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Options and memory, with parameters as numbers in the order they were given."""
        for hook in self._hooks["state_dict_pre"].values():
            hook(self)
        state = packed(self.param_groups, self.state)
        for hook in self._hooks["state_dict_post"].values():
            state = hook(self, state) or state
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over options and memory, which is copied only where its dtype changes.

        ValueError if the groups do not match.
        """
        given = state_dict.copy()
        for hook in self._hooks["load_state_dict_pre"].values():
            given = hook(self, given) or given
        groups = deepcopy(given["param_groups"])
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, self.param_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        numbers = [number for group in groups for number in group["params"]]
        own = [parameter for group in self.param_groups for parameter in group["params"]]
        state = adapted(given["state"], dict(zip(numbers, own, strict=True)))
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
        """Call ``hook(optimizer, args, kwargs)`` before a step; what it returns are the arguments instead."""
        return RemovableHandle(self._hooks["step_pre"], hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after a step."""
        return RemovableHandle(self._hooks["step_post"], hook)

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer)`` before the state is asked for."""
        return RemovableHandle(self._hooks["state_dict_pre"], hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after the state was asked for; what it returns is the state instead."""
        return RemovableHandle(self._hooks["state_dict_post"], hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before a state is loaded; what it returns is loaded instead."""
        return RemovableHandle(self._hooks["load_state_dict_pre"], hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state was loaded."""
        return RemovableHandle(self._hooks["load_state_dict_post"], hook)

    def __repr__(self) -> str:
        groups = []
        for number, group in enumerate(self.param_groups):
            options = [f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params"]
            groups.append(f"\nParameter Group {number}\n" + "".join(options))
        return f"{type(self).__name__} (" + "".join(groups) + ")"


def _list_parameters(group: Group) -> None:
    """Make the parameters of a group a list, and keep their names where they have some."""
    params = group["params"]
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    listed = [params] if isinstance(params, Tensor) else list(params)
    names = [entry[0] for entry in listed if isinstance(entry, tuple)]
    if names and len(names) != len(listed):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    group["params"] = [entry[1] if isinstance(entry, tuple) else entry for entry in listed]
    if names:
        group["param_names"] = names


def _check_parameter(parameter: Any) -> None:
    if not isinstance(parameter, Tensor):
        raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(parameter)}")
    if not (parameter.is_leaf or parameter.retains_grad):
        raise ValueError("can't optimize a non-leaf Tensor")
