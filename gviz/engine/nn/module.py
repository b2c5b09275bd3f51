"""The module: what has a ``forward``, with the parameters and modules within it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any, Self

from gviz import emit
from gviz.engine.nn import scopes
from gviz.engine.nn.conversion import Converted
from gviz.engine.nn.gradients import clear_grad
from gviz.engine.nn.hooks import register_module_forward_hook as register_module_forward_hook
from gviz.engine.nn.hooks import register_module_forward_pre_hook as register_module_forward_pre_hook
from gviz.engine.nn.hooks import register_module_full_backward_hook as register_module_full_backward_hook
from gviz.engine.nn.hooks import register_module_full_backward_pre_hook as register_module_full_backward_pre_hook
from gviz.engine.returned import say_returned
from gviz.engine.surface import set_address
from gviz.site import forwards


class Module(Converted):
    """Base of everything with a ``forward``. What is assigned to it is registered: parameters, modules, and buffers
    through `register_buffer`."""

    training: bool
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._refuse(args, kwargs)
        object.__setattr__(self, "training", True)
        self._begin_members()
        for name in _HOOKS:
            object.__setattr__(self, name, OrderedDict())
        object.__setattr__(self, "_is_full_backward_hook", None)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def _refuse(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = f"{type(self).__name__}.__init__()"
        if kwargs and not self.call_super_init:
            raise TypeError(f"{name} got an unexpected keyword argument '{next(iter(kwargs))}'")
        if args and not self.call_super_init:
            raise TypeError(f"{name} takes 1 positional argument but {len(args) + 1} were given")

    def _forward_unimplemented(self, *args: Any) -> Any:
        """What the module computes; subclasses define it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    forward: Callable[..., Any] = _forward_unimplemented

    @forwards
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        channel = emit.channel
        if channel is None:
            if self._has_hooks():
                return self._call_with_hooks(args, kwargs)
            return self.forward(*args, **kwargs)
        with scopes.call(channel, self, Module):
            result = self._call_with_hooks(args, kwargs) if self._has_hooks() else self.forward(*args, **kwargs)
            say_returned(channel, result)
            return result

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

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
        self.training = mode
        for module in self.children():
            module.train(mode)
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
            clear_grad(parameter, set_to_none)

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


for kind in Module.__mro__[1:-1]:
    for name, member in vars(kind).items():
        if isinstance(member, FunctionType):
            set_address(__name__, f"Module.{name}", member)  # one class in PyTorch

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


def laid_out(name: str, lines: list[str]) -> str:
    """``Name(...)`` with one entry a line."""
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{name}()"


def indented(text: str) -> str:
    """`text` with all but its first line moved right by two."""
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line if line.strip() else "" for line in rest)])
