"""Containers: modules or parameters in sequences, lists and dictionaries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from operator import index as as_index
from typing import Any, Self, overload

from gviz.engine.nn.module import Module, indented, laid_out, typename
from gviz.engine.nn.parameter import Parameter
from gviz.engine.tensor import Tensor


class _ModuleSequence(Module):
    """Modules named ``0``, ``1``, ``2``, …"""

    _modules: dict[str, Any]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    @overload
    def __getitem__(self, key: int) -> Module: ...
    @overload
    def __getitem__(self, key: slice) -> Self: ...
    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            return self._part(key)
        return self._modules[self._name(key)]

    def __setitem__(self, key: int, module: Module) -> None:
        setattr(self, self._name(key), module)

    def __delitem__(self, key: int | slice) -> None:
        names = list(self._modules)[key] if isinstance(key, slice) else [self._name(key)]
        for name in names:
            del self._modules[name]
        self._renumber(list(self._modules.values()))

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def pop(self, key: Any) -> Any:
        """Removes a module and returns it."""
        taken = self[key]
        del self[key]
        return taken

    def _part(self, key: slice) -> Self:
        """Return a container of the same type with some of the modules."""
        raise NotImplementedError

    def _renumber(self, modules: list[Module]) -> None:
        self._modules.clear()
        self._modules.update({str(i): module for i, module in enumerate(modules)})

    def _name(self, key: int) -> str:
        position = as_index(key)
        if not -len(self) <= position < len(self):
            raise IndexError(f"index {position} is out of range")
        return list(self._modules)[position]


class Sequential(_ModuleSequence):
    """Runs modules in order, each on the result of the previous one."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = len(args) == 1 and isinstance(args[0], OrderedDict)
        for name, module in args[0].items() if named else enumerate(args):
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        """Runs all modules."""
        for module in self:
            input = module(input)
        return input

    def insert(self, index: int, module: Module) -> Self:
        """Inserts a module before the one at `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def _part(self, key: slice) -> Self:
        return type(self)(OrderedDict(list(self._modules.items())[key]))

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *_sequential(other))

    def __iadd__(self, other: Any) -> Self:
        return self.extend(list(_sequential(other)))

    def __mul__(self, other: Any) -> Sequential:
        return Sequential(*list(self) * self._factor(other))

    __rmul__ = __mul__

    def __imul__(self, other: Any) -> Self:
        return self.extend(list(self) * (self._factor(other) - 1))

    def _factor(self, other: Any) -> int:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return other


def _sequential(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
    return other


class ModuleList(_ModuleSequence):
    """A list of modules, registered as children; it has no forward."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Inserts a module before the one at `index`."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def _part(self, key: slice) -> Self:
        return type(self)(list(self._modules.values())[key])

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """As in PyTorch, consecutive equal modules are shown once: ``(0-2): 3 x Linear(...)``."""
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        lines = [f"({a}): {t}" if a == b else f"({a}-{b}): {b - a + 1} x {t}" for a, b, t in runs]
        return laid_out(self._get_name(), [indented(line) for line in lines])


class ModuleDict(Module):
    """A dictionary of modules, registered as children; it has no forward."""

    _modules: dict[str, Any]

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        module: Module = self._modules[key]
        return module

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Removes a module and returns it."""
        module: Module = self._modules.pop(key)
        return module

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def items(self) -> ItemsView[str, Module]:
        """Names and modules."""
        return self._modules.items()

    def update(self, modules: Any) -> None:
        """Adds all of `modules`: a mapping, or pairs."""
        for name, module in _pairs("ModuleDict", "ModuleDict", modules):
            self[name] = module


class ParameterList(Module):
    """A list that converts its tensors to parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            return type(self)([self[i] for i in range(*key.indices(len(self)))])
        return getattr(self, self._name(key))

    def __setitem__(self, key: int, value: Any) -> None:
        setattr(self, self._name(key), _as_parameter(value))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """Adds a value at the end."""
        self._size += 1
        self[len(self) - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def _name(self, key: int) -> str:
        position = as_index(key)
        if not -len(self) <= position < len(self):
            raise IndexError(f"index {position} is out of range")
        return str(position % len(self))

    def extra_repr(self) -> str:
        """One line per value."""
        return "\n".join([_line(i, p, str(getattr(p, "dtype", ""))) for i, p in enumerate(self)])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary that converts its tensors to parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _checked_key(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, _checked_key(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, _checked_key(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value at `key`; sets it to `default` first if absent."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes all entries."""
        for key in list(self):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes the value at `key` and returns it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes the newest entry and returns its key and value."""
        key = next(reversed(self))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value at `key`, or `default` if absent."""
        return getattr(self, key) if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary with `default` at each of `keys`."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return (self[key] for key in self._keys)

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and parameters."""
        return ((key, self[key]) for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds all of `parameters`: a mapping (a plain one in the order of its sorted names), or pairs."""
        pairs = _pairs("ParameterDict", "ParametersDict", parameters)
        plain = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for key, value in sorted(pairs) if plain else pairs:
            self[key] = value

    def extra_repr(self) -> str:
        """One line per parameter."""
        return "\n".join([_line(key, p, typename(p)) for key, p in self.items()])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> ParameterDict:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        joined = other.copy()
        joined.update(self)
        return joined

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self


def _pairs(name: str, update: str, value: Any) -> list[tuple[str, Any]]:
    """Return the argument of an update of the container `name`, as pairs. Raises TypeError or ValueError for anything
    else.
    """
    if not isinstance(value, Iterable):
        raise TypeError(
            f"{update}.update should be called with an iterable of key/value pairs, but got {type(value).__name__}"
        )
    if isinstance(value, (Mapping, Module)):
        return list(value.items())
    pairs: list[Any] = list(value)
    for position, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{position} should be Iterable; is{type(pair).__name__}")
        length = len(pair)  # type: ignore[arg-type]  # as in PyTorch, an object without a length raises here
        if length != 2:
            raise ValueError(f"{name} update sequence element #{position} has length {length}; 2 is required")
    return pairs


def _checked_key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(
            f"Index given to ParameterDict cannot be used as a key as it is not a string (type is "
            f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
        )
    return key


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _line(name: object, value: Any, kind: str) -> str:
    if not isinstance(value, Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    what = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({name}): {what} containing: [{kind} of size {size}]"
