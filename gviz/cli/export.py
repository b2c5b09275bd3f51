"""``gviz export``: a picture of one moment."""

from __future__ import annotations

from pathlib import Path

import click

from gviz.cli import outputs, streams
from gviz.cli.order import Engine
from gviz.cli.picture import write_picture
from gviz.cli.session import Program, engine_option, is_trace, record_program


class Export(click.Command):
    """The command, whose help ends with the formats of pictures."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the formats from the table of exporters."""
        from gviz.render.exporters import all_suffixes  # Graphviz is only needed here

        with formatter.section("Pictures"):
            formatter.write_text(all_suffixes())


@click.command("export", cls=Export)
@click.argument("source", type=click.Path(path_type=Path), metavar="TRACE|SCRIPT")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS]...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="The picture; its suffix says which kind."
)
@click.option("--at", metavar="MOMENT", help="An event number, start, end, nan, error, fwd, bwd or a node.")
@click.option("--theme", type=click.Choice(["auto", "light", "dark"]), default="auto", help="Colours of the picture.")
@click.option("-f", "--force", is_flag=True, help="Write over an existing picture.")
@engine_option
def command(
    source: Path, arguments: tuple[str, ...], output: Path, at: str | None, theme: str, force: bool, engine: Engine
) -> None:
    """Write a picture of the graph at one moment.

    A script is run and recorded first. Without --at it is the last moment before the program took its
    graph down.
    """
    import tempfile

    from gviz.render.exporters import exporter_for

    exporter_for(str(output))  # before a long recording, not after it
    outputs.refuse_picture(output, source, force=force)
    with tempfile.TemporaryDirectory(prefix="gviz-") as folder:
        trace = source
        if not is_trace(source):
            own = Path(folder) / f"{source.stem}.gviz"
            trace = record_program(Program((str(source), *arguments), engine=engine, output=own)).trace
        write_picture(trace, output, at=at, theme=theme, force=force)
    streams.say(f"wrote {output}")
