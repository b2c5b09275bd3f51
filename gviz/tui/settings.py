"""What ``set KEY VALUE`` changes: every setting with its values, for both front ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gviz.errors import GvizError, did_you_mean
from gviz.values.plain_text import clipped


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its values, the first of which it has at the start, or `full` that knows them; and what it does."""

    name: str
    values: tuple[str, ...]
    help: str
    full: Callable[[str], str] = str
    """A value by its full name; GvizError for one there is not."""


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
    """The values of a session."""

    values: dict[str, str] = field(default_factory=lambda: {one.name: (*one.values, "")[0] for one in SETTINGS})

    def asked(self, text: str) -> tuple[str, str]:
        """What ``KEY VALUE`` asks for, which a front end may refuse; GvizError for a key or a value there is not."""
        name, _, value = text.strip().partition(" ")
        setting, value = named(name), value.strip()
        if not value or (setting.values and value not in setting.values):
            what = f"{setting.name} cannot be {clipped(value, 20)}" if value else f"{setting.name} needs a value"
            raise GvizError(what, hint=", ".join(setting.values) or setting.help, exit_code=2)
        return setting.name, setting.full(value)

    def told(self, text: str) -> Iterator[str]:
        """One setting, or all."""
        for one in [named(text.strip())] if text.strip() else SETTINGS:
            yield f"{one.name} is {self.values[one.name] or 'as it began'}: {one.help}"


def named(name: str) -> Setting:
    """The setting of a name; GvizError if there is none."""
    found = next((one for one in SETTINGS if one.name == name), None)
    if found is None:
        names = [one.name for one in SETTINGS]
        hint = did_you_mean(name, names, ", ".join(names))
        raise GvizError(f"there is no setting {clipped(name, 20)}", hint=hint, exit_code=2)
    return found
