"""Module calls as scopes, and the names of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gviz import parameter_names
from gviz.adapters.pytorch.autograd_graph import mark_of
from gviz.adapters.pytorch.gradient_hooks import address
from gviz.adapters.pytorch.in_place_writes import emit_written, has_other_ranks
from gviz.adapters.pytorch.node_creation import emit_returned
from gviz.adapters.pytorch.node_identity import Mark
from gviz.adapters.pytorch.private_api import without_overrides
from gviz.adapters.pytorch.recording_state import Session
from gviz.events import Named, ScopeEntered, ScopeLeft
from gviz.parameter_names import modules_in, parameters_in, plain_flags
from gviz.source import variables_of_objects
from gviz.state_dict_load import member, report

_COMPILED = "_orig_mod"
"""The name under which ``torch.compile(module)`` holds the original module."""


def enter(session: Session, module: torch.nn.Module) -> None:
    """Record the start of a module's forward."""
    thread, channel = session.thread, session.channel
    kind = _kind(module)
    around = ((names[id(module)], root) for names, root in reversed(thread.modules) if id(module) in names)
    path = next((f"{root}.{name}" if name else root for name, root in around), "")
    inner: dict[int, str] = {}
    flags: tuple[tuple[str, bool], ...] = ()
    if not path:
        path = _path(session, module, kind)
        modules = [*_modules_in(module)] if module._modules else [("", module)]
        inner = {id(inner): name for name, inner in modules if inner is not module}
        flags = plain_flags(modules, path)
    thread.modules.append((inner, path))
    session.module_paths[id(module)] = path
    if session.is_outside and session.scope.has_module(path, kind):
        thread.is_in_module = True
        name_parameters(session, module, path.partition(".")[2])
    scope = 0
    if not session.is_outside:
        scope = channel.next_scope()
        channel.emit(ScopeEntered(scope, thread.scopes[-1] if thread.scopes else 0, path, kind, flags))
    thread.scopes.append(scope)
    _emit_broadcast(session, module)


