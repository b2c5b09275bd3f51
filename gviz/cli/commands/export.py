"""``gviz export``: pictures of one moment or of many."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from gviz.cli import argument_order, shell_quoting, streams, text_size
from gviz.cli.options import at_option
from gviz.cli.picture_files import draw_again, print_picture, suffix_of, write_picture
from gviz.cli.program_run import Program, engine_option, is_trace, record_program
from gviz.cli.recording_input import in_folder, opened
from gviz.cli.trace_arguments import RANK, of_rank
from gviz.errors import GvizError
from gviz.program.recording_request import Engine
from gviz.values.plain_text import shown


class Export(argument_order.OptionsAfterScript):
    """The command; its help ends with the formats and styles of pictures."""

    usual = " -o graph.svg"

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the formats from the table of exporters, and the styles."""
        from gviz.render.file_formats import all_suffixes  # Graphviz is only needed here
        from gviz.render.styles import STYLES

        with formatter.section("Pictures"):
            formatter.write_text(all_suffixes())
        with formatter.section("Styles"):
            formatter.write_text(" ".join(STYLES))


def _alone(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str:
    """Return the only source. `GvizError` if there are more: script arguments without ``--``, or a name without
    ``-o``.
    """
    first, *more = values
    if more and "output" not in ctx.params:
        argument_order.refuse_unnamed(first, more[0])
    if more:
        what = f"export makes one picture: of {shown(first)}, or of {shown(more[0])}?"
        raise argument_order.misplaced(f"export {shell_quoting.word(first)}{Export.usual}", more[0], what)
    return first


@click.command("export", cls=Export)
@click.argument("source", nargs=-1, required=True, callback=_alone, metavar="TRACE|SCRIPT")
@click.option(
    "-o",
    "--output",
    default="",
    metavar="PATH",
    help="Output file; the suffix sets the format. A folder (frames/) or a number pattern (step%03d.png) writes one "
    "picture for each moment that changes it; - is standard output.",
)
@click.option("--format", default="svg", metavar="NAME", help="The format for -o - (default: svg).")
@at_option("Draw this moment", "the last before the optimizer steps or the graph is freed; for a page the first")
@click.option(
    "--moments",
    default="",
    metavar="FIRST..LAST",
    help="The moments of an animation, a series or a page: FIRST..LAST, or one pass or iteration (backward, "
    '"iteration 3").',
)
@click.option("--style", default="gviz", metavar="NAME", help="The style; see the list below.")
@click.option("--theme", type=click.Choice(["auto", "light", "dark"]), default="auto", help="Colours of the picture.")
@click.option(
    "--labels",
    type=click.Choice(["min", "short", "full"]),
    help="min: names only. short: also values and gradients. full: also types, local derivatives and source lines. The "
    "default is short, or less text in a picture that would not fit.",
)
@click.option(
    "--tensors",
    type=click.Choice(["line", "grid", "heat", "histogram"]),
    help="How tensors are drawn: in one line, as a grid of numbers up to 6x8, or with a heat map or histogram. The "
    "default is a grid for up to 12 numbers, else a line.",
)
@click.option("--saved", is_flag=True, help="Draw saved tensors as boxes.")
@click.option(
    "--overlay",
    type=click.Choice(["memory", "time"]),
    help="What each box costs. memory: what it saves for backward at the peak. time: what a module takes, forward and "
    "backward, in a recording of gviz monitor.",
)
@click.option("--direction", type=click.Choice(["auto", "LR", "TB"]), default="auto", help="Direction of the data.")
@click.option(
    "--module",
    "modules",
    multiple=True,
    metavar="GLOB",
    help="Draw calls of these modules as one box each: a path, a class (Linear), one call (cell:5).",
)
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    help="Expand modules down to this depth (0: none). Collapsed modules hide what is in them, such as the transpose "
    "of a Linear's weight.",
)
@click.option(
    "--level",
    type=click.Choice(["auto", "modules", "calls", "nodes"]),
    default="auto",
    help="What a box represents: a child module; a call in the program (linear, cross_entropy); a node. auto: the most "
    "detail that fits 1600 x 1200 points.",
)
@click.option(
    "--expand",
    multiple=True,
    metavar="GLOB",
    help="Expand these modules at any level, even one of several equal ones: layers.3, cell:5; or a loop: step; or the "
    "operations on data with this result: x. As in paths of files, 'blocks.*' is blocks.0, and 'blocks.**' also all "
    "that is in it.",
)
@click.option("--scale", type=click.FloatRange(0.05, 20), metavar="FACTOR", help="Scale; 2 is twice as large.")
@click.option("--legend/--no-legend", default=True, help="Explain shapes, lines and words below the picture.")
@click.option(
    "--figure",
    type=click.Choice(["one-column", "two-columns", "16:9"]),
    is_flag=False,
    flag_value="one-column",
    help="Draw a figure for a paper (one or two columns) or a slide (16:9): without legend, caption, cursor, "
    "numbers of nodes, and what is made after --at. A --figure at the end has the width of one column. Write .svg to "
    "edit it in Inkscape, .pdf for LaTeX.",
)
@click.option("--only", multiple=True, metavar="GLOB", help="Draw only these modules and their inputs.")
@click.option("--node", default="", metavar="PLACE", help="Draw only this node and its neighbours.")
@click.option("--ancestors", is_flag=True, help="With --node: also draw everything it was computed from.")
@click.option(
    "--radius", type=click.IntRange(min=0), default=0, help="With --node: also nodes up to this many edges away."
)
@click.option("-f", "--force", is_flag=True, help="Overwrite existing pictures.")
@engine_option
def command(
    source: str, arguments: tuple[str, ...], output: str, format: str, engine: Engine, force: bool, **how: Any
) -> int:
    """Write a picture of the graph.

    A script runs first. Its arguments come after --: gviz export train.py -o g.svg -- --lr 0.1. A folder with
    the traces of ranks gives one picture for each rank: graph-rank0.svg, or -o "{rank}.svg".
    """
    from gviz.system.scratch import scratch_folder

    path = Path(source)
    if not output:
        hint = f"gviz export {shell_quoting.word(source)} -o graph.svg; the suffix sets the format"
        raise GvizError("export needs a name for the picture", hint=hint, exit_code=2)
    if is_trace(path):
        argument_order.refuse_for_trace(source, arguments)
    pictures = _pictures(path, output)
    for _, target in pictures:
        _refuse(target, format, how["moments"], path, force=force)  # before a long recording, not after it
    interrupted = 0
    with scratch_folder() as folder:
        if not is_trace(path):
            own = folder / f"{path.stem}.gviz"
            recorded = record_program(Program((source, *arguments), engine=engine, output=own))
            pictures, interrupted = [(recorded.trace, output)], recorded.interrupted
        for number, (trace, target) in enumerate(pictures):
            if target == "-":
                print_picture(trace, format, **how)
            else:
                slides = folder / "slide.svg" if not number else None
                _write(trace, target, how, slides, force=force)
    return interrupted


