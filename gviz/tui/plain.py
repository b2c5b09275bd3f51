"""The debugger line by line: for pipes, CI, dumb terminals and screen readers.

The same core and the same commands as on the screen; every stop is one full sentence, and nothing is overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TextIO

from gviz.errors import GvizError
from gviz.explain.docstring import about
from gviz.explain.happening import sentence
from gviz.explain.names import label
from gviz.plain_text import shown
from gviz.trace.timeline import Timeline
from gviz.tui import lines
from gviz.tui.command import Command, Look, Said, Wish
from gviz.tui.command_lines import echoed, typed
from gviz.tui.cursor import Arrival, Cursor, start_of
from gviz.tui.drawing.failure import failure_lines
from gviz.tui.glyphs import glyphs, wants_ascii
from gviz.tui.parsing import parse, spec_of
from gviz.tui.session import Session

WIDTH = 80


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
    session = Session(Cursor(timeline, start), glyphs(ascii=wants_ascii()))
    for text in (*(_lesson(session) if lesson else ()), *_greeting(session)):
        print(text, file=output)
    given = typed(input, output) if commands is None else echoed(commands, output)
    converse(partial(answers, session), chain(echoed(opening, output), given), output)


def converse(answer: Callable[[Command], Iterator[str]], texts: Iterable[str], output: TextIO) -> bool:
    """Answer line after line; whether one of them was ``quit``."""
    last = Command("step")
    for text in texts:
        command = _carry_out(answer, text, last, output)
        if command.name == "quit":
            return True
        last = command if spec_of(command).repeats else last
    return False


def _carry_out(answer: Callable[[Command], Iterator[str]], text: str, last: Command, output: TextIO) -> Command:
    """Answer one line, of which an empty one repeats `last`; the command it was (`last` if it was refused)."""
    try:
        command = parse(text) if text.strip() else last
        if command.name != "quit":
            for said in answer(command):
                print(said, file=output)
    except GvizError as error:
        print(_refusal(error), file=output)
        return last
    return command


def answers(session: Session, command: Command) -> Iterator[str]:
    """What a command says, line by line; time commands move the session's cursor."""
    match spec_of(command).run(session, command):
        case Arrival() as arrival:
            yield from moved(session, command, arrival)
        case Said(texts):
            yield from map(session.glyphs.text, texts)
        case Look(lines=rows):
            yield from (session.glyphs.text(lines.plain(row)).rstrip() for row in rows(WIDTH))
        case Wish():
            raise GvizError(f"{command.name} is for the full screen", exit_code=2)


def _lesson(session: Session) -> Iterator[str]:
    if about(session.timeline):
        yield from answers(session, Command("lesson"))
    else:
        yield "this program says nothing about itself at its top."


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


def moved(session: Session, command: Command, stop: Arrival) -> Iterator[str]:
    """Where a command has led."""
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
    if stop.reason in ("end of recording", "start of recording") or stop.reason.startswith("paused"):
        yield f"{stop.reason}."


def _direction(stop: Arrival) -> str:
    return "back to " if stop.backward and stop.position else ""


def _refusal(error: GvizError) -> str:
    detail = [error.what, *filter(None, (error.why, error.hint and f"hint: {error.hint}"))]
    said = "; ".join(detail)
    return said if said.endswith("?") else f"{said}."
