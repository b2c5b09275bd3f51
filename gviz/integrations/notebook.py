"""gviz in a notebook: tensors and recordings display themselves, ``%%gviz`` records a cell and plays it."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from html import escape
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from gviz.errors import GvizError
from gviz.source import call_stack

if TYPE_CHECKING:
    from gviz.api.drawable import Drawn
    from gviz.explain.finding import Finding
    from gviz.render.picture_request import ExportOptions
    from gviz.trace.timeline import Timeline

BOXES = 200
"""The most boxes of a picture in a notebook; modules are collapsed until it fits."""

LARGEST_PAGE = 2_000_000
"""Pages with more characters are not embedded in a notebook, which is loaded as a whole."""

USAGE = "%%gviz [-o TRACE] [--at EVENT]"

MACHINERY = ("IPython", "ipykernel", "ipykernel_launcher", "traitlets", "tornado", "asyncio")
"""Packages that run a cell and are not part of the program."""


def bundle(thing: Any) -> dict[str, str]:
    """Return what a notebook can choose from: always text, a picture if there is a graph, a list for a finding."""
    from gviz.explain.finding import Finding
    from gviz.trace.timeline import Timeline

    if isinstance(thing, Finding):
        return {"text/plain": str(thing), "text/html": _answer(thing)}
    is_recording = isinstance(thing, Timeline | os.PathLike)
    if isinstance(thing, os.PathLike) and not Path(thing).exists():
        return {"text/plain": f"recording to {thing.__fspath__()}: it has not begun"}
    if not is_recording and thing.grad_fn is None:
        return {"text/plain": repr(thing)}
    from gviz.api.drawable import drawn

    of = drawn(thing)
    picture = _picture(of)
    text = recording_text(of.timeline) if is_recording else repr(thing)
    return {"text/plain": text} | ({"image/svg+xml": picture} if picture else {})


def _answer(finding: Finding) -> str:
    """Return an explanation as a list: the finding, and below it the evidence, each with its event."""
    from gviz.explain.finding import lines

    (_, first, _), *rest = lines(finding)
    items = "".join(
        f'<li style="margin-left:{2 * depth - 2}em">{escape(text)}{f" <small>event {n}</small>" if n else ""}</li>'
        for depth, text, n in rest
    )
    return f"<p><b>{escape(first)}</b></p><ul>{items}</ul>"


def _picture(of: Drawn) -> str:
    """Return a graph as SVG; empty if there is nothing to draw, too much, or no Graphviz."""
    from gviz.render.forms import svg
    from gviz.render.graphviz.svg_output import in_a_cell
    from gviz.render.picture_request import ExportOptions

    if not of.timeline.nodes:
        return ""
    options = _fitting(of, ExportOptions(note=lambda note: None))
    if options is None:
        return ""
    try:
        return in_a_cell(lambda direction: svg.render(of.timeline, of.n, replace(options, direction=direction)))
    except GvizError:  # without Graphviz, the text still works
        return ""


def _fitting(of: Drawn, options: ExportOptions) -> ExportOptions | None:
    """Return the options with modules collapsed until the picture is small enough; None if it never is."""
    from gviz.render import detail_that_fits
    from gviz.render.boxes.collapse_choice import closed_to_fit
    from gviz.render.boxes.folding import Filter, graph_of, requested_nodes
    from gviz.render.picture_request import moment_structure

    timeline, graph_filter = of.timeline, Filter(focus=of.node, ancestors=bool(of.node))
    graph = graph_of(timeline, [timeline.info(node) for node in timeline.nodes.of(timeline.iteration_at(of.n))])
    closed = closed_to_fit(replace(graph, nodes=tuple(requested_nodes(graph, graph_filter))), BOXES)
    words = replace(options.drawing, graph_filter=replace(graph_filter, closed=closed))
    words = detail_that_fits.with_collapsed_data(timeline, timeline.iteration_at(of.n), words)
    options = replace(options, drawing=words)
    return options if len(moment_structure(timeline, of.n, options.drawing).places) <= 2 * BOXES else None


def recording_text(timeline: Timeline) -> str:
    """Describe a recording in one line, followed by its graph at the end if that is small."""
    from gviz.render.forms import text
    from gviz.render.picture_request import ExportOptions, last_moment

    passes = sum(phase.kind == "backward" for phase in timeline.phases)
    words = [_count(len(timeline), "event"), _count(len(timeline.nodes), "node"), _count(passes, "backward pass")]
    line = f"recording: {', '.join(words)}"
    if not 0 < len(timeline.nodes) <= BOXES:
        return line
    return f"{line}\n\n{text.render(timeline, last_moment(timeline), ExportOptions())}"


def _count(number: int, what: str) -> str:
    plural = "es" if what.endswith("s") else "s"
    return f"{number:,} {what}{plural if number != 1 else ''}"


@dataclass(frozen=True, slots=True)
class Player:
    """The page of a recording, as the output of a cell: in a sandboxed frame that can reach nothing outside."""

    page: str
    text: str
    height: int = 720

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        if len(self.page) > LARGEST_PAGE:
            return {"text/plain": f"{self.text}\n\ntoo large for a notebook: gviz export TRACE -o page.html writes it"}
        frame = (
            f'<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts" title="gviz" '
            f'style="width:100%;height:{self.height}px;border:1px solid #8888"></iframe>'
        )
        return {"text/html": frame, "text/plain": self.text}


def player(timeline: Timeline, at: int | None = None) -> Player:
    """Return the page that steps through a recording, opened at event `at`, otherwise at the end of its last graph."""
    from gviz.render import page
    from gviz.render.picture_request import ExportOptions, last_moment

    n = last_moment(timeline) if at is None else at
    return Player(page.render(timeline, n, ExportOptions(note=lambda note: None)), recording_text(timeline))


def remark(text: str) -> None:
    """Print a text below the running cell, in order with its other output."""
    print(text, file=sys.stderr)


def play(timeline: Timeline, at: int | None = None) -> None:
    """Show the player below the running cell, or why there is none."""
    from IPython.display import display

    display(player(timeline, at) if timeline.nodes else EmptyOutput())  # type: ignore[no-untyped-call]  # without types


class EmptyOutput:
    """The output for a cell without tensors."""

    def __repr__(self) -> str:
        return "gviz: this cell computed with no tensor of PyTorch or gviz.engine, so there is nothing to step through"


def hide_machinery() -> None:
    """Hide frames of the software that runs the cells from recordings."""
    for name in MACHINERY:
        spec = find_spec(name) if name in sys.modules or name == "ipykernel_launcher" else None
        if spec is not None and spec.origin is not None:
            call_stack.hide(str(Path(spec.origin).parent) + "/" if spec.submodule_search_locations else spec.origin)


def _hide_magic() -> None:
    """Hide the line with the magic from recordings."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "__main__":
            call_stack.hide(frame.f_code.co_filename)
        frame = frame.f_back


