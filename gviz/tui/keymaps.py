"""The keymaps, and the user's own keys, by the ids of the bindings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gviz.errors import GvizError, did_you_mean
from gviz.tui.panel_choice import PANELS
from gviz.tui.styled_lines import Line, line, wrapped
from gviz.values.plain_text import clipped


@dataclass(frozen=True, slots=True)
class Act:
    """What a key does: its id, its default keys, the action of the screen, and a short description."""

    id: str
    keys: str
    action: str
    description: str


_TIME = (
    ("step", "s,right_square_bracket,f11", "S,left_square_bracket", "one event"),
    ("next", "n,f10", "N", "one whole node"),
    ("finish", "f,r,shift+f11", "F", "to the end of the module call or pass"),
    ("continue", "c,f5", "C", "to the next stop"),
    ("phase", "right_curly_bracket", "left_curly_bracket", "one phase"),
)

ACTS: tuple[Act, ...] = (
    *(Act(f"time.{name}", keys, f"travel('{name}')", f"{text}, forward") for name, keys, _, text in _TIME),
    *(
        Act(f"time.reverse-{name}", keys, f"travel('reverse-{name}')", f"{text.replace('the end', 'the start')}, back")
        for name, _, keys, text in _TIME
    ),
    Act("time.to", "t", "travel('to')", "run to the next event of the selected node"),
    Act("time.reverse-to", "T", "travel('reverse-to')", "run back to its last event"),
    Act("time.start", "less_than_sign", "seek(0)", "first event"),
    Act("time.end", "greater_than_sign", "seek(-1)", "last event"),
    Act("time.play", "space", "play", "play or pause"),
    Act("act.stop", "ctrl+c", "stop", "stop a search, playing, the program of gviz run"),
    Act("time.back", "backspace", "do('back')", "back to the position before the last jump"),
    Act("time.mark", "m", "await_letter('m')", "remember this position under a letter"),
    Act("time.goto-mark", "apostrophe", "await_letter('go')", "go to a remembered position"),
    Act("look.next", "j", "select('neighbour', 1)", "next node"),
    Act("look.previous", "k", "select('neighbour', -1)", "previous node"),
    Act("look.first", "g", "select('edge', 0)", "first node of the tape"),
    Act("look.last", "G", "select('edge', -1)", "last node of the tape"),
    Act("look.page-up", "ctrl+b", "look('page-up')", "a page up in the panel"),
    Act("look.page-down", "ctrl+f", "look('page-down')", "a page down in the panel"),
    Act("look.input", "h", "select('relative', 'input')", "to an input of the node"),
    Act("look.user", "l", "select('relative', 'user')", "to a user of the node"),
    Act("look.up", "u", "look('up')", "up the call stack"),
    Act("look.down", "d", "look('down')", "down the call stack"),
    Act("look.inspect", "enter", "open('inspect')", "everything about the node"),
    Act("look.detail", "i", "detail", "numbers in full or short"),
    Act("look.output", "o", "panel('output')", "output of the program"),
    Act("look.passes", "P", "open('passes')", "choose an iteration or a pass"),
    Act("look.explain", "e", "do('explain')", "why this value, this gradient, or none"),
    Act("look.findings", "exclamation_mark", "do('findings')", "what is wrong, and parameters without a gradient"),
    Act("look.training", "L", "do('training')", "loss and gradients over all passes"),
    Act("look.happened", "semicolon", "do('event')", "what happened here, in full"),
    Act("look.eval", "p", "ask('print')", "the value of an expression"),
    Act("watch.ask", "w", "ask('watch')", "show an expression at every stop"),
    Act("view.next", "v", "view", "graph, tape, both"),
    Act("graph.level", "V", "do('level')", "level of the graph: nodes, calls, modules"),
    Act("graph.open", "plus,equals_sign", "do('open')", "expand the module or call of the node"),
    Act("graph.close", "minus", "do('close')", "collapse the module or call of the node"),
    Act("graph.part", "a", "look('part')", "ancestors of the node, its neighbourhood, the whole graph"),
    Act("view.zoom", "z", "zoom", "this panel only"),
    Act("view.leave", "escape", "leave", "undo zoom and search"),
    *(
        Act(f"view.{at % 10}", str(at % 10), f"panel('{panel}')", f"panel {panel}")
        for at, panel in enumerate(PANELS, 1)
    ),
    Act("find.ask", "slash", "ask('find')", "find"),
    Act("find.next", "comma", "select('again', False)", "next match"),
    Act("find.previous", "full_stop", "select('again', True)", "previous match"),
    Act("break.toggle", "b,f9", "look('break')", "breakpoint at the selected node, on or off"),
    Act("break.edit", "B", "ask('break')", "breakpoint with a condition, or the condition of the one here"),
    Act("act.command", "colon", "ask('command')", "command line"),
    Act("act.palette", "ctrl+p", "app.command_palette", "command palette"),
    Act("act.menu", "M", "open('menu')", "menu of the selected node"),
    Act("act.copy", "y", "do('copy', 'value')", "copy the value of the node"),
    Act(
        "act.script",
        "Y",
        "do('copy', 'script')",
        "copy a PyTorch script that recomputes the node and its gradients",
    ),
    Act("act.export", "x", "ask('export')", "export a picture"),
    Act("act.python", "I", "do('python')", "a Python shell with the numbers of this moment"),
    Act("act.edit", "ctrl+e", "do('edit')", "the source line in $EDITOR"),
    Act("act.redraw", "ctrl+l", "look('redraw')", "redraw the screen"),
    Act("act.suspend", "ctrl+z", "suspend", "back to the shell; fg comes back"),
    Act("live.answer", "A", "ask('answer')", "answer what the program of gviz run asks"),
    Act("live.restart", "ctrl+r", "do('restart')", "run the program of gviz run again"),
    Act("act.help", "question_mark,f1", "open('help')", "help"),
    Act("act.quit", "q,ctrl+q,ctrl+d", "quit", "quit"),
)
"""Every key of the debugger. Letters act on the screen only: in the prompt they are text."""

KEYMAPS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "vscode": {
        "time.step": "f11,s,right_square_bracket",
        "time.next": "f10,n",
        "time.finish": "shift+f11,f,r",
        "time.continue": "f5,c",
        "break.toggle": "f9,b",
        "live.restart": "ctrl+r,ctrl+shift+f5",
        "act.command": "colon,ctrl+g",
        "look.page-down": "ctrl+d",
        "act.quit": "q,ctrl+q,shift+f5",
        "find.ask": "slash,ctrl+f",
        "find.next": "comma,f3",
        "find.previous": "full_stop,shift+f3",
    },
    "jetbrains": {
        "time.step": "f7,s,right_square_bracket",
        "time.next": "f8,n",
        "time.finish": "shift+f8,f,r",
        "time.continue": "f9,c",
        "time.to": "ctrl+t,t",
        "break.toggle": "ctrl+f8,b",
        "live.restart": "ctrl+r,ctrl+f5",
        "look.page-down": "ctrl+d",
        "act.quit": "q,ctrl+q,ctrl+f2",
        "find.ask": "slash,ctrl+f",
        "find.next": "comma,f3",
        "find.previous": "full_stop,shift+f3",
    },
}
"""What each keymap changes. Letters stay in all of them: a terminal may keep function keys for itself."""
_KEY_TEXTS = {
    "right_square_bracket": "]", "left_square_bracket": "[", "right_curly_bracket": "}", "left_curly_bracket": "{",
    "less_than_sign": "<", "greater_than_sign": ">", "apostrophe": "'", "slash": "/", "comma": ",", "full_stop": ".",
    "colon": ":", "question_mark": "?", "plus": "+", "minus": "-", "equals_sign": "=", "escape": "esc",
    "backspace": "bksp", "semicolon": ";", "exclamation_mark": "!",
}  # fmt: skip
_NAMED = {sign: name for name, sign in _KEY_TEXTS.items() if len(sign) == 1} | {
    "=": "equals_sign", "+": "plus", "-": "minus", ";": "semicolon", "*": "asterisk",
    "#": "number_sign", "@": "at", "_": "underscore", "~": "tilde", "&": "ampersand", "%": "percent_sign",
    "$": "dollar_sign", "^": "circumflex_accent", "|": "vertical_line", "\\": "backslash", "`": "grave_accent",
    '"': "quotation_mark", "(": "left_parenthesis", ")": "right_parenthesis", " ": "space",
    "esc": "escape", "bksp": "backspace", "return": "enter", "del": "delete", "pgup": "pageup", "pgdn": "pagedown",
}  # fmt: skip
"""Textual's names of the keys that are neither letters nor digits."""
_SIGNS = {name: sign for sign, name in _NAMED.items() if len(sign) == 1 and sign != " "}
_WORDS = {
    *_NAMED.values(), "tab", "up", "down", "left", "right", "home", "end", "insert", *(f"f{n}" for n in range(1, 25)),
}  # fmt: skip
_MODIFIERS = frozenset({"ctrl", "alt", "shift", "super", "hyper", "meta"})

