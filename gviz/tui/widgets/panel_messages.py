"""What widgets request from the screen: a widget never moves the position itself."""

from __future__ import annotations

from textual.message import Message
from textual.widget import Widget


class Seek(Message):
    """The user pointed at an event: go there. If several are sent in a row, only the last one is handled."""

    def __init__(self, position: int) -> None:
        super().__init__()
        self.position = position

    def can_replace(self, message: Message) -> bool:
        """Return whether this replaces a waiting message: a drag over the timeline needs only its latest place."""
        return isinstance(message, Seek)


class NodePointed(Message):
    """The user pointed at a node: select it, and with `run` (a double click) run to its next event."""

    def __init__(self, node: int, *, run: bool = False) -> None:
        super().__init__()
        self.node = node
        self.run = run


class OverviewPointed(Message):
    """The user pointed at a place in the overview, which represents a row of the graph."""

    def __init__(self, row: int) -> None:
        super().__init__()
        self.row = row


class Pressed(Message):
    """A button went down in a panel, on a node or elsewhere (0): focus the panel, select the node.

    One message does both, without Textual's own focus before it, so that both are drawn in one frame.
    """

    def __init__(self, panel: Widget, node: int) -> None:
        super().__init__()
        self.panel = panel
        self.node = node


class LinePointed(Message):
    """The user clicked in the margin of a source line: set a breakpoint there, or delete it."""

    def __init__(self, path: str, line: int) -> None:
        super().__init__()
        self.path = path
        self.line = line


class RowActed(Message):
    """The user acts on a row of a list (go, edit, remove, switch): its kind, and its key.

    Without a row the kind is empty. For ``choose`` there is no further row to choose.
    """

    def __init__(self, kind: str, key: int | str, act: str) -> None:
        super().__init__()
        self.kind = kind
        self.key = key
        self.act = act


class Typed(Message):
    """The user entered a line in the prompt that `sign` (``:`` or ``/``) opened."""

    def __init__(self, sign: str, text: str) -> None:
        super().__init__()
        self.sign = sign
        self.text = text
