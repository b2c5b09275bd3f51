"""The row of keys at the bottom, and the help that says all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gviz.tui.drawing.words import words_page
from gviz.tui.keymaps import Keys, first, keys_of
from gviz.tui.lines import Line, Span, cells, line, wrapped


@dataclass(frozen=True, slots=True)
class Key:
    """Keys that belong together, their word in the bottom row, and the action a click on it runs."""

    keys: str
    word: str
    action: str


_OFFERED = (
    (("time.step", "time.reverse-step"), "Step", "travel('step')"),
    (("time.next", "time.reverse-next"), "Node", "travel('next')"),
    (("time.continue", "time.reverse-continue"), "Run", "travel('continue')"),
    (("time.finish", "time.reverse-finish"), "Call", "travel('finish')"),
    (("time.to", "time.reverse-to"), "Here", "travel('to')"),
    (("view.next",), "View", "view"),
    (("find.ask",), "Find", "ask('find')"),
    (("act.command",), "Cmd", "ask('command')"),
    (("act.help",), "Help", "open('help')"),
    (("act.quit",), "Quit", "quit"),
)
_GIVE_WAY = ("Here", "View", "Find", "Call", "Run", "Cmd", "Node", "Step", "Quit")


def offered(keys: Keys) -> tuple[Key, ...]:
    """What the bottom row offers, with the keys of a keymap."""
    return tuple(Key(first(keys, *ids), word, action) for ids, word, action in _OFFERED)


KEYS = offered(keys_of("default"))


def fitting_keys(width: int, kept: tuple[Key, ...] = KEYS) -> tuple[Key, ...]:
    """The keys that fit into a row; the least needed ones give way first, help never."""
    for word in _GIVE_WAY:
        if cells(keys_row(kept)) <= width:
            break
        kept = tuple(key for key in kept if key.word != word)
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
    ("time.step  time.reverse-step", "one event forward, back"),
    ("time.next  time.reverse-next", "one whole node"),
    ("time.finish  time.reverse-finish", "end, start of module call or pass"),
    ("time.continue  time.reverse-continue", "run to a breakpoint, error, nan, mark"),
    ("time.to  time.reverse-to", "next, last event of the selected node"),
    ("time.reverse-phase  time.phase", "phase before, next phase"),
    ("time.start  time.end", "first, last event   <time.play>  play"),
    ("time.mark time.goto-mark", "bookmark and a letter   <time.back> back"),
    ("look.first  look.last", "first, last node of the tape"),
    ("find.ask find.next find.previous", "find, next and previous match"),
    ("break.toggle  break.edit", "breakpoint here, or with a condition"),
    ("act.command", "command line (:help, <act.palette> list all)"),
)
_RIGHT = (
    ("look.next look.previous", "next, previous node"),
    ("look.input look.user", "to an input, to a user"),
    ("look.up look.down", "up, down the callers"),
    ("view.next", "graph, tape, both"),
    ("view.1-view.9", "panels, also 0 and tab"),
    ("view.zoom", "one panel only"),
    ("look.detail look.inspect", "all digits, all of it"),
    ("look.output", "program output"),
    ("act.copy act.export act.menu", "copy, export, menu"),
    ("view.leave", "leave, undo zoom"),
    ("graph.open graph.close graph.part", "open, close, ancestors"),
    ("look.explain look.happened watch.ask look.eval", "why, more, watch, print"),
)
_LEGEND: tuple[tuple[str | Span, ...], ...] = (
    (("3", "value"), " value   ", ("-6", "grad"), " gradient   ", ("4", "sum"), " added now   ", ("!", "error"),
     " bad   in: inputs, or what arrives"),
    (("leaf:", "key"), " made by you, gets a .grad   ", ("const:", "key"), " gets none   ", ("param:", "key"),
     " of a module"),
    (("pending:", "key"), " not made yet   ", ("saved:", "key"), " kept for backward   ", ("freed:", "key"),
     " let go by it"),
    (("waiting:", "key"), " for gradients   ", ("↻2, v2:", "key"), " memory written in place   ", ("|g|:", "key"),
     " length"),
    ("small letters go forward, CAPITALS back; click selects, double click runs",),
    ("gviz run: ctrl+c pauses the program, A answers it, ctrl+r runs it again",),
    ((":help waiting", "key"), " explains a word of the screen, :help step a command",),
)  # fmt: skip
_ROOM = 74


def help_page(keys: Keys, width: int) -> Iterator[Line]:
    """Every key on one screen of 74 by 20 cells, one below the other where there is less room; then what is seen."""
    left = [(_named(ids, keys), _with_keys(says, keys)) for ids, says in _LEFT]
    right = [(_named(ids, keys), says) for ids, says in _RIGHT]
    if width >= _ROOM and max(len(names) for names, _ in left) <= 6 and max(len(names) for names, _ in right) <= 8:
        for (names, says), (others, means) in zip(left, right, strict=True):
            yield line((f"{names:<6}", "key"), f"{says:<38}", (f"{others:<8}", "key"), means)
    else:
        for names, says in (*left, *right):
            yield from wrapped(line((f"{names:<10} ", "key"), says), width, 11)
    yield ()
    for spans in _LEGEND:
        yield from wrapped(line(*spans), width, 2)
    yield ()
    yield from words_page(width)


def _named(ids: str, keys: Keys) -> str:
    return re.sub(r"[a-z]+\.[a-z0-9-]*[a-z0-9](?=-view|\s|$)", lambda found: first(keys, found.group(0)), ids)


def _with_keys(text: str, keys: Keys) -> str:
    return re.sub(r"<([a-z.-]+)>", lambda found: first(keys, found.group(1)), text)