def recorded_hook(session: Session, hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a backward hook of a module that notes which gradients it gave, its name and where it was registered."""
    stack = session.channel.stack()

    def observed(*args: Any) -> Any:
        result = hook(*args)
        current = session.current_pass()
        if result is not None and current is not None:
            name = getattr(hook, "__name__", type(hook).__name__)
            for grad in result if isinstance(result, tuple) else (result,):
                if isinstance(grad, torch.Tensor):
                    current.by_modules[address(grad)] = name, stack
        return result

    return wraps(hook)(observed) if hasattr(hook, "__name__") else observed


def load(session: Session, function: Any, module: torch.nn.Module, args: tuple[Any, ...], options: Any) -> Any:
    """Call ``load_state_dict``, and record a load that left most of the module as it was."""
    state = args[0] if args else options.get("state_dict")
    is_state = session.is_recording and isinstance(state, Mapping)
    is_own = is_state and _is_own_state(module, state)
    result = function(module, *args, **options)
    if is_state and session.is_recording and hasattr(result, "unexpected_keys"):
        with without_overrides():
            report(session.channel, module, state, result.missing_keys, result.unexpected_keys, is_own=is_own)
    return result


def _is_own_state(module: torch.nn.Module, state: Mapping[Any, Any]) -> bool:
    """Return whether a state has only tensors that share the memory of the module's own of these names."""
    with without_overrides():
        return bool(state) and all(
            isinstance(key, str)
            and isinstance(value, torch.Tensor)
            and isinstance(own := member(module, key), torch.Tensor)
            and address(own) == address(value) > 0
            for key, value in state.items()
        )


def _emit_broadcast(session: Session, module: torch.nn.Module) -> None:
    """Record the buffers that differ from what this module left: other ranks have written to them since."""
    with without_overrides():
        for buffer, mark in _announced_buffers(session, module):
            if mark.recorded is None or session.value.is_hidden(buffer):
                continue
            if session.value(buffer) != mark.recorded:
                emit_written(session, buffer, mark.node)


def _note_buffers(session: Session, module: torch.nn.Module) -> None:
    """Remember the values of the module's buffers at the end of its forward."""
    with without_overrides():
        for buffer, mark in _announced_buffers(session, module):
            session.value.leave_nothing()  # it is compared with later values
            mark.recorded = session.value(buffer)


def _announced_buffers(session: Session, module: torch.nn.Module) -> Iterator[tuple[torch.Tensor, Mark]]:
    if session.is_outside or not module._buffers or not has_other_ranks():
        return
    for buffer in module._buffers.values():
        mark = None if buffer is None else session.marks.of_tensor(buffer)
        if buffer is not None and mark is not None:
            yield buffer, mark


def _path(session: Session, module: torch.nn.Module, kind: str) -> str:
    """Return the path of a module called outside any other one; it names its parameters from now on."""
    model = parameter_names.model_of(session.channel, module, torch.nn.Module)
    if model is not module:
        parameter_names.path(session.channel, model, _kind(model), partial(_modules_in, model))
    path = parameter_names.path(session.channel, module, kind, partial(_modules_in, module))
    if not session.is_partial and not _is_named(session, module):
        name_parameters(session, model, "" if model is not module else path.partition(".")[2])
    return path


def _kind(module: torch.nn.Module) -> str:
    """Return the name of a module's class in the source."""
    written = module._modules[_COMPILED] if _COMPILED in module._modules else module  # noqa: SIM401  # scripted: no get
    return type(written).__name__


def _modules_in(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    return ((_as_written(path), inner) for path, inner in modules_in(module))


def _as_written(path: str) -> str:
    """Return a path without the wrappers of ``torch.compile``."""
    return ".".join(part for part in path.split(".") if part != _COMPILED)


def leave(session: Session, module: torch.nn.Module, result: object = None) -> None:
    """Record the end of a module's forward, with a result or by an exception."""
    thread = session.thread
    if isinstance(result, tuple | list | Mapping) and not session.is_outside:
        with without_overrides():
            emit_returned(session, result)
    if thread.scopes:  # otherwise it began before the recording
        _, path = thread.modules.pop()
        if module._buffers:
            _name_buffers(session, module, path)
            _note_buffers(session, module)
        scope = thread.scopes.pop()
        if scope:
            session.channel.emit(ScopeLeft(scope))
        if not any(thread.scopes):
            thread.is_in_module = False


def name_parameters(session: Session, root: torch.nn.Module, path: str = "") -> None:
    """Record each parameter's path in the model, once per recording; `root` is its module at `path`.

    If a part of the model has named a parameter and no variable holds that part, the parameter is renamed to its path
    in the model. A lazy parameter has no shape before the first call, and gets its name at the next one.
    """
    with without_overrides():
        fresh = []
        for full_name, parameter in parameters_in(root, path):
            if is_lazy(parameter):
                continue
            name = _as_written(full_name)
            mark = mark_of(session, parameter)
            if mark.named and not name.endswith(f".{mark.named}"):
                continue
            if not isinstance(parameter, torch.nn.Parameter) and (own := variables_of_objects.first_name(parameter)):
                session.channel.emit(Named(mark.node, own))  # another tensor replaces the model's: ``functional_call``
            elif not mark.named or not parameter_names.has_variable(
                session.channel, mark.node
            ):  # called before its model
                fresh.append((name, mark.node))
            mark.named = name
        if fresh:
            parameter_names.name(session.channel, root, [*fresh, *_further_paths(session, root, path, dict(fresh))])


def _further_paths(
    session: Session, root: torch.nn.Module, path: str, named: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """Yield the other paths of a model's parameters, such as a decoder weight tied to its encoder's, or ``[layer] *
    3``.
    """
    nodes = {*named.values()}
    for full_name, parameter in parameter_names.places(modules_in(root, path)):
        mark, name = session.marks.of_tensor(parameter), _as_written(full_name)
        if mark is not None and mark.node in nodes and name not in named:
            yield name, mark.node


def name_unnamed(session: Session, module: torch.nn.Module) -> None:
    """Record the parameter names of a model, if no outer call has named them."""
    first = next((parameter for _, parameter in parameters_in(module)), None)
    mark = None if first is None else session.marks.of_tensor(first)
    if first is not None and (mark is None or not mark.named):
        name_parameters(session, module)


def name_uncalled(session: Session, parameters: Sequence[torch.Tensor]) -> None:
    """Name parameters whose model was not called as a module, if a variable or a running method holds the model.

    ``torch.func`` uses models this way, and so do models that are called differently, such as GPyTorch's.
    """
    for parameter in parameters:
        mark = session.marks.of_tensor(parameter)
        if mark is None or mark.named or mark.sought:
            continue
        mark.sought = True
        model = variables_of_objects.program_variable(torch.nn.Module, partial(_has_parameter, parameter))
        if model is not None:
            name_parameters(session, model)


def _has_parameter(parameter: torch.Tensor, module: torch.nn.Module) -> bool:
    return any(own is parameter for _, own in parameters_in(module))


def _is_named(session: Session, module: torch.nn.Module) -> bool:
    """Return whether this module has no submodules and all its parameters are named."""
    known = (session.marks.of_tensor(p) for p in module._parameters.values() if p is not None)
    return not module._modules and all(mark is not None and mark.named for mark in known)


def _name_buffers(session: Session, module: torch.nn.Module, path: str) -> None:
    """Record the names of the buffers that the module used; most are never part of a graph."""
    fresh = []
    for name, buffer in module._buffers.items():
        mark = None if buffer is None else session.marks.of_tensor(buffer)
        if mark is not None and not mark.named:
            mark.named = name
            fresh.append((name, mark.node))
    parameter_names.name_buffers(session.channel, path, fresh)
