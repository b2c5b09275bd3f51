"""What the user has set in a session, for another run: in a file of commands, or directly in the next run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gviz.errors import GvizError
from gviz.query_syntax.stop_condition import AtExpression, Stop, stop
from gviz.system.files import naming, write_whole
from gviz.trace.timeline import Timeline
from gviz.tui.breakpoints import Breakpoint, BreakpointEntry, Breakpoints, Call
from gviz.tui.commands._paths import path_of
from gviz.tui.language.command import Answer, Confirm, Script
from gviz.tui.session import Session
from gviz.values.plain_text import clipped, shown

LARGEST = 1_000_000
"""The largest file of commands, in bytes."""

IN_A_SESSION = frozenset({"break", "tbreak", "log", "ignore", "disable", "commands", "watch", "mark"})


def session_lines(session: Session) -> Iterator[str]:
    """Yield the commands that restore what the user has set.

    They are also valid in another run: they contain nodes by name or line, not by number.
    """
    cursor = session.cursor
    for one in cursor.breakpoints.own:  # a call is listed again once it pauses the program
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
    """Run ``save [FILE]``: write the session. A file that is not a session is not overwritten."""
    target = path_of(path or f"{session.title.file or 'gviz'}.session")
    head = "# gviz session"
    with naming(target):
        if target.exists() and not (target.is_file() and _begins_with(target, head)):
            raise GvizError(f"{shown(str(target))} exists and is not a session", hint="choose another name")
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
    """Run ``load FILE``: read a session. First show what it evaluates, or runs at a stop, and ask."""
    lines = _lines(path)
    acting = tuple(f"  {shown(line)}" for line in _active_lines(lines, path))
    script = Script(lines, shown(path))
    if not acting:
        return script
    return Confirm((f"{shown(path)} evaluates, or runs at a stop:", *acting), "load it?", script)


def source(session: Session, path: str) -> Script:
    """Run ``source FILE``: run the commands of a file, as if they were typed."""
    return Script(_lines(path), shown(path))


def _lines(path: str) -> tuple[str, ...]:
    target = path_of(path)
    try:
        with target.open("rb") as file:
            data = file.read(LARGEST + 1)  # a device file may be endless
        if len(data) > LARGEST:
            raise GvizError(f"{shown(path)} is too large for a file of commands", exit_code=3)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise GvizError(f"cannot read {shown(path)}", why=why, exit_code=3) from error
    lines = [line.strip() for line in text.splitlines()]
    return tuple(line for line in lines if line and not line.startswith("#"))


def _active_lines(lines: tuple[str, ...], path: str) -> Iterator[str]:
    """Yield the lines of a session that evaluate or run something.

    Raises GvizError for a line that a session cannot contain.
    """
    of_a_breakpoint = False
    for line in lines:
        word, _, rest = line.partition(" ")
        if of_a_breakpoint:
            of_a_breakpoint = line != "end"
            if of_a_breakpoint:
                yield line
        elif word not in IN_A_SESSION:
            raise GvizError(
                f"{clipped(shown(line), 40)} cannot be part of a session",
                hint=f"source {clipped(shown(path), 40)} runs any command",
                exit_code=2,
            )
        elif word == "commands" and len(rest.split()) == 1:
            of_a_breakpoint = True
        elif word in ("watch", "commands") or _evaluates(word, rest):
            yield line


def _evaluates(word: str, rest: str) -> bool:
    """Return whether a line that sets a stop has an expression: as its place, condition, or in its message."""
    if word not in ("break", "tbreak", "log"):
        return False
    quoted = re.search("[\"']", rest) if word == "log" else None
    where, message = (rest[: quoted.start()], rest[quoted.start() :]) if quoted else (rest, "")
    try:
        target = stop(where)
    except GvizError:
        return True
    return bool(target.condition or isinstance(target.at, AtExpression) or "{" in message or " if " in message)


def set_again(old: Session, new: Session) -> None:
    """Set in the next run what was set in the last one: breakpoints, by their text, watches, collapsed modules."""
    breakpoints = new.cursor.breakpoints
    for one in old.cursor.breakpoints.listed:
        copy = _copy(old.timeline, one, breakpoints)
        copy.enabled, copy.commands = one.enabled, one.commands
    new.cursor.asker.watched = [*old.cursor.asker.watched]
    new.folds.copy_collapsed(old.folds)
    new.settings = old.settings


def _copy(timeline: Timeline, one: BreakpointEntry, breakpoints: Breakpoints) -> BreakpointEntry:
    """Add a breakpoint of one run, or a call that paused its program, to the breakpoints of another run."""
    if isinstance(one, Call):
        return breakpoints.call(one.site)
    new = breakpoints.add(portable_stop(timeline, one.stop), once=one.once, message=one.message)
    new.ignored = one.ignored
    return new


def _set(timeline: Timeline, one: Breakpoint) -> str:
    text = portable_stop(timeline, one.stop).text
    if one.message:
        head, _, test = text.partition(" if ")
        quote = "'" if '"' in one.message else '"'
        return f"log {head} {quote}{one.message}{quote}" + (f" if {test}" if test else "")
    return f"{one.command} {text}"


def portable_stop(timeline: Timeline, original: Stop) -> Stop:
    """Return a stop whose text is valid in another run: nodes by a unique name, or by their line."""
    place = original.at.place
    if place is None or place.kind != "node" or place.number not in timeline.nodes:
        return original
    return stop(original.text.replace(f"#{place.number}", _portable_place(timeline, place.number), 1))


def _portable_place(timeline: Timeline, node: int) -> str:
    info = timeline.info(node)
    if info.name and sum(timeline.info(other).name == info.name for other in timeline.nodes) == 1:
        return info.name
    frame = next(iter(info.frames), None)
    return f"{Path(frame.path).name}:{frame.line}" if frame is not None else f"#{node}"
