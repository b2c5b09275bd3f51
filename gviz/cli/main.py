"""The command ``gviz``: finds the command, runs it, and turns whatever ends it into lines and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from gviz.cli import demo, export, info, open_trace, record, run, show
from gviz.cli.session import is_trace
from gviz.cli.settings import Settings, debug_option, display_options
from gviz.errors import GvizError
from gviz.plain_text import shown

COMMANDS: tuple[click.Command, ...] = (
    demo.command,
    run.command,
    record.command,
    open_trace.command,
    show.command,
    export.command,
    info.command,
)

_BUG, _INTERRUPTED, _CLOSED_PIPE = 70, 130, 141


class _ClosedPipe(Exception):
    """Whoever read our output has gone; click would make 1 of it."""


class Commands(click.Group):
    """The group, in which a file may stand for the command that opens it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        first = args[0]
        if first not in self.commands and (os.path.exists(first) or Path(first).suffix in (".py", ".gviz")):
            return super().resolve_command(ctx, ["open" if is_trace(Path(first)) else "run", *args])
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise _ClosedPipe from error
        return result


def _version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from gviz.cli.crash import versions

        click.echo("\n".join(f"{name} {version}" for name, version in versions().items()))
        context.exit()


@click.group(
    cls=Commands, commands=list(COMMANDS), context_settings={"help_option_names": ["-h", "--help"]}, epilog="""
\b
Examples:
  gviz demo                     step through the first lesson
  gviz run train.py --lr 0.1    run a script, then step through what it did
  gviz export train.py -o g.svg a picture of its graph

gviz FILE.gviz means gviz open FILE.gviz, and gviz SCRIPT means gviz run SCRIPT.
"""
)  # fmt: skip
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show versions.")
@debug_option
@display_options
def gviz() -> None:
    """See a computation graph live: step forward and backward in time through its forward and backward pass."""


def main() -> None:
    """The console script."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line; give its exit code."""
    settings = Settings.from_environment()
    try:
        code = gviz.main(list(arguments), prog_name="gviz", standalone_mode=False, obj=settings)
    except GvizError as error:
        _say(error.lines(), settings)
        return error.exit_code
    except click.ClickException as error:
        _say(_usage_lines(error), settings)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except _ClosedPipe:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered must go somewhere
        return _CLOSED_PIPE
    except Exception as error:
        _say(_bug_lines(error), settings)
        return _BUG
    return code if isinstance(code, int) else 0


def _usage_lines(error: click.ClickException) -> list[str]:
    lines = [f"gviz: error: {error.format_message()}"]
    context = getattr(error, "ctx", None)
    return [*lines, f"hint: {context.command_path} --help"] if context else lines


def _bug_lines(error: Exception) -> list[str]:
    from gviz.cli.crash import write_report

    what = f"gviz: error: a bug in gviz ({type(error).__name__})"
    try:
        return [what, f"  report, without any of your values: {write_report(error)}", "hint: --debug shows where"]
    except (OSError, GvizError) as no_report:
        return [what, f"  no report could be written: {no_report}", "hint: --debug shows where"]


def _say(lines: Sequence[str], settings: Settings) -> None:
    if settings.debug:
        traceback.print_exc()
    click.echo("\n".join(map(shown, lines)), err=True)
