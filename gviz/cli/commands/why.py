"""``gviz why``: runs a script and explains one value or gradient."""

from __future__ import annotations

import click

from gviz.cli import argument_order, findings
from gviz.cli.options import at_option
from gviz.cli.program_run import SCRIPT_CONTEXT, Program, takes_program
from gviz.cli.recording_input import recorded


@click.command("why", cls=argument_order.OptionsAfterPlace, context_settings=SCRIPT_CONTEXT)
@click.argument("place", metavar="PLACE[.grad|.value]")
@at_option("Ask about this moment")
@click.option("-v", "--verbose", "--all", "whole", is_flag=True, help="Print long answers in full.")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@takes_program
def command(program: Program, place: str, at: str | None, whole: bool, format: str) -> None:
    """Explain a value or gradient of a script.

    gviz why w.grad train.py runs train.py, and explains why w.grad is 7, nan or None: the facts, the lines, the
    fix.

    PLACE is as in gviz explain. `loss`, `step` and 'no gradient' ask about the last ones; w.grad[0] asks about a
    part, and a,b about two. SCRIPT may be a trace. The output of the program goes to standard error. Options of
    gviz come before SCRIPT.
    """
    with recorded(program) as inputs:
        findings.print_answer(inputs, place, at, format, whole=whole)
