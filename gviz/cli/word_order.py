"""Words that were given in another order than a command takes them: what to type instead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from gviz.cli import shell
from gviz.cli.recordings import holds_traces
from gviz.errors import GvizError
from gviz.plain_text import shown


def expect_file(given: object, other: object, right: str) -> None:
    """Raise `GvizError` where the `other` word is the file that `given` is meant to be; `right` is the command with
    both in their order, without its ``gviz``."""
    if other and not os.path.exists(str(given)) and (os.path.isfile(str(other)) or holds_traces(Path(str(other)))):
        is_what = "one" if os.path.isfile(str(other)) else "a folder with traces"
        what = f"there is no file {shown(str(given))}, but {shown(str(other))} is {is_what}"
        command = right.format(shell.quoted(str(given)), shell.word(str(other)))
        raise GvizError(what, hint=f"gviz {command}", exit_code=2)


def refuse_unnamed(*words: str) -> None:
    """Raise `GvizError` where one of two words is a file, and the other the picture to be, without its ``-o``."""
    source = next(filter(os.path.isfile, words), "")
    picture = next((one for one in words if one != source), "")
    from gviz.render.exporters import EXPORTERS  # Graphviz is only needed here

    suffixes = tuple(suffix for exporter in EXPORTERS for suffix in exporter.suffixes)
    if source and picture.endswith(suffixes):
        hint = f"gviz export {shell.word(source)} -o {shell.quoted(picture)}"
        raise GvizError("the name of the picture stands behind -o", hint=hint, exit_code=2)


class OptionsBehindPlace(click.Command):
    """A command whose options may stand between its first word, which is no file, and SCRIPT."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the first word behind the options that follow it."""
        options = click.Command(None, params=[one for one in self.params if isinstance(one, click.Option)])
        options.allow_interspersed_args = False

        def behind(words: list[str]) -> list[str]:
            return options.make_parser(ctx).parse_args(list(words))[1]

        words = behind(args)
        further = behind(words[1:])
        before, between = args[: len(args) - len(words)], words[1 : len(words) - len(further)]
        return super().parse_args(ctx, [*before, *between, *words[:1], *further])


class Page(click.Choice[str]):
    """The name of a page; what is none may be a node, or a file in its place."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices or ctx is None:
            return str(super().convert(value, param, ctx))
        source = ctx.params.get("source", "")
        expect_file(source, value, "show {1} {0}" if source in self.choices else "show {1} node {0}")
        hint = f"gviz show {shell.word(source)} node {shell.quoted(value)} prints a node"
        if Path(source).exists():
            raise GvizError(f"there is no page {shown(value)}: {', '.join(self.choices)}", hint=hint, exit_code=2)
        return str(super().convert(value, param, ctx))
