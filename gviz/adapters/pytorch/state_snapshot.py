"""Copies of what a function of the program can change, with which a call of the function is made again.

A `StateSnapshot` has everything that the function reaches by name:

* its variables: closure, globals and defaults, those of the program's own functions, methods and modules that it
  names, and its arguments;
* in these: models (parameters, buffers, attributes), optimizers (state, options and attributes, with the ``.grad`` of
  their parameters), generators, NumPy arrays, objects and classes of the program, and containers;
* the state of the random number generators of PyTorch, NumPy and Python.

Tensors and arrays are copied, and restored in place. Everything else is kept by reference: if the function binds a
name, an attribute or an item to another object, the old one is put back. For example, with ``self.steps += 1`` in a
method, the snapshot has the attributes of ``self``, and among them the old number. What the function did not change is
not written to.

What cannot be restored is refused before the call (`NoSnapshot`): an iterator, a queue or a file, which cannot go back,
and what is longer, deeper or larger than the limits. What is changed in secret, such as a file or an object of a
library, is found after the second call, if its result differs.
"""

from __future__ import annotations

import dis
import functools
import io
import operator
import pickle
import queue
import random
import sys
import weakref
from argparse import Namespace
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np
import torch

from gviz.adapters.pytorch import private_api
from gviz.source import variables_of_objects

MOST_ON_DEVICE = 64 << 20
"""The bytes that copies may take on a device; larger snapshots are copied to the host."""
MOST = 4 << 30
"""The bytes of the largest snapshot."""
MOST_OF_A_TENSOR = 1 << 20
"""The bytes up to which a tensor is copied that belongs to no model and no optimizer."""
MOST_ITEMS = 100_000
"""The items of the longest container that is restored."""
_DEEPEST = 40
_MOST_OBJECTS = 200_000

Key = tuple[Any, ...]
"""What a copied tensor is: for example ``("grad", id(parameter))``."""


class NoSnapshot(Exception):  # it is the answer to a question, in words
    """The reason why the state of a function cannot be restored."""


class NotRestored(Exception):  # the program ends, rather than that it continues with other numbers
    """The state was restored only in part, and the reason."""


