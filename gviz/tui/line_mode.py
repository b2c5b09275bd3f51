"""The debugger line by line: for pipes, CI, dumb terminals and screen readers.

It has the same core and the same commands as the screen. Every stop is one full sentence, and nothing is overwritten.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TextIO

from gviz.errors import GvizError
from gviz.events import NodeCreated
from gviz.explain.display_names import label
from gviz.explain.event_description import sentence
from gviz.explain.findings.gradient_values.nan_origin import last_alarm
from gviz.explain.program_text import about
from gviz.system.cooperative_work import finished, paced
from gviz.trace.timeline import Timeline
from gviz.tui import styled_lines
from gviz.tui.cursor import Cursor
from gviz.tui.drawing.node_details import differences, event_in_branch, failure_lines, what_if_title
from gviz.tui.glyphs import glyphs, wants_ascii
from gviz.tui.language.command import Answer, Command, Confirm, FrontEnd, Reply, TerminalTask, View, Work, work
from gviz.tui.language.command_input import echo_lines, input_lines
from gviz.tui.language.completion import completions
from gviz.tui.language.parser import Reader, spec_of
from gviz.tui.session import Session
from gviz.tui.session_options import DEFAULT, EXIT_ANSWERS, EXIT_COMMANDS, ExitAction, SessionOptions
from gviz.tui.source_location import pause_text
from gviz.tui.stop_reason import ENDS, CursorStop
from gviz.tui.terminal import is_terminal
from gviz.tui.tutorial import Tutor, UserAction
from gviz.values.plain_text import shown

WIDTH = 80
PROGRESS_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Conversation:
    """How a dialogue ended: the number of refused lines, and the command that ended it, if there was one."""

    refused: int
    exit_command: Command | None = None


def debug(
    timeline: Timeline,
    commands: Iterable[str] | None,
    input: TextIO,
    output: TextIO,
    options: SessionOptions = DEFAULT,
) -> Conversation:
    """Debug line by line: run `commands`, or the lines of `input` until it ends or a line is ``quit``.

    If the program waits for the debugger, ``continue`` at the end also ends the dialogue.
    """
    session = Session(options.cursor(timeline), glyphs(ascii=wants_ascii()), options.title)
    waits = _waiting_lines(timeline) if options.waited_for else []
    for text in (*(_lesson(session) if options.lesson else ()), *waits, *_greeting(session)):
        print(text, file=output)
    reader = Reader(session.cursor.breakpoints)
    typed_lines = (
        input_lines(input, output, reader, partial(completions, session))
        if commands is None
        else echo_lines(commands, output)
    )
    is_last = partial(_ends_wait, session) if options.waited_for else is_quit
    texts = chain(echo_lines(options.opening, output), typed_lines)
    return converse(reader, partial(answers, session, reader), texts, output, is_last)


def _waiting_lines(timeline: Timeline) -> list[str]:
    """Return what to know about a program that waits, with the alarm at which `gviz monitor` has paused it."""
    alarm = last_alarm(timeline)
    waits = "the program is waiting: continue at the end resumes it, quit asks."
    return [*([f"{alarm}."] if alarm else []), waits]


def is_quit(command: Command) -> bool:
    """Return whether a command ends a conversation."""
    return command.name == "quit"


def _ends_wait(session: Session, command: Command) -> bool:
    at_end = session.cursor.position == len(session.timeline)
    return is_quit(command) or command.name in EXIT_COMMANDS or (at_end and command.name == "continue")


def exit_action(talk: Conversation, input: TextIO, output: TextIO) -> ExitAction:
    """Return what a program does next that waited for a conversation.

    The program runs on if no command ended the conversation. Otherwise the user is asked; without a terminal the
    program is stopped.
    """
    command = talk.exit_command
    if command is None or command.name == "continue":
        return "continue"
    if command.name in EXIT_COMMANDS:
        return EXIT_COMMANDS[command.name]
    if command.argument or not is_terminal(input):
        return "stop"
    output.write("waiting: run to its next stop (c), run without stops (k), or stop it (s)? ")
    output.flush()
    return EXIT_ANSWERS.get(input.readline().strip()[:1], "continue")


def teach(timeline: Timeline, input: TextIO, output: TextIO) -> None:
    """Run the guided lesson line by line: print each page and wait for its command."""
    session = Session(Cursor(timeline, 1), glyphs(ascii=wants_ascii()))
    reader, tutor = Reader(session.cursor.breakpoints), Tutor()

    def answer(command: Command) -> Iterator[str]:
        yield from answers(session, reader, command)
        if tutor.notice(UserAction(command.name, session)):
            yield session.glyphs.text(f"\n{tutor.text(plain=True)}")
        elif tutor.page is not None:
            yield f"(the lesson waits for: {tutor.expected(plain=True)})"

    print(*_greeting(session), "", session.glyphs.text(tutor.text(plain=True)), sep="\n", file=output)
    converse(reader, answer, input_lines(input, output, reader, partial(completions, session)), output)


def converse(
    reader: Reader,
    answer: Callable[[Command], Iterator[str]],
    texts: Iterable[str],
    output: TextIO,
    leaves: Callable[[Command], bool] = is_quit,
) -> Conversation:
    """Answer line after line, until one contains a command for which `leaves` is true."""
    refused = 0
    for text in texts:
        reader.typed(text)
        try:
            exit_command = _carried_out(reader, answer, output, leaves)
            if exit_command is not None:
                return Conversation(refused, exit_command)
        except GvizError as error:
            refused += 1
            print(refusal(reader.refused(error)), file=output)
        except KeyboardInterrupt:
            reader.refused(GvizError("interrupted"))
            print("interrupted; quit leaves.", file=output)
    return Conversation(refused)


def _carried_out(
    reader: Reader, answer: Callable[[Command], Iterator[str]], output: TextIO, leaves: Callable[[Command], bool]
) -> Command | None:
    """Run a line and the lines that follow from it. Return the command that leaves, if one does."""
    while (command := reader.next()) is not None:
        if isinstance(command, Answer):
            for text in command.lines:
                print(text, file=output)
        elif leaves(command):
            return command
        else:
            for text in answer(command):
                print(text, file=output)
    return None


def answers(session: Session, reader: Reader, command: Command) -> Iterator[str]:
    """Run a command and yield its answer line by line; time commands move the session's cursor."""
    reply = _driven(work(spec_of(command).run(session, command)))
    reader.take(reply)
    match reply:
        case CursorStop():
            yield from moved(session, command, reply)
        case Answer(texts):
            yield from map(session.glyphs.text, texts)
        case View(lines=rows):
            yield from (session.glyphs.text(styled_lines.plain(row)).rstrip() for row in rows(WIDTH))
        case Confirm(texts, question):
            yield from map(session.glyphs.text, texts)
            yield f"{question} y or n"
        case TerminalTask(run):
            if not is_terminal(sys.stdin):
                raise GvizError(f"{command.name} needs a terminal", exit_code=2)
            yield run()
        case FrontEnd("set", text):
            yield _set(session, text)
        case FrontEnd("copy" | "copy script", text):
            yield session.glyphs.text(text)
        case FrontEnd():
            raise GvizError(f"{command.name} is for the full screen", exit_code=2)


