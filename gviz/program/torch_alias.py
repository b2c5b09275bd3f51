"""Lets ``import torch`` mean the built-in engine for one run, so that a tutorial needs no PyTorch installation."""

from __future__ import annotations

import dis
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, ModuleType

from gviz.errors import GvizError
from gviz.program.recording_request import Order

ENGINE = "gviz.engine"
_NAMES = """
torch torch.accelerator torch.amp torch.autograd torch.autograd.forward_ad torch.autograd.function
torch.autograd.functional torch.autograd.grad_mode torch.autograd.gradcheck torch.autograd.graph
torch.autograd.profiler torch.autograd.variable torch.backends torch.backends.cuda torch.backends.cudnn
torch.backends.mkl torch.backends.mps torch.cuda torch.cuda.amp torch.distributions torch.fft torch.func
torch.jit torch.linalg torch.mps torch.nn torch.nn.functional torch.nn.init torch.nn.modules torch.nn.parameter
torch.nn.utils torch.nn.utils.parametrizations torch.nn.utils.rnn torch.nn.utils.stateless torch.optim
torch.optim.lr_scheduler torch.optim.optimizer torch.optim.swa_utils torch.random torch.return_types
torch.special torch.testing torch.types torch.utils torch.utils.checkpoint torch.utils.data
torch.utils.data.dataloader torch.utils.data.dataset torch.utils.data.sampler torch.utils.hooks torch.version
torch.xpu
"""
SHAPED = frozenset(_NAMES.split())
"""Modules of PyTorch: found if the engine has them. The engine's other modules are not found."""

ANSWERED = {"torchviz": "gviz.integrations.torchviz"}
"""Packages built on PyTorch that gviz replaces."""

REFUSED = ("torchaudio", "torchtext", "torchvision")
"""Packages built on PyTorch that would fail on something the engine lacks."""


class BuiltinTorch(MetaPathFinder):
    """Finds the engine under the name ``torch``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package = fullname.partition(".")[0]
        if package in REFUSED:
            raise ModuleNotFoundError(f"{package} needs real PyTorch: the built-in engine cannot run it", name=fullname)
        if fullname in ANSWERED:
            return ModuleSpec(fullname, _EngineLoader(ANSWERED[fullname]))
        if package != "torch":
            return None
        home = ENGINE + fullname.removeprefix("torch")
        if fullname not in SHAPED or not exists(home):
            raise ModuleNotFoundError(f"the built-in engine has no {fullname}", name=fullname)
        return ModuleSpec(fullname, _EngineLoader(home), is_package=True)


class _EngineLoader(Loader):
    def __init__(self, home: str) -> None:
        self.home = home

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self.home)


def exists(module: str) -> bool:
    """Return whether a module of the engine can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent is not a package
        return False


def install() -> None:
    """Make ``import torch`` mean the engine in this process. Raises GvizError if a torch is already imported."""
    if "torch" in sys.modules:
        raise GvizError("torch is already imported, so it cannot mean the built-in engine", exit_code=2)
    sys.meta_path.insert(0, BuiltinTorch())
    importlib.import_module("gviz.engine.devices").cuda_here.stands_for_cpu = True


def is_imported_by(code: CodeType) -> bool:
    """Return whether a program imports torch anywhere in its own file."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    # Two instructions before it is the number of package levels to go up, 0 for none; one before, the imported names.
    imports = ((steps[at - 2].argval, step.argval) for at, step in enumerate(steps) if step.opname == "IMPORT_NAME")
    if any(level == 0 and name.partition(".")[0] == "torch" for level, name in imports):
        return True
    return any(is_imported_by(part) for part in code.co_consts if isinstance(part, CodeType))


def is_installed(folder: str = "") -> bool:
    """Return whether a ``torch`` other than gviz's can be imported, also from the folder of a script."""
    spec = PathFinder.find_spec("torch", [folder]) if folder else None
    return (spec or importlib.util.find_spec("torch")) is not None


def pytorch_options(what: Order) -> str:
    """Return the options in use that limit a PyTorch recording; they have no effect when the engine runs the
    program.
    """
    keeping = what.keeping
    options = (
        ("--phase", keeping.phase != "all"), ("--module", bool(keeping.module)), ("--budget", bool(keeping.budget)),
        ("--from-iteration", bool(keeping.from_iteration)),
    )  # fmt: skip
    return " and ".join(option for option, is_given in options if is_given)


def refuse_pytorch_options(what: Order) -> None:
    """Raise GvizError if such options are used and PyTorch will certainly not run the program."""
    if not pytorch_options(what) or what.engine == "torch" or (what.engine == "auto" and is_installed()):
        return
    why = "the built-in engine is recorded whole"
    raise GvizError(f"{pytorch_options(what)} can only be used with PyTorch", why=why, exit_code=2)
