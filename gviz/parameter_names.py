"""Names parameters, buffers and modules if a program has several models, or calls parts of one.

A parameter is named by its path in its model, and so is a buffer. With a generator and a discriminator, ``0.weight``
and ``weight`` do not show which model they belong to. They become ``generator.0.weight`` and ``discriminator.weight``
once the second model is named.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import FunctionType, ModuleType, NoneType
from typing import Any, TypeVar

from gviz.emit import Channel
from gviz.events import Named, VariableHeld
from gviz.source import variables_of_objects

_Module = TypeVar("_Module")


@dataclass(slots=True, eq=False)
class _Root:
    """A model, and the nodes of its parameters and buffers by path; `holder` is the prefix of their names, if one is
    needed.

    A model is another one's competitor for a name only by its parameters: a part that PyTorch has called before its
    model, such as a parametrization, has no more than buffers left.
    """

    module: weakref.ref[object]
    nodes: dict[str, int]
    holder: str = ""
    buffers: dict[str, int] = field(default_factory=dict)


_roots: weakref.WeakKeyDictionary[Channel, dict[str, _Root]] = weakref.WeakKeyDictionary()
"""By recording: the model that last used a path, by the path."""

_of_nodes: weakref.WeakKeyDictionary[Channel, dict[int, _Root]] = weakref.WeakKeyDictionary()
"""By recording: the model that names a parameter's node, by the node."""

_of_calls: weakref.WeakKeyDictionary[Channel, dict[str, _Root]] = weakref.WeakKeyDictionary()
"""By recording: the model of a path in the names of module calls (``Net``, ``Net_2``)."""


class _Paths:
    """The paths of living modules, by identity: modules may define ``__eq__``."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[object], str]] = {}

    def of(self, module: object) -> str:
        """Return the path of a module, or an empty string if unknown."""
        known = self._known.get(id(module))
        return known[1] if known is not None and known[0]() is module else ""

    def add(self, module: object, path: str) -> None:
        """Set the path of a module, unless it has one."""
        if not self.of(module):
            self._known[id(module)] = weakref.ref(module), path

    def all(self) -> set[str]:
        """Return the paths of living modules, and forget the others."""
        self._known = {number: known for number, known in self._known.items() if known[0]() is not None}
        return {path for _, path in self._known.values()}


_paths: weakref.WeakKeyDictionary[Channel, _Paths] = weakref.WeakKeyDictionary()
"""By recording: the paths of the modules within the models that were called."""


def plain_flags(modules: Iterable[tuple[str, Any]], path: str) -> tuple[tuple[str, bool], ...]:
    """Return the attributes ``requires_grad`` of modules of the model at `path`, which autograd ignores.

    The `modules` come with their names in the model. Only instance attributes count: a class may define a property of
    this name.
    """
    flags = ((name, module.__dict__["requires_grad"]) for name, module in modules if "requires_grad" in module.__dict__)
    return tuple((_joined(path, name) if name else path, flag) for name, flag in flags if isinstance(flag, bool))


def modules_in(module: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a module at `path` and all its submodules with their paths, each once.

    Calls none of their methods, because a program may override ``named_modules``. A module whose ``super().__init__()``
    has not run yet has no submodules.
    """
    seen: set[int] = set()
    waiting = [(path, module)]
    while waiting:
        path, module = waiting.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield path, module
            children = [(_joined(path, name), one) for name, one in getattr(module, "_modules", {}).items()]
            waiting.extend((place, one) for place, one in reversed(children) if one is not None)


