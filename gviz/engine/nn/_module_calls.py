"""Emits module calls and the paths of parameters; used only while a recording listens.

A scope is one call of a module. It is named by the path of the module: the class of the outermost module that was
called, followed by attribute names, as in ``Net.encoder.0``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from weakref import WeakSet

from gviz import emit, parameter_names
from gviz.emit import Channel, Seen
from gviz.engine import instrumentation
from gviz.engine.array_storage import address_of
from gviz.engine.modes import thread
from gviz.engine.tensor import Tensor
from gviz.events import ScopeEntered, ScopeLeft
from gviz.parameter_names import modules_in, parameters_in, plain_flags
from gviz.state_dict_load import member

Module = Any  # `gviz.engine.nn.module.Module`, which is built on this file

_named_buffers: WeakSet[Seen] = WeakSet()


class ModuleCall:
    """The scope of one call, even if it ends by an exception; `kind` is the base class of all modules.

    It is not a generator with ``contextmanager``, whose frames would be in the call stack where the program is paused.
    """

    __slots__ = ("_channel", "_kind", "_module", "_path", "_scope")

    def __init__(self, channel: Channel, module: Module, kind: type[Any]) -> None:
        self._channel, self._module, self._kind = channel, module, kind

    def __enter__(self) -> None:
        channel, module = self._channel, self._module
        model = None if thread.modules else _model_of(channel, module, self._kind)
        path = self._path = _path(channel, module)
        if model is not None:
            name_parameters(channel, model)
        scope = self._scope = channel.next_scope()
        flags = () if thread.modules else plain_flags(modules_in(module), path)
        channel.emit(ScopeEntered(scope, thread.scopes[-1] if thread.scopes else 0, path, type(module).__name__, flags))
        thread.scopes.append(scope)
        thread.modules.append((module, path))

    def __exit__(self, *error: object) -> None:
        thread.scopes.pop()
        thread.modules.pop()
        if emit.channel is self._channel:
            _name_buffers(self._channel, self._module, self._path)
            self._channel.emit(ScopeLeft(self._scope))


def is_own_state(module: Module, state: Mapping[str, Any]) -> bool:
    """Whether a state has only tensors that share the memory of the module's own of these names."""
    return bool(state) and all(
        isinstance(key, str) and isinstance(value, Tensor) and _address(value) == _address(member(module, key))
        for key, value in state.items()
    )


def _address(tensor: Tensor | None) -> int | None:
    return address_of(tensor._array) if tensor is not None else None


def name_parameters(channel: Channel, root: Module) -> None:
    """Records each parameter's path in the model, once per recording."""
    fresh = []
    for name, parameter in parameters_in(root):
        mark = instrumentation.seen(channel, parameter)
        if parameter._named is not mark:
            parameter._named = mark
            fresh.append((name, mark.node))
    if fresh:
        parameter_names.name(channel, root, [*fresh, *_further_paths(root, dict(fresh))])


def _further_paths(root: Module, named: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the other paths of a model's parameters, such as a weight shared by decoder and encoder, or ``[layer] *
    3``.
    """
    nodes = {*named.values()}
    for name, parameter in parameter_names.places(modules_in(root)):
        mark = parameter._named
        if mark is not None and mark.node in nodes and name not in named:
            yield name, mark.node


def _name_buffers(channel: Channel, module: Module, path: str) -> None:
    """Record the names of the buffers that the module has used; most are never part of a graph."""
    fresh = []
    for name, buffer in module._buffers.items():
        mark = None if buffer is None else buffer._seen
        if mark is not None and mark.channel is channel and mark not in _named_buffers:
            _named_buffers.add(mark)
            fresh.append((name, mark.node))
    parameter_names.name_buffers(channel, path, fresh)


def _model_of(channel: Channel, module: Module, kind: type[Any]) -> Module:
    """Return the model that contains the called module, or the module itself if there is none."""
    model = parameter_names.model_of(channel, module, kind)
    if model is not module:
        parameter_names.path(channel, model, type(model).__name__, partial(modules_in, model))
    return model


def _path(channel: Channel, module: Module) -> str:
    """Return the module's path in the innermost running module that contains it, or else in its model."""
    for outer, path in reversed(thread.modules):
        for name, inner in modules_in(outer):
            if inner is module:
                return f"{path}.{name}" if name else path
    return parameter_names.path(channel, module, type(module).__name__, partial(modules_in, module))