def _driven(left: Work) -> Reply:
    """Return the answer of a command, and print its progress to stderr now and then, if that is a terminal."""
    if not is_terminal(sys.stderr):
        return finished(left)
    return finished(
        paced(left, PROGRESS_SECONDS), lambda far: print(f"{far}; Ctrl+C stops.", file=sys.stderr, flush=True)
    )


def _set(session: Session, text: str) -> str:
    name, value = text.split(" ", 1)
    session.settings.values[name] = value
    if name == "ascii":
        session.glyphs = glyphs(ascii=value == "on")
    return f"{name} is {value}" + ("" if name == "ascii" else ", for the full screen") + "."


def _lesson(session: Session) -> Iterator[str]:
    text = about(session.timeline) or "this program has no text at its top."
    return (styled_lines.plain(row) for row in styled_lines.paragraphs(text, WIDTH))


def _greeting(session: Session) -> Iterator[str]:
    timeline = session.timeline
    count, of_run = len(timeline.iterations), timeline.iteration_count
    iterations = f", {f'{count:,} of ' * (of_run > count)}{of_run:,} iterations" if max(count, of_run) > 1 else ""
    events, nodes = len(timeline), len(timeline.nodes)
    yield f"recording of {events} event{'s' * (events != 1)}, {nodes} node{'s' * (nodes != 1)}{iterations}."
    if timeline.missing:
        yield f"{timeline.missing}."
    yield "n: next node, s: next event, n- and s-: back. An empty line repeats. help lists all commands, quit leaves."
    yield from _here(session)
    if session.paused_stack is not None:
        yield session.glyphs.text(f"the program is paused {pause_text(timeline, session.paused_stack)}.")


def _here(session: Session, seen_until: int = 0) -> Iterator[str]:
    """Yield the sentence of the position, without what is known from event `seen_until`; cause and fix of a failure."""
    yield session.glyphs.text(sentence(session.timeline, session.cursor.position, seen_until))
    moment = session.timeline.at(session.cursor.position)
    for row in failure_lines(session.timeline, moment, WIDTH):
        if row:
            yield session.glyphs.text("  " + styled_lines.plain(row))
    if not isinstance(moment.event, NodeCreated) and (
        there := event_in_branch(session.timeline, moment, session.branch_view)
    ):
        yield session.glyphs.text(f"  {there}")
    for text in differences(session.timeline, session.branch_view, moment.actor, moment.n):
        yield session.glyphs.text(f"  {what_if_title(session.branch_view, moment.n)}: {text}")
    for expression, value in session.cursor.asker.watching(session.cursor.position):
        yield session.glyphs.text(f"  watch: {shown(expression)} = {value}")


def moved(session: Session, command: Command, stop: CursorStop) -> Iterator[str]:
    """Yield the lines that describe where a command has led."""
    if command.name in ("find", "select"):
        looked_at = label(session.timeline, session.cursor.selected)
        yield from stop.messages
        yield f"selected node {looked_at}; still at event {stop.position}."
        return
    if stop.position == stop.start and command.name not in ("goto", "jump"):
        yield from map(session.glyphs.text, stop.messages)
        yield f"{stop.reason.words}: still at event {stop.position}."
        return
    yield from map(session.glyphs.text, stop.messages)
    sentences = list(_here(session, 0 if stop.backward else stop.start))
    yield f"{_direction(stop)}{sentences[0]}"
    yield from sentences[1:]
    if stop.reason.kind == "live end":
        yield f"{stop.reason.words}: {ENDS[stop.reason.kind]}."
    elif stop.reason.kind not in ("command", "remark", "error"):
        yield session.glyphs.text(f"{stop.reason.words}.")


def _direction(stop: CursorStop) -> str:
    return "back to " if stop.backward and stop.position else ""


def refusal(error: GvizError) -> str:
    """Return an error as one line."""
    detail = [error.what, *filter(None, (error.why, error.hint and f"hint: {error.hint}"))]
    text = shown("; ".join(detail))
    return text if text.endswith("?") else f"{text}."
