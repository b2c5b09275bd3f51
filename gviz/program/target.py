"""Finds what ``python`` is about to run, without running any of it.

Errors that ``python`` would not explain in gviz's terms (a missing script) are reported here; the others by Python.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType

from gviz.errors import GvizError, did_you_mean
from gviz.values.plain_text import shown

STANDARD_INPUT = "-"
"""The script name for which ``python`` reads standard input."""


@dataclass(frozen=True, slots=True)
class Target:
    """A program that was found: its file, and its module spec (None for a plain script)."""

    path: str
    spec: ModuleSpec | None

    @property
    def folder(self) -> str:
        """The folder of a plain script, where Python looks first for imports; empty for anything else."""
        return "" if self.spec is not None else os.path.dirname(os.path.abspath(self.path))


def find(name: str, *, as_module: bool) -> Target | None:
    """Find what ``python [-m] NAME`` would run; None if only running it can show that.

    Raises GvizError for what does not exist or cannot be run.
    """
    if as_module or not (name == STANDARD_INPUT or os.path.isabs(name)):
        _check_folder()
    if as_module:
        return _find_module(name)
    if name == STANDARD_INPUT:
        return None
    if not os.path.exists(name):
        raise GvizError(f"{name}: no such script", hint=_where_it_may_be(name), exit_code=3)
    return _find_container(name) or _find_script(name)


def _check_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise GvizError("the current folder has been deleted", hint="cd ~", exit_code=3) from None


def compiled(target: Target) -> CodeType:
    """Return the program as code. Raises SyntaxError, ValueError, OSError or GvizError if it is not Python code."""
    if target.spec is not None and target.spec.loader is not None:
        code = target.spec.loader.get_code(target.spec.name)  # type: ignore[attr-defined]
        if not isinstance(code, CodeType):
            raise GvizError(f"{target.path} holds no Python code", exit_code=3)
        return code
    with open(target.path, "rb") as file:
        kept_code = pkgutil.read_code(file) if target.path.endswith(".pyc") else None
        return kept_code or compile(file.read(), target.path, "exec", dont_inherit=True)


def _where_it_may_be(name: str) -> str:
    """Return a suggestion for a missing script: a similar file, another folder, or running it as a module."""
    for suffix in (".py", ".gviz"):
        if os.path.isfile(name + suffix):
            return f"did you mean {shown(name + suffix)}?"
    if all(map(str.isidentifier, name.split("."))) and not name.endswith(".py"):
        return f"-m {name} runs a module"
    folder, file = os.path.split(os.path.abspath(name))
    if not os.path.isdir(folder):
        return f"there is no folder {shown(folder)}"
    files = os.listdir(folder) if os.access(folder, os.R_OK) else []
    scripts = [shown(one) for one in files if one.endswith(".py")]
    return did_you_mean(file, scripts, f"it is not in {shown(folder)}: is it in another folder?")


def _find_module(name: str) -> Target | None:
    """Find a module from its files; paths that its packages change on import are not considered."""
    here = [] if sys.flags.safe_path else [os.getcwd()]
    spec = _spec(name.partition(".")[0], [*here, *sys.path])
    if spec is None:
        raise GvizError(f"no module named {name}", hint="gviz run FILE runs a script", exit_code=3)
    for package in name.split(".")[1:]:
        spec = spec and _submodule_spec(spec, package)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _submodule_spec(spec, "__main__")
    return Target(spec.origin, spec) if spec and spec.origin and spec.loader else None


def _submodule_spec(package: ModuleSpec, name: str) -> ModuleSpec | None:
    return _spec(f"{package.name}.{name}", package.submodule_search_locations or [])


def _spec(name: str, path: Sequence[str]) -> ModuleSpec | None:
    """Return the spec of a module from any finder; Python's own searches these folders."""
    others = (finder for finder in sys.meta_path if finder is not PathFinder)
    return PathFinder.find_spec(name, path) or next(filter(None, (one.find_spec(name, path) for one in others)), None)


def _find_container(name: str) -> Target | None:
    """Find a folder or zip file that contains a ``__main__``."""
    path = os.path.abspath(name)
    spec = PathFinder.find_spec("__main__", [path])
    if spec is None and os.path.isdir(path):
        raise GvizError(f"{name} is a folder without __main__.py", exit_code=3)
    return Target(spec.origin, spec) if spec and spec.origin else None


def _find_script(name: str) -> Target | None:
    """Find a script; anything but an ordinary file can be read only once."""
    if not os.access(name, os.R_OK):
        raise GvizError(f"cannot read {name}", why="permission denied", exit_code=3)
    return Target(os.path.abspath(name), None) if os.path.isfile(name) else None
