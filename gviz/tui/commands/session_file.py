"""What was set in a session, for another run: in a file, as lines of the command language, or at once in the next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gviz.errors import GvizError
from gviz.system.files import naming, write_whole
from gviz.trace.timeline import Timeline
from gviz.tui.breakpoints import Breakpoint, Breakpoints, Call, Listed
from gviz.tui.commands._paths import path_of
from gviz.tui.language.command import Answer, Confirm, Script
from gviz.tui.session import Session
from gviz.values.plain_text import clipped, shown
from gviz.where.stop import Computed, Stop, stop

LARGEST = 1_000_000
"""Bytes of a file of commands."""

IN_A_SESSION = frozenset({"break", "tbreak", "log", "ignore", "disable", "commands", "watch", "mark"})


def session_lines(session: Session) -> Iterator[str]:
    """What was set, as commands that set it again, also in another run: nodes by their name or line, not by number."""
    cursor = session.cursor
    for one in cursor.breakpoints.own:  # a call is there again where the program comes to it
        yield _set(cursor.timeline, one)
        if one.ignored:
            yield f"ignore . {one.ignored}"
        if not one.enabled:
            yield "disable ."
        if one.commands:
            yield from ("commands .", *one.commands, "end")
    yield from (f"watch {text}" for text in cursor.asker.watched)
    yield from (f"mark {name} {n}" for name, n in cursor.bookmarks.items() if " " not in name)


def save(session: Session, path: str) -> Answer:
    """``save [FILE]``: write the session; a file that is no session is not overwritten."""
    target = path_of(path or f"{session.title.file or 'gviz'}.session")
    head = "# gviz session"
    with naming(target):
        if target.exists() and not (target.is_file() and _begins_with(target, head)):
            raise GvizError(f"{shown(str(target))} exists and is no session", hint="choose another name")
        lines = [f"{head} of {shown(session.title.whole)}", *session_lines(session)]
        write_whole([(target, ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))])
    count = len(lines) - 1
    return Answer(
        (f"saved {count} line{'s' * (count != 1)} in {shown(str(target))}; load {shown(str(target))} reads them.",)
    )


def _begins_with(file: Path, head: str) -> bool:
    with file.open("rb") as stream:
        return stream.read(len(head)) == head.encode()


def load(session: Session, path: str) -> Script | Confirm:
    """``load FILE``: read a session; what it evaluates, or carries out at a stop, is shown and asked for first."""
    lines = _lines(path)
    acting = tuple(f"  {shown(line)}" for line in _acting(lines, path))
    script = Script(lines, shown(path))
    if not acting:
        return script
    return Confirm((f"{shown(path)} evaluates, or carries out at a stop:", *acting), "load it?", script)


def source(session: Session, path: str) -> Script:
    """``source FILE``: carry out the commands of a file, as if they were typed."""
    return Script(_lines(path), shown(path))


def _lines(path: str) -> tuple[str, ...]:
    target = path_of(path)
    try:
        with target.open("rb") as file:
            data = file.read(LARGEST + 1)  # a device may have no end
        if len(data) > LARGEST:
            raise GvizError(f"{shown(path)} is too large for a file of commands", exit_code=3)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise GvizError(f"cannot read {shown(path)}", why=why, exit_code=3) from error
    lines = [line.strip() for line in text.splitlines()]
    return tuple(line for line in lines if line and not line.startswith("#"))


def _acting(lines: tuple[str, ...], path: str) -> Iterator[str]:
    """The lines of a session that do more than set things; GvizError for one that has no place in a session."""
    of_a_breakpoint = False
    for line in lines:
        word, _, rest = line.partition(" ")
        if of_a_breakpoint:
            of_a_breakpoint = line != "end"
            if of_a_breakpoint:
                yield line
        elif word not in IN_A_SESSION:
            raise GvizError(
                f"{clipped(shown(line), 40)} does not belong into a session",
                hint=f"source {clipped(shown(path), 40)} carries out any command",
                exit_code=2,
            )
        elif word == "commands" and len(rest.split()) == 1:
            of_a_breakpoint = True
        elif word in ("watch", "commands") or _evaluates(word, rest):
            yield line


def _evaluates(word: str, rest: str) -> bool:
    """Whether a line that sets a stop has an expression: where to stop, if what, or in what a log point says."""
    if word not in ("break", "tbreak", "log"):
        return False
    quoted = re.search("[\"']", rest) if word == "log" else None
    where, said = (rest[: quoted.start()], rest[quoted.start() :]) if quoted else (rest, "")
    try:
        asked = stop(where)
    except GvizError:
        return True
    return bool(asked.condition or isinstance(asked.at, Computed) or "{" in said or " if " in said)


def set_again(old: Session, new: Session) -> None:
    """Set in the next run what was set in one: breakpoints, which go by what is written, watches, closed modules."""
    breakpoints = new.cursor.breakpoints
    for one in old.cursor.breakpoints.listed:
        made = _again(old.timeline, one, breakpoints)
        made.enabled, made.commands = one.enabled, one.commands
    new.cursor.asker.watched = [*old.cursor.asker.watched]
    new.folds.close_as(old.folds)
    new.settings = old.settings


def _again(timeline: Timeline, one: Listed, breakpoints: Breakpoints) -> Listed:
    """What was set in the run of a timeline, or held its program, among the breakpoints of another run."""
    if isinstance(one, Call):
        return breakpoints.call(one.site)
    made = breakpoints.add(lasting(timeline, one.stop), once=one.once, message=one.message)
    made.ignored = one.ignored
    return made


def _set(timeline: Timeline, one: Breakpoint) -> str:
    text = lasting(timeline, one.stop).text
    if one.message:
        head, _, test = text.partition(" if ")
        quote = "'" if '"' in one.message else '"'
        return f"log {head} {quote}{one.message}{quote}" + (f" if {test}" if test else "")
    return f"{one.command} {text}"


def lasting(timeline: Timeline, asked: Stop) -> Stop:
    """A stop in words that are valid in another run: nodes by a name that no other node has, or by their line."""
    place = asked.at.place
    if place is None or place.kind != "node" or place.number not in timeline.nodes:
        return asked
    return stop(asked.text.replace(f"#{place.number}", _in_words(timeline, place.number), 1))


def _in_words(timeline: Timeline, node: int) -> str:
    info = timeline.info(node)
    if info.name and sum(timeline.info(other).name == info.name for other in timeline.nodes) == 1:
        return info.name
    frame = next(iter(info.frames), None)
    return f"{Path(frame.path).name}:{frame.line}" if frame is not None else f"#{node}"
