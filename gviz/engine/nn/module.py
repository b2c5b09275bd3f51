"""``nn.Module``: an object with a ``forward``, and its parameters, buffers and submodules.

A module has three registries: ``_parameters``, ``_buffers`` and ``_modules``. Assigning an attribute fills them
(`__setattr__`), and `__getattr__` looks names up in them, so that ``self.fc = Linear(2, 3)`` makes ``fc`` a child and
``fc.weight`` one of `parameters`. Everything else in this file walks them: `named_modules` and similar iterators,
`state_dict` and `load_state_dict`, `to` and other conversions, `train`, `apply`, `zero_grad`, and ``repr``.

Calling a module runs ``forward``. Two things may surround it:

* **Hooks**, of all modules (``hooks.py``) and then of this one, before and after ``forward``. Backward hooks put a node
  around the inputs and one around the outputs, see `BackwardHooks`. A call without hooks skips all of that.
* **A recording**, which gets the scope of the call and the path of the module, see ``_module_calls.py``.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Self

from gviz import emit, state_dict_load
from gviz.engine import dtypes
from gviz.engine.devices import check, warn_that_cuda_is_the_cpu
from gviz.engine.dtypes import dtype as DType
from gviz.engine.instrumentation import emit_returned
from gviz.engine.memory_format import checked_format
from gviz.engine.memory_format import memory_format as MemoryFormat
from gviz.engine.modes import no_grad
from gviz.engine.nn import _module_calls as scopes
from gviz.engine.nn import hooks as of_all
from gviz.engine.nn.hooks import BackwardHooks, Hook, add_hook, register_on_result
from gviz.engine.nn.hooks import register_module_forward_hook as register_module_forward_hook
from gviz.engine.nn.hooks import register_module_forward_pre_hook as register_module_forward_pre_hook
from gviz.engine.nn.hooks import register_module_full_backward_hook as register_module_full_backward_hook
from gviz.engine.nn.hooks import register_module_full_backward_pre_hook as register_module_full_backward_pre_hook
from gviz.engine.nn.parameter import Buffer, Parameter, clear_grad
from gviz.engine.node import RemovableHandle
from gviz.engine.tensor import Tensor
from gviz.engine.unsupported_names import sentence
from gviz.source.call_stack import forwards, warn

Convert = Callable[[Tensor], Tensor]

EXTRA = "_extra_state"
"""The key of a state dict under which a module saves the result of its `get_extra_state`."""

_UNSUPPORTED = frozenset({"T_destination", "bfloat16", "compile", "dump_patches", "ipu", "mtia", "to_empty", "xpu"})
"""The attributes of every module in PyTorch 2.13 that the engine lacks."""

_REGISTRIES = ("_parameters", "_buffers", "_modules")
_HOOKS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class Module:
    """Base class of all modules, which have a ``forward``.

    Attributes assigned to it are registered: parameters, modules, and buffers named by `register_buffer`.
    """

    training: bool
    call_super_init: bool = False
    _version = 1
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    _backward_pre_hooks: dict[int, Hook]
    _backward_hooks: dict[int, Hook]
    _is_full_backward_hook: bool | None
    _forward_hooks: dict[int, Hook]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks: dict[int, Hook]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _state_dict_hooks: dict[int, Hook]
    _state_dict_pre_hooks: dict[int, Hook]
    _load_state_dict_pre_hooks: dict[int, Hook]
    _load_state_dict_post_hooks: dict[int, Hook]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = f"{type(self).__name__}.__init__()"
        if kwargs and not self.call_super_init:
            raise TypeError(f"{name} got an unexpected keyword argument '{next(iter(kwargs))}'")
        if args and not self.call_super_init:
            raise TypeError(f"{name} takes 1 positional argument but {len(args) + 1} were given")
        object.__setattr__(self, "training", True)
        for registry in _REGISTRIES:
            object.__setattr__(self, registry, {})
        object.__setattr__(self, "_non_persistent_buffers_set", set())
        for hooks in _HOOKS:
            object.__setattr__(self, hooks, OrderedDict())
        object.__setattr__(self, "_is_full_backward_hook", None)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def _forward_unimplemented(self, *args: Any) -> Any:
        """Compute the result; subclasses define it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    forward: Callable[..., Any] = _forward_unimplemented

    @forwards
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        channel = emit.channel
        if channel is None:
            if self._has_hooks():
                return self._call_with_hooks(args, kwargs)
            return self.forward(*args, **kwargs)
        with scopes.ModuleCall(channel, self, Module):
            result = self._call_with_hooks(args, kwargs) if self._has_hooks() else self.forward(*args, **kwargs)
            emit_returned(channel, result)
            return result

    def _has_hooks(self) -> bool:
        own = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        return bool(
            own
            or of_all.EVERY_FORWARD
            or of_all.EVERY_FORWARD_PRE
            or of_all.EVERY_BACKWARD
            or of_all.EVERY_BACKWARD_PRE
        )

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        ran: set[int] = set()
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            pre_hooks = [*of_all.EVERY_BACKWARD_PRE.items(), *self._backward_pre_hooks.items()]
            own = self._backward_hooks.items() if self._is_full_backward_hook else ()
            hooks = [*of_all.EVERY_BACKWARD.items(), *own]
            backward = BackwardHooks(self, hooks, pre_hooks) if pre_hooks or hooks else None
            if backward is not None:
                args = backward.on_inputs(args)
            result = self._run_forward_hooks(args, kwargs, self.forward(*args, **kwargs), ran)
            if backward is not None:
                result = backward.on_outputs(result)
            if self._is_full_backward_hook is False:
                register_on_result(self, list(self._backward_hooks.values()), result)
            return result
        except Exception:
            self._run_always_called(args, kwargs, ran)
            raise

    def _run_pre_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        for number, hook in [*of_all.EVERY_FORWARD_PRE.items(), *self._forward_pre_hooks.items()]:
            if number not in self._forward_pre_hooks_with_kwargs:
                replacement = hook(self, args)
                if replacement is not None:
                    args = replacement if isinstance(replacement, tuple) else (replacement,)
                continue
            replacement = hook(self, args, kwargs)
            if replacement is None:
                continue
            if not (isinstance(replacement, tuple) and len(replacement) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {replacement}."
                )
            args, kwargs = replacement
        return args, kwargs

    def _run_forward_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, ran: set[int]) -> Any:
        for number, hook in [*of_all.EVERY_FORWARD.items(), *self._forward_hooks.items()]:
            ran.add(number)
            with_kwargs = number in self._forward_hooks_with_kwargs or number in of_all.EVERY_WITH_KWARGS
            replacement = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if replacement is not None:
                result = replacement
        return result

    def _run_always_called(self, args: tuple[Any, ...], kwargs: dict[str, Any], ran: set[int]) -> None:
        """After an error, calls the hooks that are always called; warns of an error in one of them."""
        result: Any = None
        for number, hook in [*of_all.EVERY_FORWARD.items(), *self._forward_hooks.items()]:
            is_global = number in of_all.EVERY_FORWARD
            always = of_all.EVERY_ALWAYS_CALLED if is_global else self._forward_hooks_always_called
            if number not in always or number in ran:
                continue
            try:
                with_kwargs = number in self._forward_hooks_with_kwargs
                replacement = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            except Exception as error:
                warn(
                    f"{'global ' * is_global}module forward hook with ``always_call=True`` raised an exception that "
                    f"was silenced as another error was raised in forward: {error}",
                )
                continue
            result = result if replacement is None else replacement

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args)`` before `forward`; a value that it returns replaces the arguments."""
        return add_hook(self._forward_pre_hooks, hook, prepend, (self._forward_pre_hooks_with_kwargs, with_kwargs))

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args, output)`` after `forward`; a value that it returns replaces the output.

        With `always_call` it also runs if `forward` raised.
        """
        marks = ((self._forward_hooks_with_kwargs, with_kwargs), (self._forward_hooks_always_called, always_call))
        return add_hook(self._forward_hooks, hook, prepend, *marks)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(module, grad_output)`` before backward; a value that it returns replaces the gradient."""
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)`` after backward; its result replaces `grad_input`."""
        self._set_backward_kind(full=True)
        return add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)`` at the last node of the module (PyTorch's older kind)."""
        self._set_backward_kind(full=False)
        return add_hook(self._backward_hooks, hook, False)

    def _set_backward_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is not None and self._is_full_backward_hook is not full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full

    def __setattr__(self, name: str, value: Any) -> None:
        registries = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in registries:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in registries.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            if "_modules" not in registries:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            registries["_modules"][name] = value
        elif name in registries.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            registries["_modules"][name] = None
        elif isinstance(value, Buffer) or name in registries.get("_buffers", ()):
            self._assign_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _assign_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
        if "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, persistent)
        else:
            self.register_buffer(name, value)

    def _forget(self, name: str, except_in: str) -> None:
        """Remove `name` everywhere except in the registry `except_in`."""
        for registry in _REGISTRIES:
            if registry != except_in:
                self.__dict__[registry].pop(name, None)
        self.__dict__.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name: str) -> Any:
        for registry in _REGISTRIES:
            if name in self.__dict__.get(registry, ()):
                return self.__dict__[registry][name]
        text = f"'{type(self).__name__}' object has no attribute '{name}'"
        if name in _UNSUPPORTED:
            text = f"{text}: {sentence(f'torch.nn.Module.{name}', dir(Module))}"
        raise AttributeError(text)

    def __delattr__(self, name: str) -> None:
        for registry in (self._parameters, self._buffers, self._modules):
            if name in registry:
                del registry[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[0].isdigit())

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Makes `param` a parameter of this module; None reserves the name."""
        self._check_name("_parameters", "parameter", name)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Makes `tensor` a part of the module that is not trained; if `persistent`, also of its state dict."""
        self._check_name("_buffers", "buffer", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Makes `module` a child of this one."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("_modules", "module", name)
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias of `add_module`."""
        self.add_module(name, module)

    def _check_name(self, registry: str, what: str, name: Any) -> None:
        if registry not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."' + (f", got: {name}" if what == "module" else ""))
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in self.__dict__[registry] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def children(self) -> Iterator[Module]:
        """The child modules."""
        return (module for _, module in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The child modules with their names, each module once."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it with their paths; each once, if `remove_duplicate`."""
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(seen, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, if `recurse`, of all below it."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their paths; each once, if `remove_duplicate`."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, if `recurse`, of all below it."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their paths; each once, if `remove_duplicate`."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def _named_members(
        self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules: Any = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in module.__dict__[registry].items():
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield f"{path}.{name}" if path else name, member

    def get_submodule(self, target: str) -> Module:
        """The module at a path such as ``encoder.0``. Raises AttributeError if there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            module = _attribute(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        submodule: Module = module
        return submodule

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Sets the module at a path; if `strict`, only if one exists there."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if (strict or hasattr(parent, name)) and not isinstance(_attribute(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path. Raises AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        parameter = _attribute(self.get_submodule(path), name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path. Raises AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer: Tensor = _attribute(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls `fn` with every module below this one, then with this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets the training mode of this module and all below it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode: `train` with False."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients of all parameters to None, or to zero."""
        for parameter in self.parameters():
            clear_grad(parameter, set_to_none)

    def _apply(self, fn: Convert, recurse: bool = True) -> Self:
        """Apply `fn` to the data of every parameter and its gradient, and to every buffer."""
        for module in self.children() if recurse else ():
            module._apply(fn)
        for parameter in self._parameters.values():
            for tensor in () if parameter is None else (parameter, parameter.grad):
                if tensor is None:
                    continue
                with no_grad():
                    applied = fn(tensor)
                if applied is not tensor:
                    tensor.data = applied  # it stays the same tensor
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Converts floating parameters and buffers to another dtype. Any device but the CPU raises an error."""
        kwargs.pop("non_blocking", None)
        order = kwargs.pop("memory_format", None)
        if order is not None:
            checked_format("to", order)
        device, kind = kwargs.pop("device", None), kwargs.pop("dtype", None)
        for arg in args:
            if isinstance(arg, Tensor):
                kind = arg.dtype
            elif isinstance(arg, DType):
                kind = arg
            elif not isinstance(arg, bool):
                device = arg
        if kind is not None and not kind.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={kind}")
        check(device, "to")
        return self if kind is None and order is None else self._apply(_to(kind, order))

    def type(self, dst_type: DType) -> Self:
        """Converts all parameters and buffers to another dtype."""
        return self._apply(lambda t: t.to(dst_type))

    def float(self) -> Self:
        """Converts floating parameters and buffers to float32."""
        return self._apply(_to(dtypes.float32))

    def double(self) -> Self:
        """Converts floating parameters and buffers to float64."""
        return self._apply(_to(dtypes.float64))

    def half(self) -> Self:
        """Converts floating parameters and buffers to float16."""
        return self._apply(_to(dtypes.float16))

    def cpu(self) -> Self:
        """Returns this module: there is no other device."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raises an error, unless ``cuda`` means the CPU: then nothing changes."""
        warn_that_cuda_is_the_cpu()
        return self

    def share_memory(self) -> Self:
        """Raises RuntimeError: the engine's tensors exist in one process."""
        raise RuntimeError("the built-in engine's tensors live in one process; share_memory() needs PyTorch")

    def state_dict(
        self, *args: Any, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by path, in the same memory; detached, unless `keep_vars`."""
        if args:
            warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
            )
            arguments: list[Any] = [*args, *[destination, prefix, keep_vars][len(args) :]]
            destination, prefix, keep_vars = arguments
        state: Any = destination
        if state is None:
            state = OrderedDict()
            state._metadata = OrderedDict()  # the format version of each module's saved state
        metadata = {"version": self._version}
        if hasattr(state, "_metadata"):
            state._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(state, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, state, prefix, metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            state = result
        entries: dict[str, Any] = state
        return entries

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Add this module's own tensors to `destination`; subclasses may add more."""
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
        """Copies a state into the tensors of this module; with `assign`, replaces them by the state's tensors.

        Raises RuntimeError if sizes do not match or, with `strict`, if names do not.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        keys = IncompatibleKeys([], [])
        errors: list[str] = []
        channel = emit.channel
        is_own = channel is not None and scopes.is_own_state(self, state_dict)
        metadata = getattr(state_dict, "_metadata", {})
        self._load(OrderedDict(state_dict), "", metadata, assign, keys, errors)
        if strict:
            for what, names in (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys)):
                if names:
                    quoted = ", ".join([f'"{name}"' for name in names])
                    errors.insert(0, f"{what} key(s) in state_dict: {quoted}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        if channel is not None:
            state_dict_load.report(channel, self, state_dict, keys.missing_keys, keys.unexpected_keys, is_own=is_own)
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
        """Load this module and all below it from the part of a state whose keys start with `prefix`."""
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
        """Load this module's own tensors; subclasses may convert older states first."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        members = self._saved_members()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in members.items():
            if prefix + name in state_dict:
                self._load_member(name, tensor, prefix + name, state_dict[prefix + name], assign, error_msgs)
            elif strict:
                missing_keys.append(prefix + name)
        if hasattr(self, "set_extra_state"):
            if prefix + EXTRA in state_dict:
                self.set_extra_state(state_dict[prefix + EXTRA])
            elif strict:
                missing_keys.append(prefix + EXTRA)
        elif strict and prefix + EXTRA in state_dict:
            unexpected_keys.append(prefix + EXTRA)
        if strict:
            for key in [key for key in state_dict if key.startswith(prefix) and key != prefix + EXTRA]:
                name, *below = key[len(prefix) :].split(".", 1)
                if name not in (self._modules if below else members):
                    unexpected_keys.append(key)

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

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, prefix, keep_vars)`` before this module is saved."""
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata)`` after this module was saved."""
        hook._from_public_api = True  # type: ignore[attr-defined]  # every function may have attributes
        return RemovableHandle(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return RemovableHandle(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, ...)`` before this module is loaded."""
        return RemovableHandle(self._load_state_dict_pre_hooks, partial(hook, self))

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return RemovableHandle(self._load_state_dict_pre_hooks, partial(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, incompatible_keys)`` after this module was loaded."""
        return RemovableHandle(self._load_state_dict_post_hooks, hook)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def extra_repr(self) -> str:
        """The text that ``repr`` shows besides the children."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if len(extra) == 1 and not children:
            return f"{self._get_name()}({extra[0]})"
        return laid_out(self._get_name(), [*extra, *children])


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class IncompatibleKeys(_Keys):
    """The keys of a module that a loaded state lacks, and the state's keys that the module lacks."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def _as_own(own: Tensor, loaded: Tensor) -> Tensor:
    """Return a loaded tensor, converted to a parameter if it replaces one."""
    if not isinstance(own, Parameter):
        return loaded
    if not isinstance(loaded, Parameter):
        return Parameter(loaded, requires_grad=own.requires_grad)
    return loaded.requires_grad_(own.requires_grad)


def _attribute(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    return getattr(module, name)


def _to(kind: DType | None, order: MemoryFormat | None = None) -> Convert:
    """Return a conversion of floating tensors to a dtype, and of images and volumes to a memory format."""

    def convert(t: Tensor) -> Tensor:
        dtype = kind if t.dtype.is_floating_point else None
        converted: Tensor = t.to(dtype=dtype, memory_format=order if t.ndim in (4, 5) else None)
        return converted

    return convert


def laid_out(name: str, lines: list[str]) -> str:
    """``Name(...)`` with one entry per line."""
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{name}()"


def indented(text: str) -> str:
    """`text` with all lines but the first indented by two."""
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line if line.strip() else "" for line in rest)])


def typename(value: object) -> str:
    """The name of a value's type in PyTorch's messages, such as ``torch.nn.modules.linear.Linear``."""
    if isinstance(value, Tensor):
        return f"torch.{value.dtype.tensor_type}Tensor"
    kind = value if isinstance(value, type) else type(value)
    package, _, file = kind.__module__.rpartition(".")
    if package == __package__:
        return f"torch.nn.modules.{PYTORCH_FILES.get(kind.__name__, file)}.{kind.__qualname__}"
    return kind.__qualname__ if kind.__module__ in ("", "builtins") else f"{kind.__module__}.{kind.__qualname__}"


PYTORCH_FILES = {
    name: file
    for file, names in {
        "activation": "MultiheadAttention",
        "batchnorm": "BatchNorm1d BatchNorm2d BatchNorm3d",
        "channelshuffle": "ChannelShuffle",
        "flatten": "Flatten Unflatten",
        "fold": "Fold Unfold",
        "instancenorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d",
        "pixelshuffle": "PixelShuffle PixelUnshuffle",
        "sparse": "Embedding",
        "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
    }.items()
    for name in names.split()
}
"""The file in ``torch/nn/modules`` of each class that is in a differently named file here."""
