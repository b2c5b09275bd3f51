"""What parameters and modules are called where a program has several models, or calls parts of one.

A parameter's own name is its path in its model. Of a generator and a discriminator a ``0.weight`` and a ``weight`` say
not whose they are: they are ``generator.0.weight`` and ``discriminator.weight``, from the moment on in which the second
is named.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import FunctionType, ModuleType, NoneType
from typing import Any, TypeVar

from gviz.emit import Channel
from gviz.events import Named, VariableHeld
from gviz.source import variables

_Module = TypeVar("_Module")


@dataclass(slots=True, eq=False)
class _Root:
    """A model, and the nodes of its parameters by their paths; `holder` is what it is called by, if it has to be."""

    module: weakref.ref[object]
    nodes: dict[str, int]
    holder: str = ""


_roots: weakref.WeakKeyDictionary[Channel, dict[str, _Root]] = weakref.WeakKeyDictionary()
"""Of each recording the model that said a path last, by the path."""

_of_nodes: weakref.WeakKeyDictionary[Channel, dict[int, _Root]] = weakref.WeakKeyDictionary()
"""Of each recording the model by which a parameter's node is called."""


class _Paths:
    """The paths of modules, as long as these live: of each by itself, whatever it says it equals."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[object], str]] = {}

    def of(self, module: object) -> str:
        """The path of a module, empty where none is known."""
        known = self._known.get(id(module))
        return known[1] if known is not None and known[0]() is module else ""

    def add(self, module: object, path: str) -> None:
        """The path of a module, unless one is known."""
        if not self.of(module):
            self._known[id(module)] = weakref.ref(module), path

    def all(self) -> set[str]:
        """The paths of those that live; the others are forgotten."""
        self._known = {number: known for number, known in self._known.items() if known[0]() is not None}
        return {path for _, path in self._known.values()}


_paths: weakref.WeakKeyDictionary[Channel, _Paths] = weakref.WeakKeyDictionary()
"""Of each recording the paths of the modules within the models that were called."""


def modules_in(module: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """A module and all within it, each once, by their paths, of which its own is given.

    No method of theirs is called: a program may have written ``named_modules`` anew. One that is not made yet, as
    ``super().__init__()`` is still to come, holds none.
    """
    met: set[int] = set()
    waiting = [(path, module)]
    while waiting:
        path, module = waiting.pop()
        if id(module) not in met:
            met.add(id(module))
            yield path, module
            held = [(_joined(path, name), one) for name, one in getattr(module, "_modules", {}).items()]
            waiting.extend((place, one) for place, one in reversed(held) if one is not None)


def parameters_in(module: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The parameters of a module and of all within it, each once, by their paths; again without a method of theirs."""
    met: set[int] = set()
    for place, one in modules_in(module, path):
        for name, parameter in getattr(one, "_parameters", {}).items():
            if parameter is not None and id(parameter) not in met:
                met.add(id(parameter))
                yield _joined(place, name), parameter


def model_of(channel: Channel, module: _Module, kind: type[_Module]) -> _Module:
    """The model that a module is a part of which no running one contains: the outermost whose method runs and calls it.

    ``self.net(x)`` in another method than ``forward`` is a call of that model's ``net``. It is the module itself where
    there is none such, or the path of it is known. All modules are of that `kind`.
    """
    if _own_path(channel, module):
        return module

    def has_it(model: _Module) -> bool:
        return any(inner is module for _, inner in modules_in(model))

    return variables.running_method_of(kind, has_it) or module


def path(channel: Channel, module: object, kind: str, named: Callable[[], Iterable[tuple[str, object]]]) -> str:
    """The path of a module that no running one contains: the one it has in its model, if that was called before.

    Else it is a model itself, and has the name of its class, with a number where another one has that: they would
    else be taken for calls of one. `named` gives the modules within it by their paths.
    """
    known = _paths.setdefault(channel, _Paths())
    if not known.of(module):
        taken = known.all()
        own = next(each for each in _numbered(kind) if each not in taken)
        for within, inner in named():
            known.add(inner, _joined(own, within))
    return known.of(module)


