"""``gviz monitor``: run a long program, and record some of its iterations whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import click

from gviz.cli.commands.record import run_and_report
from gviz.cli.program_run import SCRIPT_CONTEXT, Program, takes_program

BUDGET = "5%"


@click.command("monitor", context_settings=SCRIPT_CONTEXT)
@click.option(
    "--on", "until", type=click.Choice(["nan", "inf"]),
    help="Stop recording at the first nan or inf; the script continues.",
)  # fmt: skip
@takes_program
def command(program: Program, until: Literal["nan", "inf"] | None) -> int:
    """Run a long PyTorch script, and record some of its iterations whole.

    Recording takes at most 5% of the script's time (--budget sets another share). Between the iterations that are
    recorded, gviz looks at the loss and at the norm of the gradients. If one becomes nan or leaps, the next iterations
    are recorded, and gviz prints the command that records the iterations before it.
    """
    if not (program.keeping.budget or program.keeping.from_iteration):
        program = replace(program, keeping=replace(program.keeping, budget=BUDGET))
    return run_and_report(program, until)