Keys = Mapping[str, tuple[str, ...]]
"""The keys of each act, by the id of the act."""


def keys_of(name: str, own: Mapping[str, str] | None = None) -> Keys:
    """Return the keys of a keymap, with the user's own keys in place of some. Raises GvizError for an unknown keymap.

    A key that the user binds to one act is removed from all others. Raises GvizError if the user binds it to two acts.
    """
    if name not in KEYMAPS:
        raise _unknown("keymap", name, KEYMAPS)
    keys = {act.id: _split(act.keys) for act in ACTS} | {id: _split(text) for id, text in KEYMAPS[name].items()}
    acts_by_key: dict[str, str] = {}
    for id, text in (own or {}).items():
        if id not in keys:
            raise _unknown("key binding", id, keys)
        for key in _split(text):
            if acts_by_key.setdefault(key, id) != id:
                hint = f"bind {id} to another key; gviz keys lists what each key does"
                raise GvizError(f"{key_text(key)} is bound to both {acts_by_key[key]} and {id}", hint=hint, exit_code=2)
    theirs = {id: _split(text) for id, text in (own or {}).items()}
    return {id: theirs.get(id, tuple(key for key in known if key not in acts_by_key)) for id, known in keys.items()}


def key_text(key: str) -> str:
    """Return a key as it is written on the keyboard: ``]`` for ``right_square_bracket``, ``F5``."""
    if key in _KEY_TEXTS or key in _SIGNS:
        return _KEY_TEXTS.get(key) or _SIGNS[key]
    head, plus, last = key.rpartition("+")
    last = _KEY_TEXTS.get(last, last)
    return f"{head}{plus}{last.upper() if last[:1] == 'f' and last[1:].isdigit() else last}"


