"""Every key of the debugger. Letters are bindings without priority: typed into the prompt they are text."""

from __future__ import annotations

from textual.binding import Binding, BindingType

_TIME = (
    ("step", "s,right_square_bracket,f11", "S,left_square_bracket", "Step"),
    ("next", "n,f10", "N", "Node"),
    ("finish", "f,r", "F", "End of call or pass"),
    ("continue", "c,f5", "C", "Run"),
    ("phase", "right_curly_bracket", "left_curly_bracket", "Phase"),
)

_LOOK = (
    ("time.to", "t", "travel_to(False)", "Run to the selected node"),
    ("time.reverse-to", "T", "travel_to(True)", "Run back to the selected node"),
    ("time.start", "less_than_sign", "seek(0)", "First event"),
    ("time.end", "greater_than_sign", "seek(-1)", "Last event"),
    ("time.play", "space", "play", "Play or pause"),
    ("time.back", "backspace", "back", "Back to where I was"),
    ("time.mark", "m", "await_letter('m')", "Remember this position under a letter"),
    ("time.goto-mark", "apostrophe", "await_letter('go')", "Go to a remembered position"),
    ("look.next", "j", "neighbour(1)", "Next node"),
    ("look.previous", "k", "neighbour(-1)", "Previous node"),
    ("look.first", "g", "edge(0)", "First node of the tape"),
    ("look.last", "G", "edge(-1)", "Last node of the tape"),
    ("look.input", "h", "relative('input')", "To an input of the node"),
    ("look.user", "l", "relative('user')", "To a user of the node"),
    ("look.up", "u", "caller(1)", "Up the call stack"),
    ("look.down", "d", "caller(-1)", "Down the call stack"),
    ("look.inspect", "enter", "inspect", "Everything about the node"),
    ("look.detail", "i", "detail", "Numbers in full or short"),
    ("look.output", "o", "panel(2)", "Output of the program"),
    ("view.next", "v", "view", "Graph, tape, both"),
    ("graph.open", "plus,equals_sign", "fold('open')", "Open the module of the node"),
    ("graph.close", "minus", "fold('close')", "Close the module of the node"),
    ("graph.part", "a", "focus_part", "Ancestors of the node, its neighbourhood, the whole graph"),
    ("view.zoom", "z", "zoom", "This panel only"),
    ("view.leave", "escape", "leave", "Undo zoom and search"),
    ("find.ask", "slash", "prompt('/')", "Find"),
    ("find.next", "comma", "again(False)", "Next match"),
    ("find.previous", "full_stop", "again(True)", "Previous match"),
    ("break.toggle", "b,f9", "break", "Breakpoint at the selected node, on or off"),
    ("break.edit", "B", "prompt(':', 'break ')", "Breakpoint with a condition"),
    ("look.explain", "e", "explain", "Why this value, this gradient, or none"),
    ("watch.ask", "w", "prompt(':', 'watch ')", "Show an expression at every stop"),
    ("look.eval", "p", "prompt(':', 'eval ')", "What an expression is now"),
    ("act.command", "colon", "prompt(':')", "Command line"),
    ("act.export", "x", "export", "Export a picture"),
    ("act.help", "question_mark,f1", "help", "Help"),
    ("act.quit", "q,ctrl+q", "quit", "Quit"),
)

BINDINGS: list[BindingType] = [
    *(Binding(keys, f"travel('{name}')", says, show=False, id=f"time.{name}") for name, keys, _, says in _TIME),
    *(
        Binding(keys, f"travel('reverse-{name}')", f"{says}, back", show=False, id=f"time.reverse-{name}")
        for name, _, keys, says in _TIME
    ),
    *(Binding(keys, action, says, show=False, id=name) for name, keys, action, says in _LOOK),
    *(
        Binding(str(digit), f"panel({digit})", f"Panel {digit}", show=False, id=f"view.{digit}")
        for digit in range(1, 6)
    ),
]
