"""Pages over the panels: the help and other texts, a question, the inspector, the menu, the list of iterations.

First come the screens, which return answers, then the functions that open them over a `SessionScreen`. The
comparison of two graphs, which is larger, has a file of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gviz.explain.display_names import label
from gviz.trace.timeline import Moment
from gviz.tui.commands.inspection import wrapped_lines
from gviz.tui.drawing.help import help_page
from gviz.tui.drawing.iterations_and_passes import pass_rows
from gviz.tui.glyphs import Glyphs
from gviz.tui.language.command import Choice, Jump
from gviz.tui.screens.key_and_row_actions import toggle_node
from gviz.tui.screens.session_screen import SessionScreen
from gviz.tui.session import Session
from gviz.tui.styled_lines import Line, line, plain, wrapped
from gviz.tui.widgets.node_panel import NodePanel
from gviz.tui.widgets.panel_messages import Seek
from gviz.tui.widgets.text_panel import LinkedPage
from gviz.values.plain_text import shown

Result = TypeVar("Result")

Draw = Callable[[int], Iterable[Line]]
"""Returns the lines of a page for a width."""

Take = Callable[[events.Key], None]
"""Handles a key that must not wait for the bindings."""

MENU = (
    ("Run to its next event", "to"),
    ("Run back to its last event", "reverse-to"),
    ("Go to where it was made", "goto #{node}"),
    ("Everything about it", "node"),
    ("Explain it", "explain"),
    ("Set or delete a breakpoint", "break"),
    ("Watch its value", "watch #{node}"),
    ("Watch its gradient", "watch #{node}.grad"),
    ("Copy its value", "copy value"),
    ("Copy its gradient", "copy grad"),
    ("Back to the last change of its value", "last #{node}"),
    ("Back to the last change of its gradient", "last #{node}.grad"),
)
"""The entries of the menu, each with its line of the command language; ``break`` sets or deletes."""


class Page(ModalScreen[Result]):
    """A screen over the debugger that returns an answer."""

    def answer_unbound_key(self, key: str) -> None:
        """Report that a key does nothing, if the page has a place for that."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Leave. A second call does not close the screen below, which is active by then."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Sheet(LinkedPage):
    """A text that is wrapped to the width of the page."""

    def __init__(self, draw: Draw, glyphs: Glyphs, *, id: str = "sheet") -> None:
        super().__init__(id=id)
        self._draw_lines = draw
        self.glyphs = glyphs

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the rows of the text for a width. The bottom row of the screen, where keys answer, stays visible."""
        rows = len(tuple(self._draw_lines(width)))
        return min(rows, max(container.height - 1, 1))

    def draw(self) -> None:
        """Build the text."""
        self.show_fitted(self._draw_lines)


class Overlay(Page[None]):
    """A screen with one page."""

    headroom = 0
    """Rows at the top where the screen below stays visible."""

    def on_mount(self) -> None:
        """Keep the `headroom` free, by a margin, because a padding would move what is below."""
        for page in self.children:
            page.styles.margin = (self.headroom, 0, 0, 0)

    def on_seek(self, message: Seek) -> None:
        """Leave, and let the debugger go to an event in the page; a second click comes too late."""
        message.stop()
        if self.is_active:
            debugger = self.app.screen_stack[-2]
            self.dismiss()
            debugger.post_message(Seek(message.position))


class SheetScreen(Overlay):
    """A text that any key closes, except those that scroll it or choose a number in it.

    No key is lost: one that is not in `closing` also acts on the screen below, where `take` sees it first.
    """

    SCROLLING: ClassVar[frozenset[str]] = frozenset(
        {"up", "down", "left", "right", "pageup", "pagedown", "home", "end"}
    )

    def __init__(
        self, title: str, draw: Draw, glyphs: Glyphs, closing: Collection[str] = (), take: Take | None = None
    ) -> None:
        super().__init__()
        self._title, self._draw, self._glyphs = title, draw, glyphs
        self._closing_keys, self._take = {"escape", "enter", *closing}, take

    def compose(self) -> ComposeResult:
        """Yield the page."""
        yield Sheet(self._draw, self._glyphs)

    def on_mount(self) -> None:
        """Name the page."""
        sheet = self.query_one(Sheet)
        sheet.set_title(f"{self._title}: Esc closes this; other keys also act")
        sheet.all_of_it = ": PageDown"
        sheet.focus()

    def on_key(self, event: events.Key) -> None:
        """Leave at any key that does not scroll or follow a number, and pass it on to the screen below.

        Later keys of the same read may still arrive here; they are passed on, too.
        """
        stays = self.is_current
        if stays and (event.key in self.SCROLLING or (event.key == "enter" and self.query_one(Sheet).link_chosen)):
            return
        event.prevent_default()
        if stays:
            self.dismiss()
        if stays and event.key in self._closing_keys:
            event.stop()
        elif self._take is not None:
            self._take(event)

    def on_click(self) -> None:
        """Leave at a click."""
        self.dismiss()


class QuestionScreen(Page[bool]):
    """A text with a question: y is yes, any other key is no, except those that scroll a long text."""

    def __init__(self, title: str, draw: Draw, glyphs: Glyphs) -> None:
        super().__init__()
        self._title, self._draw, self._glyphs = title, draw, glyphs

    def compose(self) -> ComposeResult:
        """Yield the page."""
        yield Sheet(self._draw, self._glyphs)

    def on_mount(self) -> None:
        """Name the page."""
        sheet = self.query_one(Sheet)
        sheet.set_title(self._title)
        sheet.all_of_it = ": PageDown"
        sheet.focus()

    def on_key(self, event: events.Key) -> None:
        """Answer."""
        if event.key not in SheetScreen.SCROLLING or not self.query_one(Sheet).max_scroll_y:
            event.stop()
            event.prevent_default()
            self.dismiss(event.key in ("y", "Y"))


class InspectorScreen(Overlay):
    """The node panel in full; a click on a number leaves and goes to the event that made it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "leave", show=False)]

    def __init__(self, session: Session, moment: Moment, node: int) -> None:
        super().__init__()
        self._session, self._moment, self._node = session, moment, node

    def compose(self) -> ComposeResult:
        """Yield the panel."""
        yield NodePanel(self._session.timeline, self._session.glyphs, id="inspector")

    def on_mount(self) -> None:
        """Fill the panel."""
        panel = self.query_one(NodePanel)
        panel.full = panel.tensors = True
        panel.all_of_it = ": PageDown"
        panel.moment, panel.selected, panel.branch_view = self._moment, self._node, self._session.branch_view
        panel.set_title(f"#{self._node} at event {self._moment.n}: Esc closes")
        panel.focus()

    def action_leave(self) -> None:
        """Go back to the debugger."""
        self.dismiss()


