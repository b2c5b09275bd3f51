"""Two aligned graphs: the rows that differ, and both boxes of the chosen row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from gviz.render import comparison_table as text_of
from gviz.trace.timeline import Moment
from gviz.tui import styled_lines
from gviz.tui.commands.compare import ComparisonView
from gviz.tui.drawing.compared_node_boxes import pair_lines
from gviz.tui.keymaps import key_text
from gviz.tui.screens.overlay_pages import Page, Sheet
from gviz.tui.screens.session_screen import SessionScreen
from gviz.tui.session import Session
from gviz.tui.styled_lines import Line
from gviz.tui.widgets.list_panels import Key, RowList
from gviz.tui.widgets.panel_messages import RowActed

_KEYS_OF_ROWS = {"edit": "e", "remove": "delete", "switch": "space"}
"""The keys that act on rows of other lists, by what they do there."""
_LEAST = 5
"""Rows that the summary may have on any screen."""


class PairList(RowList):
    """One row for each pair of nodes that differs; with `everything`, for each pair."""

    everything = False

    def __init__(self, session: Session, view: ComparisonView) -> None:
        super().__init__(session, "", id="pairs")
        self._view = view
        self._begin_at = -1

    def rows(self, moment: Moment, width: int) -> list[tuple[Line, Key | None]]:
        """Return the two names, then a row for each pair, whose key is its index among all pairs."""
        view, (a, b) = self._view, self._view.names
        comparison, expected = (
            (view.comparison, view.expected) if self.everything else (view.unexpected, frozenset[int]())
        )
        places = {pair: at for at, pair in enumerate(comparison.pairs)}
        pair_rows = text_of.paired_rows(
            comparison, width, everything=self.everything, clip=self.glyphs.clipped, expected=expected
        )
        heading = styled_lines.line((text_of.heading(comparison, a, b, width, clip=self.glyphs.clipped), "muted"))
        return [(heading, None), *((styled_lines.line(text), ("pair", places[pair])) for pair, text in pair_rows)]

    def begin_at(self, pair: int) -> None:
        """Choose the row of a pair as soon as there are rows: the list has none before it is laid out."""
        self._begin_at = pair
        self.draw()

    def draw(self) -> None:
        """Build the rows, and choose the first one."""
        super().draw()
        if self._begin_at >= 0 and self._keys:
            pair, self._begin_at = self._begin_at, -1
            self.choose_pair(pair)

    def show_everything(self, *, everything: bool) -> None:
        """Show all pairs, or only those that differ; the chosen pair stays chosen."""
        pair = self.pair
        self.everything = everything
        self.draw()
        self.choose_pair(pair)

    def choose_pair(self, at: int) -> None:
        """Choose the row of a pair, or the nearest row before it."""
        rows = [(int(key[1]), row) for row, key in enumerate(self._keys) if key is not None]
        self.chosen = max(((pair, row) for pair, row in rows if pair <= at), default=min(rows, default=(0, 0)))[1]

    @property
    def pair(self) -> int:
        """The index of the chosen pair; -1 if there is no row."""
        key = self._keys[self.chosen] if self.chosen < len(self._keys) else None
        return -1 if key is None else int(key[1])


class ComparisonScreen(Page[tuple[int, int] | None]):
    """A page with the comparison.

    Enter returns the event and the node of the chosen row in this recording; Esc returns None.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("a", "everything", show=False),
    ]

    def __init__(self, session: Session, view: ComparisonView, moment: Moment) -> None:
        super().__init__()
        self._session, self._view, self._moment = session, view, moment

    def compose(self) -> ComposeResult:
        """Yield the summary, the rows, and the boxes of the chosen row."""
        yield Sheet(self._summary, self._session.glyphs, id="summary")
        yield PairList(self._session, self._view)
        yield Sheet(self._boxes, self._session.glyphs, id="boxes")

    def on_mount(self) -> None:
        """Start at the first difference."""
        rows = self.query_one(PairList)
        rows.moment = self._moment
        self._entitle()
        rows.focus()
        comparison = self._view.unexpected
        first = comparison.differences[0].pair if comparison.differences else None
        rows.begin_at(comparison.pairs.index(first) if first is not None else -1)
        self.watch(rows, "chosen", self._show_boxes, init=False)

    def action_everything(self) -> None:
        """Show all pairs, or only those that differ."""
        rows = self.query_one(PairList)
        rows.show_everything(everything=not rows.everything)
        self._entitle()

    def action_leave(self) -> None:
        """Go back to the debugger."""
        self.dismiss(None)

    def on_row_acted(self, message: RowActed) -> None:
        """Go to the node of a row."""
        message.stop()
        if message.act == "choose":
            self.query_one(PairList).subtitle(Content("there are no more rows"))
        elif message.act != "go":
            self.answer_unbound_key(_KEYS_OF_ROWS[message.act])
        else:
            place = self._view.place_of(int(message.key))
            if place is not None:
                self.dismiss(place)
            else:
                self.query_one(PairList).subtitle(Content("only the other recording has this node"))

    def answer_unbound_key(self, key: str) -> None:
        """Report that a key does nothing, below the rows until another row is chosen."""
        self.query_one(PairList).subtitle(Content(f"{key_text(key)} does nothing here"))

    def _entitle(self) -> None:
        rows = self.query_one(PairList)
        fewer = "only differences" if not self._view.expected else "only what ranks share"
        other = fewer if rows.everything else "all nodes"
        rows.set_title(f"{self._view.title}: Enter goes there, a shows {other}, Esc closes")

    def _show_boxes(self) -> None:
        self.query_one("#boxes", Sheet).draw_soon()

    def _summary(self, width: int) -> list[Line]:
        """Return the summary; on a low screen, one row for each text."""
        texts = self._view.summary or tuple(text_of.summary(self._view.comparison))
        room = max(self.size.height // 5, _LEAST)
        rows = [row for text in texts for row in styled_lines.paragraphs(text, width)]
        if len(rows) > room:
            rows = [styled_lines.cut(styled_lines.line(text), width, self._session.glyphs.cut) for text in texts]
        if len(rows) <= room:
            return rows
        return [
            *rows[: room - 1],
            styled_lines.line((f"… {len(rows) - room + 1} more lines in a higher window", "muted")),
        ]

    def _boxes(self, width: int) -> Iterator[Line]:
        at = self.query_one(PairList).pair
        if at >= 0:
            view = self._view
            yield from pair_lines(view.comparison, view.comparison.pairs[at], view.names, width, self._session.glyphs)


def show_compared(screen: SessionScreen, view: ComparisonView) -> None:
    """Open the comparison of two graphs; Enter on a row goes to its event and node."""

    def go(place: tuple[int, int] | None) -> None:
        if place is not None:
            screen.action_seek(place[0])
            screen.show_stop(screen.session.cursor.select(place[1]))

    if screen.moment is not None and not screen.too_small:
        screen.app.push_screen(ComparisonScreen(screen.session, view, screen.moment), go)
