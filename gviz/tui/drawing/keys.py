"""The row of keys at the bottom, and the help that says all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gviz.tui.lines import Line, Span, cells, line, wrapped


@dataclass(frozen=True, slots=True)
class Key:
    """Keys that belong together, their word in the bottom row, and the action a click on it runs."""

    keys: str
    word: str
    action: str


KEYS = (
    Key("sS", "Step", "travel('step')"),
    Key("nN", "Node", "travel('next')"),
    Key("cC", "Run", "travel('continue')"),
    Key("fF", "Call", "travel('finish')"),
    Key("tT", "Here", "travel_to(False)"),
    Key("v", "View", "view"),
    Key("/", "Find", "prompt('/')"),
    Key(":", "Cmd", "prompt(':')"),
    Key("?", "Help", "help"),
    Key("q", "Quit", "quit"),
)
"""What the bottom row offers."""

_GIVE_WAY = ("tT", "v", "/", "fF", "cC", ":", "nN", "sS", "q")


def fitting_keys(width: int) -> tuple[Key, ...]:
    """The keys that fit into a row; the least needed ones give way first, help never."""
    kept: tuple[Key, ...] = KEYS
    for keys in _GIVE_WAY:
        if cells(keys_row(kept)) <= width:
            break
        kept = tuple(key for key in kept if key.keys != keys)
    return kept


def keys_row(keys: tuple[Key, ...]) -> Line:
    """The row itself: `` sS Step  nN Node``."""
    spans: list[Span] = []
    for key in keys:
        spans += [(" ", ""), (key.keys, "key"), (f" {key.word} ", "")]
    return tuple(spans)


def key_at(keys: tuple[Key, ...], x: int) -> Key | None:
    """The key whose words stand in cell `x` of the row."""
    start = 0
    for key in keys:
        end = start + len(key.keys) + len(key.word) + 3
        if start <= x < end:
            return key
        start = end
    return None


_LEFT = (
    ("s  S", "one event forward, back"),
    ("n  N", "one whole node"),
    ("f  F", "end, start of module call or pass"),
    ("c  C", "run to a breakpoint, error, nan, mark"),
    ("t  T", "next, last event of the selected node"),
    ("{  }", "phase before, next phase"),
    ("<  >", "first, last event   space  play"),
    ("m' '", "bookmark: m a, then ' a   bksp back"),
    ("g  G", "first, last node of the tape"),
    ("/ , .", "find, next and previous match"),
    ("b  B", "breakpoint here, or with a condition"),
    (":", "command line (:help lists all)"),
)
_RIGHT = (
    ("j k", "next, previous node"),
    ("h l", "to an input, to a user"),
    ("u d", "up, down the callers"),
    ("v", "graph, tape, both"),
    ("tab 1-5", "panels"),
    ("z", "one panel only"),
    ("i enter", "all digits, all of it"),
    ("o", "program output"),
    ("x", "export a picture"),
    ("esc", "leave, undo zoom"),
    ("q", "quit"),
    ("e w p", "why, watch, evaluate"),
)
_LEGEND: tuple[tuple[str | Span, ...], ...] = (
    (("3", "value"), " value   ", ("-6", "grad"), " gradient   ", ("4", "sum"), " sum   ", ("!", "error"),
     " bad   in: the numbers of its inputs"),
    ("(2 of 2): so many of its contributions have arrived",),
    ("v4, ↻4: its memory was written in place, and is version 4 now",),
    ("freed: what it had saved for backward is released",),
    ("gone: nothing refers to it any more",),
    ("dashed box: not run yet, or freed or gone; the word in its corner says which",),
    ("a small letter goes forward, the same letter in CAPITALS back; a click",),
    ("selects, a double click runs there, the bar at the top seeks",),
)  # fmt: skip
_ROOM = 76


def help_page(width: int) -> Iterator[Line]:
    """Every key on one screen of 76 by 20 cells; one below the other where there is less room."""
    if width >= _ROOM:
        for (left, says), (right, means) in zip(_LEFT, _RIGHT, strict=True):
            yield line((f"{left:<6}", "key"), f"{says:<40}", (f"{right:<8}", "key"), means)
    else:
        for keys, says in (*_LEFT, *_RIGHT):
            yield from wrapped(line((f"{keys:<8}", "key"), says), width, 8)
    yield ()
    for spans in _LEGEND:
        yield from wrapped(line(*spans), width, 2)
