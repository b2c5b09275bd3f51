"""Hooks of modules: functions called before and after a module runs, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gviz.engine.hooks import RemovableHandle
from gviz.engine.nn.backward_hooks import BackwardHooks, register_on_result
from gviz.engine.nn.state import State
from gviz.site import warn

Hook = Callable[..., Any]

EVERY_FORWARD_PRE: dict[int, Hook] = {}
EVERY_FORWARD: dict[int, Hook] = {}
EVERY_BACKWARD_PRE: dict[int, Hook] = {}
EVERY_BACKWARD: dict[int, Hook] = {}
"""The hooks of all modules, called before a module's own."""
EVERY_WITH_KWARGS: dict[int, bool] = {}
EVERY_ALWAYS_CALLED: dict[int, bool] = {}


class Hooked(State):
    """The part of `Module` that keeps its hooks and runs a call through them."""

    _forward_pre_hooks: dict[int, Hook]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _forward_hooks: dict[int, Hook]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _backward_pre_hooks: dict[int, Hook]
    _backward_hooks: dict[int, Hook]
    _is_full_backward_hook: bool | None
    forward: Callable[..., Any]

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before `forward`; what it returns are the arguments instead."""
        return _add(self._forward_pre_hooks, hook, prepend, (self._forward_pre_hooks_with_kwargs, with_kwargs))

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after `forward`; what it returns is the output instead.

        `always_call`: also where `forward` raised.
        """
        marks = ((self._forward_hooks_with_kwargs, with_kwargs), (self._forward_hooks_always_called, always_call))
        return _add(self._forward_hooks, hook, prepend, *marks)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward; what it returns is used instead."""
        return _add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` after backward; what it returns is the input's gradient."""
        self._set_backward_kind(full=True)
        return _add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` at the last node of the module alone."""
        self._set_backward_kind(full=False)
        return _add(self._backward_hooks, hook, False)

    def _set_backward_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is not None and self._is_full_backward_hook is not full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full

    def _has_hooks(self) -> bool:
        own = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        return bool(own or EVERY_FORWARD or EVERY_FORWARD_PRE or EVERY_BACKWARD or EVERY_BACKWARD_PRE)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        ran: set[int] = set()
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            backward = self._backward_hooks_of_call()
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
        for number, hook in [*EVERY_FORWARD_PRE.items(), *self._forward_pre_hooks.items()]:
            if number not in self._forward_pre_hooks_with_kwargs:
                given = hook(self, args)
                if given is not None:
                    args = given if isinstance(given, tuple) else (given,)
                continue
            given = hook(self, args, kwargs)
            if given is None:
                continue
            if not (isinstance(given, tuple) and len(given) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {given}."
                )
            args, kwargs = given
        return args, kwargs

    def _run_forward_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, ran: set[int]) -> Any:
        for number, hook in [*EVERY_FORWARD.items(), *self._forward_hooks.items()]:
            ran.add(number)
            with_kwargs = number in self._forward_hooks_with_kwargs or number in EVERY_WITH_KWARGS
            given = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if given is not None:
                result = given
        return result

    def _run_always_called(self, args: tuple[Any, ...], kwargs: dict[str, Any], ran: set[int]) -> None:
        """After an error, the hooks that are called all the same; an error of theirs is only warned of."""
        result: Any = None
        for number, hook in [*EVERY_FORWARD.items(), *self._forward_hooks.items()]:
            of_all = number in EVERY_FORWARD
            always = EVERY_ALWAYS_CALLED if of_all else self._forward_hooks_always_called
            if number not in always or number in ran:
                continue
            try:
                with_kwargs = number in self._forward_hooks_with_kwargs
                given = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            except Exception as error:
                warn(
                    f"{'global ' * of_all}module forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error}",
                )
                continue
            result = result if given is None else given

    def _backward_hooks_of_call(self) -> BackwardHooks | None:
        before = [*EVERY_BACKWARD_PRE.values(), *self._backward_pre_hooks.values()]
        own = self._backward_hooks.values() if self._is_full_backward_hook else ()
        after = [*EVERY_BACKWARD.values(), *own]
        return BackwardHooks(self, after, before) if before or after else None


def _add(hooks: dict[int, Hook], hook: Hook, prepend: bool, *marks: tuple[dict[int, bool], bool]) -> RemovableHandle:
    before = dict(hooks)
    handle = RemovableHandle(hooks, hook)
    if prepend:
        for number in before:
            hooks[number] = hooks.pop(number)
    handle.mark(*[known for known, wanted in marks if wanted])
    return handle


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, args)`` before every module's `forward`."""
    return RemovableHandle(EVERY_FORWARD_PRE, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after every module's `forward`."""
    return _add(EVERY_FORWARD, hook, False, (EVERY_WITH_KWARGS, with_kwargs), (EVERY_ALWAYS_CALLED, always_call))


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before every module's backward."""
    return RemovableHandle(EVERY_BACKWARD_PRE, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` after every module's backward."""
    return RemovableHandle(EVERY_BACKWARD, hook)
