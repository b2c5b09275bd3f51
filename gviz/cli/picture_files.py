"""Writes moments of a trace as pictures, through `gviz.export`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gviz.cli import streams, text_size

SECONDS_OF_SILENCE = 1.0
ERASED = "\x1b[K"
"""Erases the rest of the previous line in the terminal."""


def write_picture(trace: Path, output: str | Path, **options: Any) -> list[Path]:
    """Write a picture as `gviz.export` does, with a progress line if it takes long."""
    from gviz.api.export import export
    from gviz.render import option_words

    with option_words.as_typed(), _patience(f"drawing {Path(output).name or output}; Ctrl+C stops") as progress:
        return export(trace, output, **options, note=_note, progress=progress)


def draw_again(trace: Path, path: Path, options: Mapping[str, Any], changed: Mapping[str, Any]) -> Path:
    """Draw the same picture in its own size with some options changed, silently; raises `GvizError` as an
    export does.
    """
    from gviz.api.export import export

    export(
        trace, path, **{**options, "scale": None, **changed}, force=True, timeout=text_size.SECONDS, note=_ignore_note
    )
    return path


def _ignore_note(note: str) -> None:
    """Ignore the notes of a picture that is only measured."""


def _note(note: str) -> None:
    """Print a note about the picture on its own line."""
    streams.show_raw(f"\r{ERASED}" if sys.stderr.isatty() else "")
    streams.show(f"gviz: note: {note}")


def print_picture(trace: Path, format: str, **options: Any) -> None:
    """Write a picture to standard output."""
    from gviz.system.scratch import scratch_folder

    with scratch_folder() as folder:
        picture = folder / f"picture{suffix_of(format)}"
        write_picture(trace, picture, **options)
        sys.stdout.buffer.write(picture.read_bytes())
        sys.stdout.buffer.flush()


def suffix_of(format: str) -> str:
    """Return the first suffix of a format by name."""
    from gviz.errors import GvizError
    from gviz.render.file_formats import EXPORTERS

    suffix = next((exporter.suffixes[0] for exporter in EXPORTERS if exporter.name == format), "")
    if not suffix:
        names = " ".join(exporter.name for exporter in EXPORTERS)
        raise GvizError(f"there is no format {format!r}", hint=f"formats: {names}", exit_code=2)
    return suffix


@contextmanager
def _patience(what: str) -> Iterator[Callable[[float], None]]:
    """Show a progress line in a terminal if the work takes long."""
    begun = time.monotonic()
    timer = threading.Timer(SECONDS_OF_SILENCE, streams.show_raw, [f"{what}{ERASED}"])
    timer.daemon = True
    terminal = sys.stderr.isatty()
    if terminal:
        timer.start()

    def show_progress(fraction: float) -> None:
        if terminal and time.monotonic() - begun > SECONDS_OF_SILENCE:
            streams.show_raw(f"\r{what}: {fraction:.0%}{ERASED}")

    try:
        yield show_progress
    finally:
        timer.cancel()
        if terminal:
            streams.show_raw(f"\r{ERASED}")
