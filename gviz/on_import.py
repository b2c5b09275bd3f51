"""Waits for a package to be imported, so that a program without it pays nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


@contextmanager
def when_imported(package: str, then: Callable[[], None]) -> Iterator[None]:
    """Call `then` once, as soon as a package has been imported within the block; at once, if it is already."""
    if package in sys.modules:
        then()
        yield
        return
    waiting = _Waiting(package, then)
    sys.meta_path.insert(0, waiting)
    try:
        yield
    finally:
        if waiting in sys.meta_path:
            sys.meta_path.remove(waiting)


class _Waiting(MetaPathFinder):
    """Finds nothing itself, but wraps what loads the package it waits for, as often as anybody asks where it is."""

    def __init__(self, package: str, then: Callable[[], None]) -> None:
        self._package = package
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._package:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)  # who has a say in what is found keeps it
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
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

        loader.exec_module = exec_module  # type: ignore[method-assign]  # made anew for everyone who asks
