"""For one run, lets ``import torch`` mean gviz's own engine, so that a tutorial needs no PyTorch install."""

from __future__ import annotations

import dis
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

from gviz.errors import GvizError

ENGINE = "gviz.engine"
SHAPED = ("torch", "torch.autograd", "torch.nn", "torch.nn.functional", "torch.optim")
"""The modules of PyTorch that the engine has under the same name below `ENGINE`."""


class BuiltinTorch(MetaPathFinder):
    """Finds the engine under the name ``torch``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "torch":
            return None
        if fullname not in SHAPED:
            raise ModuleNotFoundError(f"gviz's engine has no {fullname}", name=fullname)
        return ModuleSpec(fullname, _EngineLoader(), is_package=True)


class _EngineLoader(Loader):
    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        sys.modules[name] = importlib.import_module(ENGINE + name.removeprefix("torch"))


def install() -> None:
    """Make ``import torch`` mean the engine in this process; refused where the real one is already imported."""
    if "torch" in sys.modules:
        raise GvizError("torch is already imported, so it cannot mean gviz's engine", exit_code=2)
    sys.meta_path.insert(0, BuiltinTorch())


def is_imported_by(code: CodeType) -> bool:
    """Whether a program says ``import torch`` anywhere in its own file."""
    imports = (step.argval for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME")
    if any(name.partition(".")[0] == "torch" for name in imports):
        return True
    return any(is_imported_by(part) for part in code.co_consts if isinstance(part, CodeType))


def is_installed() -> bool:
    """Whether real PyTorch can be imported."""
    return importlib.util.find_spec("torch") is not None
