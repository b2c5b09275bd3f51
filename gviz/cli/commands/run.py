"""``gviz run``: debugs a script while it runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Literal

import click

from gviz.cli import streams
from gviz.cli.debugger import debug
from gviz.cli.options import GlobalOptions, StartCommands, display_options, takes_opening
from gviz.cli.program_run import SCRIPT_CONTEXT, Program, has_trace, record_program, takes_program
from gviz.tui import terminal
from gviz.tui.session_options import LiveSessionOptions, SessionOptions, Title

if TYPE_CHECKING:
    from gviz.live.protocol import Mode

Pause = Literal["start", "backward", "never"]
_FIRST: dict[Pause, Mode] = {"start": "next", "backward": "backward", "never": "run"}
_WHY_NOT_PAUSED = (
    "the script runs to its end first: with --last, --max-size or --keep events are dropped while it runs, and the "
    "debugger cannot go back to them; Ctrl+C ends it early and keeps the newest part"
)


@click.command("run", context_settings=SCRIPT_CONTEXT)
@display_options
@click.pass_obj
@click.option(
    "--pause",
    type=click.Choice(list(_FIRST)),
    default="start",
    help="Pause the script at its first operation, at its first backward pass, or never. --break and --on override "
    "this.",
)
@takes_opening
@takes_program
def command(settings: GlobalOptions, program: Program, opening: StartCommands, pause: Pause) -> int:
    """Debug a script while it runs.

    The debugger pauses the script at its first operation; you step it from there. The script runs as `python SCRIPT
    ARGS...` would run it, in a terminal of its own, and gviz ends with its exit code.

    Options of gviz come before SCRIPT. With --last, --max-size or --keep, or where standard input is not a terminal and
    --plain is not given, the script runs to its end first, and the debugger opens on the recording.
    """  # fmt: skip
    can_pause = os.name == "posix" and (settings.plain or sys.stdin.isatty())
    if can_pause and not program.keeping.bounded:
        return _live(settings, program, opening, _FIRST[pause])
    if can_pause:
        streams.show(_WHY_NOT_PAUSED)
    recorded = record_program(program)
    if not has_trace(recorded.trace):
        return recorded.exit_code
    streams.show(f"trace: {recorded.trace}")
    code = debug(recorded.trace, settings, SessionOptions(_title(program), opening=opening.over_a_recording))
    return int(recorded.exit_code) or code


def _live(settings: GlobalOptions, program: Program, opening: StartCommands, first: Mode) -> int:
    plain = bool(terminal.why_plain(plain=settings.plain))
    with terminal.unechoed(plain=plain):
        from gviz import tui
        from gviz.cli.debugger import Launcher
        from gviz.tui import live_line_mode

        launch = Launcher(program)
        title = _title(program)
        from gviz.trace.recording.source_text import read_source

        script = title.path, read_source(title.path) or ""
        options = LiveSessionOptions(launch, first, title, opening.breaks, opening.commands, script)
        if plain:
            code = live_line_mode.debug(options, sys.stdin, sys.stdout)
        else:
            code = tui.debug_live(options, ascii=terminal.needs_ascii(ascii=settings.ascii), theme=settings.theme)
    launch.leave(printed=not plain)
    if has_trace(launch.trace):
        streams.show(f"trace: {launch.trace}")
    return code


def _title(program: Program) -> Title:
    script, *arguments = program.argv
    return Title(script, tuple(arguments))
