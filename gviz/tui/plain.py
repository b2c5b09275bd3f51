"""The debugger line by line: for pipes, CI, dumb terminals and screen readers.

The same core and the same commands as on the screen; every stop is one full sentence, and nothing is overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TextIO

from gviz.errors import GvizError
from gviz.explain import finding
from gviz.explain.docstring import about
from gviz.explain.happening import sentence
from gviz.explain.names import label
from gviz.plain_text import shown
from gviz.trace.timeline import Timeline
from gviz.tui import asking, lines, stopping
from gviz.tui.command_lines import echoed, typed
from gviz.tui.commands import Command, help_lines, parse
from gviz.tui.cursor import FOLLOWS, Cursor, Stop, explanation, start_of
from gviz.tui.drawing import tape
from gviz.tui.drawing.failure import failure_lines
from gviz.tui.drawing.node import Subject, frame_text, node_lines
from gviz.tui.drawing.output import output_lines
from gviz.tui.drawing.source import Place, code_lines
from gviz.tui.glyphs import Glyphs, glyphs, wants_ascii
from gviz.tui.lines import Line
from gviz.tui.places import source_place

WIDTH = 80
ROWS = 200
"""Rows of the tape printed at most."""

AROUND = 4
"""Lines of source printed before and after the current one."""


_REPEATED = FOLLOWS - {"goto", "select", "mark", "back", "first"}


@dataclass(frozen=True, slots=True)
class Session:
    """What every command needs: the timeline, where we stand, and how to write."""

    timeline: Timeline
    cursor: Cursor
    glyphs: Glyphs


def debug(
    timeline: Timeline,
    commands: Iterable[str] | None,
    input: TextIO,
    output: TextIO,
    *,
    at: int | None = None,
    lesson: bool = False,
    opening: Sequence[str] = (),
) -> None:
    """Debug line by line: carry out `opening`, then `commands` or what is read from `input` until it ends or says
    ``quit``.

    Without `at` it begins where the program failed, else at the first event; for a `lesson` with its text.
    """
    start = start_of(timeline) if at is None else at
    session = Session(timeline, Cursor(timeline, start), glyphs(ascii=wants_ascii()))
    for text in (*(_lesson(session, "") if lesson else ()), *_greeting(session)):
        print(text, file=output)
    last = Command("step")
    for text in chain(echoed(opening, output), typed(input, output) if commands is None else echoed(commands, output)):
        command = _carry_out(session, text, last, output)
        if command.name == "quit":
            return
        last = command if command.name in _REPEATED else last


def _carry_out(session: Session, text: str, last: Command, output: TextIO) -> Command:
    """Answer one line, of which an empty one repeats `last`; the command it was (`last` if it was refused)."""
    try:
        command = parse(text) if text.strip() else last
        if command.name != "quit":
            for answer in answers(session, command):
                print(answer, file=output)
    except GvizError as error:
        print(_refusal(error), file=output)
        return last
    return command


def answers(session: Session, command: Command) -> Iterator[str]:
    """What a command says, line by line; time commands move the session's cursor."""
    if command.name in FOLLOWS:
        yield from _moved(session, command)
    elif command.name in stopping.COMMANDS:
        cursor = session.cursor
        for text in stopping.carry_out(cursor.breakpoints, command.name, command.argument, cursor.selected):
            yield session.glyphs.text(text)
    elif command.name in asking.COMMANDS:
        for text in session.cursor.asker.carry_out(command.name, command.argument, session.cursor.position):
            yield session.glyphs.text(text)
    elif command.name in _SAYS:
        for text in _SAYS[command.name](session, command.argument):
            yield session.glyphs.text(text)
    else:
        raise GvizError(f"{command.name} is for the full screen", exit_code=2)


def _greeting(session: Session) -> Iterator[str]:
    timeline = session.timeline
    iterations = f", {len(timeline.iterations)} iterations" if len(timeline.iterations) > 1 else ""
    yield f"recording of {len(timeline)} events, {len(timeline.nodes)} nodes{iterations}."
    yield "n goes on by a node, s by an event, n- and s- go back; an empty line repeats; help lists all, quit leaves."
    yield from _here(session)


def _here(session: Session) -> Iterator[str]:
    """The sentence of the position, and cause and remedy where the program failed."""
    yield session.glyphs.text(sentence(session.timeline, session.cursor.position))
    moment = session.timeline.at(session.cursor.position)
    for row in failure_lines(session.timeline, moment, WIDTH):
        if row:
            yield session.glyphs.text("  " + lines.plain(row))
    for expression, value in session.cursor.asker.watching(session.cursor.position):
        yield session.glyphs.text(f"  watch: {shown(expression)} = {value}")


