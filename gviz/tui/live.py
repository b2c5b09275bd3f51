"""A program under control and the cursor that may run it on: what the terminal and line mode share.

Everything before the live end is replay. At the live end the time commands let the program run; it is held by its own
gate, and where that cannot tell whether to stop the timeline can, in `_met`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from msgspec import structs

from gviz.errors import GvizError
from gviz.explain.names import frame_text
from gviz.live.controlled import ControlledProgram, Ended, Report, Written, exit_code
from gviz.live.protocol import ASKED_FOR, CallSite, Held, Mode, Released, Wish
from gviz.source.site import Frame
from gviz.trace.stops import Hits
from gviz.trace.timeline import Timeline
from gviz.tui import stop_search
from gviz.tui.arrival import END, ERROR, Arrival, Reason
from gviz.tui.breakpoints import hits_of
from gviz.tui.language.command import Command
from gviz.tui.pace import Pace
from gviz.tui.places import Stood
from gviz.tui.purpose import Purpose, mode_of, until_of
from gviz.tui.session import Session
from gviz.values.plain_text import clipped
from gviz.where.stop import Stop

REFRESH_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Started:
    """A program that was started and waits for its first wish, and the beginning of its recording."""

    program: ControlledProgram
    timeline: Timeline


Launch = Callable[[Callable[[Report], None], tuple[int, int]], Started]
"""Starts the program in a terminal of a size; what it reports goes to the function."""


class Live:
    """One program under control, from its start to its end."""

    def __init__(self, program: ControlledProgram, session: Session) -> None:
        self.program = program
        self.cursor = session.cursor
        self.timeline = session.timeline
        self._folds = session.folds
        self.running = False
        """Whether the program runs, as far as its reports were heard: the program may have sent later ones."""
        self.pausing = False
        """Whether it was asked to stand still, and does not yet."""
        self._seen = 0
        self._purpose = Purpose("start", 0, Wish("run"))
        self._awaited: Hits | None = None
        self._grow(growing=True)
        self._pace = Pace()

    @property
    def alive(self) -> bool:
        """Whether the program can still be held or run."""
        return self.cursor.growing and self.program.state != "let go"

    @property
    def at_end(self) -> bool:
        """Whether the cursor stands where the program does."""
        return self.cursor.position == len(self.timeline)

    @property
    def word(self) -> str:
        """Whose time it is."""
        if self.running:
            return "RUNNING"
        return "LIVE" if self.alive and self.at_end else "REPLAY"

    def takes(self, command: Command) -> bool:
        """Whether a command lets the program run, instead of moving in what is recorded."""
        runs = mode_of(command)
        if not self.alive or (runs is None and not self._ahead(command)):
            return False
        if runs is None:
            return True
        return self.at_end or self.running or (runs == "continue" and self._stopped_late(until_of(command)))

    def _ahead(self, command: Command) -> int:
        """How many events the program is short of the one that a `goto` names; 0 if it is there, or none is named."""
        named = re.fullmatch(r"@?(\d{1,18})", command.argument) if command.name == "goto" else None
        return max(int(named[1]) - len(self.timeline) - self.timeline.behind, 0) if named else 0

    def _stopped_late(self, until: Stop | None) -> bool:
        """Whether the cursor is where the program was held for, which has shown itself a little later."""
        here = self.cursor.position
        if here != self._purpose.start or self._purpose.name != "stopped":
            return False
        return stop_search.met(self.timeline, self.cursor.breakpoints, here, self._hits(until)) is None

    def begin(self, mode: Mode) -> None:
        """Let the program begin; with breakpoints it runs to the first of them."""
        stops = self._stops()
        self._send(Purpose("continue" if stops else "start", 0, Wish("continue", stops=stops) if stops else Wish(mode)))

    def run(self, command: Command) -> None:
        """Let the program run on by a command that it `takes`."""
        if self.running:
            raise GvizError("the program is running", hint="ctrl+c pauses it", exit_code=2)
        if ahead := self._ahead(command):
            self._send(Purpose(command.name, self.cursor.position, Wish("step", count=ahead)))
            return
        mode, until = mode_of(command), until_of(command)
        assert mode is not None, command.name  # else it does not take the command
        if until is not None and (why := stop_search.no_code(self.timeline, until)):
            raise stop_search.nothing_later(self.timeline, until, command.argument, why)
        times = 1 if mode in ("step", "next") else max(command.count, 1)  # these two are counted by the gate
        self._send(Purpose(command.name, self.cursor.position, self._wish(command, mode, until), times, until))

    def _wish(self, command: Command, mode: Mode, until: Stop | None) -> Wish:
        match mode:
            case "to":
                node = self.cursor.node_at(command.argument)
                if not node:
                    raise GvizError("no node is selected", hint="j and k select one", exit_code=2)
                outputs = self.timeline.info(node).created.outputs
                return Wish(mode, node=node, storages=tuple({output.storage for output in outputs}))
            case "continue":
                return Wish(mode, stops=self._stops() + ((until.text,) if until is not None else ()))
            case "next":
                return Wish(mode, count=max(command.count, 1), closed=self._folds.closed)
        return Wish(mode, count=max(command.count, 1))

    def run_out(self) -> None:
        """Let the program run to its end."""
        self._send(Purpose("run", self.cursor.position, Wish("run")))

    def pause(self) -> None:
        """Ask the program to stand still, which it does once a call into a library has come back."""
        self.pausing = True
        self.program.pause()

    def heard(self, report: Report) -> Arrival | None:
        """Take in what the program reports; where time stands still again, or None if it does not."""
        match report:
            case Held():
                self.running = self.pausing = False
                self.timeline.refresh()
                return self._held(report)
            case Ended():
                self.running = False
                self.timeline.refresh()
                self._grow(growing=False)
                return self._ended()
            case Released():
                self.running = True
            case Written(data=data):
                self._pace.wrote(data)
        return None

    def follow(self, seconds: float = REFRESH_SECONDS) -> None:
        """Take in what the running program has done, for about so long at most."""
        self.timeline.refresh(seconds)

    def goes_on(self) -> bool:
        """Whether any event has come since this was asked last."""
        self.follow()
        before, self._seen = self._seen, len(self.timeline) + self.timeline.behind
        return self._seen != before

    def progress(self) -> str:
        """One line about the running program: how many events, how many a second; what it may be waiting for."""
        count, question = len(self.timeline) + self.timeline.behind, self._pace.question
        rate = self._pace.rate(count)
        if self._pace.is_quiet and not rate and (question or self.program.waits_for_line):
            then = ", then it pauses" if self.pausing else ""
            return f"A answers{then}: {clipped(question, 30) or 'it waits for a line'}"
        if self.pausing:
            return f"pausing when its call returns, {count:,} events"
        return f"{count:,} events, {rate:,.0f}/s"

    def _grow(self, *, growing: bool) -> None:
        """Say that the recording goes on behind its end, or no more: then every name is known."""
        self.timeline.growing = self.cursor.growing = self.cursor.breakpoints.growing = growing
        self.cursor.breakpoints.search_again()
        self._awaited = self._hits(self._purpose.until)

    def _hits(self, until: Stop | None) -> Hits | None:
        return hits_of(self.timeline, until) if until is not None else None

    def _send(self, purpose: Purpose) -> None:
        self._purpose = purpose
        self._awaited = self._hits(purpose.until)
        self._pace.begin()
        self._go(purpose.wish)

    def _go(self, wish: Wish) -> None:
        self.running = True
        passed = tuple(call.site.key for call in self.cursor.breakpoints.calls if not call.enabled)
        self.program.go(structs.replace(wish, passed=passed))

    def _held(self, held: Held) -> Arrival | None:
        purpose, end = self._purpose, len(self.timeline)
        thread = held.thread if held.thread != "MainThread" else ""
        if held.why in ASKED_FOR:
            one = self._called(held)
            if one and purpose.left > 1 and purpose.wish.mode == "continue":
                self._send(replace(purpose, passed=end, left=purpose.left - 1))
                return None
            arrival = self._stop(end, Reason("held", f"{ASKED_FOR[held.why]}{_at(held.stack)}", one), thread)
            arrival = self._shown(held.node, arrival) if held.node in self.timeline.nodes else arrival
            if held.stack and held.why != "post-mortem":  # which looks at where it failed
                node = self.cursor.selected if arrival.position == end else self.timeline.at(end).actor
                self.cursor.stood[end] = Stood(held.stack, node)
            return arrival
        if purpose.wish.mode == "continue":
            met = self._met()
            if met is None:
                self._go(purpose.wish)
                return None
            position, reason = met
        else:
            position, reason = end, purpose.reason
        if purpose.left > 1:
            self._send(replace(purpose, passed=position, left=purpose.left - 1))
            return None
        return self._stop(position, reason, thread)

    def _called(self, held: Held) -> int:
        """The number of the breakpoint that stands for the call in the program that has held it; 0 for a pause."""
        if held.why == "pause" or not held.stack:
            return 0
        innermost = held.stack[0]
        call = self.cursor.breakpoints.call(CallSite(ASKED_FOR[held.why], innermost.path, innermost.line))
        call.held(len(self.timeline))
        return call.number

    def _shown(self, node: int, arrival: Arrival) -> Arrival:
        """Select the node that the program shows, unless the user looks at a moment before: then say which it is."""
        if arrival.position != len(self.timeline):
            return replace(arrival, reason=replace(arrival.reason, text=f"{arrival.reason.text} and shows #{node}"))
        self.cursor.select(node)
        return arrival

    def _ended(self) -> Arrival:
        self.cursor.stood.pop(len(self.timeline), None)  # it stands there no more
        until, met = self._purpose.until, self._met() if self._purpose.wish.mode == "continue" else None
        failed = [n for n in self.timeline.failures if n > self._purpose.after]
        arrival = self._stop(failed[0], ERROR) if failed else self._stop(*(met or (len(self.timeline), END)))
        said = [*arrival.said, *(stop_search.unmet(self.timeline, self.cursor.breakpoints) if met is None else ())]
        if until is not None and met is None:
            why = stop_search.never(self.timeline, until, hits_of(self.timeline, until), growing=False)
            said.append(f"nothing came at {until.text}" + f": {why}" * bool(why))
        return replace(arrival, said=tuple(said))

    def _stop(self, position: int, reason: Reason, thread: str = "") -> Arrival:
        """Bring the cursor there, unless it has gone away from where the program was let run."""
        start = self._purpose.start
        self._purpose = Purpose("stopped", position, Wish("continue", stops=self._stops()))
        if self.cursor.position not in (start, position):
            here = self.cursor.position
            return Arrival(here, here, Reason("held", f"the program is at event {position}"))
        return self.cursor.stopped(position, start, replace(reason, thread=thread))

    def _met(self) -> tuple[int, Reason] | None:
        """The first moment at which running on stops, as far as it has come, and why."""
        return stop_search.met(self.timeline, self.cursor.breakpoints, self._purpose.after, self._awaited)

    def _stops(self) -> tuple[str, ...]:
        own = self.cursor.breakpoints.own
        return tuple(dict.fromkeys(one.stop.text for one in own if one.enabled and not one.message))


def code_of(program: ControlledProgram) -> int:
    """The exit code of the debugger: the program's own, 0 where the user stopped it or it lives on."""
    return exit_code(program.ended) if program.ended is not None and not program.stopped else 0


def _at(stack: tuple[Frame, ...]) -> str:
    """Where the innermost frame is, without folders."""
    return f" at {frame_text(stack[0], 30)}" if stack else ""