class CellFailed(Exception):
    """Ends a cell with only a message: a traceback was already shown, or would only show gviz."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def register(shell: Any) -> None:
    """Add ``%%gviz`` to a notebook's shell, and let PyTorch tensors show the graph behind them."""

    def magic(line: str, cell: str) -> None:
        try:
            play_cell(shell, line, cell)
        except GvizError as refused:
            raise CellFailed("\n".join(refused.lines())) from None

    magic.__doc__ = play_cell.__doc__
    shell.register_magic_function(magic, "cell", "gviz")
    formatter = shell.display_formatter.mimebundle_formatter if shell.display_formatter is not None else None
    if formatter is not None:
        formatter.for_type_by_name("torch", "Tensor", bundle)


def play_cell(shell: Any, line: str, cell: str) -> None:
    """Run a cell, record it, and show a player of what happened: ``%%gviz [-o TRACE] [--at EVENT]``.

    ``--help`` explains the options and runs nothing.
    """
    from gviz.trace.file.reader import open_trace
    from gviz.trace.timeline import Timeline

    parser = _arguments()
    options = parser.parse_args(_words(line))
    if options.help:
        print(parser.format_help(), end="")
        return
    _refuse_waiting(shell, cell)
    hide_machinery()
    _hide_magic()
    how = ""
    with _place(options.output) as path:
        failed, trace = _recorded(shell, cell, path)
        if trace.exists():  # otherwise a warning has explained why nothing is recorded
            with open_trace(trace) as log:
                timeline = Timeline(log)
                play(timeline, options.at)
                how = "; the player shows how it came to that" if timeline.nodes else ""
    if failed:
        raise CellFailed(f"the cell failed, see above{how}")


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as trouble:  # an unclosed quote
        raise GvizError(f"%%gviz: {str(trouble).lower()}", hint=USAGE, exit_code=2) from None


def _refuse_waiting(shell: Any, cell: str) -> None:
    """Raise GvizError for a cell that awaits while an event loop runs, in which no second one can run."""
    waits = shell.should_run_async(cell, transformed_cell=shell.transform_cell(cell))
    if waits and asyncio._get_running_loop() is not None:
        why = "the loop of the notebook runs already"
        hint = 'with gviz.record("cell.gviz"): in the cell, and gviz.load("cell.gviz").player() in the next'
        raise GvizError("%%gviz cannot run a cell with await", why=why, hint=hint, exit_code=2)


def _recorded(shell: Any, cell: str, path: Path | None) -> tuple[bool, Path]:
    """Run a cell and record it to `path`. Returns whether it failed (and showed its error), and its trace."""
    from gviz.frameworks import record

    result: Any = None
    recording = record(path, force=path is not None)
    try:
        with recording:
            result = shell.run_cell(cell, store_history=False)
            result.raise_error()
    except BaseException as error:
        if result is None or error not in (result.error_before_exec, result.error_in_exec):
            raise
        return True, recording.path
    return False, recording.path


@contextmanager
def _place(output: Path | None) -> Iterator[Path | None]:
    """Yield the requested path of the trace, or one in a folder that is removed afterwards.

    Yields None, which means the cache, if the system has no room for such a folder.
    """
    if output is not None:
        yield output
        return
    with ExitStack() as needed:
        try:
            folder = needed.enter_context(tempfile.TemporaryDirectory(prefix="gviz-"))
        except OSError:
            yield None
        else:
            yield Path(folder) / "cell.gviz"


class _Arguments(argparse.ArgumentParser):
    """A parser that raises GvizError instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise GvizError(f"%%gviz: {message}", hint=USAGE, exit_code=2)


def _arguments() -> _Arguments:
    """Return the parser for the arguments of ``%%gviz``."""
    parser = _Arguments(
        "%%gviz", usage=USAGE.replace("%", "%%"), description="Record a cell and play it.", add_help=False
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this help; the cell is not run")
    parser.add_argument("-o", "--output", metavar="TRACE", type=Path, help="keep the recording in this file")
    parser.add_argument("--at", metavar="EVENT", type=int, help="open the player at this event, not at the end")
    return parser
