"""What every word, mark and number on the screen means: the page ``help words``, and the lower part of the help."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from gviz.query.vocabulary import MOMENTS
from gviz.render.boxes.states import MEANINGS
from gviz.render.legend import NUMBERS, RULES, Rows
from gviz.tui.lines import Line, line, wrapped

_WORDS = re.compile(r", |  ")
"""What stands between words that are explained in one row."""

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
    """Every section, each word with what it means beside it."""
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
    """A page of some words alone."""
    return partial(_rows, rows)


def _numberless(text: str) -> str:
    return re.sub(r"\d+", "0", text.casefold())


def _rows(rows: Rows, width: int) -> Iterator[Line]:
    column = min(COLUMN, width // 3)
    for word, means in rows:
        head = f"{word:<{column}}" if len(word) < column else f"{word} "
        yield from wrapped(line((head, "key"), " ", means), width, column + 1)
