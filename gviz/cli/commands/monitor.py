"""``gviz monitor``: run a long program, and record some of its iterations whole (`gviz.adapters.monitor_budget`)."""

from __future__ import annotations

from dataclasses import replace

import click

from gviz.cli.commands.record import run_and_report
from gviz.cli.program_run import SCRIPT_CONTEXT, Program, takes_program

BUDGET = "5%"
MAX_SIZE = "100M"
OLDER = "first, findings, thinned"


@click.command("monitor", context_settings=SCRIPT_CONTEXT)
@click.option(
    "--on", "pauses", type=click.Choice(["nan", "inf", "alarm"]), multiple=True,
    help="Pause the script and open the debugger when the loss or a gradient is nan or inf, or at any alarm; may be "
    "repeated.",
)  # fmt: skip
@takes_program
def command(program: Program, pauses: tuple[str, ...]) -> int:
    """Run a long PyTorch script, and record some of its iterations whole.

    Recording takes at most 5% of the script's time (--budget sets another share). Between the iterations that are
    recorded, gviz looks at the loss and at the norm of the gradients. If one becomes nan or leaps, the next iterations
    are recorded, and gviz prints the command that records the iterations before it. With --on the script also pauses,
    and the debugger opens on it.

    The trace stays under 100 MiB, however long the script runs: when it is full, older iterations become fewer
    (--max-size, --keep and --last choose otherwise).
    """
    keeping = program.keeping
    if not (keeping.budget or keeping.from_iteration):
        keeping = replace(keeping, budget=BUDGET)
    if not keeping.bounded:
        keeping = replace(keeping, max_size=MAX_SIZE, older=OLDER)
    program = replace(program, keeping=replace(keeping, pause_on=",".join(pauses)))
    return run_and_report(program)
