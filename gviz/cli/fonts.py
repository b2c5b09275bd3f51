"""Whether pictures with pixels will show text: a machine without any font draws correct SVG, but empty PNG text."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts", "C:/Windows/Fonts")
_SUFFIXES = {".ttf", ".otf", ".ttc", ".pfb", ".pcf"}
ENOUGH = 100


def count() -> int:
    """How many font files there are, counted up to `ENOUGH`."""
    home = Path.home()
    folders = [Path(folder) for folder in _FOLDERS] + [home / ".fonts", home / ".local/share/fonts"]
    files = (file for folder in folders for file in folder.rglob("*") if file.suffix.lower() in _SUFFIXES)
    return sum(1 for _ in islice(files, ENOUGH))
