"""Which versions of what are installed, read without importing any of it."""

from __future__ import annotations

import sys

PARTS = ("numpy", "textual", "rich", "click", "msgspec", "graphviz", "pygraphviz", "scipy", "torch")


def versions() -> dict[str, str]:
    """The versions of gviz, of Python, and of what is installed of `PARTS`."""
    from importlib import metadata

    from gviz.version import __version__

    found = {"gviz": __version__, "python": sys.version.partition(" ")[0]}
    for part in PARTS:
        try:
            found[part] = metadata.version(part)
        except metadata.PackageNotFoundError:
            continue
    return found
