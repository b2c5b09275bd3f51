"""Names of traces: an argument, or ``-o``, which is one file, or one for each rank of a training run."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click

from gviz.errors import GvizError
from gviz.program.rank_trace_files import MAIN, called, trace_of
from gviz.values.plain_text import clipped, shown

RANK = "{rank}"


class TraceArgument(click.Path):
    """The path of a trace to read, or of a folder; GvizError for text that cannot be a file name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        try:
            os.lstat(value)
        except FileNotFoundError:  # the command that opens it reports that; here only an empty name is refused
            if not value:
                hint = "without a name, gviz open opens the newest in the cache folder"
                raise GvizError("the name of a trace is empty", hint=hint, exit_code=3) from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise GvizError(f"cannot read {clipped(shown(str(value)), 60)}", why=why, exit_code=3) from None
        return Path(value)


class TraceName(click.ParamType["Path"]):
    """The path of a trace to write. Under ``torchrun``, which starts the command once per rank, each rank gets a
    file.

    A folder (an existing one, or a name that ends with a slash) gets ``rank0.gviz``, ``rank1.gviz``; in any other
    name ``{rank}`` becomes the number. Two ranks never write one file: GvizError. After a restart by ``torchrun``
    (``--max-restarts``) the earlier traces stay, and the new ones are ``rank0-restart1.gviz``. A program that starts
    its ranks itself is ``main.gviz`` in that folder, and its ranks are named as under ``torchrun``.
    """

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if isinstance(value, Path):
            return value
        rank = _number("RANK")
        text = os.fspath(value)
        if _is_folder(text):
            return Path(_created_folder(text)) / (MAIN if rank is None else trace_of(_called(rank)))
        if RANK in text:
            return Path(text.replace(RANK, _called(rank or 0)))
        if is_one_of_several():
            raise GvizError(
                f"each of the {_number('WORLD_SIZE')} ranks would write {text}",
                hint=f"name a folder, -o {Path(text).stem}/, or a pattern, -o {Path(text).stem}-{RANK}.gviz",
                exit_code=2,
            )
        return Path(text)


def of_rank(output: str, trace: Path) -> str:
    """Return the output path for one rank's `trace`, if `output` is the path for all ranks."""
    number = re.fullmatch(r"rank(\d.*)", trace.stem)
    if RANK in output:
        return output.replace(RANK, number[1] if number else trace.stem)
    if _is_folder(output):
        return f"{Path(_created_folder(output)) / trace.stem}/"
    return str(Path(output).with_name(f"{Path(output).stem}-{trace.stem}{Path(output).suffix}"))


def _called(rank: int) -> str:
    return called(rank, _number("TORCHELASTIC_RESTART_COUNT"))


def is_one_of_several() -> bool:
    """Return whether a launcher started this process as one of several ranks."""
    return _number("RANK") is not None and (_number("WORLD_SIZE") or 1) > 1


def _is_folder(text: str) -> bool:
    return text.endswith(("/", os.sep)) or os.path.isdir(text)


def _created_folder(folder: str) -> str:
    """Return the folder, created if it is missing, because ranks do not wait for each other."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise GvizError(f"cannot write to {folder}", why=error.strerror or str(error)) from error
    return folder


def _number(name: str) -> int | None:
    """Return a number that a launcher put into the environment."""
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None
