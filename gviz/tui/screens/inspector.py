"""Everything about one node, every digit, on the whole screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from gviz.trace.moment import Moment
from gviz.tui.screens.sheet import Over
from gviz.tui.session import Session
from gviz.tui.widgets.node import NodePanel


class InspectorScreen(Over):
    """The node panel in full; a click on a number leaves and goes to the event that made it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "leave", show=False)]

    def __init__(self, session: Session, moment: Moment, node: int) -> None:
        super().__init__()
        self._session, self._moment, self._node = session, moment, node

    def compose(self) -> ComposeResult:
        """One panel."""
        yield NodePanel(self._session.timeline, self._session.glyphs, id="inspector")

    def on_mount(self) -> None:
        """Fill it."""
        panel = self.query_one(NodePanel)
        panel.full = panel.tensors = True
        panel.all_of_it = ": PageDown"
        panel.moment, panel.selected, panel.beside = self._moment, self._node, self._session.beside
        panel.set_title(f"#{self._node} at event {self._moment.n}: esc leaves")
        panel.focus()

    def action_leave(self) -> None:
        """Back to the debugger."""
        self.dismiss()
