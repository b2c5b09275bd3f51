"""The prompt: which keys open it and with which text, what a typed line does, pasted text, and keys typed ahead.

A key that reads more keys (``:``, ``/``, ``m``, ``'``) must act before the next key is looked up, because both may
arrive in one read. So such keys do not wait for the bindings: `Prompts.take_key` sees every key first.

    prompt open                  the key is text of the prompt, even before the prompt has the focus
    a question or letter waits   the key is the answer
    the key opens something      it opens
    else                         the bindings handle it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from textual import events

from gviz.tui.commands.export_copy import usual_name
from gviz.tui.keymaps import Keys
from gviz.tui.language.command import Command
from gviz.tui.language.completion import completions
from gviz.tui.screens.panel_stack import Panels
from gviz.tui.screens.session_screen import SessionScreen
from gviz.tui.session import Session
from gviz.tui.widgets.panel_messages import Typed
from gviz.tui.widgets.prompt import Prompt

Opening = tuple[str, str, str]
"""The sign of the prompt, the text in it, and a text after it that typing replaces."""

_OPENERS = {"act.command": "command", "find.ask": "find", "live.answer": "answer"}
"""Acts that read more keys, so they open the prompt at once."""

_LETTERS = {"time.mark": "m", "time.goto-mark": "go"}
"""Acts that read the letter of a bookmark, each with its purpose."""


class Prompts:
    """Input that is typed rather than pressed; the screen runs it."""

    def __init__(self, screen: SessionScreen, panels: Panels) -> None:
        self._screen, self._panels = screen, panels
        self._awaiting: Callable[[events.Key], None] | None = None
        self._openers: Mapping[str, Callable[[], None]] = {}

    def ask(self, what: str) -> None:
        """Open the prompt for one of `PROMPTS`."""
        self.open(*PROMPTS[what](self._screen.session))

    def open(self, sign: str, text: str = "", suggestion: str = "") -> None:
        """Open the command line or the search, with a text and another after it that typing replaces."""
        screen = self._screen
        screen.pause()
        screen.show_remark("")
        if screen.too_small:
            return
        prompt = screen.query_one(Prompt)
        prompt.completer.complete = partial(completions, screen.session) if sign != "/" else lambda _: []
        prompt.ask(sign, text, suggestion)
        self._panels.show_rows()

    def typed(self, message: Typed) -> None:
        """Run a typed command or search; the prompt has closed."""
        screen, text = self._screen, message.text.strip()
        self._panels.show_rows()
        self._panels.focus()
        if message.sign == "/" and text:
            screen.run_command(Command("find", 1, text))
        elif message.sign == ">" or (message.sign == ":" and text):
            screen.run_line(text)

    def choose(self, question: str, answers: Mapping[str, Callable[[], None]]) -> None:
        """Let the next key be an answer; any other key changes nothing."""
        self._awaiting = partial(self._answered, answers)
        self._screen.show_remark(question)

    def _answered(self, answers: Mapping[str, Callable[[], None]], event: events.Key) -> None:
        self._screen.show_remark("")
        if (act := answers.get(event.character or "")) is not None:
            act()

    def await_letter(self, purpose: str) -> None:
        """Let the next key name a bookmark: to set it (``m``), or to go there."""
        self._awaiting = partial(self._named, purpose)
        self._screen.show_remark(
            "mark: a letter names this position" if purpose == "m" else "go to mark: its letter, ' for the last jump"
        )

    def _named(self, purpose: str, event: events.Key) -> None:
        self._screen.show_remark("")
        if event.character and event.is_printable:
            name = event.character
            self._screen.run_command(Command("mark", 1, name) if purpose == "m" else Command("goto", 1, f"'{name}"))

    def follow(self, keys: Keys, more: Mapping[str, Callable[[], None]]) -> None:
        """Let the keys of a keymap that read more keys act at once, and some `more` keys, too."""
        asking = {key: partial(self.ask, what) for id, what in _OPENERS.items() for key in keys[id]}
        naming = {key: partial(self.await_letter, purpose) for id, purpose in _LETTERS.items() for key in keys[id]}
        self._openers = {**more, **asking, **naming}

    def take_key(self, event: events.Key) -> None:
        """Stop a key that belongs to an open prompt or a question, or that opens one."""
        if self._takes(event):
            event.stop()
            event.prevent_default()

    def take_paste(self, event: events.Paste) -> None:
        """Open the command line with the first line of a text that was pasted while a panel had the focus.

        It runs only at Enter. Lines after the first are dropped: a paste must not run commands.
        """
        text = next((row.strip() for row in event.text.splitlines() if row.strip()), "").removeprefix(":")
        if text:
            self.open(":", text)

    def _takes(self, event: events.Key) -> bool:
        prompt = self._screen.query_one(Prompt)
        if prompt.display:
            if event.character is None or not event.is_printable:
                return prompt.early(event.key)
            prompt.insert(event.character)
            return True
        if self._awaiting is not None:
            awaiting, self._awaiting = self._awaiting, None
            awaiting(event)
            return True
        opener = self._openers.get(event.key) if event.is_printable else None
        if opener is not None:
            opener()
        return opener is not None


def condition_of(session: Session, number: int) -> Opening:
    """Return the condition of a breakpoint, to be edited.

    Raises GvizError for a call in the program, which has none.
    """
    test = session.cursor.breakpoints.own_by_number(str(number)).stop.condition
    return ":", f"condition {number} {test.text if test is not None else ''}", ""


def _condition_here(session: Session) -> Opening:
    """Return the condition of the breakpoint at the selected node, or the beginning of a new breakpoint."""
    here = session.cursor.breakpoints.of_node(session.cursor.selected)
    return condition_of(session, here[0].number) if here else (":", "break ", session.subject)


PROMPTS: Mapping[str, Callable[[Session], Opening]] = {
    "command": lambda _: (":", "", ""),
    "find": lambda _: ("/", "", ""),
    "answer": lambda _: (":", "type ", ""),
    "print": lambda session: (":", "print ", session.subject),
    "watch": lambda session: (":", "watch ", session.subject),
    "break": _condition_here,
    "export": lambda session: (":", f"export {usual_name(session.title, session.cursor.position)}", ""),
}
"""What keys ask for. The selected node is offered as an expression, and a usual name for a picture."""
