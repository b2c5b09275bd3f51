"""A module's state as a dictionary, and brought back from one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from gviz.engine.hooks import RemovableHandle
from gviz.engine.modes import no_grad
from gviz.engine.nn.parameter import Parameter
from gviz.engine.nn.tree import Tree
from gviz.engine.tensor import Tensor
from gviz.site import warn

EXTRA = "_extra_state"
"""The key under which a module saves what its `get_extra_state` gives."""


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class IncompatibleKeys(_Keys):
    """What a state lacked for a module, and what it had beyond it."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class State(Tree):
    """The part of `Module` that saves and loads."""

    _version = 1
    _state_dict_hooks: dict[int, Callable[..., Any]]
    _state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: dict[int, Callable[..., Any]]

    def state_dict(
        self, *args: Any, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All parameters and saved buffers by path, in the same memory; outside the graph unless `keep_vars`."""
        if args:
            warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
            )
            given: list[Any] = [*args, *[destination, prefix, keep_vars][len(args) :]]
            destination, prefix, keep_vars = given
        state: Any = destination
        if state is None:
            state = OrderedDict()
            state._metadata = OrderedDict()  # the version of each module's way of saving itself
        metadata = {"version": self._version}
        if hasattr(state, "_metadata"):
            state._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(state, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return self._after_saving(state, prefix, metadata)

    def _after_saving(self, state: dict[str, Any], prefix: str, metadata: dict[str, Any]) -> dict[str, Any]:
        for hook in self._state_dict_hooks.values():
            result = hook(self, state, prefix, metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            state = result
        return state

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Put this module's own tensors into `destination`; subclasses may put more."""
        for name, tensor in self._saved_members().items():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if hasattr(self, "get_extra_state"):
            destination[prefix + EXTRA] = self.get_extra_state()

    def _saved_members(self) -> dict[str, Tensor]:
        buffers = [(n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set]
        return {name: tensor for name, tensor in chain(self._parameters.items(), buffers) if tensor is not None}

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy (`assign`: put) a state into this module.

        RuntimeError for sizes, and if `strict` for names, that do not fit.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        keys = IncompatibleKeys([], [])
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", {})
        self._load(OrderedDict(state_dict), "", metadata, assign, keys, errors)
        if strict:
            errors[:0] = _unfit_names(keys)
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return keys

    def _load(
        self,
        state: dict[str, Any],
        prefix: str,
        metadata: Mapping[str, Any],
        assign: bool,
        keys: IncompatibleKeys,
        errors: list[str],
    ) -> None:
        """Load this module and all within from the part of a state that begins with `prefix`."""
        local = dict(metadata.get(prefix[:-1], {}), **({"assign_to_params_buffers": True} if assign else {}))
        self._load_from_state_dict(state, prefix, local, True, keys.missing_keys, keys.unexpected_keys, errors)
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}{name}."
                part = {key: value for key, value in state.items() if key.startswith(path)}
                module._load(part, path, metadata, assign, keys, errors)
        for hook in self._load_state_dict_post_hooks.values():
            if hook(self, keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own tensors; subclasses may bring older states into shape first."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        members = self._saved_members()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in members.items():
            if prefix + name in state_dict:
                self._load_member(name, tensor, prefix + name, state_dict[prefix + name], assign, error_msgs)
            elif strict:
                missing_keys.append(prefix + name)
        self._load_extra(state_dict, prefix + EXTRA, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys += self._unexpected(state_dict, prefix, members)

    def _load_member(self, name: str, own: Tensor, key: str, loaded: Any, assign: bool, errors: list[str]) -> None:
        if not isinstance(loaded, Tensor):
            errors.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(loaded)}"
            )
            return
        if not own.ndim and tuple(loaded.shape) == (1,):
            loaded = loaded[0]
        if loaded.shape != own.shape:
            errors.append(
                f"size mismatch for {key}: copying a param with shape {loaded.shape} from checkpoint, the shape in "
                f"current model is {own.shape}."
            )
            return
        with no_grad():
            if assign:
                setattr(self, name, _as_own(own, loaded))
            else:
                own.copy_(loaded)

    def _load_extra(
        self, state: dict[str, Any], key: str, strict: bool, missing: list[str], unexpected: list[str]
    ) -> None:
        if hasattr(self, "set_extra_state"):
            if key in state:
                self.set_extra_state(state[key])
            elif strict:
                missing.append(key)
        elif strict and key in state:
            unexpected.append(key)

    def _unexpected(self, state: dict[str, Any], prefix: str, members: dict[str, Tensor]) -> list[str]:
        names = {key: key[len(prefix) :].split(".", 1) for key in state if key.startswith(prefix)}
        return [
            key
            for key, parts in names.items()
            if key != prefix + EXTRA and parts[0] not in (self._modules if len(parts) > 1 else members)
        ]

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before this module is saved."""
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after this module was saved."""
        hook._from_public_api = True  # type: ignore[attr-defined]  # every function may have attributes
        return RemovableHandle(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return RemovableHandle(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, ...)`` before this module is loaded."""
        return RemovableHandle(self._load_state_dict_pre_hooks, partial(hook, self))

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return RemovableHandle(self._load_state_dict_pre_hooks, partial(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after this module was loaded."""
        return RemovableHandle(self._load_state_dict_post_hooks, hook)


def _as_own(own: Tensor, loaded: Tensor) -> Tensor:
    """A loaded tensor as what it takes the place of."""
    if not isinstance(own, Parameter):
        return loaded
    if not isinstance(loaded, Parameter):
        return Parameter(loaded, requires_grad=own.requires_grad)
    return loaded.requires_grad_(own.requires_grad)


def _unfit_names(keys: IncompatibleKeys) -> list[str]:
    listed = (("Missing", keys.missing_keys), ("Unexpected", keys.unexpected_keys))
    quoted = [(what, ", ".join([f'"{name}"' for name in names])) for what, names in listed if names]
    return [f"{what} key(s) in state_dict: {names}. " for what, names in quoted]
