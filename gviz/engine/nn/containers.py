"""Modules in sequences and dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
            return self._of(list(self._modules.values())[key])
        return self._modules[self._name(key)]

    def __setitem__(self, key: int, module: Module) -> None:
        setattr(self, self._name(key), module)

    def __delitem__(self, key: int) -> None:
        del self._modules[self._name(key)]
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

    def insert(self, index: int, module: Module) -> None:
        """Add a module before the one at `index`."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)

    def _of(self, modules: list[Module]) -> Self:
        """A container of this kind with these modules."""
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

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named = len(modules) == 1 and isinstance(modules[0], Mapping)
        for name, module in modules[0].items() if named else enumerate(modules):
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        """Run them all."""
        for module in self:
            input = module(input)
        return input

    def _of(self, modules: list[Module]) -> Self:
        return type(self)(*modules)


class ModuleList(_Numbered):
    """A list of modules that knows their parameters; it has no forward of its own."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def _of(self, modules: list[Module]) -> Self:
        return type(self)(modules)

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

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

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

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Names and modules."""
        return self._modules.items()

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add all of `modules`."""
        for name, module in modules.items():
            self.add_module(name, module)