def _moved(session: Session, command: Command) -> Iterator[str]:
    stop = session.cursor.run(command)
    if command.name in ("find", "select"):
        looked_at = label(session.timeline, session.cursor.selected)
        yield f"looking at node {looked_at}; the time is still event {stop.position}."
        return
    if command.name == "mark":
        yield f"{stop.reason} is event {stop.position}."
        return
    if stop.position == stop.start and command.name != "goto":
        yield f"{stop.reason}: still at event {stop.position}."
        return
    yield from map(session.glyphs.text, stop.said)
    said = list(_here(session))
    yield f"{_direction(stop)}{said[0]}"
    yield from said[1:]
    if stop.reason.startswith("breakpoint"):
        yield session.glyphs.text(f"{stop.reason}.")
    if stop.reason in ("end of recording", "start of recording"):
        yield f"{stop.reason}."


def _direction(stop: Stop) -> str:
    return "back to " if stop.backward and stop.position else ""


def _print(session: Session, place: str) -> Iterator[str]:
    node = session.cursor.node_at(place)
    moment = session.timeline.at(session.cursor.position)
    subject = Subject(session.timeline, moment, node, WIDTH, session.glyphs, full=False)
    return (lines.plain(row) for row in node_lines(subject))


def _tape(session: Session, _: str) -> Iterator[str]:
    timeline, moment = session.timeline, session.timeline.at(session.cursor.position)
    nodes = timeline.nodes_of(timeline.iteration_at(moment.n)) if timeline.iterations else ()
    columns = tape.columns_for(WIDTH, max(nodes, default=0))
    yield lines.plain(tape.heading(columns)).rstrip()
    for node, state in zip(nodes[:ROWS], moment.states(list(nodes[:ROWS])), strict=True):
        yield lines.plain(tape.row(timeline, moment, node, state, columns, session.glyphs)).rstrip()
    if len(nodes) > ROWS:
        yield f"and {len(nodes) - ROWS} more nodes; print #{nodes[ROWS]} shows one"


def _list(session: Session, _: str) -> Iterator[str]:
    timeline, cursor = session.timeline, session.cursor
    place = source_place(timeline, timeline.at(cursor.position), cursor.selected)
    if place is None:
        yield "no place in the source is known here."
        return
    text = timeline.source(place.frame.path)
    yield f"{frame_text(place.frame)}:"
    if text is None:
        yield "  the text of this file is not in the trace."
        return
    yield from _source(code_lines(text), place, session.glyphs)


def _source(rows: tuple[Line, ...], place: Place, marks: Glyphs) -> Iterator[str]:
    """The lines around the expression, with the expression underlined by ``^``."""
    here, running = place.frame.line, place.running
    numbers = [*range(max(here - AROUND, 1), min(here + AROUND, len(rows)) + 1)]
    if running and running not in numbers and 0 < running <= len(rows):
        numbers.append(running)
    for number in numbers:
        mark = marks.now if number == (running or here) else " "
        code = shown(lines.plain(rows[number - 1]).replace("\t", " "))
        yield f"{mark} {number:>4} {code}".rstrip()
        if number == here and place.frame.column >= 0:
            yield " " * 7 + _underline(rows[number - 1], place)


def _underline(row: Line, place: Place) -> str:
    """Blanks and ``^`` below the expression; columns of a frame count UTF-8 bytes."""
    data = lines.plain(row).encode("utf-8", "surrogatepass")
    frame = place.frame
    end = frame.end_column if frame.end_line == frame.line else len(data)
    before = data[: frame.column].decode("utf-8", "replace")
    return " " * len(before) + "^" * max(len(data[frame.column : end].decode("utf-8", "replace")), 1)


def _where(session: Session, _: str) -> Iterator[str]:
    node = session.cursor.selected
    if not node:
        yield "no node is selected."
        return
    info = session.timeline.info(node)
    yield f"node {label(session.timeline, node)} was made at event {info.born}:"
    for depth, frame in enumerate(info.frames):
        yield f"  {depth}  {frame_text(frame)}"


def _output(session: Session, _: str) -> Iterator[str]:
    return (lines.plain(row) for row in output_lines(session.timeline, session.cursor.position, 10_000))


def _lesson(session: Session, _: str) -> Iterator[str]:
    text = about(session.timeline) or "this program says nothing about itself at its top."
    return (lines.plain(row) for row in lines.paragraphs(text, WIDTH))


def _help(session: Session, word: str) -> Iterator[str]:
    return help_lines(word)


def _export(session: Session, path: str) -> Iterator[str]:
    from gviz.tui.export import export

    yield export(session.timeline, session.cursor.position, path) + "."


def _explain(session: Session, text: str) -> Iterator[str]:
    for depth, said, event in finding.lines(explanation(session.cursor, text)):
        yield f"{'  ' * depth}{said}{f'  [event {event}]' if event else ''}"


_SAYS: dict[str, Callable[[Session, str], Iterator[str]]] = {
    "print": _print,
    "explain": _explain,
    "tape": _tape,
    "list": _list,
    "where": _where,
    "output": _output,
    "lesson": _lesson,
    "help": _help,
    "export": _export,
}


def _refusal(error: GvizError) -> str:
    detail = [error.what, *filter(None, (error.why, error.hint and f"hint: {error.hint}"))]
    said = "; ".join(detail)
    return said if said.endswith("?") else f"{said}."
