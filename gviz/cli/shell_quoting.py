"""Paths and other words in commands to paste into a shell."""

from __future__ import annotations

import os
import shlex


def word(path: str | os.PathLike[str]) -> str:
    """Return the path as one word of a command, which is taken for no option."""
    text = os.fspath(path)
    return quoted(f"./{text}" if text.startswith("-") else text)


def quoted(text: str) -> str:
    """Return the text as one word of a command, with everything invisible escaped as bash, zsh and ksh write it."""
    return shlex.quote(text) if text.isprintable() else f"$'{''.join(map(_escaped, text))}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
