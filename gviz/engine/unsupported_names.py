"""Errors for names that PyTorch has and the engine lacks, with the closest names that it has."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from inspect import getattr_static
from pkgutil import resolve_name
from types import FrameType, MappingProxyType
from typing import Any


def lookup_in(module: str, on_demand: Mapping[str, str] = MappingProxyType({})) -> Callable[[str], Any]:
    """A module's ``__getattr__`` for names it lacks; those `on_demand` are imported from their paths."""
    shaped = module.replace("gviz.engine", "torch")

    def __getattr__(name: str) -> Any:
        if name in on_demand:
            return vars(sys.modules[module]).setdefault(name, resolve_name(on_demand[name]))
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        own = vars(sys.modules[module])
        if shaped == "torch" and name != "cpu" and hasattr(own["Tensor"], name):  # torch.cpu is a module
            raise AttributeError(
                f"module 'torch' has no attribute {name!r}\nIt is a method of tensors: x.{name}(...)", name=name
            )
        text = sentence(f"{shaped}.{name}", {*own.get("__all__", own), *on_demand})
        if _is_import(sys._getframe(1)):
            raise ImportError(text, name=name)  # Python would replace an AttributeError by its own text
        raise AttributeError(text, name=name)

    return __getattr__


def sentence(path: str, present: Iterable[str]) -> str:
    """The error text for a missing name, with the closest names among those present."""
    name = path.rpartition(".")[2]
    near = get_close_matches(name, [known for known in present if not known.startswith("_")], 3)
    nearest = f"; it has {', '.join(near)}" if near else ""
    return f"gviz's built-in engine has no {path} yet{nearest}"


class MissingAttribute:
    """An attribute of PyTorch's tensors that the engine lacks: reading it raises AttributeError.

    ``Tensor.__getattr__`` would do the same, and make every other attribute slower to read. ``Tensor.__dir__`` leaves
    them out.
    """

    __slots__ = ("kind", "name")

    def __init__(self, kind: type, name: str) -> None:
        self.kind, self.name = kind, name

    def __get__(self, instance: object, owner: type) -> object:
        present = [
            name for name in dir(self.kind) if not isinstance(getattr_static(self.kind, name, None), MissingAttribute)
        ]
        text = sentence(f"torch.{self.kind.__name__}.{self.name}", present)
        raise AttributeError(f"'{owner.__name__}' object has no attribute '{self.name}': {text}", name=self.name)


def _is_import(frame: FrameType) -> bool:
    """Return whether a frame is executing ``from ... import name``."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"
