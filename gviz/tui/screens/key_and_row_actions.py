"""What keys, clicks on lines, and rows of lists do if that is not a command: bindings, views, breakpoints, rows.

The keys are in `gviz.tui.keymaps`. Most acts there are a command (``travel('step')``, ``do('explain')``). The others
are here or are actions of `DebuggerScreen` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePath

from textual.binding import Binding, BindingType
from textual.scroll_view import ScrollView

from gviz.errors import GvizError
from gviz.explain.source_frames import frame_text
from gviz.query_syntax.stop_condition import stop
from gviz.trace.graph_state import NodeState
from gviz.tui.breakpoints import BreakpointEntry, marked_lines
from gviz.tui.commands import collapse_commands
from gviz.tui.drawing.module_tree import module_tree
from gviz.tui.drawing.status import bottom_keys
from gviz.tui.keymaps import ACTS, Act, Keys, first, keys_of
from gviz.tui.language.command import Command
from gviz.tui.language.parser import spec_of
from gviz.tui.screens.prompt_control import condition_of
from gviz.tui.screens.session_screen import SessionScreen
from gviz.tui.widgets.panel_messages import LinePointed, RowActed
from gviz.tui.widgets.status_rows import EventRow, KeysRow
from gviz.tui.widgets.tape_panel import Tape
from gviz.values.plain_text import shown


def _binding(act: Act, *, everywhere: bool) -> Binding:
    keys = ",".join(keys_of("default")[act.id])
    return Binding(keys, act.action, act.description, show=False, id=act.id, priority=everywhere)


BINDINGS: list[BindingType] = [_binding(act, everywhere=False) for act in ACTS if not act.action.startswith("app.")]
APP_BINDINGS: list[BindingType] = [_binding(act, everywhere=True) for act in ACTS if act.action.startswith("app.")]
"""Keys that also act over a page."""


def keymap(keys: Keys) -> dict[str, str]:
    """Return the changes from the default keymap, as Textual expects them: it removes each key from all other acts."""
    default = keys_of("default")
    return {id: ",".join(names) for id, names in keys.items() if names != default[id]}


def follow_keymap(screen: SessionScreen, keys: Keys) -> None:
    """Apply a keymap to the bindings and the bottom row."""
    screen.app.set_keymap(keymap(keys))
    row = screen.query_one(KeysRow)
    row.bottom_keys = bottom_keys(keys)
    row.refresh()
    screen.query_one(EventRow).more = first(keys, "look.happened")


def toggle_node(screen: SessionScreen) -> None:
    """Set a breakpoint at the selected node, or delete it."""
    if screen.session.cursor.selected:
        _toggle(screen, f"#{screen.session.cursor.selected}")


def toggle_line(screen: SessionScreen, pointed: LinePointed) -> None:
    """Set a breakpoint at a line, or delete those that it shows."""
    breakpoints = screen.session.cursor.breakpoints
    there = marked_lines(breakpoints, pointed.path).get(pointed.line)
    if there:
        breakpoints.delete(there)
        screen.follow_settings()
        screen.show_remark(f"no breakpoint at line {pointed.line}")
    elif calls := [one for one in breakpoints.calls if (one.site.path, one.site.line) == (pointed.path, pointed.line)]:
        for one in calls:
            one.enabled = True
        screen.follow_settings()
        screen.show_remark("; ".join(f"breakpoint {one.number} at line {pointed.line}: {one.words}" for one in calls))
    else:
        _toggle(screen, f"{PurePath(pointed.path).name}:{pointed.line}")


def _toggle(screen: SessionScreen, place: str) -> None:
    new = screen.session.cursor.breakpoints.toggle(stop(place))
    screen.follow_settings()
    never = "" if new is None or new.hits.can_hit() else ": nothing was made there, so it never stops"
    screen.show_remark(f"breakpoint {new.number} at {place}{never}" if new else f"no breakpoint at {place} any more")


def _caller(screen: SessionScreen, name: str) -> None:
    """Show the next caller up or down: in the source, or in the stack if that is in front."""
    command = Command(name)
    if screen.query_one("#stack").display:
        screen.show_result_of(partial(_move_to_caller, screen, command))
    else:
        screen.run_command(command)


def _move_to_caller(screen: SessionScreen, command: Command) -> None:
    spec_of(command).run(screen.session, command)
    screen.show_frame()


def _part(screen: SessionScreen) -> None:
    """Show only the ancestors of the selected node, only what is near it, or all."""
    screen.show_result_of(partial(_next_part, screen))


def _next_part(screen: SessionScreen) -> None:
    answer = collapse_commands.next_focus(screen.session)
    screen.follow_settings()
    screen.show_remark(answer.lines[0])


def _page(screen: SessionScreen, pages: int) -> None:
    """Scroll the focused panel by a page; in the tape, also select the node there."""
    panel = screen.focused
    if isinstance(panel, Tape):
        panel.action_page(pages)
    elif isinstance(panel, ScrollView) and (panel.scroll_y if pages < 0 else panel.max_scroll_y - panel.scroll_y) > 0:
        (panel.scroll_page_up if pages < 0 else panel.scroll_page_down)(animate=False)
    else:
        screen.show_remark(f"This panel has nothing more {'above' if pages < 0 else 'below'}")


def _redraw(screen: SessionScreen) -> None:
    """Redraw the screen, for example after another program has written to the terminal."""
    screen.app.refresh(layout=True)
    screen.show_remark("redrawn")


LOOKS: Mapping[str, Callable[[SessionScreen], None]] = {
    "up": lambda screen: _caller(screen, "up"),
    "down": lambda screen: _caller(screen, "down"),
    "part": _part,
    "page-up": lambda screen: _page(screen, -1),
    "page-down": lambda screen: _page(screen, 1),
    "redraw": _redraw,
    "break": toggle_node,
}
"""How keys change the view."""

RowKey = int | str
"""The key of a row: the number of a watch, breakpoint or frame, or the name of a module."""


def act_on_row(screen: SessionScreen, message: RowActed) -> None:
    """Do what a key or click on a row requests; if rows of its kind cannot do it, what the key does elsewhere."""
    known = _ROW_ACTS.get((message.kind, message.act))
    if known is not None:
        known(screen, message.key)
    elif message.act in _ELSEWHERE:
        screen.call_next(screen.run_action, _ELSEWHERE[message.act])
    else:
        screen.show_remark(_NO_ROW[message.act])


def _watched(screen: SessionScreen, key: RowKey) -> str:
    return screen.session.cursor.asker.watched[int(key) - 1]


def _breakpoint(screen: SessionScreen, key: RowKey) -> BreakpointEntry:
    (one,) = screen.session.cursor.breakpoints.by_numbers(str(key))
    return one


def _last_change(screen: SessionScreen, key: RowKey) -> None:
    screen.run_command(Command("last", 1, _watched(screen, key)))


def _edit_watch(screen: SessionScreen, key: RowKey) -> None:
    screen.open_prompt(":", f"rewatch {key} {_watched(screen, key)}")


def _edit_condition(screen: SessionScreen, key: RowKey) -> None:
    screen.open_prompt(*condition_of(screen.session, int(key)))


def _to_hit(screen: SessionScreen, key: RowKey) -> None:
    """Go to the next stop of a breakpoint, or else to its first."""
    one = _breakpoint(screen, key)
    hit = next(one.after(screen.session.cursor.position), None) or next(one.after(0), None)
    if hit is None:
        screen.show_remark(f"breakpoint {key} never stops in this recording")
    else:
        screen.action_seek(hit.n)


def _switch(screen: SessionScreen, key: RowKey) -> None:
    screen.run_command(Command("disable" if _breakpoint(screen, key).enabled else "enable", 1, str(key)))


def _look_at_frame(screen: SessionScreen, key: RowKey) -> None:
    screen.session.show_caller(int(key))
    screen.show_frame()
    mark = screen.session.source_mark
    screen.show_remark("" if mark is None else f"The source shows {frame_text(mark.frame, 60)}")


def _fold(screen: SessionScreen, key: RowKey) -> None:
    session = screen.session
    closed = session.folds.collapsed(session.timeline.iteration_at(session.cursor.position))
    screen.run_command(Command("open" if key in closed else "close", 1, str(key)))


def _explain_module(screen: SessionScreen, key: RowKey) -> None:
    """Explain the gradient of a parameter of a module: of the first without one, else of the first."""
    session = screen.session
    graph = session.folds.graph(session.timeline.iteration_at(session.cursor.position))
    nodes = next((module.parameters for module in module_tree(graph) if module.path == key), [])
    if not nodes:
        raise GvizError(f"{shown(str(key))} has no parameters, so there is no gradient to explain", exit_code=2)
    states = session.moment.states(nodes)
    without = (node for node, state in zip(nodes, states, strict=True) if not _has_gradient(state))
    screen.run_command(Command("explain", 1, f"#{next(without, nodes[0])}.grad"))


def _has_gradient(state: NodeState | None) -> bool:
    return state is not None and bool(state.outputs) and state.outputs[0].grad is not None


_ROW_ACTS: dict[tuple[str, str], Callable[[SessionScreen, RowKey], None]] = {
    ("watch", "go"): _last_change,
    ("watch", "edit"): _edit_watch,
    ("watch", "remove"): lambda screen, key: screen.run_command(Command("unwatch", 1, str(key))),
    ("break", "go"): _to_hit,
    ("break", "edit"): _edit_condition,
    ("break", "remove"): lambda screen, key: screen.run_command(Command("delete", 1, str(key))),
    ("break", "switch"): _switch,
    ("frame", "go"): _look_at_frame,
    ("module", "go"): _fold,
    ("module", "switch"): _fold,
    ("module", "edit"): _explain_module,
}
_ELSEWHERE = {"go": "open('inspect')", "edit": "do('explain')", "switch": "play"}
"""The actions of the keys of rows where there is no row, or one that cannot do it: those of all other panels."""
_NO_ROW = {"remove": "Nothing can be removed here", "choose": "There are no more rows here"}
