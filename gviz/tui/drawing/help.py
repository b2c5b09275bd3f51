"""The help: every key on one screen, then what every word, mark and number on the screen means.

``?`` shows all of it, ``help words`` the second half, ``help waiting`` the words that begin so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from gviz.query.vocabulary import MOMENTS
from gviz.render.boxes.state_words import MEANINGS
from gviz.render.legend import NUMBERS, RULES, Rows
from gviz.tui.keymaps import Keys, first
from gviz.tui.lines import Line, Span, line, wrapped

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


_WORDS = re.compile(r", |  ")
"""The separator of words that are explained in one row."""

COLUMN = 25
"""Cells of the column of words, at most."""

_MARKS: Rows = (
    ("►", "the node that this event is about"),
    ("!", "an error, nan or inf; on the bar where it happened"),
    ("█ ┃ ◉", "on the bar: this moment, the start of a phase or iteration, a mark"),
    ("●", "a breakpoint"),
    ("^", "what is watched has changed since the stop before"),
    ("dashed box", "not made yet, or gone, or what it saved is freed: the word in its corner says which"),
    ("(4) under grad", "on the tape: has arrived for a leaf in this pass, and is not yet added to its .grad"),
    ("param, const", "on the tape instead of inputs: a parameter, a constant; leaf: it gets a .grad"),
)

SECTIONS: tuple[tuple[str, Rows], ...] = (
    ("The state of a node, in the corner of its box and in the notes of the tape", MEANINGS),
    ("Numbers", NUMBERS),
    ("Rules", RULES),
    ("Marks", _MARKS),
    ("Moments, for goto, --at and all that takes a place in time", MOMENTS),
)


def words_page(width: int) -> Iterator[Line]:
    """Every section, each word with its meaning."""
    for at, (title, rows) in enumerate(SECTIONS):
        if at:
            yield ()
        yield from wrapped(line((title, "title")), width)
        yield from _rows(rows, width)


def words_like(text: str) -> Rows:
    """What begins as a text does, as it is seen: any number is as good as another, ``2 of 3`` as ``1 of 2``."""
    wanted = _numberless(text)
    every = [row for _, rows in SECTIONS for row in rows]
    return tuple(row for row in every if any(_numberless(word).startswith(wanted) for word in _WORDS.split(row[0])))


def about(rows: Rows) -> Callable[[int], Iterator[Line]]:
    """A page with these words only."""
    return partial(_rows, rows)


def _numberless(text: str) -> str:
    return re.sub(r"\d+", "0", text.casefold())


def _rows(rows: Rows, width: int) -> Iterator[Line]:
    column = min(COLUMN, width // 3)
    for word, means in rows:
        head = f"{word:<{column}}" if len(word) < column else f"{word} "
        yield from wrapped(line((head, "key"), " ", means), width, column + 1)
