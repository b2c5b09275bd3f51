"""The row of keys at the bottom, and the help that says all of them."""

from __future__ import annotations

from dataclasses import dataclass

from gviz.tui.lines import Line, Span, cells, line


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
    Key("fF", "End", "travel('finish')"),
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
    ("c  C", "run to the next stop: error, nan, mark"),
    ("t  T", "next, last event of the selected node"),
    ("{  }", "phase before, next phase"),
    ("<  >", "first, last event   space  play"),
    ("m' '", "bookmark: m a, then ' a   bksp back"),
    ("g  G", "first, last node of the tape"),
    ("/ , .", "find, next and previous match"),
    (":", "command line (:help lists all)"),
)
_RIGHT = (
    ("j k", "next, previous node"),
    ("h l", "to an input, to a user"),
    ("u d", "up, down the callers"),
    ("v", "graph, tape, both"),
    ("tab 1-5", "panels"),
    ("z", "one panel only"),
    ("i enter", "values in full"),
    ("o", "program output"),
    ("x", "export a picture"),
    ("esc", "leave, undo zoom"),
    ("q", "quit"),
)
_LEGEND: tuple[tuple[str | Span, ...], ...] = (
    (("3", "value"), " value   ", ("-6", "grad"), " gradient   ", ("4", "sum"), " sum   ", ("!", "error"), " bad"),
    ("dashed box: not run yet    freed: what it had saved is released",),
    ("a small letter goes forward, the same letter in CAPITALS back; a click",),
    ("selects, a double click runs there, the bar at the top seeks",),
)  # fmt: skip


def help_page() -> tuple[Line, ...]:
    """Every key on one screen of 76 by 20 cells."""
    rows: list[Line] = []
    for (left, says), (right, means) in zip(_LEFT, _RIGHT, strict=True):
        rows.append(line((f"{left:<6}", "key"), f"{says:<40}", (f"{right:<8}", "key"), means))
    return (*rows, (), *(line(*spans) for spans in _LEGEND))
