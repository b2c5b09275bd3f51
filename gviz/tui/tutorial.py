"""The guided lesson: pages that wait for the right key, for both front ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gviz.trace.graph_state import PhaseKind
from gviz.tui.session import Session


@dataclass(frozen=True, slots=True)
class UserAction:
    """What the user did: the name of a command (empty for a key without one), and the session afterwards."""

    command: str
    session: Session


@dataclass(frozen=True, slots=True)
class Page:
    """A text, the key (in line mode the line) that it waits for, and the test whether the user did it.

    A page about a `phase` first leads there, wherever other keys have led.
    """

    text: str
    key: str
    typed: str
    is_complete: Callable[[UserAction], bool]
    phase: PhaseKind | None = None


def _command(name: str) -> Callable[[UserAction], bool]:
    return lambda seen: seen.command == name


PAGES = (
    Page("A program ran and was recorded. You are at the first event. Go forward one node:",
         "n", "n", _command("next")),
    Page("The same letter as a capital goes back. Nothing runs again: you only look at another time.",
         "N", "N", _command("reverse-next")),
    Page("The forward pass makes the graph. Now to the next phase, where backward() begins:",
         "}", "phase", lambda seen: _phase(seen.session) == "backward", "forward"),
    Page("This is the graph it has made, from x and y down to z. Each node comes from a line; to see that of z:",
         "1", "list", lambda seen: seen.command in ("source", "list")),
    Page("There x is used twice, in x * x. 1 shows the source, 0 the graph; 9 the same nodes as a list, the tape:",
         "9", "tape", _command("tape")),
    Page("A row is a node, its value and its gradient; :help words explains every word. Back to the graph:",
         "0", "graph", _command("graph")),
    Page("Now gradients flow from z to x and y. Node by node: its rule runs and sends them on.",
         "n", "n", _command("next"), "backward"),
    Page("A smaller step is one event: a rule begins, one gradient is added, one buffer freed.",
         "s", "s", _command("step")),
    Page("A breakpoint at the selected node stops where it is made, and where its backward rule begins.",
         "b", "b", lambda seen: bool(seen.session.cursor.breakpoints.listed)),
    Page("To the first event, without running anything:",
         "<", "goto start", lambda seen: seen.session.cursor.position == 0),
    Page("Run to the next stop: your breakpoint, an error, the first nan or inf, a mark, or the end. C runs back.",
         "c", "c", _command("continue")),
    Page("Commands are typed after a colon; Tab completes them. Watch the gradient of x at every stop:",
         ":watch x.grad (Enter)", "watch x.grad", lambda seen: "x.grad" in seen.session.cursor.asker.watched),
    Page("To the end: x.grad is complete there.",
         ">", "goto end", lambda seen: seen.session.cursor.position == len(seen.session.timeline)),
    Page("Nodes are selected without moving in time: j the next, k the one before, G the last. Look at z:",
         "G", "select z", lambda seen: seen.session.cursor.selected == seen.session.timeline.nodes[-1]),
    Page("And g the first. Look at x, where two contributions were added:",
         "g", "select x", lambda seen: seen.session.cursor.selected == seen.session.timeline.nodes[0]),
    Page("Why is x.grad 8? Every number has a cause, with its line and its event. (The next key leaves that page.)",
         "e", "e", _command("explain")),
    Page("And where did that number come from? last goes back to the event that made it.",
         ":last x.grad (Enter)", "last x.grad", _command("last")),
)  # fmt: skip

_BACK_TO_BACKWARD = Page(
    "You are past what comes next. Back to where the backward pass begins:",
    "{",
    "reverse-phase",
    _command("reverse-phase"),
)
_TO_BEGINNING = Page("You are past what comes next. Back to the first event:", "<", "goto start", _command("goto"))
_TO_BACKWARD = Page("What comes next is in the backward pass. To where it begins:", "}", "phase", _command("phase"))

_PROMPT_OPEN = "A prompt is open in the last row, and takes what you type, {key} too. To leave it:"
_PAGE_OPEN = "A page over the panels takes the keys, {key} too. To close it:"

_END = "That is all you need. gviz run YOUR_SCRIPT.py does this with your program; gviz demo --list: more lessons."


class Tutor:
    """The position in the lesson."""

    def __init__(self) -> None:
        self._at = 0
        self._detour: Page | None = None

    @property
    def page(self) -> Page | None:
        """The page that waits, or one that leads to its phase; None after the last page."""
        return self._detour or (PAGES[self._at] if self._at < len(PAGES) else None)

    def notice(self, seen: UserAction) -> bool:
        """Turn the page if it waited for this; return whether another page is open now."""
        before = self.page
        if self._detour is None and before is not None:
            self._at += before.is_complete(seen)
        self._detour = _detour_to(PAGES[self._at], seen.session) if self._at < len(PAGES) else None
        return self.page is not before

    def text(self, *, plain: bool = False) -> str:
        """Return the current text, with the key that it waits for; on the screen the key has a row of its own."""
        return _page_text(self._at, self.page, plain=plain)

    def detour_text(self, *, typing: bool) -> str:
        """Return the text while other keys have opened a prompt or another screen."""
        if self.page is None:
            return self.text()
        return _page_text(self._at, _detour_page(_PROMPT_OPEN if typing else _PAGE_OPEN, self.expected()))

    def expected(self, *, plain: bool = False) -> str:
        """Return the key or line that the page waits for."""
        return _expected(self.page, plain=plain) if self.page is not None else ""


def every_text() -> Iterator[str]:
    """Yield every text that the screen may show."""
    detours = [_detour_page(text, page.key) for text in (_PROMPT_OPEN, _PAGE_OPEN) for page in PAGES]
    for page in (*PAGES, _TO_BEGINNING, _TO_BACKWARD, _BACK_TO_BACKWARD, *detours, None):
        yield _page_text(len(PAGES) - 1, page)


def _detour_page(text: str, key: str) -> Page:
    return Page(text.format(key=key), "Esc", "", _command(""))


def _page_text(at: int, page: Page | None, *, plain: bool = False) -> str:
    if page is None:
        return f"{_END} {'help' if plain else '?'} lists everything, {'quit' if plain else 'q'} leaves."
    press = "  Type" if plain else "\nPress"
    return f"{at + 1}/{len(PAGES)}  {page.text}{press}  {_expected(page, plain=plain)}"


def _expected(page: Page, *, plain: bool) -> str:
    return page.typed if plain else page.key


def _detour_to(page: Page, session: Session) -> Page | None:
    """Return the page that leads to the phase of another page; None if the session is in that phase."""
    here = _phase(session)
    if page.phase is None or here == page.phase:
        return None
    if here == "forward":
        return _TO_BACKWARD
    return _BACK_TO_BACKWARD if page.phase == "backward" and session.cursor.position else _TO_BEGINNING


def _phase(session: Session) -> PhaseKind | None:
    """Return the phase that has events left; before the first event it is the forward pass."""
    at = session.cursor.position
    phase = session.timeline.phase_at(max(at, 1))
    return phase.kind if phase is not None and (at < phase.end or phase.kind == "forward") else None
