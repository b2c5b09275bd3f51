"""The keys and clicks that change what is looked at, and where it stops: breakpoints, frames, modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from textual import events
from textual.reactive import reactive
from textual.screen import Screen
from textual.scroll_view import ScrollView

from gviz.explain.names import label
from gviz.render.boxes.fold import ALL, Filter
from gviz.trace.moment import Moment
from gviz.tui.breakpoints import Breakpoint
from gviz.tui.commands import folding
from gviz.tui.commands.comparing import Compared
from gviz.tui.drawing.keys import help_page
from gviz.tui.drawing.passes import pass_rows
from gviz.tui.language.command import Command
from gviz.tui.language.parsing import spec_of
from gviz.tui.marks import marked_lines
from gviz.tui.messages import LinePointed, RowActed
from gviz.tui.screens.chooser import ChooserScreen
from gviz.tui.screens.cursor_keys import CursorKeys
from gviz.tui.screens.inspector import InspectorScreen
from gviz.tui.screens.menu import MenuScreen
from gviz.tui.screens.panels import Panels
from gviz.tui.screens.sheet import Draw, SheetScreen
from gviz.tui.session import Session
from gviz.tui.widgets.tape import Tape
from gviz.where import stop

if TYPE_CHECKING:
    from gviz.whatif.beside import Beside

RIGHT = 3
"""The right mouse button."""


class LookKeys(CursorKeys):
    """What a key does to the view; the time does not move."""

    selected: reactive[int] = reactive(0, repaint=False)
    frame: reactive[int] = reactive(0, repaint=False)
    breaks: reactive[int] = reactive(0, repaint=False)
    wanted: reactive[Filter] = reactive(ALL, repaint=False)
    moment: reactive[Moment | None] = reactive(None, repaint=False)
    full: reactive[bool] = reactive(False, repaint=False)
    beside: reactive[Beside | None] = reactive(None, repaint=False)
    session: Session
    panels: Panels

    def run_line(self, text: str) -> None:
        """Carry out a line of the command language."""
        raise NotImplementedError

    def action_prompt(self, sign: str, text: str = "", offered: str = "") -> None:
        """Open the prompt with a text in it, and one behind it that typing replaces."""
        raise NotImplementedError

    def show_frame(self) -> None:
        """Let the source follow the frame that is looked at."""
        raise NotImplementedError

    def take_key(self, event: events.Key) -> None:
        """Take a key that must not wait for the bindings."""
        raise NotImplementedError

    def say(self, remark: str) -> None:
        """Say something in the bottom row."""
        raise NotImplementedError

    def action_caller(self, steps: int) -> None:
        """Look at a caller further up or down: in the source, or in the stack if that is in front."""
        command = Command("up" if steps > 0 else "down")
        if self.query_one("#stack").display:
            self._attempt(lambda: self._move_to_caller(command))
        else:
            self.run_command(command)

    def _move_to_caller(self, command: Command) -> None:
        spec_of(command).run(self.session, command)
        self.show_frame()

    def on_row_acted(self, message: RowActed) -> None:
        """Do what a row of a list was asked to do; what its kind cannot do does nothing."""
        acts: dict[tuple[str, str], Callable[[int | str], None]] = {
            ("watch", "go"): lambda key: self.run_command(Command("last", 1, self._watched(key))),
            ("watch", "edit"): lambda key: self.action_prompt(":", f"rewatch {key} {self._watched(key)}"),
            ("watch", "remove"): lambda key: self.run_command(Command("unwatch", 1, str(key))),
            ("break", "go"): self._to_hit,
            ("break", "edit"): lambda key: self.action_prompt(":", f"condition {key} {self._condition(key)}"),
            ("break", "remove"): lambda key: self.run_command(Command("delete", 1, str(key))),
            ("break", "switch"): self._switch,
            ("frame", "go"): self._look_at_frame,
            ("module", "go"): self._fold,
            ("module", "switch"): self._fold,
        }
        act = acts.get((message.kind, message.act))
        if act is not None:
            act(message.key)

    def _watched(self, key: int | str) -> str:
        return self.cursor.asker.watched[int(key) - 1]

    def _breakpoint(self, key: int | str) -> Breakpoint:
        (one,) = self.cursor.breakpoints.numbered(str(key))
        return one

    def _condition(self, key: int | str) -> str:
        test = self._breakpoint(key).stop.condition
        return test.text if test is not None else ""

    def _to_hit(self, key: int | str) -> None:
        """To where a breakpoint stops next, or else stops first."""
        one = self._breakpoint(key)
        hit = next(one.after(self.cursor.position), None) or next(one.after(0), None)
        if hit is None:
            self.say(f"breakpoint {key} never stops in this recording")
        else:
            self.action_seek(hit.n)

    def _switch(self, key: int | str) -> None:
        self.run_command(Command("disable" if self._breakpoint(key).enabled else "enable", 1, str(key)))

    def _look_at_frame(self, key: int | str) -> None:
        self.session.look_from(int(key))
        self.show_frame()

    def _fold(self, key: int | str) -> None:
        self.run_command(Command("open" if key in self.wanted.closed else "close", 1, str(key)))

    def action_fold(self, name: str) -> None:
        """Open or close the module of the selected node."""
        self.run_command(Command(name))

    def action_focus_part(self) -> None:
        """Only what the selected node was made from, only what is near it, all."""
        self._attempt(self._next_focus)

    def _next_focus(self) -> None:
        said = folding.next_focus(self.session)
        self.wanted = self.session.folds.wanted(self.timeline.iteration_at(self.cursor.position))
        self.say(said.lines[0])

    def action_break(self) -> None:
        """Set a breakpoint at the selected node, or take it away."""
        if self.selected:
            self._toggle(f"#{self.selected}")

    def action_passes(self) -> None:
        """Choose an iteration, or a pass of one, and go there."""
        rows = pass_rows(self.timeline, self.cursor.position)
        chooser = ChooserScreen("Iterations and passes", rows, self.session.glyphs)
        self.app.push_screen(chooser, self._go_to_chosen)

    def _go_to_chosen(self, event: int | None) -> None:
        if event is not None:
            self.action_seek(event)

    def on_line_pointed(self, message: LinePointed) -> None:
        """Set a breakpoint at a line, or take away those that it shows."""
        breakpoints = self.cursor.breakpoints
        there = marked_lines(breakpoints, message.path).get(message.line)
        if there:
            breakpoints.delete(there)
            self.breaks += 1
            self.say(f"no breakpoint at line {message.line}")
        else:
            self._toggle(f"{PurePath(message.path).name}:{message.line}")

    def _toggle(self, place: str) -> None:
        made = self.cursor.breakpoints.toggle(stop(place))
        self.breaks += 1
        never = "" if made is None or made.hits.can_hit() else ": nothing was made there, so it never stops"
        self.say(f"breakpoint {made.number} at {place}{never}" if made else f"no breakpoint at {place} any more")

    def action_explain(self) -> None:
        """Why the selected node is as it is."""
        self.run_command(Command("explain"))

    def action_happened(self) -> None:
        """What happened here, in full."""
        self.run_command(Command("event"))

    def action_copy_value(self) -> None:
        """Copy the value of the selected node."""
        self.run_command(Command("copy", 1, "value"))

    def action_copy_script(self) -> None:
        """Copy a script that makes the selected node again."""
        self.run_command(Command("copy", 1, "script"))

    def action_do(self, name: str) -> None:
        """Carry out a command that needs nothing but its name."""
        self.run_command(Command(name))

    def action_redraw(self) -> None:
        """Draw everything anew, where something else has written on the terminal."""
        self.app.refresh(layout=True)
        self.say("drawn anew")

    async def action_suspend(self) -> None:
        """Stop, until the shell says fg."""
        self.say("in the background: fg comes back")
        await self.run_action("app.suspend_process")

    def action_restart(self) -> None:
        """Run the program again, where there is one."""
        self.run_command(Command("restart"))

    def action_page(self, pages: int) -> None:
        """Scroll the focused panel by a page; in the tape select the node there."""
        panel = self.focused
        if isinstance(panel, Tape):
            panel.action_page(pages)
        elif isinstance(panel, ScrollView):
            (panel.scroll_page_up if pages < 0 else panel.scroll_page_down)(animate=False)

    def action_detail(self) -> None:
        """Numbers in full, or short."""
        self.full = not self.full

    def action_help(self) -> None:
        """All keys on one screen."""
        self.show_sheet("Help", partial(help_page, self.session.keys))

    def show_sheet(self, title: str, draw: Draw) -> None:
        """A text over the panels, until a key."""
        keys = self.session.keys
        closing = {key for id in ("act.help", "look.explain", "look.happened", "act.quit") for key in keys[id]}
        self._lay_over(lambda: SheetScreen(title, draw, self.session.glyphs, closing, self.take_key))

    def show_compared(self, look: Compared) -> None:
        """Two graphs aligned; a row of them leads to its event and node."""
        from gviz.tui.screens.compared import ComparedScreen

        moment = self.moment
        if moment is not None and not self.panels.too_small:
            self.app.push_screen(ComparedScreen(self.session, look, moment), self._go_to_row)

    def _go_to_row(self, place: tuple[int, int] | None) -> None:
        if place is not None:
            self.action_seek(place[0])
            self.show_arrival(self.cursor.select(place[1]))

    def action_inspect(self) -> None:
        """Everything about the selected node."""
        moment = self.moment
        if moment is not None:
            self._lay_over(lambda: InspectorScreen(self.session, moment, self.selected))

    def _lay_over(self, screen: Callable[[], Screen[None]]) -> None:
        """Open a screen over this one, unless the terminal is too small to show either."""
        if not self.panels.too_small:
            self.app.push_screen(screen())

    def action_menu(self) -> None:
        """What can be done with the selected node."""
        if self.selected:
            menu = MenuScreen(self.selected, label(self.timeline, self.selected), self.session.glyphs)
            self.app.push_screen(menu, self._chosen)

    def _chosen(self, text: str | None) -> None:
        if text == "break":
            self.action_break()
        elif text:
            self.run_line(text)

    def on_click(self, event: events.Click) -> None:
        """The right button opens the menu, after the click has selected what it points at."""
        if event.button == RIGHT and not self.panels.too_small:
            self.call_later(self.action_menu)
