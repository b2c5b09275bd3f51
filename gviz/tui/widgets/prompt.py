"""The prompt that replaces the row of keys while the user types a command or a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.suggester import Suggester
from textual.widgets import Input, Label
from textual.widgets.input import Selection

from gviz.tui.widgets.panel_messages import Typed

_AT_AN_END = {":": "quit", ">": "end"}
"""The meaning of the end of the input, by the sign of the prompt."""


class Completer(Suggester):
    """Suggests completions of a command."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self.complete: Callable[[str], list[str]] = lambda _: []

    async def get_suggestion(self, value: str) -> str | None:
        """Return the likeliest whole line."""
        return next(iter(self.complete(value)), None) if value else None


class Prompt(Horizontal):
    """One line of input after a sign, with a history, and Tab completion of command words."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", show=False),
        Binding("up", "earlier(1)", show=False),
        Binding("down", "earlier(-1)", show=False),
        Binding("tab", "complete", show=False),  # no priority: it must wait for the letters before it
        Binding("ctrl+d", "end", show=False, priority=True),  # before Input, which only deletes a letter
    ]

    def __init__(self) -> None:
        super().__init__(id="prompt")
        self._history: list[str] = []
        self._at = 0
        self._unfinished = ""
        self._sign = ":"
        self._tried: list[str] = []
        self.completer = Completer()
        self.opened_with = ""
        """The sign and the text that it was opened with."""

    def compose(self) -> ComposeResult:
        """Yield the sign and the line."""
        yield Label(":", id="sign", markup=False)
        yield Input(compact=True, select_on_focus=False, suggester=self.completer)
        yield Label("Enter: run · Esc: cancel ", id="ways", markup=False)

    def ask(self, sign: str, text: str = "", suggestion: str = "") -> None:
        """Open the prompt with some text already typed, and some more that the next letter replaces."""
        self._tried = []
        self._sign, self._at = sign, 0
        self.opened_with = sign + text + suggestion
        self.query_one("#sign", Label).update(sign)
        entry = self.query_one(Input)
        entry.value = text + suggestion
        entry.selection = Selection(len(text), len(entry.value))
        self.display = True
        self.screen.set_focus(entry)  # at once: the next keys may already be on their way

    @property
    def line(self) -> str:
        """The text, after its sign."""
        return self._sign + self.query_one(Input).value

    def insert(self, text: str) -> None:
        """Type a key that went to another widget."""
        entry = self.query_one(Input)
        entry.replace(text, *sorted(entry.selection))

    def early(self, key: str) -> bool:
        """Handle a key that went to another widget; return whether the prompt uses it."""
        entry = self.query_one(Input)
        acts: dict[str, Callable[[], object]] = {
            "tab": self.action_complete,
            "escape": self.action_close,
            "ctrl+d": self.action_end,
            "backspace": entry.action_delete_left,
            "enter": lambda: self._enter(entry.value),
        }
        if key in acts:
            acts[key]()
        return key in acts

    def action_close(self) -> None:
        """Leave the prompt without doing anything."""
        self.display = False
        self.post_message(Typed("", ""))

    def action_end(self) -> None:
        """Do what Ctrl+D does at any prompt: delete the next letter, or end an empty line."""
        entry = self.query_one(Input)
        if entry.value:
            entry.action_delete_right()
        elif self._sign in _AT_AN_END:
            self._enter(_AT_AN_END[self._sign])
        else:
            self.action_close()

    def action_complete(self) -> None:
        """Insert the next completion, after the last one the typed text. The only completion ends with a blank."""
        entry = self.query_one(Input)
        if entry.value in self._tried:
            completion = self._tried[(self._tried.index(entry.value) + 1) % len(self._tried)]
        else:
            known = self.completer.complete(entry.value)
            self._tried = [*known, entry.value] if len(known) > 1 else []
            completion = (known or [entry.value])[0]
            if len(known) == 1 and " " not in completion:
                completion += " "
        entry.value = completion
        entry.cursor_position = len(completion)

    def action_earlier(self, steps: int) -> None:
        """Move through the history, and back to the unfinished line."""
        entry = self.query_one(Input)
        if not self._at:
            self._unfinished = entry.value
        self._at = max(0, min(self._at + steps, len(self._history)))
        entry.value = self._history[-self._at] if self._at else self._unfinished
        entry.cursor_position = len(entry.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter the line and close."""
        event.stop()
        self._enter(event.value)

    def _enter(self, text: str) -> None:
        if text.strip():
            self._history.append(text)
        self.display = False
        self.post_message(Typed(self._sign, text))
