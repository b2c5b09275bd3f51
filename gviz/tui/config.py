"""The user's settings: ``config.toml`` (keymap, theme, motion, keys), and ``set KEY VALUE`` in a session.

gviz reads the file when the debugger opens, and never writes it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
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
    """The contents of the file, or the defaults if there is no file."""

    keymap: str = "default"
    theme: str | None = None
    motion: bool = True
    keys: Mapping[str, str] = field(default_factory=dict)


def place() -> Path:
    """Return the path of the file."""
    return platformdirs.user_config_path("gviz") / "config.toml"


def read(path: Path | None = None) -> Config:
    """Return the user's configuration.

    Raises GvizError (exit code 2) with a message of one line for an invalid file.
    """
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
        raise GvizError(f"{shown(str(path))} is not valid TOML", why=shown(str(error)), exit_code=2) from None
    except GvizError as error:
        raise GvizError(f"{shown(str(path))}: {error.what}", why=error.why, hint=error.hint, exit_code=2) from None


def _config(table: dict[str, Any]) -> Config:
    for name in table:
        if name not in _KNOWN:
            hint = did_you_mean(name, _KNOWN, f"the settings are {', '.join(_KNOWN)}")
            raise GvizError(f"there is no setting {clipped(shown(name), 30)}", hint=hint)
    keymap, theme, motion = table.get("keymap", "default"), table.get("theme"), table.get("motion", True)
    if not isinstance(keymap, str) or not isinstance(theme, str | None) or not isinstance(motion, bool):
        raise GvizError("keymap and theme are texts, motion is true or false", hint='keymap = "vscode"')
    keys = _keys(table.get("keys", {}))
    keymaps.keys_of(keymap, keys)
    return Config(keymap, theme, motion, keys)


def _keys(table: object) -> dict[str, str]:
    if not isinstance(table, dict):
        raise GvizError("[keys] is not a table", hint='"time.step" = "x"')
    keys: dict[str, str] = {}
    for id, value in _flat(table):
        texts = value if isinstance(value, list) else [value]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise GvizError(f"{clipped(shown(id), 30)} needs a key", hint='"time.step" = "x" or ["x", "f5"]')
        keys[id] = ",".join(texts)
    return keys


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the ids with their keys. Without quotes, TOML reads ``time.step`` as a table inside a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{rest}", keys) for rest, keys in _flat(value))
        else:
            yield name, value


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its values (the first is the default), or a function `full` that checks them, and its help text."""

    name: str
    values: tuple[str, ...]
    help: str
    full: Callable[[str], str] = str
    """Returns the full name of a value. Raises GvizError for an unknown one."""


def _theme(name: str) -> str:
    from gviz.tui.themes import SHORT, TEXTUAL, named  # Textual is only needed here

    return named(name, (*SHORT.values(), *TEXTUAL))


SETTINGS = (
    Setting("ascii", ("off", "on"), "draw with ASCII characters only"),
    Setting("keymap", ("default", "vscode", "jetbrains"), "which keys do what"),
    Setting("motion", ("on", "off"), "scroll smoothly, and blink the cursor of the prompt"),
    Setting("speed", ("1x", "2x", "4x", "8x"), "how fast play steps"),
    Setting("theme", (), "the colours: gviz-dark, gviz-light, gviz-contrast, gviz-ansi, gviz-cs231n, gviz-mono",
            _theme),
)  # fmt: skip


@dataclass(slots=True)
class Settings:
    """The current values of the settings in a session."""

    values: dict[str, str] = field(default_factory=lambda: {one.name: (*one.values, "")[0] for one in SETTINGS})

    def parse(self, text: str) -> tuple[str, str]:
        """Parse ``KEY VALUE``. Raises GvizError for an unknown key or value; a front end may refuse a valid one."""
        name, _, value = text.strip().partition(" ")
        setting, value = setting_named(name), value.strip()
        if not value or (setting.values and value not in setting.values):
            what = f"{setting.name} cannot be {clipped(value, 20)}" if value else f"{setting.name} needs a value"
            raise GvizError(what, hint=", ".join(setting.values) or setting.help, exit_code=2)
        return setting.name, setting.full(value)

    def descriptions(self, text: str) -> Iterator[str]:
        """Yield the text of one setting, or of all."""
        for one in [setting_named(text.strip())] if text.strip() else SETTINGS:
            yield f"{one.name} is {self.values[one.name] or 'the default'}: {one.help}"


def setting_named(name: str) -> Setting:
    """Return the setting with a name. Raises GvizError if there is none."""
    setting = next((one for one in SETTINGS if one.name == name), None)
    if setting is None:
        names = [one.name for one in SETTINGS]
        hint = did_you_mean(name, names, ", ".join(names))
        raise GvizError(f"there is no setting {clipped(name, 20)}", hint=hint, exit_code=2)
    return setting
