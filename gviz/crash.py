"""An error of gviz itself: a report in a file and one line on the terminal, never a traceback with values in it."""

from __future__ import annotations

import os
import platform
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import NamedTemporaryFile

from gviz.errors import GvizError

KEPT = 10
EXIT_CODE = 70


def crash(error: BaseException) -> GvizError:
    """Write a report about `error` and make the message that names it."""
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
    """The folder of crash reports."""
    from platformdirs import user_log_path

    return user_log_path("gviz")


def write_report(error: BaseException, folder: Path | None = None) -> Path:
    """Write versions, terminal and the traceback without locals; the last ten reports are kept."""
    folder = folder or reports()
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob("crash-*.txt"), key=lambda path: path.stat().st_mtime)[: -(KEPT - 1)]:
        old.unlink(missing_ok=True)
    with NamedTemporaryFile("w", prefix="crash-", suffix=".txt", dir=folder, delete=False, encoding="utf-8") as file:
        file.write(report(error))
    return Path(file.name)


def report(error: BaseException) -> str:
    """The text of a report: no message of the error, because it may hold values of the program."""
    frames = "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)))
    terminal = {name: os.environ.get(name, "") for name in ("TERM", "COLORTERM", "LANG", "LC_ALL", "TMUX")}
    return "\n".join((
        *(f"{name} {_version(name)}" for name in ("gviz", "textual", "rich", "numpy")),
        f"python {platform.python_version()} on {platform.system()}",
        f"terminal {terminal}",
        f"{type(error).__module__}.{type(error).__qualname__}",
        frames,
    ))  # fmt: skip


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