def parameters_in(module: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the parameters of a module and its submodules with their paths, each once, without calling methods."""
    seen: set[int] = set()
    for place, one in modules_in(module, path):
        for name, parameter in getattr(one, "_parameters", {}).items():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield _joined(place, name), parameter


def model_of(channel: Channel, module: _Module, kind: type[_Module]) -> _Module:
    """Return the model that a module called outside any module call belongs to.

    It is the model whose running method makes the call, the outermost such one: ``self.net(x)`` in a method other than
    ``forward`` is a call of that model's ``net``. It is the module itself if there is none, or if its path is known.
    All modules are of type `kind`.
    """
    if _own_path(channel, module):
        return module

    def has_it(model: _Module) -> bool:
        return any(inner is module for _, inner in modules_in(model))

    return variables_of_objects.running_method_of(kind, has_it) or module


def path(channel: Channel, module: object, kind: str, named: Callable[[], Iterable[tuple[str, object]]]) -> str:
    """Return the path of a module called outside any module call: its path in its model, if that was called before.

    Otherwise it is a model itself, see `_model_name`. `named` yields the modules within it by path.
    """
    known = _paths.setdefault(channel, _Paths())
    if not known.of(module):
        own = _model_name(module, kind, known.all())
        for inner_path, inner in named():
            known.add(inner, _joined(own, inner_path))
    return known.of(module)


def _model_name(module: object, kind: str, taken: Collection[str]) -> str:
    """Return the name of a model that is no part of another: its class, ``Generator``.

    If the program has several models of one class, their calls must not look like calls of one model. Each has the name
    of its variable then (``actor``, ``critic``), or a number if no variable holds it by itself.
    """
    usual = next(each for each in _numbered(kind) if each not in taken)
    held = [*variables_of_objects.holders(lambda one: one is type(module))]
    if usual == kind and all(other is module for _, _, other, _ in held):
        return usual
    own = (name.removeprefix("self.") for name, _, other, passing in held if other is module and not passing)
    return next((name for name in own if name.isidentifier() and name not in taken), usual)


def places(modules: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the parameters of a model's `modules`, by every path that they have; each module is in `modules` once.

    A tied weight has one path in each module that has it, and ``[layer] * 3`` is one module in three places. At a
    further place of a module, each parameter in it has only one path, because a module may contain itself.
    """
    first = [*modules]
    own = {id(module): path for path, module in first}
    for path, module in first:
        yield from ((_joined(path, name), one) for name, one in module._parameters.items() if one is not None)
        for name, child in module._modules.items():
            place = _joined(path, name)
            if child is not None and own.get(id(child), place) != place:
                yield from parameters_in(child, place)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def _numbered(kind: str) -> Iterator[str]:
    """Yield ``Linear``, ``Linear_2``, ``Linear_3`` …"""
    yield kind
    yield from (f"{kind}_{number}" for number in count(2))


def name(channel: Channel, module: object, named: Sequence[tuple[str, int]]) -> None:
    """Record the names of a model's parameters from pairs of path and node. The first path of a node is its name."""
    known, of_node = _roots.setdefault(channel, {}), _of_nodes.setdefault(channel, {})
    root = _Root(weakref.ref(module), dict(named))
    for path, node in named:
        before = of_node.get(node)
        if before is not None and before is not root:
            before.nodes = {path: other for path, other in before.nodes.items() if other != node}
        of_node[node] = root
    for other in _competitors(channel, root):
        its_module = other.module()
        if its_module is module:
            root.holder = root.holder or other.holder
            continue
        root.holder = root.holder or _holder(channel, module)
        if not other.holder and its_module is not None:
            other.holder = _holder(channel, its_module)
            _emit(channel, other)
    _emit(channel, root)
    known.update(dict.fromkeys(root.nodes, root))
    _of_calls.setdefault(channel, {})[_own_path(channel, module)] = root


def name_buffers(channel: Channel, path: str, named: Iterable[tuple[str, int]]) -> None:
    """Record the names of a module's buffers from pairs of name and node; `path` is that of the module's call."""
    model, _, place = path.partition(".")
    root = _of_calls.get(channel, {}).get(model)  # None for a model without parameters
    for name, node in named:
        full = _joined(place, name)
        if root is not None:
            root.buffers[full] = node
        channel.emit(Named(node, _joined(root.holder if root is not None else "", full)))


def _competitors(channel: Channel, root: _Root) -> Iterable[_Root]:
    """Return the models that `root` must be distinguished from: the living ones, and those that use one of
    its paths.
    """
    roots = (_roots[channel].get(path) for path in root.nodes)
    living = (other for other in _of_nodes[channel].values() if other.module() is not None)
    return {id(other): other for other in (*roots, *living) if other is not None and other is not root}.values()


def _holder(channel: Channel, module: object) -> str:
    """Return what distinguishes a model from the others: the variable that holds it, or its own path if none is
    unique.
    """
    variable = variables_of_objects.first_name(module, lasting=True).removeprefix("self.")
    living = (root for root in _of_nodes[channel].values() if root.module() is not None)
    taken = variable and any(root.holder == variable and root.module() is not module for root in living)
    return variable if variable and not taken else _own_path(channel, module) or variable


def _own_path(channel: Channel, module: object) -> str:
    known = _paths.get(channel)
    return "" if known is None else known.of(module)


def has_variable(channel: Channel, node: int) -> bool:
    """Return whether a variable holds the model that names a parameter's node."""
    root = _of_nodes.get(channel, {}).get(node)
    module = root.module() if root is not None else None
    if root is None or module is None:
        return root is not None and bool(root.holder)
    return root.holder not in ("", _own_path(channel, module)) or bool(variables_of_objects.first_name(module))


def _emit(channel: Channel, root: _Root) -> None:
    paths: dict[int, list[str]] = {}
    for path, node in (*root.nodes.items(), *root.buffers.items()):
        paths.setdefault(node, []).append(f"{root.holder}.{path}" if root.holder else path)
    for node, (first, *others) in paths.items():
        channel.emit(Named(node, first, tuple(others)))


# Which variables hold what: a name refers to the object that its variable holds


@dataclass(slots=True)
class _Holders:
    """What was recorded about variables, and the first parameter with a node, and its path, by a model's id."""

    last_paths: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    places: dict[int, tuple[weakref.ref[object], int, str]] = field(default_factory=dict)
    has_idle: bool = False


_holders: weakref.WeakKeyDictionary[Channel, _Holders] = weakref.WeakKeyDictionary()


def emit_holders(channel: Channel, leaf: Callable[[Any], int | None]) -> None:
    """Record what variables hold if their name would otherwise be resolved to another object: see `VariableHeld`.

    `leaf` returns the node of a tensor, 0 for a leaf without a node, and None for a tensor that gets no ``.grad``.
    """
    known = _holders.setdefault(channel, _Holders())
    channel.last_words = partial(emit_holders, channel, leaf)
    holders: dict[tuple[str, str], tuple[int, str, bool]] = {}
    for variable, function, thing, passing in variables_of_objects.holders(_is_model_or_tensor):
        place = _place(known, thing, leaf)
        if place is not None and (variable, function) not in holders:
            holders[variable, function] = (*place, passing)
    of_nodes = _of_nodes.get(channel, {})
    known.has_idle |= any(
        not passing and (not node or (path and node not in of_nodes)) for node, path, passing in holders.values()
    )
    lasting = [node for node, path, passing in holders.values() if not path and not passing]
    for key, (node, path, passing) in holders.items():
        root = of_nodes.get(node)
        if path:
            is_clear = not known.has_idle and root is not None and root.nodes.get(path) == node
        else:
            is_clear = bool(node) and lasting.count(node) < 2 and (root is None or "[" in key[0])
        if not passing and not is_clear and known.last_paths.get(key) != (node, path):
            known.last_paths[key] = node, path
            channel.emit(VariableHeld(key[0], node, path, key[1]))


def _place(known: _Holders, thing: Any, leaf: Callable[[Any], int | None]) -> tuple[int, str] | None:
    """Return a leaf's node, or the first parameter of a model that has a node, with its path; None for
    anything else.
    """
    if not _is_model(type(thing)):
        node = leaf(thing)
        return None if node is None else (node, "")
    before = known.places.get(id(thing))
    if before is not None and before[0]() is thing:
        return before[1:]
    parameters = [*parameters_in(thing)]
    if not parameters:
        return None
    place = next(((node, path) for path, one in parameters if (node := leaf(one))), None)
    if place is not None:
        known.places[id(thing)] = weakref.ref(thing), *place
    return place or (0, "")


_ORDER, _NAME, _HOME = (type.__dict__[name].__get__ for name in ("__mro__", "__name__", "__module__"))
"""Reads Python's own attributes of a class without running code of its metaclass."""

_OF_MODULES = ("torch.nn.modules.module", "gviz.engine.nn.module")
"""Where the base class of modules is defined, in PyTorch and in the built-in engine."""


_PLAIN = frozenset(map(id, (int, float, str, bool, NoneType, list, tuple, dict, set, FunctionType, ModuleType)))
"""The ids of the most common classes."""


_kinds: dict[int, tuple[weakref.ref[type], bool]] = {}
"""Whether a class is one of models or tensors, by its id: a class may have a metaclass that compares and hashes."""

_MOST_KINDS = 1 << 12


def _is_model_or_tensor(kind: type) -> bool:
    if id(kind) in _PLAIN:
        return False
    known = _kinds.get(id(kind))
    if known is None or known[0]() is not kind:
        if len(_kinds) >= _MOST_KINDS:
            _kinds.clear()
        is_tensor = any((_NAME(one), _HOME(one)) == ("Tensor", "torch") for one in _ORDER(kind))
        known = _kinds[id(kind)] = weakref.ref(kind), is_tensor or _is_model(kind)
    return known[1]


def _is_model(kind: type) -> bool:
    return any(_NAME(one) == "Module" and _HOME(one) in _OF_MODULES for one in _ORDER(kind))
