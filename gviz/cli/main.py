"""The command ``gviz``: finds the command, runs it, and turns whatever ends it into lines and an exit code."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from gviz.cli import streams
from gviz.cli.options import GlobalOptions, debug_option, display_options
from gviz.cli.signals import SignalExitCode
from gviz.errors import GvizError, did_you_mean

COMMANDS = (
    "demo",
    "tutor",
    "run",
    "record",
    "monitor",
    "open",
    "show",
    "explain",
    "why",
    "check",
    "gradcheck",
    "diff",
    "whatif",
    "graphify",
    "export",
    "info",
    "keys",
)
"""Every command in the order of the help; each is a file in ``commands/``."""

_INTERRUPTED, _CLOSED_PIPE = SignalExitCode.of(signal.SIGINT), 141


class Commands(click.Group):
    """The command group; a file in the place of a command means the command that opens it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        first = args[0]
        if first in COMMANDS:
            return super().resolve_command(ctx, args)
        if not (os.path.exists(first) or first.endswith((".py", ".gviz"))):
            raise _no_command(first)
        from gviz.cli.program_run import is_trace

        return super().resolve_command(ctx, ["open" if is_trace(Path(first)) else "run", *args])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # Imported when asked for: all of them together take as long as click itself.
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"gviz.cli.commands.{cmd_name}").command
        return command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)


def _no_command(name: str) -> GvizError:
    files = [name + suffix for suffix in (".py", ".gviz") if os.path.isfile(name + suffix)]
    hint = did_you_mean(name, COMMANDS, "gviz --help lists the commands")
    if files:
        hint = f"did you mean {files[0]}?"
    return GvizError(f'no command or file named "{name}"', hint=hint, exit_code=2)


def _version(context: click.Context, parameter: click.Parameter, is_on: bool) -> None:
    if is_on:
        from gviz.version import versions

        click.echo("\n".join(f"{name} {version}" for name, version in versions().items()))
        context.exit()


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog="""
\b
Examples:
  gviz demo                       step through the first lesson
  gviz run train.py --lr 0.1      debug a script while it runs
  gviz why w.grad train.py        explain a gradient
  gviz export train.py -o g.svg   draw its graph

gviz FILE.gviz means gviz open FILE.gviz, and gviz SCRIPT means gviz run SCRIPT.

Options of gviz come before SCRIPT. Everything after SCRIPT belongs to the script, as with python. Only export takes
its own options there, up to a --: gviz export train.py -o g.svg -- --lr 0.1
"""
)  # fmt: skip
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show versions.")
@debug_option
@display_options
def gviz() -> None:
    """Watch a computation graph run, and step through it forwards and backwards in time."""


def main() -> None:
    """Run the console script."""
    streams.prepare()
    code = run_command(sys.argv[1:])
    if sys.flags.inspect or isinstance(code, SignalExitCode):
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End this process by a signal, or without the prompt that -i and PYTHONINSPECT would open."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    if isinstance(code, SignalExitCode):
        code.end()
    os._exit(code)


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line. Return its exit code, a `SignalExitCode` if this process should end by a signal."""
    settings = GlobalOptions.from_environment()
    try:
        code = _execute(arguments, settings)
    except GvizError as error:
        _show(error.lines(), settings)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        streams.show_raw(f"{error.format_message()}\n")
        return error.exit_code
    except click.ClickException as error:
        _show(_usage_lines(error), settings)
        return error.exit_code
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            streams.show_raw("\r\x1b[K")  # erases the progress line and the ^C in it
        return _INTERRUPTED
    except BrokenPipeError:
        streams.discard(sys.stdout)
        return _CLOSED_PIPE
    except OSError as error:
        _show([f"gviz: error: {error.strerror or error}"], settings)
        streams.discard(sys.stdout)
        return 1
    except Exception as error:
        from gviz.system.crash import crash

        report = crash(error)
        _show(report.lines(), settings)
        return report.exit_code
    return code if isinstance(code, int) else 0


def _execute(arguments: Sequence[str], settings: GlobalOptions) -> object:
    """Do what `click.Command.main` does, without its handling of Ctrl+C and closed pipes."""
    if "_GVIZ_COMPLETE" in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(gviz, {}, "gviz", "_GVIZ_COMPLETE", os.environ["_GVIZ_COMPLETE"])
    try:
        with gviz.make_context("gviz", list(arguments), obj=settings) as context:
            result = gviz.invoke(context)
    except click.exceptions.Exit as end:
        result = end.exit_code
    sys.stdout.flush()
    return result


def _usage_lines(error: click.ClickException) -> list[str]:
    lines = [f"gviz: error: {error.format_message()}"]
    context = getattr(error, "ctx", None)
    return [*lines, f"hint: {context.command_path} --help"] if context else lines


def _show(lines: Sequence[str], settings: GlobalOptions) -> None:
    if settings.debug:
        import traceback

        traceback.print_exc()
    streams.show(*lines)
