"""What is laid over the panels: texts, lists to choose from, one node, two graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from textual.app import App

from gviz.explain.names import label
from gviz.trace.moment import Moment
from gviz.tui.arrival import Arrival
from gviz.tui.commands.compare import Compared
from gviz.tui.commands.inspection import wrapped_lines
from gviz.tui.drawing.help import help_page
from gviz.tui.drawing.pass_list import pass_rows
from gviz.tui.lines import Line, line
from gviz.tui.screens.chooser import ChooserScreen
from gviz.tui.screens.inspector import InspectorScreen
from gviz.tui.screens.menu import MenuScreen
from gviz.tui.screens.panels import Panels
from gviz.tui.screens.prompting import Prompting
from gviz.tui.screens.sheet import Draw, Over, QuestionScreen, SheetScreen
from gviz.tui.screens.toggling import Stopping, toggle_node


class Covered(Stopping, Protocol):
    """What a page needs of the screen below it."""

    panels: Panels
    prompting: Prompting

    @property
    def app(self) -> App[object]:
        """Where screens lie over each other."""

    @property
    def headroom(self) -> int:
        """Rows at the top that stay in sight."""

    @property
    def moment(self) -> Moment | None:
        """The moment that the panels show."""

    def run_line(self, text: str) -> None:
        """Carry out a line of the command language."""

    def action_seek(self, position: int) -> None:
        """Go to an event."""

    def show_arrival(self, stop: Arrival) -> None:
        """Let everything follow the cursor."""


def show_sheet(screen: Covered, title: str, draw: Draw) -> None:
    """A text, until a key."""
    session = screen.session
    closing = {key for id in ("act.help", "look.explain", "look.happened", "act.quit") for key in session.keys[id]}
    _lay_over(screen, lambda: SheetScreen(title, draw, session.glyphs, closing, screen.prompting.take_key))


def show_compared(screen: Covered, look: Compared) -> None:
    """Two graphs aligned; a row of them leads to its event and node."""
    from gviz.tui.screens.compared import ComparedScreen

    def go(place: tuple[int, int] | None) -> None:
        if place is not None:
            screen.action_seek(place[0])
            screen.show_arrival(screen.session.cursor.select(place[1]))

    if screen.moment is not None and not screen.panels.too_small:
        screen.app.push_screen(ComparedScreen(screen.session, look, screen.moment), go)


def ask(screen: Covered, question: str, lines: tuple[str, ...]) -> None:
    """Show some lines and a question; y goes on, any other key that does not scroll them does not."""

    def draw(width: int) -> list[Line]:
        return [*wrapped_lines(lines, width), (), line((f"y: {question}   any other key: no", "key"))]

    def answered(yes: bool | None) -> None:
        screen.run_line("y" if yes else "n")

    screen.app.push_screen(QuestionScreen(question, draw, screen.session.glyphs), answered)


def inspect(screen: Covered) -> None:
    """Everything about the selected node."""
    moment = screen.moment
    if moment is not None:
        _lay_over(screen, lambda: InspectorScreen(screen.session, moment, screen.session.cursor.selected))


def menu(screen: Covered) -> None:
    """What can be done with the selected node."""
    session = screen.session

    def chosen(text: str | None) -> None:
        if text == "break":
            toggle_node(screen)
        elif text:
            screen.run_line(text)

    node = session.cursor.selected
    if node and not isinstance(screen.app.screen, MenuScreen):  # a second press was faster than the first menu
        screen.app.push_screen(MenuScreen(node, label(session.timeline, node), session.glyphs), chosen)


def passes(screen: Covered) -> None:
    """Choose an iteration, or a pass of one, and go there."""
    session = screen.session

    def go(event: int | None) -> None:
        if event is not None:
            screen.action_seek(event)

    rows = pass_rows(session.timeline, session.cursor.position)
    screen.app.push_screen(ChooserScreen("Iterations and passes", rows, session.glyphs), go)


def _lay_over(screen: Covered, page: Callable[[], Over]) -> None:
    """Open a screen over this one, unless the terminal is too small to show either."""
    if not screen.panels.too_small:
        over = page()
        over.headroom = screen.headroom
        screen.app.push_screen(over)


PAGES: Mapping[str, Callable[[Covered], None]] = {
    "help": lambda screen: show_sheet(screen, "Help", partial(help_page, screen.session.keys)),
    "inspect": inspect,
    "menu": menu,
    "passes": passes,
}
"""What a key opens."""
