"""``gviz run``: run a script, then step through what it did."""

from __future__ import annotations

import click

from gviz.cli import streams
from gviz.cli.debugger import debug
from gviz.cli.session import SCRIPT_CONTEXT, Program, record_program, takes_program
from gviz.cli.settings import Settings, display_options
from gviz.cli.stops import takes_opening


@click.command("run", context_settings=SCRIPT_CONTEXT)
@display_options
@click.pass_obj
@takes_opening
@takes_program
def command(settings: Settings, program: Program, opening: tuple[str, ...]) -> int:
    """Run a script and open the debugger on what it did.

    The script runs to its end as `python SCRIPT ARGS...` would run it, also when it fails; its exit code is gviz's.
    Options of gviz stand before SCRIPT.
    """
    recorded = record_program(program)
    streams.say(f"trace: {recorded.trace}")
    debug(recorded.trace, settings, title=" ".join(program.argv), opening=opening)
    return recorded.exit_code
