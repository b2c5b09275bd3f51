"""``gviz explain``: explains a value, a gradient or a failure in a trace."""

from __future__ import annotations

from pathlib import Path

import click

from gviz.cli import argument_order, findings, recording_input, shell_quoting
from gviz.cli.options import at_option
from gviz.cli.program_run import is_trace
from gviz.errors import GvizError
from gviz.values.plain_text import shown


@click.command("explain")
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("place", metavar="[PLACE[.grad|.value]]", required=False)
@at_option("Ask about this moment")
@click.option("-v", "--verbose", "--all", "whole", is_flag=True, help="Print long answers in full.")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="Output format.")
def command(trace: Path, place: str | None, at: str | None, whole: bool, format: str) -> None:
    """Explain a value or gradient in a trace.

    The answer has the facts, the lines of source and the fix. PLACE is a node: #4, a name, an operation, or
    demo.py:4; if several match, the last one. `error` asks why the program failed, `nan` where the first nan (else
    inf) appeared, `alive` which graphs are still in memory, `memory` what a graph keeps for backward. Without PLACE
    it explains the failure, or whatever else is wrong.
    """
    if place and not trace.exists() and is_trace(Path(place)):
        trace, place = Path(place), str(trace)  # the order of gviz why
    argument_order.expect_file(trace, place, "why {0} {1}")
    if trace.suffix == ".py" and trace.is_file():
        question = f"gviz why {shell_quoting.quoted(place or 'PLACE')} {shell_quoting.word(trace)}"
        hint = f"{question} runs it and explains that run"
        raise GvizError(f"{shown(str(trace))} is a program, not a trace", hint=hint, exit_code=3)
    with recording_input.opened(trace) as inputs:
        findings.print_answer(inputs, place, at, format, whole=whole)
