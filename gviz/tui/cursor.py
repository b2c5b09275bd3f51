"""The position in a timeline, and every way to move it: the core that the screen and line mode share.

The position is one integer, the number of the last event that has happened. Moving never runs the program. It finds
another position (`gviz.trace.stepping`, `gviz.tui.stop_search`), moves there, and selects the node of that event.
`Asker` evaluates expressions at a position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gviz.errors import GvizError
from gviz.events import (
    BackwardFinished,
    DataSet,
    Failed,
    GradSet,
    Marked,
    Named,
    NodeFreed,
    OptimizerStarted,
    OptimizerStepped,
    Printed,
    SavedFreed,
    ScopeLeft,
    StorageWritten,
    VariableHeld,
)
from gviz.explain.failed_call import first_input
from gviz.explain.training import last_pass, root_of_pass
from gviz.explain.whatif import value_in_branch
from gviz.query import nodes as node_query
from gviz.query.expressions import Evaluator
from gviz.query.moments import event_at, remark
from gviz.query_syntax.place import split_aspect
from gviz.query_syntax.stop_condition import changes
from gviz.system.cooperative_work import LongWork, WorkProgress, finished
from gviz.trace import stepping
from gviz.trace.breakpoint_hits import stretches
from gviz.trace.graph_state import BAD
from gviz.trace.timeline import Timeline
from gviz.tui import stop_search
from gviz.tui.breakpoints import Breakpoints, hits_of
from gviz.tui.node_search import NodeSearch
from gviz.tui.source_location import PausedStack, call_frames
from gviz.tui.stop_reason import (
    CONTINUE,
    END,
    ERROR,
    FIRST_BAD,
    LIVE_END,
    START,
    CursorStop,
    Reason,
    as_remark,
    by_command,
)
from gviz.values.plain_text import clipped, shown

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView

Move = Callable[[Timeline, int], int]

HISTORY = 1000
SEARCHED = 100
"""How many events without a node are skipped to find a node to select."""
_GOTO = by_command("goto")
_FAR = ("continue", "finish", "phase", "until")
"""Commands that stop early at the live end, because the program has not run further."""


class Asker(Evaluator):
    """Evaluates expressions for a session.

    Keeps the watched expressions, and the branch of a what-if, if there is one.
    """

    branch_view: BranchView | None = None

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self.watched: list[str] = []

    def text_of(self, text: str, n: int) -> str:
        """Return the text of an expression; where a branch differs, of both values: ``9 → 25``."""
        here, branch = self.evaluated(text, n), self.branch_view
        if branch is None or not branch.covers(n):
            return here
        try:
            there = value_in_branch(self, branch, text, n)
        except GvizError:
            there = "?"
        return here if here == there else f"{here} → {there}"

    def watching(self, n: int) -> Iterator[tuple[str, str]]:
        """Yield each watched expression with its value at moment `n`, or with the reason why it is unknown."""
        for text in self.watched:
            try:
                yield text, self.text_of(text, n)
            except GvizError as error:
                yield text, error.what.removeprefix(f"{clipped(text, 40)}: ")  # the expression is shown next to it

    def change(self, text: str, n: int, *, first: bool = False) -> LongWork[int]:
        """Return the last moment before `n` (or the first of all) at which a value or gradient changed.

        Raises GvizError if there is none.
        """
        hits = hits_of(self.timeline, changes(text))
        if missing := hits.unmatched_name():
            self.last(missing, n)  # raises the error that explains why
        for stretch in stretches(self.timeline, 0 if first else n, backward=not first):
            yield WorkProgress("looking for a change: event", stretch.start, len(self.timeline))
            moments = [hit.n for hit in hits.in_stretch(stretch) if first or hit.n < n]
            if moments:
                return min(moments) if first else max(moments)
        when = "anywhere" if first else f"before event {n}"
        raise GvizError(f"{clipped(text, 40)} did not change {when}", exit_code=2)


AFTERMATH = (
    GradSet, OptimizerStarted, OptimizerStepped, StorageWritten, DataSet, Printed, NodeFreed, SavedFreed, ScopeLeft,
    VariableHeld, Named,
)  # fmt: skip
"""Events that may end a recording but rarely interest the reader of its end."""


class Cursor:
    """A position in a timeline, the selected node, bookmarks, and the positions jumped from."""

    def __init__(self, timeline: Timeline, position: int) -> None:
        self.timeline = timeline
        self.position = max(0, min(position, len(timeline)))
        self.selected = self._node_here()
        self._is_chosen = False
        """Whether the user has selected the node, and not a move in time: then ends of passes do not select another."""
        self.bookmarks: dict[str, int] = {}
        self.breakpoints = Breakpoints(timeline)
        self.asker = Asker(timeline)
        self.paused_stacks: dict[int, PausedStack] = {}
        """The call stack at each moment where the program was paused by its own code or by the user.

        Also at each moment visited where a module call begins.
        """
        self.growing = False
        """Whether the recording may still grow, because its program is running."""
        self._jumped: list[int] = []
        self._search: NodeSearch | None = None

    def travel(self, move: Move, command: str, count: int = 1, *, backward: bool = False) -> CursorStop:
        """Move `count` times by the command with this name, or until an end is reached."""
        return finished(self.travel_work(move, command, count, backward=backward))

    def travel_work(self, move: Move, command: str, count: int, *, backward: bool = False) -> LongWork[CursorStop]:
        """Do the same as `travel`, in small pieces of work."""
        position = self.position
        for steps in range(count):
            yield WorkProgress(f"{command}:", steps, count)
            moved = move(self.timeline, position)
            if moved == position:
                break
            position = moved
        return self._stop_at(position, by_command(command), ran_backward=backward)

    def run_to_stop(self, count: int = 1, *, backward: bool = False) -> CursorStop:
        """Run to the next stop, or to the previous one, `count` times."""
        start, position, reason = self.position, self.position, CONTINUE
        for _ in range(count):
            moved, reason = stop_search.next_stop(self.timeline, self.breakpoints, position, backward=backward)
            if moved == position:
                break
            position = moved
        return self._stop_after_run(start, position, reason, ran_backward=backward)

    def follow_program(self, position: int, start: int, reason: Reason) -> CursorStop:
        """Follow the program from `start`, which was the end, to where it was paused."""
        self.position = start
        return self._stop_after_run(start, position, reason, by_program=True)

    def _stop_after_run(
        self, start: int, position: int, reason: Reason, *, ran_backward: bool = False, by_program: bool = False
    ) -> CursorStop:
        """Return the stop, with the messages of the log points passed and the commands of the breakpoint there."""
        messages = stop_search.log_lines(self.timeline, self.breakpoints, start, position)
        then = self.breakpoints.commands_of(reason.breakpoint) if position != start or by_program else ()
        self.breakpoints.remove_temporary(position)
        stop = self._stop_at(position, reason, ran_backward=ran_backward, by_program=by_program)
        return replace(stop, messages=messages, then=then)

    def seek(self, position: int, reason: Reason = _GOTO) -> CursorStop:
        """Jump to a position, and remember the old one."""
        if position != self.position:
            self._jumped = [*self._jumped[1 - HISTORY :], self.position]
        return self._stop_at(max(0, min(position, len(self.timeline))), reason)

    def back(self) -> CursorStop:
        """Return to the position of the last jump."""
        if not self._jumped:
            return CursorStop(self.position, self.position, as_remark("no earlier position"))
        return self._stop_at(self._jumped.pop(), by_command("back"))

    def select(self, node: int) -> CursorStop:
        """Select a node; the time does not change."""
        self.selected, self._is_chosen = node, True
        return self.stay()

    def stay(self) -> CursorStop:
        """Return a stop at the same moment and node, to show them again."""
        return CursorStop(self.position, self.position, by_command("select"))

    def neighbour(self, steps: int) -> CursorStop:
        """Select the node `steps` rows below (above, if negative) in the order of creation."""
        nodes = self.timeline.nodes
        if not len(nodes):
            raise GvizError("this recording has no nodes", exit_code=2)
        at = max(self.timeline.nodes.place_of(self.selected), 0)
        return self.select(int(nodes[max(0, min(at + steps, len(nodes) - 1))]))

    def relative(self, kin: str) -> CursorStop:
        """Select an input (``input``) or a user (``user``) of the selected node."""
        if not self.selected:
            raise GvizError("no node is selected", hint="j and k select one", exit_code=2)
        if kin == "input":
            family = [node for node, _ in self.timeline.info(self.selected).created.inputs if node]
        else:
            family = list(self.timeline.nodes.users(self.selected))
        return self.select_relative(family[0] if family else 0, kin)

    def select_relative(self, node: int, kin: str) -> CursorStop:
        """Select a node that is an input or a user (`kin`) of the selected one. Raises GvizError if it is 0."""
        if not node:
            raise GvizError(f"#{self.selected} has no {kin}", exit_code=2)
        return self.select(node)

    def find(self, text: str) -> LongWork[CursorStop]:
        """Select the next node that matches a search text: by its whole name, else by a part of it."""
        search = NodeSearch(self.timeline, text)
        node = yield from search.first(self.selected, self.position)
        self._search = search
        no_nan = text.strip() == "nan" and not self.timeline.error_index.first("nan")
        return (yield from self._match(node, ("there is no nan: this is inf",) if no_nan else ()))

    def find_next(self, *, backward: bool = False) -> LongWork[CursorStop]:
        """Select the next (or previous) node that matches the last search."""
        if self._search is None:
            raise GvizError("there is no search to repeat", hint="/ finds a node", exit_code=2)
        return (yield from self._match((yield from self._search.next(self.selected, backward=backward))))

    def _match(self, node: int, also: tuple[str, ...] = ()) -> LongWork[CursorStop]:
        assert self._search is not None, "called after a search"
        which = yield from self._search.remark(node, self.position)
        remark = "; ".join(filter(None, (*also, which)))
        return replace(self.select(node), messages=(remark,) if remark else ())

    def bookmark(self, text: str) -> str:
        """Run ``NAME [PLACE]``: give this position, or that of a place, a name. Return the message for the user."""
        name, _, place = text.partition(" ")
        self.bookmarks[name] = self.event_at(place.strip()) if place.strip() else self.position
        return f"marked '{clipped(name, 30)} is event {self.bookmarks[name]}."

    def node_at(self, place: str) -> int:
        """Return the node of a PLACE: ``#4``, ``op:mul``, ``demo.py:4``, or the node that has a name now."""
        return node_query.node_at(self.asker.names, place, self.position, self.selected)

    def event_at(self, place: str) -> int:
        """Return the event of a PLACE: for a node, the one that made it; for ``''``, the one before the last jump."""
        if place == "''":
            return self._jumped[-1] if self._jumped else self.position
        return event_at(self.timeline, place, self.position, self.selected, self.bookmarks)

    def goto_work(self, place: str) -> LongWork[CursorStop]:
        """Go to the event of a PLACE, in small pieces of work if every value must be read."""
        if place in BAD:
            yield from self.timeline.error_index.looking_for_bad()
        return self.goto(place)

    def goto(self, place: str) -> CursorStop:
        """Go to the event of a PLACE."""
        position = self.event_at(place)
        stop = self.seek(position)
        if not place.startswith(("@", "'")) and not place.isdigit():
            receives = split_aspect(place)[1] == "grad" and " " not in place
            self.selected = (self.node_at(place) if receives else self._node_here()) or self.selected
        also = remark(self.timeline, place)
        return replace(stop, messages=(also,)) if also else stop

    def to(self, place: str) -> CursorStop:
        """Go to the next event of a node."""
        return self._to(place, stepping.to_node, backward=False)

    def reverse_to(self, place: str) -> CursorStop:
        """Go to the previous event of a node."""
        return self._to(place, stepping.reverse_to_node, backward=True)

    def _to(self, place: str, move: Callable[[Timeline, int, int], int], *, backward: bool) -> CursorStop:
        """Go to the nearest event of the node at a place, or of the next node that the place matches."""
        node = self.node_at(place)
        if not node:
            raise GvizError("no node is selected", hint="j and k select one", exit_code=2)
        other = node_query.next_of(self.asker.names, place, self.position, backward=backward) if place else 0
        events = {move(self.timeline, self.position, each): each for each in (other or node, node)}
        events.pop(self.position, None)
        if not events:
            which = "earlier" if backward else "later"
            return CursorStop(self.position, self.position, as_remark(f"no {which} event of #{node}"))
        position = max(events) if backward else min(events)
        followed = self._is_chosen and self.selected
        stop = self._stop_at(position, by_command("to"), ran_backward=backward)
        self.selected = events[position]
        self._is_chosen = self.selected == followed
        return stop

    def until(self, text: str) -> LongWork[CursorStop]:
        """Run to the next event at a PLACE, as ``break`` takes it, or to an earlier stop; without PLACE, ``finish``.

        Raises GvizError if the recording has neither, or if the place can never be reached.
        """
        if not text:
            return self.travel(stepping.finish, "until")
        reached = yield from stop_search.until(self.timeline, self.breakpoints, self.position, text)
        return self._stop_after_run(self.position, *reached)

    def last_change(self, text: str) -> LongWork[CursorStop]:
        """Go back to the last change of a value or gradient."""
        why = as_remark(f"last change of {clipped(text, 30)}")
        return self.seek((yield from self.asker.change(text, self.position)), why)

    def first_change(self, text: str) -> LongWork[CursorStop]:
        """Go to the first change of a value or gradient."""
        why = as_remark(f"first change of {clipped(text, 30)}")
        return self.seek((yield from self.asker.change(text, self.position, first=True)), why)

    def _node_here(self) -> int:
        return self._node_of_event(self.position)

    def _node_of_event(self, n: int) -> int:
        """Return the node that acts in an event; 0 if there is none, or if its graph is an earlier, freed one.

        At the end of a backward pass it is the loss. So it is at the end of a recording, unless a node is made there.
        Where a call failed, it is the first of its inputs.
        """
        moment = self.timeline.at(n)
        if isinstance(moment.event, Failed) and not moment.actor:
            return first_input(self.timeline, n)
        if isinstance(moment.event, BackwardFinished) and not moment.event.error:
            return root_of_pass(self.timeline, moment.event.pass_nr)
        if n == len(self.timeline) and not self.timeline.growing and isinstance(moment.event, AFTERMATH):
            ended = last_pass(self.timeline, n)
            loss = self._node_of_event(ended) if ended and ended < n else 0
            if loss in self.timeline.nodes.of(self.timeline.iteration_at(n)):
                return loss
        if isinstance(moment.event, NodeFreed) and moment.actor in self.timeline.nodes:
            in_sight = self.timeline.nodes.of(self.timeline.iteration_at(n))
            return moment.actor if moment.actor in in_sight else 0
        return moment.actor

    def _stop_at(
        self, position: int, reason: Reason, *, ran_backward: bool = False, by_program: bool = False
    ) -> CursorStop:
        start, self.position = self.position, position
        before = self.selected
        if not (self._is_chosen and self._keeps_selection()):
            self.selected = self._node_here() or self._node_nearby(start)
        self._is_chosen = self._is_chosen and self.selected == before
        self._note_module_call()
        why = self._reason(position, start, reason, ran_backward=ran_backward)
        cut_short = self.growing and position == len(self.timeline) and not by_program
        return CursorStop(position, start, LIVE_END if cut_short and why.is_command(*_FAR) else why)

    def _keeps_selection(self) -> bool:
        """Return whether the moment is about no node that is more interesting than one that the user has selected.

        It is the end of a pass or of the recording, or an event without a node. The selected node must be in the graph.
        """
        timeline, n = self.timeline, self.position
        event = timeline.event(n) if n else None
        is_end = n == len(timeline) and not timeline.growing and isinstance(event, AFTERMATH)
        ends_pass = isinstance(event, BackwardFinished) and not event.error
        return (ends_pass or is_end or not self._node_here()) and self._is_in_sight(self.selected)

    def _is_in_sight(self, node: int) -> bool:
        """Return whether the graph of this moment's iteration has a node."""
        timeline, iteration = self.timeline, self.timeline.iteration_at(self.position)
        born_here = node in timeline.nodes and timeline.info(node).iteration == iteration.index
        return born_here or node in (timeline.nodes.of(iteration) or (node,))

    def _note_module_call(self) -> None:
        """Keep the call stack of a module call that begins here, unless the program was paused here."""
        known = self.paused_stacks.get(self.position)
        if known is None or not known.is_pause:
            frames = known.frames if known is not None else call_frames(self.timeline, self.position)
            if frames:
                self.paused_stacks[self.position] = PausedStack(frames, self.selected, is_pause=False)

    def _node_nearby(self, start: int) -> int:
        """Return the node to select at an event without one: after one step the same as before, else the last active.

        So a moment looks the same from wherever a jump came, and a step keeps the selection.
        """
        timeline, iteration = self.timeline, self.timeline.iteration_at(self.position)
        nodes = timeline.nodes.of(iteration) or (self.selected,)
        is_here = self._is_in_sight(self.selected)
        if is_here and abs(self.position - start) <= 1:
            return self.selected
        before = range(self.position, max(iteration.start, self.position - SEARCHED) - 1, -1)
        concerned = next((node for n in before if (node := self._node_of_event(n))), 0)
        return concerned or (self.selected if is_here else nodes[0])

    def _reason(self, position: int, start: int, reason: Reason, *, ran_backward: bool) -> Reason:
        """Return the reason to show. Ends, errors and marks take precedence over the name of the command."""
        if ran_backward and position == start:
            return START
        if reason.takes_precedence:
            return reason
        if position == 0:
            return START if len(self.timeline) or self.growing else END
        event, at_end = self.timeline.event(position), position == len(self.timeline)
        if position in self.timeline.errors and not (at_end and position == start):
            return ERROR
        if at_end and (not self.growing or position == start):
            return LIVE_END if self.growing else END
        if isinstance(event, Marked):
            return Reason("mark", f"mark {shown(event.name)}")
        error_index = self.timeline.error_index
        if reason.is_command("continue") and position == error_index.first_bad():
            return replace(FIRST_BAD[error_index.kind_of_first_bad()], thread=reason.thread)
        return reason


def _edge(cursor: Cursor, which: int) -> CursorStop:
    """Select the first node of the tape (0), or the last (-1)."""
    nodes = cursor.timeline.nodes
    return cursor.select(int(nodes[which]) if len(nodes) else cursor.selected)


Selection = Callable[[Cursor, Any], CursorStop | LongWork[CursorStop]]
"""Selects a node, by an argument that depends on the way."""

SELECTIONS: Mapping[str, Selection] = {
    "neighbour": Cursor.neighbour,
    "edge": _edge,
    "relative": Cursor.relative,
    "again": lambda cursor, backward: cursor.find_next(backward=backward),
}
"""How keys select another node; the time does not change."""
