"""`gviz.show`: opens the debugger from within a program, on a trace or on the graph behind a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gviz.api.debug import active, paused_by_debugger, play_in_notebook, view
from gviz.api.drawable import drawn
from gviz.api.module_recording import NO_INPUTS
from gviz.api.moment_argument import moment_of
from gviz.rich_representation import in_notebook
from gviz.tui import open_debugger, terminal
from gviz.tui.session_options import SessionOptions, Title

if TYPE_CHECKING:
    from gviz.api.drawable import Drawable


def show(trace: Drawable, *, at: int | str | None = None, inputs: Any = NO_INPUTS, backward: bool = False) -> None:
    """Open the debugger on a trace or recording at event or moment `at`.

    By default it opens where the program failed, otherwise at the first event. A tensor of the latest recording opens
    that recording where the tensor was created. Any other tensor shows the graph behind it, in which only the tensor
    and the leaves have values. Without a terminal it works line by line; a notebook shows the page that steps. Under
    ``gviz run`` the program stops here, with the tensor selected.

    A module is called with `inputs`, and with `backward` gets a backward pass from the sum of its results. gviz
    shows a copy: your module and the inputs stay as they are.
    """
    recording = active()
    node = recording.node_of(trace) if recording is not None else 0
    if node and at is None and paused_by_debugger("show", node):
        return
    of = drawn(trace, None, inputs, backward=backward)
    if at is not None:
        start: int | None = moment_of(of.timeline, at)
    elif of.node:
        start = of.timeline.info(of.node).born
    else:
        start = None if of.recorded else of.n  # where it has all its nodes
    if in_notebook():
        play_in_notebook(of.timeline, start)
    elif of.path is not None:
        view(of.path, start)
    else:
        open_debugger(of.timeline, SessionOptions(Title(of.title), start), plain=terminal.asks_for_lines())
