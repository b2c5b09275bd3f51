"""Every key of the debugger as bindings of the screen, by the ids that keymaps name."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from gviz.tui.keymaps import ACTS, Keys, keys_of

BINDINGS: list[BindingType] = [
    Binding(",".join(keys_of("default")[act.id]), act.action, act.says, show=False, id=act.id) for act in ACTS
]


def keymap(keys: Keys) -> dict[str, str]:
    """What is not as it is by default, in the form that Textual takes: a key it names is taken from every other act."""
    default = keys_of("default")
    return {id: ",".join(names) for id, names in keys.items() if names != default[id]}
