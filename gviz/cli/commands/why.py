"""``gviz why``: run a script and answer one question about it."""

from __future__ import annotations

import click

from gviz.cli import argument_order, findings
from gviz.cli.options import at_option
from gviz.cli.program import SCRIPT_CONTEXT, Program, recorded, takes_program


@click.command("why", cls=argument_order.OptionsBehindPlace, context_settings=SCRIPT_CONTEXT)
@click.argument("place", metavar="PLACE[.grad|.value]")
@at_option("The moment asked about")
@click.option("--all", "whole", is_flag=True, help="Print every line of a long answer.")
@click.option("--format", "kind", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@takes_program
def command(program: Program, place: str, at: str | None, whole: bool, kind: str) -> None:
    """Run a script and say why a node has the value or gradient it has, or none: gviz why w.grad train.py.

    PLACE is as in gviz explain; `error` asks why the program failed, `nan` where the first nan came from, `loss`,
    `step` and 'no gradient' about the last ones; w.grad[0] is a part, and a,b are two. SCRIPT may be a trace. What the
    program prints goes to standard error, so that the answer stands alone. Options of gviz stand before SCRIPT.
    """
    if not program.as_module:
        argument_order.expect_file(program.argv[0], place, "why {0} {1}")
    with recorded(program) as given:
        findings.print_answer(given, place, at, kind, whole=whole)
