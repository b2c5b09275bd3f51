"""The module: parameters, buffers and modules within it, found by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

from gviz import emit
from gviz.engine import dtypes
from gviz.engine.nn import loading, scopes
from gviz.engine.nn.parameter import Parameter
from gviz.engine.tensor import Tensor


class Module:
    """Base of everything with a ``forward``. What is assigned to it is registered: parameters, modules, and buffers
    through `register_buffer`."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _not_saved: set[str]

    def __init__(self) -> None:
        for name, value in (("_parameters", {}), ("_buffers", {}), ("_modules", {}), ("_not_saved", set())):
            object.__setattr__(self, name, value)
        self.training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; subclasses define it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        channel = emit.channel
        if channel is None:
            return self.forward(*args, **kwargs)
        with scopes.call(channel, self):
            return self.forward(*args, **kwargs)

    # What belongs to it

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self.add_module(name, value)
        elif name in self.__dict__.get("_parameters", ()):
            if value is not None:
                kind = value.type() if isinstance(value, Tensor) else type(value).__name__
                raise TypeError(f"cannot assign '{kind}' as parameter '{name}' (torch.nn.Parameter or None expected)")
            self._parameters[name] = None
        elif name in self.__dict__.get("_modules", ()) and value is None:
            self._modules[name] = None
        elif name in self.__dict__.get("_buffers", ()) and (value is None or isinstance(value, Tensor)):
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for registry in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(registry, ()):
                return self.__dict__[registry][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for registry in (self._parameters, self._buffers, self._modules):
            if name in registry:
                del registry[name]
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make `param` a parameter of this module; None keeps its place."""
        self._register(self._parameters_or_error("parameters"), "parameter", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make `tensor` part of the module's state without training it."""
        self._register(self._buffers, "buffer", name, tensor)
        (self._not_saved.discard if persistent else self._not_saved.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make `module` a part of this one."""
        self._parameters_or_error("module")
        self._register(self._modules, "module", name, module)

    register_module = add_module

    def _parameters_or_error(self, what: str) -> dict[str, Any]:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        return self._parameters

    def _register(self, registry: dict[str, Any], what: str, name: str, value: Any) -> None:
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."' + (f", got: {name}" if what == "module" else ""))
        for other in (self.__dict__, self._parameters, self._buffers, self._modules):
            if other is not registry:
                other.pop(name, None)
        registry[name] = value

    # Walking through it

    def children(self) -> Iterator[Module]:
        """The modules directly within."""
        return (module for _, module in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly within, each once, with their names."""
        found: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in found:
                found.add(module)
                yield name, module

    def modules(self) -> Iterator[Module]:
        """This module and all within."""
        return (module for _, module in self.named_modules())

    def named_modules(self, memo: set[Module] | None = None, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all within, each once, with their paths."""
        found = set() if memo is None else memo
        if self in found:
            return
        found.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(found, f"{prefix}.{name}" if prefix else name)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and all within."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module and all within, each once, with their paths."""
        return self._named_members("_parameters", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and all within."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and all within, each once, with their paths."""
        return self._named_members("_buffers", prefix, recurse)

    def _named_members(self, registry: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Any]]:
        found: set[int] = set()
        modules = self.named_modules(prefix=prefix) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in module.__dict__[registry].items():
                if member is not None and id(member) not in found:
                    found.add(id(member))
                    yield f"{path}.{name}" if path else name, member

    def get_submodule(self, target: str) -> Module:
        """The module at a path."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
        found: Module = module
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path."""
        path, _, name = target.rpartition(".")
        found: Parameter = getattr(self.get_submodule(path), name)
        return found

    # Changing all of it

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` with every module within, then with this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Say whether this module and all within are being trained."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """The opposite of `train`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say whether gradients are wanted for all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for parameter in self.parameters():
            loading.clear_grad(parameter, set_to_none)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Bring floating parameters and buffers to another dtype, in place. The only device is the CPU."""
        for tensor in (*self.parameters(), *self.buffers()):
            if tensor.dtype.is_floating_point:
                tensor.data = tensor.data.to(*args, **kwargs)
                if tensor.grad is not None:
                    tensor.grad = tensor.grad.to(tensor.dtype)
        return self

    def float(self) -> Self:
        """Bring floating parameters and buffers to float32."""
        return self._converted("float32")

    def double(self) -> Self:
        """Bring floating parameters and buffers to float64."""
        return self._converted("float64")

    def half(self) -> Self:
        """Bring floating parameters and buffers to float16."""
        return self._converted("float16")

    def cpu(self) -> Self:
        """This module: there is no other device."""
        return self

    def _converted(self, name: str) -> Self:
        return self.to(dtypes.named(name))

    # Its state

    def state_dict(self, *, prefix: str = "") -> dict[str, Tensor]:
        """All parameters and saved buffers by path, outside the graph but in the same memory."""
        state: dict[str, Tensor] = {}
        for path, module in self.named_modules_with_repeats(prefix.removesuffix(".")):
            saved = {n: b for n, b in module._buffers.items() if n not in module._not_saved}
            for name, tensor in (*module._parameters.items(), *saved.items()):
                if tensor is not None:
                    state[f"{path}.{name}" if path else name] = tensor.detach()
        return state

    def named_modules_with_repeats(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """As `named_modules`, but a shared module under each of its paths: the shape of a state dict."""
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules_with_repeats(f"{prefix}.{name}" if prefix else name)

    def load_state_dict(self, state_dict: dict[str, Tensor], strict: bool = True) -> loading.IncompatibleKeys:
        """Copy a state into this module. RuntimeError for sizes, and if `strict` for names, that do not fit."""
        return loading.load(self, state_dict, strict=strict)

    # How it prints

    def extra_repr(self) -> str:
        """What ``repr`` shows besides the modules within."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if len(extra) == 1 and not children:
            return f"{self._get_name()}({extra[0]})"
        return laid_out(self._get_name(), [*extra, *children])


def laid_out(name: str, lines: list[str]) -> str:
    """``Name(...)`` with one entry a line."""
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{name}()"


def indented(text: str) -> str:
    """`text` with all but its first line moved right by two."""
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line for line in rest)])
