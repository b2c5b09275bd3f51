"""The prompt, the keys that ask for more of them, and the keymap."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual import events
from textual.reactive import reactive

from gviz.tui.commands.export import usual_name
from gviz.tui.drawing.keys import offered
from gviz.tui.keymaps import Keys, first
from gviz.tui.language.command import Command
from gviz.tui.language.completing import completions
from gviz.tui.messages import Typed
from gviz.tui.screens.ahead import KeysAhead
from gviz.tui.screens.bindings import keymap
from gviz.tui.screens.look_keys import LookKeys
from gviz.tui.widgets.prompt import Prompt
from gviz.tui.widgets.rows import HappeningRow, KeysRow


class PromptKeys(LookKeys):
    """What is typed rather than pressed; the screen below carries it out."""

    remark: reactive[str] = reactive("", repaint=False)
    program: str
    ahead: KeysAhead

    def follow_keymap(self) -> None:
        """Let keys, bottom row and help be those of the keymap."""
        keys = self.session.keys
        self.app.set_keymap(keymap(keys))
        self.ahead.openers = self.openers(keys)
        row = self.query_one(KeysRow)
        row.offered = offered(keys)
        row.refresh()
        self.query_one(HappeningRow).more = first(keys, "look.happened")

    def openers(self, keys: Keys) -> dict[str, Callable[[], None]]:
        """What asks for more keys, by its key."""
        signs = (("act.command", ":"), ("find.ask", "/"))
        return {key: partial(self.action_prompt, sign) for id, sign in signs for key in keys[id]}

    def action_prompt(self, sign: str, text: str = "", offered: str = "") -> None:
        """Open the command line or the search, with a text and one behind it that typing replaces."""
        self._pause()
        self.remark = ""
        if self.panels.too_small:
            return
        self.query_one(KeysRow).display = False
        prompt = self.query_one(Prompt)
        prompt.completer.complete = partial(completions, self.session) if sign != "/" else lambda _: []
        prompt.ask(sign, text, offered)

    def action_prompt_about(self, text: str) -> None:
        """Ask for an expression; the selected node is offered as one."""
        self.action_prompt(":", text, self.session.subject)

    def action_edit_break(self) -> None:
        """Ask for the condition of the breakpoint at the selected node, or for another breakpoint."""
        here = self.cursor.breakpoints.of_node(self.selected)
        if here:
            self.action_prompt(":", f"condition {here[0].number} {self._condition(here[0].number)}")
        else:
            self.action_prompt(":", "break ", self.session.subject)

    def action_export(self) -> None:
        """Ask where to write a picture of this moment, with a name that would do."""
        self.action_prompt(":", f"export {usual_name(self.program, self.cursor.position)}")

    def action_await_letter(self, purpose: str) -> None:
        """The next key names a bookmark."""
        self.ahead.await_key(partial(self._named, purpose))
        self.say(
            "mark: a letter names this position" if purpose == "m" else "go to mark: its letter, ' for the last jump"
        )

    def _named(self, purpose: str, event: events.Key) -> None:
        self.remark = ""
        if event.character and event.is_printable:
            name = event.character
            self.run_command(Command("mark", 1, name) if purpose == "m" else Command("goto", 1, f"'{name}"))

    def on_key(self, event: events.Key) -> None:
        """Take keys that must not wait for the bindings."""
        self.take_key(event)

    def take_key(self, event: events.Key) -> None:
        """Stop a key that an open prompt wants, or that opens one."""
        if self.ahead.take(event, self.query_one(Prompt)):
            event.stop()
            event.prevent_default()

    def on_typed(self, message: Typed) -> None:
        """A command or a search was typed, or the prompt was left."""
        self.query_one(KeysRow).display = True
        self.panels.focus()
        text = message.text.strip()
        if message.sign == "/" and text:
            self.run_command(Command("find", 1, text))
        elif message.sign == ">" or (message.sign == ":" and text):
            self.run_line(text)
