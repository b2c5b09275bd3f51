"""Keys that must not wait for the bindings, because the next keys may already be on their way."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual import events

from gviz.tui.widgets.prompt import Prompt

Taking = Callable[[events.Key], None]
"""What takes the key that was asked for, whichever it is."""


class KeysAhead:
    """Takes keys in the order in which they were typed: into an open prompt, as an answer, or to open a prompt."""

    def __init__(self) -> None:
        self._awaiting: Taking | None = None
        self.openers: Mapping[str, Callable[[], None]] = {}
        """What asks for more keys, by its own key, and so acts at once."""

    def await_key(self, taking: Taking) -> None:
        """Let the next key be an answer and no command."""
        self._awaiting = taking

    def take(self, event: events.Key, prompt: Prompt) -> bool:
        """Take a key, if it must not wait; whether it was taken."""
        if prompt.display:
            return _typed(event, prompt)
        if self._awaiting is not None:
            awaiting, self._awaiting = self._awaiting, None
            awaiting(event)
            return True
        opener = self.openers.get(event.key) if event.is_printable else None
        if opener is not None:
            opener()
        return opener is not None


def _typed(event: events.Key, prompt: Prompt) -> bool:
    """A key that was sent before the prompt had the focus belongs to the prompt."""
    if event.character is not None and event.is_printable:
        prompt.insert(event.character)
        return True
    return prompt.early(event.key)
