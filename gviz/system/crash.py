"""Handles bugs in gviz: a report in a file and one line on the terminal, never a traceback with values in it.

A user who finds a bug that raised no error can request a report too.
"""

from __future__ import annotations

import os
import platform
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from gviz.errors import GvizError
from gviz.system.files import make_private

KEPT = 10
EXIT_CODE = 70


def crash(error: BaseException) -> GvizError:
    """Write a report about `error` and return the error message that names it."""
    try:
        path = write_report(error)
    except OSError as trouble:
        return GvizError(
            f"gviz has a bug: {type(error).__name__}", why=f"no report could be written: {trouble}", exit_code=EXIT_CODE
        )
    return GvizError(
        f"gviz has a bug: {type(error).__name__}",
        why=f"a report without values was written to {path}",
        hint="please attach it where you report the problem",
        exit_code=EXIT_CODE,
    )


def reports() -> Path:
    """Return the folder of crash reports."""
    from platformdirs import user_log_path

    return user_log_path("gviz")


def write_report(error: BaseException, folder: Path | None = None) -> Path:
    """Write versions, terminal and the traceback without locals to a report; the last ten reports are kept."""
    return _written(report(error), "crash", folder or reports())


def write_status_report(facts: Sequence[str]) -> Path:
    """Write versions, terminal and some facts to a report, without an error; the last ten reports are kept."""
    return _written("\n".join((*_surroundings(), *facts, "")), "report", reports())


def report(error: BaseException) -> str:
    """Return the text of a report. It excludes the error's message, which may contain values of the program."""
    frames = "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)))
    return "\n".join((*_surroundings(), f"{type(error).__module__}.{type(error).__qualname__}", frames))


def _surroundings() -> Iterator[str]:
    terminal = {name: os.environ.get(name, "") for name in ("TERM", "COLORTERM", "LANG", "LC_ALL", "TMUX")}
    yield from (f"{name} {_version(name)}" for name in ("gviz", "textual", "rich", "numpy"))
    yield f"python {platform.python_version()} on {platform.system()}"
    yield f"terminal {terminal}"


def _written(text: str, kind: str, folder: Path) -> Path:
    make_private(folder)
    for old in sorted(folder.glob(f"{kind}-*.txt"), key=lambda path: path.stat().st_mtime)[: -(KEPT - 1)]:
        old.unlink(missing_ok=True)
    with NamedTemporaryFile("w", prefix=f"{kind}-", suffix=".txt", dir=folder, delete=False, encoding="utf-8") as file:
        file.write(text)
    return Path(file.name)


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # too slow to import for something that rarely happens

    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
