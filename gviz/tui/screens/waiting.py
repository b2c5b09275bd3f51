"""The main screen over what a program has done that waits for it to be left, in ``gviz.breakpoint()``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gviz.tui.arrival import END, Arrival
from gviz.tui.keymaps import Keys
from gviz.tui.language.command import Command
from gviz.tui.leaving import ACTS, ANSWERS, QUESTION, Leaving
from gviz.tui.screens.debugger import DebuggerScreen


class WaitingScreen(DebuggerScreen):
    """Status, timeline, panels and keys over a recording; who leaves is asked what becomes of the program."""

    def perform(self, command: Command) -> None:
        """Carry out a command; at the end ``continue`` lets the program go on, as in pdb."""
        at_end = self.cursor.position == len(self.timeline)
        if command.name in ACTS:
            self._leave(ACTS[command.name])
        elif command.name == "continue" and at_end:
            self._leave("go on")
        else:
            super().perform(command)

    def show_arrival(self, stop: Arrival) -> None:
        """Let every panel follow the cursor."""
        super().show_arrival(stop)
        if stop.reason is END and stop.notice:
            self.say(f"{END.words}: c lets the program go on, q asks")

    def action_quit(self) -> None:
        """Ask what is to become of the program."""
        self.prompting.choose(QUESTION, {key: partial(self._leave, how) for key, how in ANSWERS.items()})

    def leave_at_once(self) -> None:
        """Stop the program without a question."""
        self._leave("stop")

    def openers(self, keys: Keys) -> dict[str, Callable[[], None]]:
        """What asks for more keys beside the prompt: to leave the program."""
        return dict.fromkeys(keys["act.quit"], self.action_quit)

    def _leave(self, leaving: Leaving) -> None:
        self.leaving = leaving
        self.app.exit()