def first(keys: Keys, *ids: str) -> str:
    """Return the first keys of some acts, as written on the keyboard:

    ``sS``, ``F11/S``. Acts without keys add nothing.
    """
    names = [key_text(keys[id][0]) for id in ids if keys[id]]
    return ("" if all(len(name) == 1 for name in names) else "/").join(names)


def key_lines(keys: Keys, width: int) -> Iterator[Line]:
    """Yield the table of all keys: keys, id, description."""
    for act in ACTS:
        names = " ".join(map(key_text, keys[act.id])) or "(none)"
        yield from wrapped(line((f"{names:<13} ", "key"), (f"{act.id:<22} ", "muted"), act.description), width, 14)


def _split(text: str) -> tuple[str, ...]:
    """Return the keys of ``x, ], ctrl+k`` with Textual's names; a single comma is the key."""
    parts = [text] if text == "," else [part.strip() for part in text.split(",")]
    keys = tuple(_key(part) for part in parts if part)
    if not keys:
        raise _no_key(text)
    return keys


def _key(text: str) -> str:
    """Return Textual's name of a key that may be written as on the keyboard:

    ``F11``, ``Ctrl+K``, ``bksp``, ``shift+n``.
    """
    head, _, last = text[:-1].rpartition("+")
    modifiers, last = head.lower().split("+") if head else [], last + text[-1]
    if len(last) > 1:
        last = _NAMED.get(last.lower(), last.lower())
    elif modifiers == ["shift"] and last.isalpha():
        modifiers, last = [], last.upper()
    else:
        last = _NAMED.get(last, last.lower() if modifiers else last)
    known = last in _WORDS or (len(last) == 1 and last.isprintable())
    if not known or not _MODIFIERS.issuperset(modifiers):
        raise _no_key(text)
    return "+".join([*modifiers, last])


def _no_key(text: str) -> GvizError:
    return GvizError(f"{clipped(repr(text), 30)} is not a key", hint="write x, ctrl+k, f5 or ]", exit_code=2)


def _unknown(what: str, name: str, known: Mapping[str, object]) -> GvizError:
    hint = did_you_mean(name, known, "gviz keys lists them" if len(known) > 5 else ", ".join(known))
    return GvizError(f"there is no {what} {clipped(name, 30)}", hint=hint, exit_code=2)
