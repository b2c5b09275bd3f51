"""Runs code when a package is imported, at no cost for programs that do not import it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_imported(package: str, then: Callable[[], None]) -> AbstractContextManager[None]:
    """Call `then` once, as soon as a package has been imported within the block; at once if it already is.

    The block need not be left: nothing has to be done at the end of the process.
    """
    return _PackageHook(package, then)


class _PackageHook(MetaPathFinder, AbstractContextManager[None]):
    """Finds nothing itself, but wraps the loader of the package it waits for, whenever the import system asks."""

    def __init__(self, package: str, then: Callable[[], None]) -> None:
        self._package = package
        self._then = then

    def __enter__(self) -> None:
        if self._package in sys.modules:
            self._then()
        else:
            sys.meta_path.insert(0, self)

    def __exit__(self, *failed: object) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._package:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)  # other finders keep their say
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._announce_end(spec.loader)
        return spec

    def _announce_end(self, loader: Loader) -> None:
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._then()

        loader.exec_module = exec_module  # type: ignore[method-assign]  # wrapped anew at each request
