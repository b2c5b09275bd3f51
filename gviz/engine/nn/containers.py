"""Modules in sequences and dictionaries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from operator import index as as_index
from typing import Any, Self, overload

from gviz.engine.nn.module import Module, indented, laid_out


class _Numbered(Module):
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
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def pop(self, key: Any) -> Any:
        """Take a module out."""
        taken = self[key]
        del self[key]
        return taken

    def _part(self, key: slice) -> Self:
        """A container of this kind with some of the modules."""
        raise NotImplementedError

    def _renumber(self, modules: list[Module]) -> None:
        self._modules.clear()
        self._modules.update({str(i): module for i, module in enumerate(modules)})

    def _name(self, key: int) -> str:
        position = as_index(key)
        if not -len(self) <= position < len(self):
            raise IndexError(f"index {position} is out of range")
        return list(self._modules)[position]


class Sequential(_Numbered):
    """Modules run one after the other, each on the result of the one before."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = len(args) == 1 and isinstance(args[0], OrderedDict)
        for name, module in args[0].items() if named else enumerate(args):
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        """Run them all."""
        for module in self:
            input = module(input)
        return input

    def insert(self, index: int, module: Module) -> Self:
        """Add a module before the one at `index`."""
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


class ModuleList(_Numbered):
    """A list of modules that knows their parameters; it has no forward of its own."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Add a module before the one at `index`."""
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
        """Equal neighbours are shown once, as PyTorch does: ``(0-2): 3 x Linear(...)``."""
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        lines = [f"({a}): {t}" if a == b else f"({a}-{b}): {b - a + 1} x {t}" for a, b, t in runs]
        return laid_out(self._get_name(), [indented(line) for line in lines])


class ModuleDict(Module):
    """A dictionary of modules that knows their parameters; it has no forward of its own."""

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
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take a module out."""
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
        """Add all of `modules`: a mapping, or pairs."""
        for name, module in pairs_of("ModuleDict", "ModuleDict", modules):
            self[name] = module


def pairs_of(name: str, update: str, given: Any) -> list[tuple[str, Any]]:
    """What an update of the container `name` was given, as pairs. TypeError or ValueError for anything else."""
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{update}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, (Mapping, Module)):
        return list(given.items())
    pairs: list[Any] = list(given)
    for position, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{position} should be Iterable; is{type(pair).__name__}")
        length = len(pair)  # type: ignore[arg-type]  # as in PyTorch, what has no length raises here
        if length != 2:
            raise ValueError(f"{name} update sequence element #{position} has length {length}; 2 is required")
    return pairs
