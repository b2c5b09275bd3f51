"""Every key of the debugger as bindings of the screen and the application, by the ids that keymaps name."""

from __future__ import annotations

from textual.binding import Binding, BindingType
from textual.screen import Screen

from gviz.tui.drawing.status import offered
from gviz.tui.keymaps import ACTS, Act, Keys, first, keys_of
from gviz.tui.widgets.status import HappeningRow, KeysRow


def _binding(act: Act, *, everywhere: bool) -> Binding:
    keys = ",".join(keys_of("default")[act.id])
    return Binding(keys, act.action, act.says, show=False, id=act.id, priority=everywhere)


BINDINGS: list[BindingType] = [_binding(act, everywhere=False) for act in ACTS if not act.action.startswith("app.")]
APP_BINDINGS: list[BindingType] = [_binding(act, everywhere=True) for act in ACTS if act.action.startswith("app.")]
"""Keys that act over a page, too."""


def keymap(keys: Keys) -> dict[str, str]:
    """What is not as it is by default, in the form that Textual takes: a key it names is taken from every other act."""
    default = keys_of("default")
    return {id: ",".join(names) for id, names in keys.items() if names != default[id]}


def follow_keymap(screen: Screen[None], keys: Keys) -> None:
    """Let bindings and bottom row be those of a keymap."""
    screen.app.set_keymap(keymap(keys))
    row = screen.query_one(KeysRow)
    row.offered = offered(keys)
    row.refresh()
    screen.query_one(HappeningRow).more = first(keys, "look.happened")