def places(modules: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The parameters of a model's `modules`, each of which stands there once, by every path that they have.

    A tied weight has one in each module that has it, and ``[layer] * 3`` is one module at three places. What is within
    a further place of a module is told by that place alone: a module may contain itself.
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
    """``Linear``, ``Linear_2``, ``Linear_3`` …"""
    yield kind
    yield from (f"{kind}_{number}" for number in count(2))


def name(channel: Channel, module: object, named: Sequence[tuple[str, int]]) -> None:
    """Say what a model's parameters are called: pairs of path and node, of which the first for a node is its name."""
    known, of_node = _roots.setdefault(channel, {}), _of_nodes.setdefault(channel, {})
    root = _Root(weakref.ref(module), dict(named))
    for path, node in named:
        before = of_node.get(node)
        if before is not None and before is not root:
            before.nodes = {path: other for path, other in before.nodes.items() if other != node}
        of_node[node] = root
    for other in _beside(channel, root):
        its_module = other.module()
        if its_module is module:
            root.holder = root.holder or other.holder
            continue
        root.holder = root.holder or _holder(channel, module)
        if not other.holder and its_module is not None:
            other.holder = _holder(channel, its_module)
            _say(channel, other)
    _say(channel, root)
    known.update(dict.fromkeys(root.nodes, root))


def _beside(channel: Channel, root: _Root) -> Iterable[_Root]:
    """The models from which one is to be told: each that lives, and each that said one of its paths."""
    said = (_roots[channel].get(path) for path in root.nodes)
    living = (other for other in _of_nodes[channel].values() if other.module() is not None)
    return {id(other): other for other in (*said, *living) if other is not None and other is not root}.values()


def _holder(channel: Channel, module: object) -> str:
    """What tells a model from the others: the variable that holds it, or its own path where none does alone."""
    held = variables.first_name(module, lasting=True).removeprefix("self.")
    living = (root for root in _of_nodes[channel].values() if root.module() is not None)
    taken = held and any(root.holder == held and root.module() is not module for root in living)
    return held if held and not taken else _own_path(channel, module) or held


def _own_path(channel: Channel, module: object) -> str:
    known = _paths.get(channel)
    return "" if known is None else known.of(module)


def is_held(channel: Channel, node: int) -> bool:
    """Whether a variable holds the model by which a parameter's node is called."""
    root = _of_nodes.get(channel, {}).get(node)
    module = root.module() if root is not None else None
    if root is None or module is None:
        return root is not None and bool(root.holder)
    return root.holder not in ("", _own_path(channel, module)) or bool(variables.first_name(module))


def _say(channel: Channel, root: _Root) -> None:
    paths: dict[int, list[str]] = {}
    for path, node in root.nodes.items():
        paths.setdefault(node, []).append(f"{root.holder}.{path}" if root.holder else path)
    for node, (first, *others) in paths.items():
        channel.say(Named(node, first, tuple(others)))


# Which variables hold what: a name means the object that its variable holds


@dataclass(slots=True)
class _Holders:
    """What was said of variables, and by the identity of a model its first parameter that is a node, with its path."""

    said: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    places: dict[int, tuple[weakref.ref[object], int, str]] = field(default_factory=dict)
    has_idle: bool = False


_holders: weakref.WeakKeyDictionary[Channel, _Holders] = weakref.WeakKeyDictionary()


def say_held(channel: Channel, leaf: Callable[[Any], int | None]) -> None:
    """Say what variables hold whose name alone would be taken for another object: see `VariableHeld`.

    `leaf` gives the node of a tensor, 0 for a leaf that is none, and None for a tensor without ``.grad``.
    """
    known = _holders.setdefault(channel, _Holders())
    channel.last_words = partial(say_held, channel, leaf)
    found: dict[tuple[str, str], tuple[int, str, bool]] = {}
    for variable, function, thing, passing in variables.holders(_is_model_or_tensor):
        place = _place(known, thing, leaf)
        if place is not None and (variable, function) not in found:
            found[variable, function] = (*place, passing)
    of_nodes = _of_nodes.get(channel, {})
    known.has_idle |= any(
        not passing and (not node or (path and node not in of_nodes)) for node, path, passing in found.values()
    )
    lasting = [node for node, path, passing in found.values() if not path and not passing]
    for key, (node, path, passing) in found.items():
        root = of_nodes.get(node)
        if path:
            is_clear = not known.has_idle and root is not None and root.nodes.get(path) == node
        else:
            is_clear = bool(node) and lasting.count(node) < 2 and (root is None or "[" in key[0])
        if not passing and not is_clear and known.said.get(key) != (node, path):
            known.said[key] = node, path
            channel.say(VariableHeld(key[0], node, path, key[1]))


def _place(known: _Holders, thing: Any, leaf: Callable[[Any], int | None]) -> tuple[int, str] | None:
    """A leaf's node, or the first parameter of a model that is a node, with its path; None for any other thing."""
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
"""What Python itself knows of a class, without code of its metaclass."""

_OF_MODULES = ("torch.nn.modules.module", "gviz.engine.nn.module")
"""Where the class of all modules is defined, in PyTorch and in the built-in engine."""


_PLAIN = frozenset(map(id, (int, float, str, bool, NoneType, list, tuple, dict, set, FunctionType, ModuleType)))
"""The classes of most objects, by their identity."""


def _is_model_or_tensor(kind: type) -> bool:
    if id(kind) in _PLAIN:
        return False
    return any((_NAME(one), _HOME(one)) == ("Tensor", "torch") for one in _ORDER(kind)) or _is_model(kind)


def _is_model(kind: type) -> bool:
    return any(_NAME(one) == "Module" and _HOME(one) in _OF_MODULES for one in _ORDER(kind))
