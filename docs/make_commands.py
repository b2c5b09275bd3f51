"""Writes ``commands.md``: the keys and the command language of the debugger. Run it as ``make commands``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gviz.tui import keymaps
from gviz.tui.commands.command_table import GROUPS, written
from gviz.tui.language.command import Spec

PATH = Path(__file__).with_name("commands.md")
_HEAD = """\
# Keys and commands

Written by `make commands` from the tables in `gviz/tui/commands/command_table.py` and `gviz/tui/keymaps.py`:
do not edit.
[debugger.md](debugger.md) says how they go together.

Commands are typed at the prompt (`:`), given on the command line (`-c "break x" -c continue`), read from a file
(`-x FILE`, `source FILE`), or typed line by line with `--plain`. A beginning that fits only one command is enough, an
empty line
repeats the last one, and a `-` behind a word of time goes back: `n-` is `reverse-next`. In brackets stands what may be
left out; `N` is a number, `PLACE` a node or moment (`x`, `#4`, `@12`, `train.py:12`, `net.0.*`), `EXPR` an expression
such as `x.grad * 2` or `norm(#4)`.
"""


def text() -> str:
    """The page as it should be."""
    return _HEAD + "".join(_group(title, specs) for title, specs in GROUPS.items()) + _keys()


def _group(title: str, specs: Iterable[Spec]) -> str:
    rows = ((f"`{_cell(written(spec))}`", _cell(spec.help_text())) for spec in specs)
    return f"\n## {title}\n\n{_table(('command', 'what it does'), rows)}"


def _keys() -> str:
    maps = {name: keymaps.keys_of(name) for name in keymaps.KEYMAPS}
    rows = (
        (
            act.description,
            *(" ".join(f"`{_cell(keymaps.key_text(key))}`" for key in keys[act.id]) for keys in maps.values()),
            f"`{act.id}`",
        )
        for act in keymaps.ACTS
    )
    head = """
## Keys

`set keymap NAME` chooses one of the keymaps, `[keys]` in the file that `gviz keys` names changes a single key by its
id: `"time.step" = "x"`. In the prompt, letters are text.

"""
    return head + _table(("what it does", *maps, "id"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
