"""A program under control, and the cursor that can resume it: what the screen and line mode share.

Everything before the live end (the last event recorded so far) is replay. At the live end the time commands resume the
program. Its own gate pauses it. If the gate cannot decide whether to stop, the timeline decides, in `Live._first_stop`.

The states of `Live`, each with the `word` that the status row shows:

    state     what happens                                     what follows                                  next state
    started   `begin`                                          the first `Purpose` is sent                   running
    running   `pause`                                          the program is asked to pause                 pausing
    running   `Paused`, as the purpose asks                    the cursor moves there (unless the user       held
                                                               has moved it away), `CursorStop`
    running   `Paused`, no stop matches (`_first_stop`: None)  the same request is sent again                running
    running   `Paused`, and the command has a count left       the purpose is sent again, one less           running
    running   `OutputWritten`, `follow`                        output and events are read                    running
    pausing   as running                                       as running
    held      a command that Live `resumes`                    its `Purpose` is sent                         running
    held      any other command that moves in time             the cursor moves in the recording             held
    held      `Released` (a signal ended the wait)             nothing                                       running
    any       `Ended`                                          names are final, `CursorStop` at the end         ended
    any       ``detach`` (`ControlledProgram.release`)         the program runs without a debugger           ended

``running`` and ``pausing`` show RUNNING. ``held`` shows LIVE if the cursor is at the live end, else REPLAY. ``ended``
shows REPLAY, too.

For example, the program is held at event 12 by ``n``. The command ``n 2`` is ``Purpose("next", 12,
ResumeRequest("next", count=2))``. The gate counts whole nodes and pauses the program at event 17, where the cursor
arrives. After ``N`` the cursor is at event 12 again: the next ``n`` only moves in the recording, and the program stays
where it is.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from msgspec import structs

from gviz.errors import GvizError
from gviz.explain.source_frames import frame_text
from gviz.live.debugger_side import ControlledProgram, Ended, OutputWritten, Report, exit_code
from gviz.live.protocol import PAUSE_WORDS, CallSite, Mode, Paused, Released, ResumeRequest
from gviz.query_syntax.stop_condition import Stop, stop
from gviz.source.call_stack import Frame
from gviz.trace.breakpoint_hits import Hits
from gviz.trace.graph_state import OPTIMIZER
from gviz.tui import stop_search
from gviz.tui.breakpoints import hits_of
from gviz.tui.commands.command_table import BY_NAME
from gviz.tui.language.command import Command
from gviz.tui.session import Session
from gviz.tui.source_location import PausedStack
from gviz.tui.stop_reason import END, ERROR, CursorStop, Reason, as_remark, by_command
from gviz.values.plain_text import clipped

REFRESH_SECONDS = 0.05

QUIET_SECONDS = 0.5
"""A program that has done and written nothing for this long may be waiting for an answer."""
_RATE_SECONDS = 1.0
_LOWEST_RATE = 0.5
"""A lower rate, rounded to 0 events per second, would look as if the program stood still."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """Why the program runs: the command, the moment `start` where it began, and the request sent to the program.

    The command is still to be done `left` times. If there is an `until`, the program stops there, and at any breakpoint
    before it. `passed` is the last stop that a command with a count has passed. `boxes` is how many boxes of the graph
    `next` passes, if the request has the number of their nodes.
    """

    name: str
    start: int
    request: ResumeRequest
    left: int = 1
    until: Stop | None = None
    passed: int = 0
    boxes: int = 0

    @property
    def after(self) -> int:
        """The moment after which the next stop is looked for."""
        return max(self.start, self.passed)

    @property
    def reason(self) -> Reason:
        """The reason for a stop that was requested. The first request to a program is not a command."""
        if self.name != "start":
            return by_command(self.name)
        return as_remark(f"paused at its first {'backward()' if self.request.mode == 'backward' else 'node'}")


def mode_of(command: Command) -> Mode | None:
    """Return how a command resumes the program; None if it does not."""
    spec = BY_NAME[command.name]
    return spec.runs if command.argument else spec.runs_bare or spec.runs


def until_of(command: Command) -> Stop | None:
    """Return the stop named by a command that resumes the program; None if it names none."""
    return stop(command.argument) if command.argument and mode_of(command) == "continue" else None


class Live:
    """One program under control, from its start to its end."""

    def __init__(self, program: ControlledProgram, session: Session) -> None:
        self.program = program
        self.cursor = session.cursor
        self.timeline = session.timeline
        self._folds = session.folds
        self._session = session
        self.pausing = False
        """Whether the program was asked to pause, and is still running."""
        self._seen = 0
        self._purpose = Purpose("start", 0, ResumeRequest("run"))
        self._awaited: Hits | None = None
        self._grow(growing=True)
        self._pace = Pace()

    @property
    def running(self) -> bool:
        """Whether the program runs, according to the reports read so far; later ones may be waiting."""
        return self._session.is_running

    @running.setter
    def running(self, runs: bool) -> None:
        self._session.is_running = runs

    @property
    def alive(self) -> bool:
        """Whether the program can still be paused or resumed."""
        return self.cursor.growing and self.program.state != "released"

    @property
    def at_end(self) -> bool:
        """Whether the cursor is where the program is."""
        return self.cursor.position == len(self.timeline)

    @property
    def word(self) -> str:
        """The word in the status row: see the table above."""
        if self.running:
            return "RUNNING"
        return "LIVE" if self.alive and self.at_end else "REPLAY"

    def resumes(self, command: Command) -> bool:
        """Return whether a command resumes the program instead of moving in the recording."""
        runs = mode_of(command)
        if not self.alive or (runs is None and not self._missing_events(command)):
            return False
        if runs is None:
            return True
        return self.at_end or self.running or (runs == "continue" and self._stopped_late(until_of(command)))

    def _missing_events(self, command: Command) -> int:
        """Return how many events the program is short of the event of a `goto`; 0 if it is there or none is named."""
        named = re.fullmatch(r"@?(\d{1,18})", command.argument) if command.name == "goto" else None
        return max(int(named[1]) - len(self.timeline) - self.timeline.unprocessed, 0) if named else 0

    def _stopped_late(self, until: Stop | None) -> bool:
        """Return whether the cursor is at a pause of the program whose stop became known only a little later."""
        here = self.cursor.position
        if here != self._purpose.start or self._purpose.name != "stopped":
            return False
        return stop_search.first_stop(self.timeline, self.cursor.breakpoints, here, self._hits(until)) is None

    def begin(self, mode: Mode) -> None:
        """Start the program; with breakpoints it runs to the first of them."""
        stops = self._stops()
        request = ResumeRequest("continue", stops=stops) if stops else ResumeRequest(mode)
        self._send(Purpose("continue" if stops else "start", 0, request))

    def run(self, command: Command) -> None:
        """Resume the program by a command that it `resumes`."""
        if self.running:
            raise GvizError("the program is running", hint="Ctrl+C pauses it", exit_code=2)
        if ahead := self._missing_events(command):
            self._send(Purpose(command.name, self.cursor.position, ResumeRequest("step", count=ahead)))
            return
        mode, until = mode_of(command), until_of(command)
        assert mode is not None, command.name  # `resumes` was false for such a command
        if until is not None and (why := stop_search.no_code(self.timeline, until)):
            raise stop_search.nothing_later(self.timeline, until, command.argument, why)
        times = 1 if mode in ("step", "next") else max(command.count, 1)  # the gate counts these two
        here, request, count = self.cursor.position, self._request(command, mode, until), max(command.count, 1)
        nodes = self._folds.nodes_of_next_boxes(here, count) if mode == "next" and self.timeline.iterations else 0
        if nodes:
            request = structs.replace(
                request, count=nodes, collapsed=tuple({OPTIMIZER}.intersection(request.collapsed))
            )
        self._send(Purpose(command.name, here, request, times, until, boxes=count if nodes else 0))

    def _request(self, command: Command, mode: Mode, until: Stop | None) -> ResumeRequest:
        match mode:
            case "to":
                node = self.cursor.node_at(command.argument)
                if not node:
                    raise GvizError("no node is selected", hint="j and k select one", exit_code=2)
                outputs = self.timeline.info(node).created.outputs
                return ResumeRequest(mode, node=node, storages=tuple({output.storage for output in outputs}))
            case "continue":
                return ResumeRequest(mode, stops=self._stops() + ((until.text,) if until is not None else ()))
            case "next":
                return ResumeRequest(mode, count=max(command.count, 1), collapsed=self._folds.collapsed_in_program)
        return ResumeRequest(mode, count=max(command.count, 1))

    def run_to_end(self) -> None:
        """Run the program to its end."""
        self._send(Purpose("run", self.cursor.position, ResumeRequest("run")))

    def pause(self) -> None:
        """Ask the program to pause; it does so once a call into a library has returned."""
        self.pausing = True
        self.program.pause()

    def take_report(self, report: Report) -> CursorStop | None:
        """Handle a report of the program; return a `CursorStop` if the program has paused or ended, else None."""
        match report:
            case Paused():
                self.running = self.pausing = False
                self.timeline.refresh()
                return self._paused(report)
            case Ended():
                self.running = False
                self.timeline.refresh()
                self._grow(growing=False)
                return self._ended()
            case Released():
                self.running = True
            case OutputWritten(data=data):
                self._pace.wrote(data)
        return None

    def follow(self, seconds: float = REFRESH_SECONDS) -> None:
        """Read what the running program has recorded, for about `seconds` at most."""
        self.timeline.refresh(seconds)

    def has_new_events(self) -> bool:
        """Return whether any event has been recorded since the last call."""
        self.follow()
        before, self._seen = self._seen, len(self.timeline) + self.timeline.unprocessed
        return self._seen != before

    def progress(self) -> str:
        """Return one line about the running program: its events, their rate, and what it may be waiting for."""
        count, question = len(self.timeline) + self.timeline.unprocessed, self._pace.question
        rate = self._pace.rate(count)
        if self._pace.is_quiet and not rate and (question or self.program.waits_for_line):
            then = ", then it pauses" if self.pausing else ""
            return f"A answers{then}: {clipped(question, 30) or 'it waits for a line'}"
        if self.pausing:
            return f"pausing when its call returns, {count:,} events"
        return f"{count:,} events" + (f", {rate:,.0f}/s" if rate >= _LOWEST_RATE else "")

    def _grow(self, *, growing: bool) -> None:
        """Set whether the recording may grow. When it no longer may, every name is known."""
        self.timeline.growing = self.cursor.growing = self.cursor.breakpoints.growing = growing
        self.cursor.breakpoints.search_again()
        self._awaited = self._hits(self._purpose.until)

    def _hits(self, until: Stop | None) -> Hits | None:
        return hits_of(self.timeline, until) if until is not None else None

    def _send(self, purpose: Purpose) -> None:
        self._purpose = purpose
        self._awaited = self._hits(purpose.until)
        self._pace.begin()
        self._go(purpose.request)

    def _go(self, request: ResumeRequest) -> None:
        self.running = True
        ignored = tuple(call.site.key for call in self.cursor.breakpoints.calls if not call.enabled)
        self.program.go(structs.replace(request, ignored_calls=ignored))

    def _paused(self, report: Paused) -> CursorStop | None:
        purpose, end = self._purpose, len(self.timeline)
        thread = report.thread if report.thread != "MainThread" else ""
        if report.reason in PAUSE_WORDS:
            one = self._call_number(report)
            if one and purpose.left > 1 and purpose.request.mode == "continue":
                self._send(replace(purpose, passed=end, left=purpose.left - 1))
                return None
            cursor_stop = self._stop(
                end, Reason("held", f"{PAUSE_WORDS[report.reason]}{_at(report.stack)}", one), thread
            )
            cursor_stop = (
                self._select_shown(report.node, cursor_stop) if report.node in self.timeline.nodes else cursor_stop
            )
            if report.stack and report.reason != "post-mortem":  # post-mortem looks at the failure instead
                node = self.cursor.selected if cursor_stop.position == end else self.timeline.at(end).actor
                self.cursor.paused_stacks[end] = PausedStack(report.stack, node)
            return cursor_stop
        if report.stack:
            self.cursor.paused_stacks[end] = PausedStack(report.stack, 0, is_pause=False)
        if purpose.request.mode == "continue":
            reached = self._first_stop()
            if reached is None:
                self._go(purpose.request)
                return None
            position, reason = reached
        elif purpose.request.mode == "next" and not purpose.boxes and self._folds.makes_more_nodes(end):
            self._go(structs.replace(purpose.request, count=1))
            return None
        else:
            position, reason = self._end_of_boxes(purpose), purpose.reason
        if purpose.left > 1:
            self._send(replace(purpose, passed=position, left=purpose.left - 1))
            return None
        return self._stop(position, reason, thread)

    def _end_of_boxes(self, purpose: Purpose) -> int:
        """Return where ``next`` arrives: the end, or before it if the program has made fewer nodes than expected."""
        position = purpose.start
        for _ in range(purpose.boxes):
            position = self._folds.next_node(self.timeline, position)
        return position if purpose.boxes else len(self.timeline)

    def _call_number(self, report: Paused) -> int:
        """Return the number, in the list of breakpoints, of the call that paused the program; 0 for a user's pause."""
        if report.reason == "pause" or not report.stack:
            return 0
        innermost = report.stack[0]
        call = self.cursor.breakpoints.call(CallSite(PAUSE_WORDS[report.reason], innermost.path, innermost.line))
        call.add_pause(len(self.timeline))
        return call.number

    def _select_shown(self, node: int, cursor_stop: CursorStop) -> CursorStop:
        """Select the node that the program shows.

        If the user looks at an earlier moment, only name it in the reason.
        """
        if cursor_stop.position != len(self.timeline):
            return replace(
                cursor_stop, reason=replace(cursor_stop.reason, text=f"{cursor_stop.reason.text} and shows #{node}")
            )
        self.cursor.select(node)
        return cursor_stop

    def _ended(self) -> CursorStop:
        self.cursor.paused_stacks.pop(len(self.timeline), None)  # the program no longer waits there
        until, reached = self._purpose.until, self._first_stop() if self._purpose.request.mode == "continue" else None
        failed = [n for n in self.timeline.failures if n > self._purpose.after]
        boxes_end = self._end_of_boxes(self._purpose)
        end = (boxes_end, self._purpose.reason) if boxes_end < len(self.timeline) else (len(self.timeline), END)
        cursor_stop = self._stop(failed[0], ERROR) if failed else self._stop(*(reached or end))
        messages = [
            *cursor_stop.messages,
            *(stop_search.never_reached(self.timeline, self.cursor.breakpoints) if reached is None else ()),
        ]
        if until is not None and reached is None:
            why = stop_search.why_never(self.timeline, until, hits_of(self.timeline, until), growing=False)
            messages.append(f"{until.text} was never reached" + f": {why}" * bool(why))
        return replace(cursor_stop, messages=tuple(messages))

    def _stop(self, position: int, reason: Reason, thread: str = "") -> CursorStop:
        """Move the cursor there, unless the user has moved it away from where the command began."""
        start = self._purpose.start
        self._purpose = Purpose("stopped", position, ResumeRequest("continue", stops=self._stops()))
        if self.cursor.position not in (start, position):
            here = self.cursor.position
            return CursorStop(here, here, Reason("held", f"the program is at event {position}"))
        return self.cursor.follow_program(position, start, replace(reason, thread=thread))

    def _first_stop(self) -> tuple[int, Reason] | None:
        """Return the first moment at which ``continue`` stops, among those recorded so far, and why."""
        return stop_search.first_stop(self.timeline, self.cursor.breakpoints, self._purpose.after, self._awaited)

    def _stops(self) -> tuple[str, ...]:
        own = self.cursor.breakpoints.own
        return tuple(dict.fromkeys(one.stop.text for one in own if one.enabled and not one.message))


