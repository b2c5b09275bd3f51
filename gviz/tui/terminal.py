"""What the terminal can do, and so which debugger fits it."""

from __future__ import annotations

import os
import sys

from gviz.tui.glyphs import wants_ascii


def asks_for_lines() -> bool:
    """Whether ``GVIZ_PLAIN`` asks for the debugger that goes line by line."""
    return os.environ.get("GVIZ_PLAIN", "0") not in ("", "0")


def why_plain(*, asked: bool) -> str:
    """Why the debugger goes line by line instead of full screen; empty if the terminal can show it."""
    if asked:
        return "--plain"
    if os.environ.get("TERM", "") in ("", "dumb"):
        return f"TERM={os.environ.get('TERM', '')}"
    if not sys.stdin.isatty():
        return "standard input is not a terminal"
    if not sys.stderr.isatty():
        return "standard error, where the screen is drawn, is not a terminal"
    return ""


def needs_ascii(*, asked: bool) -> bool:
    """Whether only ASCII characters can be drawn."""
    return asked or wants_ascii()


def is_there() -> bool:
    """Whether there still is a terminal to type into: one that hung up is none any more."""
    stdin = sys.__stdin__
    return stdin is not None and not stdin.closed and stdin.isatty()
