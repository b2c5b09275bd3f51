"""The user's own file: keymap, theme and keys. gviz reads it and never writes it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

from gviz.errors import GvizError, did_you_mean
from gviz.tui import keymaps
from gviz.values.plain_text import clipped, shown

_KNOWN = ("keymap", "theme", "keys", "motion")


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says; a file that is not there says nothing."""

    keymap: str = "default"
    theme: str | None = None
    motion: bool = True
    keys: Mapping[str, str] = field(default_factory=dict)


def place() -> Path:
    """Where the file is looked for."""
    return platformdirs.user_config_path("gviz") / "config.toml"


def read(path: Path | None = None) -> Config:
    """The user's configuration; GvizError (exit code 2), in one line, for a file that is wrong."""
    path = place() if path is None else path
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise GvizError(f"cannot read {shown(str(path))}", why=why, exit_code=2) from error
    try:
        return _config(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise GvizError(f"{shown(str(path))} is no TOML", why=shown(str(error)), exit_code=2) from None
    except GvizError as error:
        raise GvizError(f"{shown(str(path))}: {error.what}", why=error.why, hint=error.hint, exit_code=2) from None


def _config(table: dict[str, Any]) -> Config:
    for name in table:
        if name not in _KNOWN:
            hint = did_you_mean(name, _KNOWN, f"it knows {', '.join(_KNOWN)}")
            raise GvizError(f"there is no setting {clipped(shown(name), 30)}", hint=hint)
    keymap, theme, motion = table.get("keymap", "default"), table.get("theme"), table.get("motion", True)
    if not isinstance(keymap, str) or not isinstance(theme, str | None) or not isinstance(motion, bool):
        raise GvizError("keymap and theme are texts, motion is true or false", hint='keymap = "vscode"')
    keys = _keys(table.get("keys", {}))
    keymaps.keys_of(keymap, keys)
    return Config(keymap, theme, motion, keys)


def _keys(table: object) -> dict[str, str]:
    if not isinstance(table, dict):
        raise GvizError("[keys] is no table", hint='"time.step" = "x"')
    found: dict[str, str] = {}
    for id, value in _flat(table):
        texts = value if isinstance(value, list) else [value]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise GvizError(f"{clipped(shown(id), 30)} needs a key", hint='"time.step" = "x" or ["x", "f5"]')
        found[id] = ",".join(texts)
    return found


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Ids with what they are given; without quotes TOML takes ``time.step`` for a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{rest}", given) for rest, given in _flat(value))
        else:
            yield name, value
