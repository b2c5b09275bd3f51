"""Splits gviz's arguments from the script's, and shows the right command for words in the wrong order.

One rule: everything after SCRIPT belongs to the script, as with python. ``export`` and ``show`` accept their own
options there too, up to a `--`, because their source can also be a trace.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from gviz.cli import shell_quoting, streams
from gviz.errors import GvizError, did_you_mean
from gviz.program.rank_trace_files import holds_traces
from gviz.values.plain_text import shown


def warn_of_lost_options(argv: Sequence[str]) -> None:
    """Warn about options of the command after the script, which gviz does not read.

    An option that also occurs in the text of the script belongs to the script.
    """
    script, *theirs = argv
    own = {name for option in click.get_current_context().command.params for name in option.opts if name[:2] == "--"}
    lost = [name for name in dict.fromkeys(one.partition("=")[0] for one in theirs) if name in own]
    lost += ["-o"] * any(one == "-o" and name.endswith(".gviz") for one, name in pairwise(theirs))
    text = _text(script) if lost else ""
    lost = [name for name in lost if name not in text]
    for name in [*lost, *lost_flags(argv)]:
        streams.show(f"gviz: note: {name} comes after {shown(script)}, so the script gets it; options of gviz come "
                     f"before the script")  # fmt: skip


def lost_flags(argv: Sequence[str]) -> list[str]:
    """Return the short flags of the command (``-v``) that come after a script whose text has no such word."""
    script, *theirs = argv
    options = (one for one in click.get_current_context().command.params if isinstance(one, click.Option))
    own = {name for one in options if one.is_flag for name in one.opts if len(name) == len("-v")} - _SHORT_OF_SCRIPTS
    found = [name for name in dict.fromkeys(theirs) if name in own]
    text = _text(script) if found else ""
    return [name for name in found if not re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", text)]


_SHORT_OF_SCRIPTS = frozenset({"-h", "-m"})
"""Flags of many scripts that argparse or Python reads, so that the text of the script need not have them."""


def refuse_for_trace(trace: str, theirs: Sequence[str]) -> None:
    """Raise `GvizError` for arguments after a trace: a trace runs no program that could take them."""
    if theirs:
        what = f"a trace takes no arguments: {' '.join(map(shown, theirs))}"
        hint = f"options come before {shown(trace)}"
        words = sys.argv[1:]
        if theirs[0].startswith("-") and words[-len(theirs) - 1 :] == [trace, *theirs]:
            ordered = [*words[: -len(theirs) - 1], *theirs, trace]
            hint += f": gviz {' '.join(map(shell_quoting.quoted, ordered))}"
        raise GvizError(what, hint=hint, exit_code=2)


class OptionsAfterScript(click.Command):
    """A command that accepts its options after the script, up to `--`; what follows are the script's `arguments`.

    `usual` is a script argument for the example in its usage.
    """

    usual = ""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage, ending with the arguments of the script."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGS]..."]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set aside what follows `--`, and report script arguments that need a `--` before them."""
        end = args.index("--") if "--" in args else len(args)
        theirs = tuple(args[end + 1 :])
        try:
            rest = super().parse_args(ctx, args[:end])
        except click.NoSuchOption as error:
            script = next((one for one in args if Path(one).is_file()), "SCRIPT")
            command = f"{self.name} {shell_quoting.word(script)}{self.usual}"
            raise misplaced(command, error.option_name, error.format_message()) from error
        ctx.params["arguments"] = theirs
        return rest


def misplaced(command: str, word: str, what: str) -> GvizError:
    """Return the error for a script argument that was given to a command of gviz."""
    hint = f"arguments of the script come after --: gviz {command} -- {shown(word)}"
    return GvizError(what, hint=hint, exit_code=2)


def _text(script: str) -> str:
    try:
        return Path(script).read_text("utf-8", "replace")
    except OSError:
        return ""


def expect_file(word: object, other: object, right: str) -> None:
    """Raise `GvizError` if `other` is the file that `word` should be; `right` is the command in the right order,
    without `gviz`.
    """
    if other and not os.path.exists(str(word)) and _is_source(str(other)):
        is_what = "one" if os.path.isfile(str(other)) else "a folder with traces"
        what = f"there is no file {shown(str(word))}, but {shown(str(other))} is {is_what}"
        command = right.format(shell_quoting.quoted(str(word)), shell_quoting.word(str(other)))
        raise GvizError(what, hint=f"gviz {command}", exit_code=2)


def refuse_unnamed(*words: str) -> None:
    """Raise `GvizError` if one of two words is a file and the other a picture name without its ``-o``."""
    source = next(filter(os.path.isfile, words), "")
    picture = next((one for one in words if one != source), "")
    from gviz.render.file_formats import EXPORTERS  # Graphviz is only needed here

    suffixes = tuple(suffix for exporter in EXPORTERS for suffix in exporter.suffixes)
    if source and picture.endswith(suffixes):
        hint = f"gviz export {shell_quoting.word(source)} -o {shell_quoting.quoted(picture)}"
        raise GvizError("the name of the picture comes after -o", hint=hint, exit_code=2)


class OptionsAfterPlace(click.Command):
    """A command that accepts its options between its first word, which is not a file, and SCRIPT.

    The two words may also be in the other order, if it is clear which of them is the file.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the first word after the options that follow it, and a file after the other word."""
        options = click.Command(None, params=[one for one in self.params if isinstance(one, click.Option)])
        options.allow_interspersed_args = False

        def remaining(words: list[str]) -> list[str]:
            return options.make_parser(ctx).parse_args(list(words))[1]

        words = remaining(args)
        further = remaining(words[1:])
        before, between = args[: len(args) - len(words)], words[1 : len(words) - len(further)]
        place, script = words[:1], further[:1]
        if place and script and _is_source(place[0]) and not os.path.exists(script[0]):
            place, script = script, place
        return super().parse_args(ctx, [*before, *between, *place, *script, *further[1:]])


def _is_source(word: str) -> bool:
    """Return whether a word names a program, a trace or a folder with traces."""
    return os.path.isfile(word) or holds_traces(Path(word))


class Page(click.Choice[str]):
    """The name of a page. Any other word may be a node, or a file in the wrong place."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices or ctx is None:
            return str(super().convert(value, param, ctx))
        source = ctx.params.get("source", "")
        expect_file(source, value, "show {1} {0}" if source in self.choices else "show {1} node {0}")
        node = f"gviz show {shell_quoting.word(source)} node {shell_quoting.quoted(value)} prints a node"
        hint = did_you_mean(value, self.choices, node)
        if Path(source).exists():
            raise GvizError(f"there is no page {shown(value)}: {', '.join(self.choices)}", hint=hint, exit_code=2)
        return str(super().convert(value, param, ctx))
