"""Processes of gviz's own: this file, run, calls the `main` of a module of the gviz that it lies in.

So that one is found wherever another stands on the path, and every frame above a program's is gviz's own.
"""

from __future__ import annotations

import os.path
import sys
from collections.abc import Sequence
from importlib import import_module


def command(module: str, arguments: Sequence[str], *, flags: Sequence[str] = ()) -> list[str]:
    """What starts the `main` of a module of gviz in another process, with the arguments in its ``sys.argv[1:]``."""
    return [sys.executable, *flags, os.path.abspath(__file__), module, *arguments]


def _main() -> None:
    if not sys.flags.safe_path:
        del sys.path[0]  # this folder; the program's own comes in its place
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, root)
    import_module("gviz")  # this one, also where another one stands earlier on the path
    del sys.path[0]
    if root not in sys.path:
        sys.path.append(root)
    import_module(sys.argv.pop(1)).main()


if __name__ == "__main__":
    _main()
