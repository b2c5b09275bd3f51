"""The versions of gviz and of the packages that it works with. The build reads gviz's version here."""

from __future__ import annotations

import sys

__version__ = "0.1.0"


PARTS = ("numpy", "textual", "rich", "click", "msgspec", "graphviz", "pygraphviz", "scipy", "torch")


def versions() -> dict[str, str]:
    """Return the versions of gviz, Python, and the installed packages among `PARTS`."""
    from importlib import metadata

    numbers = {"gviz": __version__, "python": sys.version.partition(" ")[0]}
    for part in PARTS:
        try:
            numbers[part] = metadata.version(part)
        except metadata.PackageNotFoundError:
            continue
    return numbers
