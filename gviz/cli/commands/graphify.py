"""``gviz graphify``: what keeps a program from being a static graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gviz.cli.program_run import SCRIPT_CONTEXT, Program, takes_program
from gviz.cli.recording_input import recorded
from gviz.errors import GvizError, did_you_mean
from gviz.values.plain_text import file_line, shown

if TYPE_CHECKING:
    from gviz.graphify.breaks import Break
    from gviz.trace.timeline import Timeline

_EXIT_BREAKS = 1


@click.command("graphify", context_settings=SCRIPT_CONTEXT)
@click.option("--function", metavar="NAME", default="", help="Look only at calls of this function.")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@takes_program
def command(program: Program, function: str, format: str) -> int:
    """List what keeps a script from being a static graph.

    For each place it shows what to write instead: branches and loops that depend on data, sizes that depend on
    data, values that leave the graph. Only places that this run reached are found. The exit code is 1 if there are
    any, else 0. The output of the program goes to standard error. Options of gviz come before SCRIPT.
    """
    from gviz.cli import recording_input

    engine = "builtin" if program.engine == "auto" else program.engine
    if engine == "torch":
        what = "only the built-in engine records where a value leaves the graph; PyTorch does not"
        hint = "without --engine torch, `import torch` in the script imports the built-in engine"
        raise GvizError(what, hint=hint, exit_code=2)
    with recorded(replace(program, engine=engine, graph_breaks=True)) as inputs:
        breaks = {timeline: _breaks(timeline, function) for timeline in inputs.timelines}
        recording_input.print_answers(
            inputs, format, lambda timeline: _text(breaks[timeline]), lambda timeline: {"breaks": breaks[timeline]}
        )
    return _EXIT_BREAKS if any(breaks.values()) else 0


def _breaks(timeline: Timeline, function: str) -> list[Break]:
    from gviz.graphify.breaks import breaks

    _refuse_unknown(timeline, function)
    return list(breaks(timeline, function))


def _refuse_unknown(timeline: Timeline, function: str) -> None:
    """Raise `GvizError` for a function that this run did not call."""
    from gviz.graphify.breaks import functions

    if not function:
        return
    known = functions(timeline)
    if function not in known:
        hint = did_you_mean(function, known, "a function that runs operations on tensors")
        raise GvizError(f"this run did not call a function {function}", hint=hint, exit_code=2)


def _text(breaks: list[Break]) -> Iterator[str]:
    if not breaks:
        yield "nothing that this run reached prevents a static graph."
        return
    for one in breaks:
        times = f", {one.times} times" if one.times > 1 else ""
        place = f"{file_line(one.frame.path, one.frame.line)}:{one.frame.column + 1}"
        yield f"{place}: {shown(one.code)}{times}" if one.code else f"{place}{times}"
        yield f"  {shown(one.advice.why)}"
        for prefix, line in zip(["instead:", *[""] * len(one.advice.instead)], one.advice.instead, strict=False):
            yield f"  {prefix:<8} {shown(line)}"
    yield f"{len(breaks)} place{'s' * (len(breaks) != 1)}."
