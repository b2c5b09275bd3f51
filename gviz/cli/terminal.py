"""What the terminal can do, and so which debugger fits it."""

from __future__ import annotations

import os
import sys

from gviz.cli.settings import Settings


def why_plain(settings: Settings) -> str:
    """Why the debugger goes line by line instead of full screen; empty if the terminal can show it."""
    if settings.plain:
        return "--plain"
    if os.environ.get("TERM", "") in ("", "dumb"):
        return f"TERM={os.environ.get('TERM', '')}"
    if not sys.stdin.isatty():
        return "standard input is not a terminal"
    if not sys.stderr.isatty():
        return "standard error, where the screen is drawn, is not a terminal"
    return ""


def needs_ascii(settings: Settings) -> bool:
    """Whether only ASCII characters can be drawn."""
    from gviz.tui.glyphs import wants_ascii

    return settings.ascii or wants_ascii()
