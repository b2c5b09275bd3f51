"""Runs somebody's program as ``python`` itself would: same `sys`, same `__main__`, same traceback, same exit.

Three steps, because a recording begins between them: `find` says what to run, `load` compiles it and puts its module
in the place of ``__main__``, `execute` runs it. Whatever the program raises leaves `execute` as it is; the interpreter
then ends as it always does (exit code, ``sys.excepthook``, threads, ``atexit``, death by SIGINT after Ctrl-C);
`gviz.program.own_frames` sees to it that the program is shown no other frames than its own.

The caller has taken its own entry out of ``sys.path[0]`` first, where ``python`` puts one.
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from gviz.errors import GvizError, did_you_mean
from gviz.plain_text import shown
from gviz.program.undecodable import as_python_says


@dataclass(frozen=True, slots=True)
class Target:
    """A program that was found: its file, the spec ``__main__`` gets (None for a plain script), its package."""

    path: str
    spec: ModuleSpec | None
    package: str | None

    @property
    def cached(self) -> str | None:
        """Where Python keeps it compiled, what ``__cached__`` says; None for a plain script."""
        return self.spec.cached if self.spec else None


def find(argv: Sequence[str], *, as_module: bool) -> Target:
    """Find what ``python [-m] ARGV`` would run, and make ``sys.argv`` and ``sys.path[0]`` what it would make them."""
    name = argv[0]
    sys.argv = ["-m" if as_module else name, *argv[1:]]
    if as_module:
        target = _find_module(name)
        sys.argv[0] = target.path
        return target
    if not os.path.exists(name):
        raise GvizError(f"{name}: no such script", hint=_where_it_may_be(name), exit_code=3)
    return _find_container(name) or _find_script(name)


def _where_it_may_be(name: str) -> str:
    """What to try for a script that is not there: a file named alike, another folder, or that it is a module."""
    if all(map(str.isidentifier, name.split("."))) and not name.endswith(".py"):
        return f"-m {name} runs a module"
    folder, file = os.path.split(os.path.abspath(name))
    if not os.path.isdir(folder):
        return f"there is no folder {shown(folder)}"
    found = os.listdir(folder) if os.access(folder, os.R_OK) else []
    scripts = [shown(one) for one in found if one.endswith(".py")]
    return did_you_mean(file, scripts, f"it is not in {shown(folder)}: is it in another folder?")


def load(target: Target) -> CodeType:
    """Compile the program and make a fresh module of it ``__main__``."""
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__.update(
        __annotations__={},
        __builtins__=builtins,
        __cached__=target.cached,
        __file__=target.path,
        __loader__=target.spec.loader if target.spec else SourceFileLoader("__main__", target.path),
        __package__=target.package,
        __spec__=target.spec,
    )
    return compiled(target)


def execute(code: CodeType) -> None:
    """Run the program in ``__main__``; what it raises is raised."""
    exec(code, sys.modules["__main__"].__dict__)


def _find_module(name: str) -> Target:
    if not sys.flags.safe_path:
        sys.path.insert(0, os.getcwd())
    spec = _spec(name)
    if spec and spec.submodule_search_locations is not None:
        spec = _spec(f"{name}.__main__")
        if spec is None:
            raise GvizError(f"{name} is a package without __main__ and cannot be run", exit_code=3)
    if spec is None or spec.origin is None or spec.loader is None:
        raise GvizError(f"no module named {name}", hint="gviz run FILE runs a script", exit_code=3)
    return Target(spec.origin, spec, spec.parent)


def _spec(name: str) -> ModuleSpec | None:
    parent = name.rpartition(".")[0]
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{parent}.".startswith(f"{error.name}."):
            raise  # the parent package exists, and fails to import something else
        return None


def _find_container(name: str) -> Target | None:
    """A folder or zip file with a ``__main__`` in it; these stand in ``sys.path[0]`` even under ``python -P``."""
    path = os.path.abspath(name)
    spec = PathFinder.find_spec("__main__", [path])
    if spec is None and os.path.isdir(path):
        raise GvizError(f"{name} is a folder without __main__.py", exit_code=3)
    if spec is None or spec.origin is None:
        return None
    sys.path.insert(0, path)
    return Target(spec.origin, spec, "")


def _find_script(name: str) -> Target:
    if not os.access(name, os.R_OK):
        raise GvizError(f"cannot read {name}", why="permission denied", exit_code=3)
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(name)))
    return Target(os.path.abspath(name), None, None)


def compiled(target: Target) -> CodeType:
    """The program as code; SyntaxError, OSError or GvizError where it is none."""
    if target.spec is not None and target.spec.loader is not None:
        code = target.spec.loader.get_code(target.spec.name)  # type: ignore[attr-defined]
        if not isinstance(code, CodeType):
            raise GvizError(f"{target.path} holds no Python code", exit_code=3)
        return code
    with open(target.path, "rb") as file:
        compiled = pkgutil.read_code(file) if target.path.endswith(".pyc") else None
        text = b"" if compiled else file.read()
    try:
        return compiled or compile(text, target.path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise as_python_says(error, text, target.path) from None
