"""``gviz keys``: which keys do what."""

from __future__ import annotations

import click


@click.command("keys")
@click.option("--keymap", metavar="NAME", help="default, vscode or jetbrains (default: the one in use).")
def command(keymap: str | None) -> None:
    """List the keys of the debugger.

    To change a key, edit the [keys] table of the file that the last line names: "time.step" = "x".
    """
    from gviz.tui import config, keymaps
    from gviz.tui.styled_lines import plain

    own = config.read()
    keys = keymaps.keys_of(keymap or own.keymap, own.keys)
    for row in keymaps.key_lines(keys, 200):
        click.echo(plain(row).rstrip())
    click.echo(f"\nkeymap {keymap or own.keymap}; your own keys: [keys] in {config.place()}")
