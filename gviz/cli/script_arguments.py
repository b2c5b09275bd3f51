"""Whose an argument is. One rule: behind SCRIPT everything is the script's, as with python.

``export`` and ``show`` read their own there, too, because what they make comes from traces as well: `--` ends them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click

from gviz.cli import shell, streams
from gviz.errors import GvizError
from gviz.plain_text import shown


def say_lost(argv: Sequence[str]) -> None:
    """Say which options of the command stand behind the script, so that gviz does not see them.

    One that the text of the script knows, too, is meant for the script.
    """
    script, *theirs = argv
    own = {name for option in click.get_current_context().command.params for name in option.opts if name[:2] == "--"}
    lost = [name for name in dict.fromkeys(one.partition("=")[0] for one in theirs) if name in own]
    lost += ["-o"] * any(one == "-o" and name.endswith(".gviz") for one, name in pairwise(theirs))
    text = _text(script) if lost else ""
    for name in lost:
        if name not in text:
            streams.say(f"gviz: note: {name} stands behind {shown(script)}, so the script gets it; gviz's own options "
                        f"stand before it")  # fmt: skip


def refuse_for_trace(trace: str, theirs: Sequence[str]) -> None:
    """Raise `GvizError` for arguments behind a trace, which runs nothing that could get them."""
    if theirs:
        what = f"a trace takes no arguments: {' '.join(map(shown, theirs))}"
        raise GvizError(what, hint=f"options stand before {shown(trace)}", exit_code=2)


class OptionsBehind(click.Command):
    """A command whose options may stand behind the script, up to `--`; what follows are the script's `arguments`.

    `usual` is what stands behind the script in an example.
    """

    usual = ""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage, which ends with the arguments of the script."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGS]..."]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set aside what stands behind `--`, and say of what does not that it has to."""
        end = args.index("--") if "--" in args else len(args)
        theirs = tuple(args[end + 1 :])
        try:
            rest = super().parse_args(ctx, args[:end])
        except click.NoSuchOption as error:
            script = next((one for one in args if Path(one).is_file()), "SCRIPT")
            command = f"{self.name} {shell.word(script)}{self.usual}"
            raise misplaced(command, error.option_name, error.format_message()) from error
        ctx.params["arguments"] = theirs
        return rest


def misplaced(command: str, given: str, what: str) -> GvizError:
    """What to raise for an argument of the script that a command of gviz was given."""
    hint = f"what the script is to get stands behind --: gviz {command} -- {shown(given)}"
    return GvizError(what, hint=hint, exit_code=2)


def _text(script: str) -> str:
    try:
        return Path(script).read_text("utf-8", "replace")
    except OSError:
        return ""