class Reach:
    """What a function reaches by name. Raises `NoSnapshot` if a part of it cannot be restored."""

    def __init__(self, function: Callable[..., Any], args: Iterable[Any], options: Mapping[str, Any]) -> None:
        self.modules: dict[int, torch.nn.Module] = {}
        self.optimizers: dict[int, torch.optim.Optimizer] = {}
        self.leaves: dict[int, torch.Tensor] = {}
        self.tensors: dict[int, torch.Tensor] = {}
        """Other tensors. Those above `MOST_OF_A_TENSOR` are not copied, and the function must not write to them."""
        self.arrays: dict[int, Any] = {}
        self.generators: dict[int, Any] = {}
        self.spaces: dict[int, dict[Any, Any]] = {}
        """Dictionaries, among them the attributes of objects."""
        self.sequences: dict[int, Any] = {}
        """Lists, deques, sets and arrays of bytes and numbers."""
        self.slots: dict[tuple[int, int], tuple[object, Any]] = {}
        """Objects with the descriptor of an attribute in ``__slots__``."""
        self.classes: dict[int, type] = {}
        self.globals: dict[tuple[int, str], tuple[dict[str, Any], Any]] = {}
        self.cells: dict[int, tuple[Any, Any]] = {}
        self._seen: dict[int, object] = {}
        self._named: set[tuple[int, int]] = set()
        """The modules whose variables were looked for, with the code that names them."""
        self._call = function, args, options
        self._visit_function("", function, 0)
        for name, value in chain(((f"argument {at}", it) for at, it in enumerate(args, 1)), options.items()):
            self._visit(name, value, 0)

    def again(self) -> Reach:
        """Return what the function reaches now, with the objects that it reached before."""
        now = Reach(*self._call)
        for name in _OBJECTS:
            setattr(now, name, {**getattr(self, name), **getattr(now, name)})
        return now

    def add(self, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """Add optimizers that the function may not name."""
        for optimizer in optimizers:
            self._visit("an optimizer", optimizer, 0)

    def _visit_function(self, name: str, function: object, depth: int) -> None:
        if isinstance(function, functools.partial):
            self._visit_function(name, function.func, depth)
            for value in (*function.args, *function.keywords.values()):
                self._visit(name, value, depth)
        elif isinstance(function, MethodType):
            self._visit("self", function.__self__, depth)
            self._visit_function(name, function.__func__, depth)
        elif isinstance(function, FunctionType):
            self._visit_names(function, depth)
        else:
            self._visit(name, function, depth)
            call = getattr(type(function), "__call__", None)  # noqa: B004  # the function is wanted, not an answer
            if isinstance(call, FunctionType):
                self._visit_names(call, depth)

    def _visit_names(self, function: FunctionType, depth: int) -> None:
        if id(function) in self._seen:
            return
        self._note(function.__name__, function, depth)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # it has no value yet
                value = _ABSENT
            self.cells[id(cell)] = cell, value
            if isinstance(value, ModuleType):
                self._visit_module(value, function.__code__, depth)
            else:
                self._visit(name, value, depth)
        space, names = function.__globals__, _names(function.__code__)
        for name in names.stored - space.keys():
            self.globals[id(space), name] = space, _ABSENT
        for name in names.of_globals & space.keys():
            self._visit_global(space, name, function.__code__, depth)
        package = str(space.get("__package__") or "")
        for name in names.imported:
            for path in (name, f"{package}.{name}"):
                self._visit_module(sys.modules.get(path), function.__code__, depth)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._visit(function.__name__, value, depth)
        if function.__dict__:
            self._visit(function.__name__, function.__dict__, depth)

    def _visit_global(self, space: dict[str, Any], name: str, code: CodeType, depth: int) -> None:
        value = space[name]
        self.globals[id(space), name] = space, value
        if isinstance(value, ModuleType):
            self._visit_module(value, code, depth)
        else:
            self._visit(name, value, depth)

    def _visit_module(self, module: ModuleType | None, code: CodeType, depth: int) -> None:
        """Visit what a function may use of a module of the program: `code` names it, as in ``module.function()``."""
        if module is None or not _is_own(module) or (id(module), id(code)) in self._named:
            return
        self._named.add((id(module), id(code)))
        space = module.__dict__
        for name in _names(code).all & space.keys():
            self._visit_global(space, name, code, depth + 1)

    def _note(self, name: str, value: object, depth: int) -> None:
        """Note that an object is visited. Raise `NoSnapshot` if something would be left out."""
        if depth > _DEEPEST:
            raise NoSnapshot(f"{name} is more than {_DEEPEST} levels deep in its state")
        if len(self._seen) >= _MOST_OBJECTS:
            raise NoSnapshot(f"its state has more than {_MOST_OBJECTS:,} objects")
        self._seen[id(value)] = value

    def _visit(self, name: str, value: object, depth: int) -> None:
        kind = type(value)
        if kind in _PLAIN or id(value) in self._seen:
            return
        if isinstance(value, (FunctionType, MethodType, functools.partial)):
            code = getattr(value, "__code__", None)
            if code is None or not _is_of_library(code.co_filename):
                self._visit_function(name, value, depth + 1)
            elif (inner := getattr(value, "__wrapped__", None)) is not None:  # such as that of torch.no_grad
                self._visit(name, inner, depth + 1)
            return
        if isinstance(value, ModuleType):
            return
        self._note(name, value, depth)
        if isinstance(value, torch.Tensor):
            own = self.leaves if value.requires_grad and value.is_leaf else self.tensors
            own[id(value)] = value
        elif isinstance(value, torch.nn.Module):
            self._visit_model(name, value, depth)
        elif isinstance(value, torch.optim.Optimizer):
            self.optimizers[id(value)] = value
            self._visit_attributes(name, value, depth, _hooks_of_optimizers())
        elif isinstance(value, _GENERATORS):
            self.generators[id(value)] = value
        elif isinstance(value, (queue.Queue, queue.SimpleQueue)) or kind.__module__ in _OF_QUEUES:
            raise NoSnapshot(f"it uses the queue {name}, which cannot go back")
        elif isinstance(value, io.IOBase):
            if not value.closed and value.readable():
                raise NoSnapshot(f"it reads from the file {name}, which cannot go back")
        elif hasattr(kind, "__next__"):
            raise NoSnapshot(f"it reads from the iterator {name}, which cannot go back")
        elif isinstance(value, type):
            self._visit_class(value, depth)
        elif isinstance(value, np.ndarray):
            self._visit_array(name, value)
        elif isinstance(value, _CONTAINERS):
            self._visit_container(name, value, depth)
        elif isinstance(value, (BuiltinMethodType, MethodWrapperType)):
            self._visit(name, value.__self__, depth + 1)
        elif isinstance(value, functools._lru_cache_wrapper):
            self._visit(name, value.__wrapped__, depth + 1)
        elif _has_own_attributes(kind):
            self._visit_attributes(name, value, depth)

    def _visit_container(self, name: str, value: Any, depth: int) -> None:
        if len(value) > MOST_ITEMS:
            raise NoSnapshot(f"{name} has more than {MOST_ITEMS:,} items")
        if isinstance(value, dict):
            self.spaces[id(value)] = value
        elif not isinstance(value, (tuple, frozenset)):
            self.sequences[id(value)] = value
        if not isinstance(value, _OF_NUMBERS):
            items = [*value.values()] if isinstance(value, dict) else [*value]
            for item in items:
                self._visit(name, item, depth + 1)
        if type(value).__module__ not in ("builtins", "collections"):
            self._visit_attributes(name, value, depth)

    def _visit_array(self, name: str, array: Any) -> None:
        if not array.flags.writeable:
            return
        if array.nbytes > MOST_OF_A_TENSOR:
            raise NoSnapshot(f"the NumPy array {name} has more than {MOST_OF_A_TENSOR >> 20} MiB")
        if array.dtype.hasobject or isinstance(array, np.ma.MaskedArray):
            raise NoSnapshot(f"the NumPy array {name} has more than numbers")
        self.arrays[id(array)] = array

    def _visit_attributes(self, name: str, value: Any, depth: int, without: frozenset[str] = frozenset()) -> None:
        """Visit the attributes of an object, and what the methods of its class name."""
        kind = type(value)
        self._visit(name, kind, depth + 1)
        for parent in kind.__mro__:
            for own in [*vars(parent).values()]:
                if isinstance(own, MemberDescriptorType) and not parent.__module__.startswith(_BUILT_IN):
                    self.slots[id(value), id(own)] = value, own
                    self._visit(f"{name}.{own.__name__}", _slot(value, own), depth + 1)
        space = getattr(value, "__dict__", None)
        if isinstance(space, dict):
            self.spaces[id(space)] = space
            for key, attribute in [*space.items()]:
                if key not in without:
                    self._visit(f"{name}.{key}", attribute, depth + 1)

    def _visit_class(self, kind: type, depth: int) -> None:
        """Visit the variables of a class of the program, and what its methods name."""
        for parent in kind.__mro__:
            if not _is_own_class(parent):
                continue
            self.classes[id(parent)] = parent
            for key, value in [*vars(parent).items()]:
                for own in _functions_in(value):
                    self._visit(f"{parent.__name__}.{key}", own, depth + 1)
                if not key.startswith("__"):
                    self._visit(f"{parent.__name__}.{key}", value, depth + 1)

    def _visit_model(self, name: str, model: torch.nn.Module, depth: int) -> None:
        for module in model.modules():
            self._seen[id(module)] = module
            self.modules[id(module)] = module
            for space in (module._parameters, module._buffers, module._modules):
                self.spaces[id(space)] = space
        for path, module in model.named_modules():
            self._visit_attributes(f"{name}.{path}" if path else name, module, depth, _OF_MODULES)


_GVIZ = f"{Path(__file__).parents[2]}/"
_ABSENT: Any = type("Absent", (), {})()
"""In the place of a variable that has no value."""
_OBJECTS = (
    *("modules", "optimizers", "leaves", "tensors", "arrays", "generators"),
    *("spaces", "sequences", "slots", "classes"),
)
_PLAIN = frozenset((int, float, bool, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size))
_GENERATORS = (torch.Generator, random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_OF_QUEUES = ("multiprocessing.queues", "multiprocessing.connection", "torch.multiprocessing.queue", "asyncio.queues")
_OF_NUMBERS = (bytearray, array)
_CONTAINERS = (dict, list, deque, set, tuple, frozenset, *_OF_NUMBERS)
_BUILT_IN = ("builtins", "collections", "torch")
_OF_MODULES = frozenset(vars(torch.nn.Module()))


@functools.cache
def _hooks_of_optimizers() -> frozenset[str]:
    """Return the names of the attributes of an optimizer that hold its hooks.

    Not when this module is imported: PyTorch imports its compiler for the first optimizer, which takes a second.
    """
    return frozenset(name for name in vars(torch.optim.SGD([torch.zeros(1)])) if name.endswith("_hooks"))


def _is_of_library(path: str) -> bool:
    return variables_of_objects.is_of_library(path) or path.startswith(_GVIZ)


def _is_own(module: ModuleType) -> bool:
    """Return whether a module is part of the program, such as a notebook, which has no file."""
    path = getattr(module, "__file__", None)
    return module.__name__ == "__main__" if path is None else not _is_of_library(path)


def _is_own_class(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    return module is not None and _is_own(module)


def _has_own_attributes(kind: type) -> bool:
    """Return whether the attributes of such an object are part of the state: the program's class, or one with a
    state.
    """
    return hasattr(kind, "load_state_dict") or issubclass(kind, (SimpleNamespace, Namespace)) or _is_own_class(kind)


def _functions_in(value: object) -> Iterator[FunctionType]:
    """Yield the functions of a method or property."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    found: tuple[object, ...] = (value,)
    if isinstance(value, property):
        found = value.fget, value.fset, value.fdel
    elif isinstance(value, functools.cached_property):
        found = (value.func,)
    yield from (it for it in found if isinstance(it, FunctionType))


def _slot(value: object, descriptor: Any) -> Any:
    try:
        return descriptor.__get__(value)
    except AttributeError:  # it has no value
        return _ABSENT


@dataclass(frozen=True, slots=True)
class _Names:
    """The names in a function, with those of the functions inside it."""

    of_globals: frozenset[str]
    stored: frozenset[str]
    imported: frozenset[str]
    all: frozenset[str]


@functools.lru_cache(maxsize=10_000)
def _names(code: CodeType) -> _Names:
    found = [(it.opname, it.argval) for it in dis.get_instructions(code)]
    inner = [_names(it) for it in code.co_consts if isinstance(it, CodeType)]
    return _Names(
        frozenset(name for kind, name in found if kind in _GLOBAL).union(*(it.of_globals for it in inner)),
        frozenset(name for kind, name in found if kind == "STORE_GLOBAL").union(*(it.stored for it in inner)),
        frozenset(name for kind, name in found if kind == "IMPORT_NAME").union(*(it.imported for it in inner)),
        frozenset(code.co_names).union(*(it.all for it in inner)),
    )


_GLOBAL = frozenset(("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME"))


@dataclass(frozen=True, slots=True)
class _Copied:
    """A tensor, its copy, and where and in which version it was then.

    `memory` is a tensor with the memory of then: the program may give a tensor other memory. It is None for a gradient,
    so that a program that frees its gradients gets their memory.
    """

    target: weakref.ref[torch.Tensor]
    copy: torch.Tensor
    version: int
    address: int
    strides: tuple[int, ...]
    memory: torch.Tensor | None
    requires_gradient: bool

    def restore(self) -> None:
        """Give the tensor its memory, numbers and version of then, if they differ."""
        target = self.target()
        if target is None:
            return
        has_other_memory = target.data_ptr() != self.address or _layout(target) != (self.copy.shape, self.strides)
        if has_other_memory and self.memory is not None:
            target.data = self.memory
        with torch.no_grad():
            if self._differs(target):
                _written(target).copy_(_written(self.copy, self.strides))
                if _version(target) != self.version and not target.is_inference():
                    private_api.set_version(target, self.version)
        if target.is_leaf and target.requires_grad != self.requires_gradient:
            target.requires_grad_(self.requires_gradient)

    def _differs(self, target: torch.Tensor) -> bool:
        """Return whether the tensor has other numbers. A write through ``.data`` leaves its version as it is.

        A tensor on a device that was written to is not compared, because that takes memory.
        """
        if _version(target) != self.version and target.device.type != "cpu":
            return True
        if self.copy.device != target.device:
            return not _is_same(target.cpu(), self.copy)
        return not _is_same(target, self.copy)


class StateSnapshot:
    """The state of what a function reaches, and of these `optimizers`, as it is now.

    `copies` of an earlier snapshot are written over where they have the same sizes. Raises `NoSnapshot`.
    """

    def __init__(
        self,
        reach: Reach,
        optimizers: Iterable[torch.optim.Optimizer],
        copies: Mapping[Key, torch.Tensor] | None = None,
    ) -> None:
        optimizers = [*optimizers]
        reach.add(optimizers)
        self._reach = reach
        self._objects: dict[Key, torch.Tensor] = {}
        self._optimizers = {id(it): it for it in (*optimizers, *reach.optimizers.values())}
        owned = self._collect()
        self._spaces = [(space, dict(space)) for space in reach.spaces.values()]
        self._sequences = [(it, it[:] if isinstance(it, _OF_NUMBERS) else [*it]) for it in reach.sequences.values()]
        self._slots = [(it, descriptor, _slot(it, descriptor)) for it, descriptor in reach.slots.values()]
        self._classes = [(it, dict(vars(it))) for it in reach.classes.values()]
        self._arrays = {key: (it, it.copy()) for key, it in reach.arrays.items()}
        others = {key: it for key, it in reach.tensors.items() if key not in owned}
        large = {key: it for key, it in others.items() if ("tensor", key) not in self._objects}
        self._versions = [(it, _version(it)) for it in large.values()]
        self._graphs = [(it, it.grad_fn) for it in reach.tensors.values()]
        self._random = _random_states(self._objects.values())
        self._generators = [(it, _generator_state(it)) for it in reach.generators.values()]
        self.copies = self._copied(copies or {})
        self._tensors = {key: _copied_now(it, self.copies[key], key[0] != "grad") for key, it in self._objects.items()}
        for leaf, _ in self._gradients:  # a program that frees its gradients gets their memory
            self._objects.pop(("grad", id(leaf)), None)

    def _collect(self) -> set[int]:
        """Find the tensors to copy. Return those of models and optimizers, which may be large."""
        objects = self._objects
        for group in chain.from_iterable(it.param_groups for it in self._optimizers.values()):
            objects.update({("option", id(it)): it for it in group.values() if isinstance(it, torch.Tensor)})
        leaves = dict(self._reach.leaves)
        for optimizer in self._optimizers.values():
            leaves.update({id(it): it for group in optimizer.param_groups for it in group["params"]})
        for module in self._reach.modules.values():
            leaves.update({id(it): it for it in module._parameters.values() if it is not None})
            buffers = {("buffer", id(module), name): it for name, it in module._buffers.items() if it is not None}
            objects.update(buffers)
        gradients = {("grad", key): leaf.grad for key, leaf in leaves.items() if leaf.grad is not None}
        self._gradients = [(leaf, ("grad", key) in gradients) for key, leaf in leaves.items()]
        objects.update({("leaf", key): leaf for key, leaf in leaves.items()})
        objects.update(gradients)
        for optimizer in self._optimizers.values():
            for parameter, own in optimizer.state.items():
                for name, it in own.items():
                    if isinstance(it, torch.Tensor):
                        objects["state", id(optimizer), id(parameter), name] = it
        owned = {id(it) for it in objects.values()}
        for key, it in self._reach.tensors.items():
            if key not in owned and it.nbytes <= MOST_OF_A_TENSOR and not it.is_inference():
                objects["tensor", key] = it
        return owned

    def _copied(self, earlier: Mapping[Key, torch.Tensor]) -> dict[Key, torch.Tensor]:
        objects = self._objects
        size = sum(it.nbytes for it in objects.values())
        if size > MOST:
            raise NoSnapshot(f"its state takes {size / 2**30:.1f} GiB, and a snapshot at most {MOST >> 30} GiB")
        on_host = sum(it.nbytes for it in objects.values() if it.device.type != "cpu") > MOST_ON_DEVICE
        copies = {
            key: earlier[key] if _fits(earlier.get(key), it, on_host=on_host) else _like(it, on_host=on_host)
            for key, it in objects.items()
        }
        _copy([*copies.values()], [*objects.values()])
        return copies

    def now(self) -> StateSnapshot:
        """Return a new snapshot of the same objects."""
        return StateSnapshot(self._reach.again(), self._optimizers.values())

    def why_not_again(self) -> str:
        """Return why the function cannot be called again although there is a snapshot; empty if it can."""
        if any(_version(it) != version for it, version in self._versions):
            return f"it writes to a tensor of more than {MOST_OF_A_TENSOR >> 20} MiB that belongs to no model"
        if any(it.grad_fn is not graph for it, graph in self._graphs):
            return "it writes in place to a tensor with a graph, which cannot go back"
        return ""

    def restore(self) -> None:
        """Give everything its state of then. What is as it was then is not written to.

        A part that fails does not keep the others from being restored. Raises `NotRestored` if it fails twice.
        """
        self._wait()
        failed = [part for part in self._parts() if _failure(part) is not None]
        failures = [failure for part in failed if (failure := _failure(part)) is not None]
        if failures:
            raise NotRestored(f"{type(failures[0]).__name__}: {failures[0]}") from failures[0]

    def _parts(self) -> Iterator[Callable[[], None]]:
        for key, it in self._tensors.items():
            if key[0] != "grad":
                yield it.restore
        for leaf, has_gradient in self._gradients:
            yield partial(self._restore_gradient, leaf, has_gradient)
        for space, values in self._spaces:
            yield partial(_restore_space, space, values)
        for sequence, items in self._sequences:
            yield partial(_restore_items, sequence, items)
        for thing, descriptor, value in self._slots:
            yield partial(_restore_slot, thing, descriptor, value)
        for kind, values in self._classes:
            yield partial(_restore_class, kind, values)
        for own_array, numbers in self._arrays.values():
            yield partial(_restore_array, own_array, numbers)
        for (_, name), (names, value) in self._reach.globals.items():
            yield partial(_restore_name, names, name, value)
        for cell, value in self._reach.cells.values():
            yield partial(_restore_cell, cell, value)
        yield partial(_restore_random, self._random)
        for generator, state in self._generators:
            yield partial(_restore_generator, generator, state)

    def _restore_gradient(self, leaf: torch.Tensor, has_gradient: bool) -> None:
        """Restore ``.grad``: in the tensor of then if it exists, or in one with its memory, such as a view.

        Else ``.grad`` is the copy: the program may hold the tensor that is there now, and the copy takes no memory.
        """
        if not has_gradient:
            if leaf.grad is not None:
                leaf.grad = None
            return
        then = self._tensors["grad", id(leaf)]
        gradient, now = then.target(), leaf.grad
        if gradient is not None:
            then.restore()
            if now is not gradient:
                leaf.grad = gradient
        elif (
            now is not None
            and now.dtype is then.copy.dtype
            and _place(now)
            == (
                then.address,
                then.copy.shape,
                then.strides,
            )
        ):
            replace(then, target=weakref.ref(now), version=_version(now)).restore()
        else:
            leaf.grad = then.copy.to(leaf.device)

    def _wait(self) -> None:
        """Wait until the copies have arrived: those of a device in the host's memory arrive later."""
        copies = self.copies.values()
        devices = {it.device for it in self._objects.values() if it.device.type != "cpu"}
        if devices and any(copy.device.type == "cpu" for copy in copies):
            for device in devices:
                _synchronize(device)

    def equals(self, other: StateSnapshot) -> bool:
        """Return whether random numbers, models and optimizers are the same, bit for bit.

        Other tensors are not compared: a name such as ``loss`` has another one after each call.
        """
        self._wait()
        other._wait()
        mine, others = self._lasting, other._lasting
        return (
            mine.keys() == others.keys()
            and all(_is_same(copy, others[key]) for key, copy in mine.items())
            and _as_bytes(self._random) == _as_bytes(other._random)
            and _as_bytes(self._own_generators) == _as_bytes(other._own_generators)
            and self._arrays.keys() == other._arrays.keys()
            and all(_has_same_numbers(one, other._arrays[key][1]) for key, (_, one) in self._arrays.items())
        )

    @property
    def _own_generators(self) -> dict[str, Any]:
        return {str(id(generator)): state for generator, state in self._generators}

    @property
    def _lasting(self) -> dict[Key, torch.Tensor]:
        return {key: copy for key, copy in self.copies.items() if key[0] not in ("tensor", "option")}


def _copied_now(tensor: torch.Tensor, copy: torch.Tensor, keeps_memory: bool) -> _Copied:
    address, _, strides = _place(tensor)
    memory = tensor.detach() if keeps_memory else None
    return _Copied(weakref.ref(tensor), copy, _version(tensor), address, strides, memory, tensor.requires_grad)


def _layout(tensor: torch.Tensor) -> tuple[torch.Size, tuple[int, ...]]:
    return tensor.shape, tensor.stride()


def _place(tensor: torch.Tensor) -> tuple[int, torch.Size, tuple[int, ...]]:
    return tensor.data_ptr(), *_layout(tensor)


def _written(tensor: torch.Tensor, strides: Sequence[int] = ()) -> torch.Tensor:
    """Return the part of a tensor that has all its memory: an expanded one has the same number many times."""
    return tensor[tuple(slice(None) if stride else slice(0, 1) for stride in strides or tensor.stride())]


def _failure(part: Callable[[], None]) -> Exception | None:
    try:
        part()
    except Exception as failure:  # the other parts are restored, whatever the error
        return failure
    return None


def _synchronize(device: torch.device) -> None:
    """Wait for a device."""
    getattr(torch, device.type).synchronize(device)


def _like(tensor: torch.Tensor, *, on_host: bool) -> torch.Tensor:
    """Return memory for a copy of a tensor."""
    if on_host and tensor.device.type != "cpu":
        return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.device.type == "cuda")
    return torch.empty_like(tensor, requires_grad=False)


def _fits(copy: torch.Tensor | None, tensor: torch.Tensor, *, on_host: bool) -> bool:
    """Return whether this copy of an earlier tensor has the size and the place of the copy of a tensor."""
    if copy is None or copy.shape != tensor.shape or copy.dtype is not tensor.dtype:
        return False
    return copy.device.type == "cpu" if on_host else copy.device == tensor.device


def _copy(targets: Sequence[torch.Tensor], sources: Sequence[torch.Tensor]) -> None:
    """Copy tensors, without waiting for a device."""
    if targets:
        with torch.no_grad():
            torch._foreach_copy_(list(targets), list(sources), non_blocking=True)


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors have the same bits."""
    if one.shape != other.shape or one.dtype is not other.dtype:
        return False
    if one.layout is not torch.strided:
        return torch.equal(one.to_dense(), other.to_dense())
    bits, other_bits = (it.detach().contiguous().reshape(-1).view(torch.uint8) for it in (one, other))
    return torch.equal(bits, other_bits.to(bits.device))


def _restore_space(space: dict[Any, Any], values: Mapping[Any, Any]) -> None:
    """Give a dictionary its items of then, in their order, with the methods of the builtin class.

    A program's class may have others: ``update`` of a `collections.Counter` adds.
    """
    kind: Any = OrderedDict if isinstance(space, OrderedDict) else dict
    if len(space) == len(values) and all(map(operator.is_, kind.keys(space), values)):
        for key, value in values.items():
            if kind.__getitem__(space, key) is not value:
                kind.__setitem__(space, key, value)
        return
    for key in [*kind.keys(space)]:
        kind.__delitem__(space, key)
    for key, value in values.items():
        kind.__setitem__(space, key, value)


def _restore_items(sequence: Any, items: Any) -> None:
    """Give a container its items of then, with the methods of the builtin class."""
    if isinstance(sequence, _OF_NUMBERS):
        if sequence != items:
            sequence[:] = items
    elif isinstance(sequence, set):
        if not (len(sequence) == len(items) and set.issuperset(sequence, items)):
            set.intersection_update(sequence, items)
            set.update(sequence, items)
    else:
        kind: Any = list if isinstance(sequence, list) else deque
        if len(sequence) != len(items) or not all(map(operator.is_, kind.__iter__(sequence), items)):
            kind.clear(sequence)
            kind.extend(sequence, items)


def _restore_slot(thing: object, descriptor: Any, value: object) -> None:
    now = _slot(thing, descriptor)
    if now is value:
        return
    if value is _ABSENT:
        descriptor.__delete__(thing)
    else:
        descriptor.__set__(thing, value)


def _restore_class(kind: type, values: Mapping[str, Any]) -> None:
    """Give a class its variables of then."""
    now = dict(vars(kind))
    for name in now.keys() - values.keys():
        type.__delattr__(kind, name)
    for name, value in values.items():
        if now.get(name, _ABSENT) is not value and not name.startswith("__"):
            type.__setattr__(kind, name, value)


def _has_same_numbers(one: Any, other: Any) -> bool:
    return bool(one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes())


def _restore_array(array: Any, copy: Any) -> None:
    if not _has_same_numbers(array, copy):
        array[...] = copy


def _restore_name(names: dict[str, Any], name: str, value: object) -> None:
    if names.get(name, _ABSENT) is value:
        return
    if value is _ABSENT:
        del names[name]
    else:
        names[name] = value


def _restore_cell(cell: Any, value: object) -> None:
    try:
        now = cell.cell_contents
    except ValueError:  # it has no value
        now = _ABSENT
    if now is value:
        return
    if value is _ABSENT:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _random_states(tensors: Iterable[torch.Tensor]) -> dict[str, Any]:
    """Return the states of the global generators, those of devices included that have some of the tensors."""
    states: dict[str, Any] = {"torch": torch.random.get_rng_state(), "python": random.getstate()}
    states["numpy"] = np.random.get_state()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # PyTorch has no types here
        for index in sorted({it.device.index for it in tensors if it.device.type == "cuda"}):
            states[f"cuda:{index}"] = torch.cuda.get_rng_state(index)
    return states


def _as_bytes(states: Mapping[str, Any]) -> dict[str, bytes]:
    """Return states in a form that can be compared; a tensor is not pickled to the same bytes each time."""
    return {
        name: bytes(state.tolist()) if isinstance(state, torch.Tensor) else pickle.dumps(state)
        for name, state in states.items()
    }


def _restore_random(states: Mapping[str, Any]) -> None:
    for name, state in states.items():
        if name == "torch":
            torch.random.set_rng_state(state)
        elif name == "python":
            random.setstate(state)
        elif name == "numpy":
            np.random.set_state(state)
        else:
            torch.cuda.set_rng_state(state, name)


def _generator_state(generator: Any) -> Any:
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state()
    return _bits_of(generator).state


def _bits_of(generator: Any) -> Any:
    return generator.bit_generator if isinstance(generator, np.random.Generator) else generator


def _restore_generator(generator: Any, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        _bits_of(generator).state = state
