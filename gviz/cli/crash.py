"""What happens when gviz itself is wrong: a report without values, and one line that says where it is."""

from __future__ import annotations

import sys

PARTS = ("numpy", "textual", "rich", "click", "msgspec", "graphviz", "pygraphviz", "scipy", "torch")
"""Whose versions matter in a report."""


def versions() -> dict[str, str]:
    """The versions of gviz, of Python, and of what is installed of `PARTS`, read without importing them."""
    from importlib import metadata

    from gviz import __version__

    found = {"gviz": __version__, "python": sys.version.partition(" ")[0]}
    for part in PARTS:
        try:
            found[part] = metadata.version(part)
        except metadata.PackageNotFoundError:
            continue
    return found


def write_report(error: BaseException) -> str:
    """Write what is needed to understand a bug of gviz, and give the path of the report."""
    from gviz.cli import places

    path = places.new_report()
    path.write_text(_report(error), encoding="utf-8", errors="backslashreplace")
    return str(path)


def _report(error: BaseException) -> str:
    """Versions, platform, the command's name, and where it went wrong.

    The messages of exceptions and the arguments of the command are left out: they may hold values and names.
    """
    import platform
    import traceback

    chain = traceback.TracebackException.from_exception(error, lookup_lines=True, capture_locals=False)
    lines = [f"{name} {version}" for name, version in versions().items()]
    lines += [platform.platform(), f"command: {' '.join(sys.argv[1:2])}", ""]
    lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}: {frame.line}" for frame in chain.stack]
    return "\n".join([*lines, type(error).__name__, ""])