class MenuScreen(Page[str | None]):
    """A list over the panels; returns the line of the chosen entry, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,M", "leave", "Leave", show=False),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
    ]

    def __init__(self, node: int, title: str, glyphs: Glyphs) -> None:
        super().__init__()
        self._node, self._title, self._glyphs = node, title, glyphs

    def compose(self) -> ComposeResult:
        """Yield the entries, in a frame with the node's title."""
        entries = OptionList(*(Option(text, id=str(at)) for at, (text, _) in enumerate(MENU)), id="menu", markup=False)
        entries.border_title = Content(self._glyphs.text(self._title))
        yield entries

    def action_move(self, steps: int) -> None:
        """Move as the arrow keys do; a key before the list is mounted waits for it."""
        if not self.is_mounted:
            self.call_later(self.action_move, steps)
            return
        for entries in self.query(OptionList):  # there is none once the menu is closing
            entries.action_cursor_down() if steps > 0 else entries.action_cursor_up()

    def action_leave(self) -> None:
        """Close without a line."""
        self.dismiss(None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close with the line of the chosen entry, for this node."""
        event.stop()
        self.dismiss(MENU[event.option_index][1].replace("{node}", str(self._node)))

    def on_click(self, event: events.Click) -> None:
        """Leave at a click outside the list."""
        if event.widget is self:
            self.dismiss(None)


class ChosenRow(NamedTuple):
    """The number of a row, and whether it is also to be explained."""

    row: int
    explain: bool = False


_HANGING = 6
"""How far the lines of a row after its first are indented."""
_MARGIN = 2
"""The blank columns next to the rows of a list."""


class ChooserScreen(Page[ChosenRow | None]):
    """A list of rows; Enter or a click returns the number of the row, Esc returns None.

    The keys in `explaining` return the number of the row, too, which is then also explained.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
    ]

    def __init__(
        self, title: str, rows: Sequence[tuple[str, bool]], glyphs: Glyphs, explaining: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self._heading, self._rows, self._glyphs, self._explaining = title, rows, glyphs, explaining

    def compose(self) -> ComposeResult:
        """Yield the list, in which the row of the current moment is marked."""
        yield OptionList(*map(Option, self._texts(0)), id="chooser", classes="-panel", compact=True)

    def _texts(self, width: int) -> Iterator[Content]:
        """Yield the text of each row, in lines of at most `width` cells (0: in one); further lines are indented."""
        for text, here in self._rows:
            whole = self._glyphs.text(f"{self._glyphs.now if here else ' '} {text}")
            lines = map(plain, wrapped(line(whole), width, _HANGING)) if width > 2 * _HANGING else [whole]
            yield Content("\n".join(lines))

    def on_resize(self) -> None:
        """Break the rows anew at the new width."""
        chooser = self.query_one(OptionList)
        for at, text in enumerate(self._texts(chooser.scrollable_content_region.width - _MARGIN)):
            chooser.replace_option_prompt_at_index(at, text)

    def on_mount(self) -> None:
        """Start at the row of the current moment."""
        chooser = self.query_one(OptionList)
        why = f", {self._explaining[0]} explains it" if self._explaining else ""
        chooser.border_title = Content(f"{self._heading}: Enter goes there{why}, Esc closes")
        chooser.highlighted = max((at for at, (_, here) in enumerate(self._rows) if here), default=0)
        chooser.focus()

    def action_move(self, steps: int) -> None:
        """Move as the arrow keys do."""
        chooser = self.query_one(OptionList)
        chooser.action_cursor_down() if steps > 0 else chooser.action_cursor_up()

    def action_leave(self) -> None:
        """Choose nothing."""
        self.dismiss(None)

    def on_key(self, event: events.Key) -> None:
        """Return the number of the row, to be explained."""
        row = self.query_one(OptionList).highlighted
        if event.key in self._explaining and row is not None:
            event.stop()
            event.prevent_default()
            self.dismiss(ChosenRow(row, explain=True))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Return the number of the row."""
        event.stop()
        self.dismiss(ChosenRow(event.option_index))


def show_sheet(screen: SessionScreen, title: str, draw: Draw) -> None:
    """Show a text until a key closes it. The key that opens it closes it, too."""
    session = screen.session
    closing = {key for id in (_OPENED_BY.get(title, "act.quit"), "act.quit") for key in session.keys[id]}
    _open_over(screen, lambda: SheetScreen(title, draw, session.glyphs, closing, screen.take_key))


_OPENED_BY = {"Help": "act.help", "Why": "look.explain", "What happened": "look.happened"}
"""The action that shows a text, by its title."""


def ask(screen: SessionScreen, question: str, lines: tuple[str, ...]) -> None:
    """Show some lines and a question; the reader of commands gets the answer as a line, y or n."""

    def draw(width: int) -> list[Line]:
        return [*wrapped_lines(lines, width), (), line((f"y: {question}   any other key: no", "key"))]

    def answered(yes: bool | None) -> None:
        screen.run_line("y" if yes else "n")

    screen.app.push_screen(QuestionScreen(question, draw, screen.session.glyphs), answered)


def inspect(screen: SessionScreen) -> None:
    """Show everything about the selected node."""
    moment = screen.moment
    if moment is not None:
        _open_over(screen, lambda: InspectorScreen(screen.session, moment, screen.session.cursor.selected))


def menu(screen: SessionScreen) -> None:
    """Open the menu of the selected node."""
    session = screen.session

    def chosen(text: str | None) -> None:
        if text == "break":
            toggle_node(screen)
        elif text:
            screen.run_line(text)

    node = session.cursor.selected
    if node and not isinstance(screen.app.screen, MenuScreen):  # a second key press came before the first menu
        screen.app.push_screen(MenuScreen(node, label(session.timeline, node), session.glyphs), chosen)


def passes(screen: SessionScreen) -> None:
    """Choose an iteration, or one of its passes, and go there."""
    session = screen.session

    rows = pass_rows(session.timeline, session.cursor.position)

    def go(chosen: ChosenRow | None) -> None:
        if chosen is not None:
            screen.action_seek(rows[chosen.row][1])

    listed = [(text, here) for text, _, here in rows]
    screen.app.push_screen(ChooserScreen("Iterations and passes", listed, session.glyphs), go)


def choose(screen: SessionScreen, choice: Choice) -> None:
    """Choose a place, go to its moment and select its node. If it is to be explained, select its cause instead."""

    def go(chosen: ChosenRow | None) -> None:
        if chosen is not None:
            place = choice.places[chosen.row]
            screen.show_result_of(partial(_go_to, screen, place))
            if chosen.explain and place.explanation is not None:
                if place.cause:
                    screen.show_stop(screen.session.cursor.select(place.cause))
                show_sheet(screen, place.explanation.title, place.explanation.lines)
            elif chosen.explain:
                screen.run_line(f"explain {place.question}".rstrip())

    listed = [(shown(place.text), False) for place in choice.places]
    session = screen.session
    screen.app.push_screen(ChooserScreen(choice.title, listed, session.glyphs, session.keys["look.explain"]), go)


def _go_to(screen: SessionScreen, place: Jump) -> None:
    cursor = screen.session.cursor
    screen.pause()
    stop = cursor.seek(place.event) if place.event else None
    if place.node:
        cursor.select(place.node)
    screen.follow_settings()
    screen.show_stop(stop or cursor.stay())


def _open_over(screen: SessionScreen, page: Callable[[], Overlay]) -> None:
    """Open a page, unless the terminal is too small for any."""
    if not screen.too_small:
        over = page()
        over.headroom = screen.headroom
        screen.app.push_screen(over)


PAGES: Mapping[str, Callable[[SessionScreen], None]] = {
    "help": lambda screen: show_sheet(screen, "Help", partial(help_page, screen.session.keys)),
    "inspect": inspect,
    "menu": menu,
    "passes": passes,
}
"""The pages that keys open, by their names in `gviz.tui.keymaps`."""
