"""``gviz keys``: which keys do what."""

from __future__ import annotations

import click


@click.command("keys")
@click.option("--keymap", metavar="NAME", help="default, vscode or jetbrains, instead of the one in force.")
def command(keymap: str | None) -> None:
    """Print the keys of the debugger, with your own.

    A key is changed in the [keys] table of the file named in the last line: "time.step" = "x".
    """
    from gviz.tui import config, keymaps
    from gviz.tui.lines import plain

    own = config.read()
    keys = keymaps.keys_of(keymap or own.keymap, own.keys)
    for row in keymaps.key_lines(keys, 200):
        click.echo(plain(row).rstrip())
    click.echo(f"\nkeymap {keymap or own.keymap}; your own keys: [keys] in {config.place()}")