class Pace:
    """How fast the program runs between two stops, and its last output, which may be a question."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()
        self._written = (0.0, b"")

    def begin(self) -> None:
        """Start counting: the program has been resumed."""
        self._counts.clear()

    def wrote(self, data: bytes) -> None:
        """Remember output that the program wrote to its terminal."""
        self._written = time.monotonic(), data

    def rate(self, count: int) -> float:
        """Return the events per second over about the last second; `count` events are known now."""
        now = time.monotonic()
        self._counts.append((now, count))
        while len(self._counts) > 2 and now - self._counts[1][0] > _RATE_SECONDS:
            self._counts.popleft()
        since, before = self._counts[0]
        return (count - before) / (now - since) if now > since else 0.0

    @property
    def is_quiet(self) -> bool:
        """Whether the program has written nothing for a while."""
        return time.monotonic() - self._written[0] > QUIET_SECONDS

    @property
    def question(self) -> str:
        """The last line of the output, if it is unfinished."""
        return self._written[1].decode("utf-8", "replace").rpartition("\n")[2].strip()


END_OF_INPUT = "^D"
"""Typed instead of a line: the end of the input."""

Then = Literal["continue", "wait", "leave", "restart"]
"""What a front end does next; ``wait`` lasts until the program pauses or ends."""


@dataclass(frozen=True, slots=True)
class ProgramAct:
    """A command about the program itself: `do` gets the text after its name."""

    do: Callable[[ControlledProgram, str], None]
    then: Then
    message: str = ""
    needs_program: bool = True


def _type(program: ControlledProgram, text: str) -> None:
    if text == END_OF_INPUT:
        program.hang_up()
    else:
        program.type(text)


PROGRAM_ACTS = {
    "type": ProgramAct(_type, "continue", "typed; the program reads it when it continues."),
    "interrupt": ProgramAct(lambda program, _: program.interrupt(), "wait"),
    "detach": ProgramAct(lambda program, _: program.release(), "leave", "the program runs on without the debugger."),
    "kill": ProgramAct(lambda program, _: program.stop(), "wait"),
    "restart": ProgramAct(lambda program, _: None, "restart", needs_program=False),
}


def act_on_program(live: Live, name: str, text: str) -> ProgramAct:
    """Run one of `PROGRAM_ACTS`. Raises GvizError if the program has ended."""
    act = PROGRAM_ACTS[name]
    if act.needs_program and not live.alive:
        what = "the program runs by itself" if live.program.state == "released" else "the program has ended"
        raise GvizError(what, hint="restart (Ctrl+R) runs it again", exit_code=2)
    act.do(live.program, text)
    return act


def code_of(program: ControlledProgram) -> int:
    """Return the exit code of the debugger: the program's own; 0 if the user stopped it or it is still running."""
    return exit_code(program.ended) if program.ended is not None and not program.stopped else 0


def _at(stack: tuple[Frame, ...]) -> str:
    """Return the place of the innermost frame, without folders."""
    return f" at {frame_text(stack[0], 30)}" if stack else ""
