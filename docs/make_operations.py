"""Writes ``operations.md``: what the engine has of PyTorch, from its declarations. Run it as ``make operations``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import gviz.engine as torch
from gviz.engine.op import REGISTRY, Op
from gviz.engine.unsupported_methods import offers
from gviz.program.torch_alias import exists

PATH = Path(__file__).with_name("operations.md")
_HEAD = """\
# What the built-in engine has of PyTorch

Written by `make operations` from the engine's declarations; do not edit. How it behaves otherwise than PyTorch is in
[differences.md](differences.md). A name that is not here raises an error that says so and names the nearest ones.
"""
_NAMESPACES = (
    *(
        "accelerator",
        "autograd",
        "autograd.functional",
        "autograd.graph",
        "backends.cudnn",
        "cuda",
        "jit",
        "linalg",
        "nn",
    ),
    *(
        "nn.functional",
        "nn.init",
        "nn.utils",
        "optim",
        "optim.lr_scheduler",
        "special",
        "utils.checkpoint",
        "utils.data",
    ),
)


def text() -> str:
    """The page as it should be."""
    functions = _listed("Functions and classes of `torch`", sorted(_public(torch)))
    others = "".join(_namespace(name) for name in _NAMESPACES)
    return f"{_HEAD}\n{_operations()}\n{_methods()}{functions}{others}"


def _operations() -> str:
    rows = sorted({_row(op) for op in REGISTRY if op.torch and op.grad_fn})
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"## Operations with a gradient\n\n| PyTorch | `grad_fn` | computes | differs |\n|---|---|---|---|\n{table}"


def _row(op: Op) -> tuple[str, str, str, str]:
    return f"`torch.{op.torch}`", f"`{op.grad_fn}`", _cell(op.formula), _cell(op.differs)


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("*", "\\*").replace("\n", " ")


def _methods() -> str:
    names = sorted(name for name in dir(torch.Tensor) if offers(name) and not name.startswith("_"))
    return _listed("Methods and attributes of `torch.Tensor`", names)


def _namespace(name: str) -> str:
    module = import_module(f"gviz.engine.{name}") if exists(f"gviz.engine.{name}") else None
    return "" if module is None else _listed(f"`torch.{name}`", sorted(_public(module)))


def _public(module: ModuleType) -> Iterator[str]:
    """The functions and classes that a module of the engine offers, without what it is made of."""
    offered = getattr(module, "__all__", None)
    for name in dir(module):
        value = getattr(module, name)
        if (
            not name.startswith(("_", "lookup_in"))
            and (inspect.isroutine(value) or inspect.isclass(value))
            and (_is_at_home(value, module) if offered is None else name in offered)
        ):
            yield name


def _is_at_home(value: object, module: ModuleType) -> bool:
    """Whether a module that does not say what it offers defines `value` or, as a package, takes it from the engine."""
    home = value.__module__ or ""
    return home == module.__name__ or (hasattr(module, "__path__") and home.startswith(("gviz.engine", "torch")))


def _listed(title: str, names: list[str]) -> str:
    return f"\n## {title}\n\n{', '.join(f'`{name}`' for name in names)}.\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
