"""``gviz run``: run a script, then step through what it did."""

from __future__ import annotations

from pathlib import Path

import click

from gviz.cli.debugger import debug
from gviz.cli.order import Engine
from gviz.cli.session import SCRIPT_CONTEXT, record_program, script_arguments
from gviz.cli.settings import Settings, display_options


@click.command("run", context_settings=SCRIPT_CONTEXT)
@script_arguments
@display_options
@click.pass_obj
def command(
    settings: Settings, program: tuple[str, ...], as_module: bool, engine: Engine, output: Path | None, force: bool
) -> int:
    """Run a script and open the debugger on what it did.

    The script runs to its end as `python SCRIPT ARGS...` would run it, also when it fails; its exit code is gviz's.
    Options of gviz stand before SCRIPT.
    """
    recorded = record_program(program, as_module=as_module, engine=engine, output=output, force=force)
    click.echo(f"trace: {recorded.trace}", err=True)
    debug(recorded.trace, settings, title=" ".join(program))
    return recorded.exit_code