def _pictures(source: Path, output: str) -> list[tuple[Path, str]]:
    """Return which trace is drawn to which path; a folder with the traces of ranks gives one path for each."""
    if not source.is_dir() or not is_trace(source):
        return [(source, output)]
    with opened(source) as inputs:  # the ranks that can be read, before the first of them is drawn
        traces = inputs.paths
    if inputs.remarks:
        streams.show(*inputs.remarks)
    if output == "-" and len(traces) > 1:
        what = f"standard output takes one picture, and {shown(str(source))} holds {len(traces)} traces"
        raise GvizError(what, hint=f"gviz export {shell_quoting.word(traces[0])} -o -", exit_code=2)
    several = len(in_folder(source)[0]) > 1 or RANK in output
    return [(trace, of_rank(output, trace) if several else output) for trace in traces]


def _refuse(target: str, format: str, moments: str, source: Path, *, force: bool) -> None:
    """Raise `GvizError` for a picture that cannot be drawn or written."""
    from gviz.api.picture_path import kind_of, refuse

    if target == "-":
        suffix_of(format)
    else:
        kind_of(target, moments)
        refuse(target, force=force, source=source)


def _write(trace: Path, output: str, how: dict[str, Any], slides: Path | None, *, force: bool) -> None:
    """Write the pictures of a trace and report their names. With `slides` it also suggests options that make the text
    readable.
    """
    from gviz.api.picture_path import kind_of

    begun = time.monotonic()
    first, *rest = write_picture(trace, output, force=force, **how)
    streams.show(f"wrote {first} to {rest[-1].name}, {len(rest) + 1} pictures" if rest else f"wrote {first}")
    if slides is None or rest:
        return
    tries = time.monotonic() - begun < text_size.SECONDS and not kind_of(output).moves
    draw = partial(draw_again, trace, slides, how) if tries else None
    if hint := _figure_hint(first, how, draw) if how["figure"] else text_size.hint(first, how, draw):
        streams.show(hint)


def _figure_hint(picture: Path, how: dict[str, Any], draw: text_size.Draw | None) -> str:
    """Return options that make the text of a figure larger; "" if the file is no figure or drawing takes too long."""
    from gviz.render.figure import FIGURES

    if draw is None or picture.suffix not in FIGURE_SUFFIXES:
        return ""
    return text_size.figure_hint(FIGURES[how["figure"]].least, how, draw)


FIGURE_SUFFIXES = ".svg", ".png", ".pdf"
"""The suffixes of pictures that can be figures."""
