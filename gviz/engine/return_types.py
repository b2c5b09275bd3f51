"""``torch.return_types``: the named results of operations with several outputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar


class _ResultsType(type):
    """A class whose instances Python's own errors call "torch.return_types.sort", as those of PyTorch's."""

    @property
    def __name__(cls) -> str:  # type: ignore[override]  # the errors use the name that `type` got
        return cls.__qualname__


class Results(tuple[Any, ...], metaclass=_ResultsType):
    """A tuple whose items can also be read by name; made by `results_type`."""

    __slots__ = ()
    names: ClassVar[tuple[str, ...]]

    def __getattr__(self, name: str) -> Any:
        if name in self.names:
            return self[self.names.index(name)]
        raise AttributeError(f"'torch.return_types.{type(self).__qualname__}' object has no attribute '{name}'")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self).__name__, self.names, tuple(self))

    def __repr__(self) -> str:
        items = ",\n".join(f"{name}={item!r}" for name, item in zip(self.names, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{items})"


@cache
def _type_of(name: str, names: tuple[str, ...]) -> type[Results]:
    members: dict[str, Any] = {"__slots__": (), "names": names, "__match_args__": names}
    members |= {"__module__": "torch.return_types", "__qualname__": name}
    return _ResultsType(f"torch.return_types.{name}", (Results,), members)  # type: ignore[return-value]


def results_type(name: str, outputs: Sequence[str]) -> type[Results]:
    """The type of the result of the operation `name`."""
    return _type_of(name, tuple(outputs))


def _restored(name: str, names: tuple[str, ...], items: tuple[Any, ...]) -> Results:
    return results_type(name, names)(items)
