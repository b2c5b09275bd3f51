"""What the path of a picture asks for: the format, and one picture or one per moment."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gviz.api import output_files
from gviz.errors import GvizError
from gviz.render.file_formats import Exporter, exporter_for

NUMBER = re.compile(r"%(?:0?(\d+)d|d(?![^\W\d_]))")
"""Where the number of a picture goes, in printf syntax; ``50%done.svg`` has none."""


def kind_of(target: str, moments: str = "") -> Exporter:
    """Return the exporter for a path; a folder gets SVG. Raises GvizError for `moments` if it shows only one moment."""
    series = is_series(target)
    exporter = exporter_for(str(numbered(target, 1)) if series else target)
    if exporter.moves and series:
        raise GvizError(f"{exporter.name} moves by itself", hint="give it a name without a number", exit_code=2)
    if moments and not (series or exporter.moves or exporter.opens):
        hint = "the option at chooses which; moments is for a page, a moving picture or a folder"
        raise GvizError(f"{target} shows one moment", hint=hint, exit_code=2)
    return exporter


def refuse(target: str, *, force: bool, source: Path | None = None, hint: str = output_files.AS_OPTION) -> None:
    """Raise `GvizError` if a path may not or cannot be written, before any long work starts."""
    if target.endswith(("/", os.sep)) and not Path(target).exists():
        output_files.refuse_folder(Path(target))
    else:
        first = numbered(target, 1) if is_series(target) else Path(target)
        output_files.refuse_picture(first, source, force=force, hint=hint)


def is_series(target: str) -> bool:
    """Return whether a path asks for one picture per moment."""
    return target.endswith(("/", os.sep)) or bool(NUMBER.search(Path(target).name)) or Path(target).is_dir()


def numbered(target: str, number: int) -> Path:
    """Return the path of one picture of a series, counted from 1: ``frames/001.svg``."""
    if target.endswith(("/", os.sep)) or Path(target).is_dir():
        return Path(target) / f"{number:03}.svg"
    name = NUMBER.sub(lambda match: f"{number:0{match[1] or 0}}", Path(target).name, count=1)
    return Path(target).with_name(name)
