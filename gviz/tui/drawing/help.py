"""The help: the keys on one page; and on another page, the meaning of every word, mark and number on the screen.

``?`` shows the keys, ``help words`` the words, ``help waiting`` the words that begin like that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from gviz.query_syntax.moment import MOMENTS
from gviz.render.boxes.node_states import MEANINGS
from gviz.render.legend import NUMBERS, RULES, Rows
from gviz.tui.keymaps import Keys, first
from gviz.tui.styled_lines import Line, Span, line, wrapped

_LEFT = (
    ("time.step time.reverse-step", "one event forward, back"),
    ("time.next time.reverse-next", "one whole node"),
    ("time.phase time.reverse-phase", "next phase, phase before"),
    ("time.continue time.reverse-continue", "next stop (breakpoint, error, nan)"),
    ("time.finish time.reverse-finish", "end, start of a call or pass"),
    ("time.to time.reverse-to", "next, last event of this node"),
    ("time.start time.end", "first, last event"),
    ("time.play", "play, pause"),
    ("time.mark time.goto-mark time.back", "bookmark, go to one, go back"),
    ("find.ask find.next find.previous", "find, next, previous match"),
    ("break.toggle break.edit", "breakpoint, with a condition"),
    ("look.passes", "list of iterations and passes"),
    ("act.command act.palette", "command line, list of commands"),
)
_RIGHT = (
    ("look.explain", "why this value, gradient"),
    ("look.findings", "findings, no gradient"),
    ("look.training", "losses over all passes"),
    ("look.happened", "this event in full"),
    ("look.next look.previous", "next, previous node"),
    ("look.input look.user", "an input, a user of it"),
    ("look.up look.down", "up, down the call stack"),
    ("look.inspect look.detail", "all about it, all digits"),
    ("watch.ask look.eval", "watch, print"),
    ("view.next view.zoom graph.level", "view, one panel, level"),
    ("view.1-view.9", "panels (also 0 and Tab)"),
    ("graph.open graph.close graph.part", "expand, collapse, part"),
    ("act.copy act.export act.menu", "copy, export, menu"),
)
_LEGEND: tuple[tuple[str | Span, ...], ...] = (
    (("3", "value"), " value  ", ("-6", "grad"), " gradient  ", ("4", "sum"), " added now  ", ("!", "error"),
     " error, nan, inf  ", ("|g|", "key"), " length  ", ("·", "muted"), " none"),
    ("Small letters go forward, CAPITALS back. Click: select. Double click: run.",),
    ("gviz run: Ctrl+C pauses the program, A answers it, Ctrl+R runs it again.",),
    ((":help", "key"), ": every command   ", (":keys", "key"), ": every key   ",
     (":help words", "key"), ": what each word means"),
)  # fmt: skip
_ROOM = 74


def help_page(keys: Keys, width: int) -> Iterator[Line]:
    """Yield the keys on one page of 74 by 18 cells, in two columns, or in one on a narrow screen."""
    left = [(_with_keys(ids, keys), text) for ids, text in _LEFT]
    right = [(_with_keys(ids, keys), text) for ids, text in _RIGHT]
    of_left, of_right = (max(len(names) for names, _ in side) + 1 for side in (left, right))
    means_width = max(len(text) for _, text in right)
    text_width = max(len(text) for _, text in left) + 1
    if width >= max(_ROOM, of_left + text_width + of_right + means_width):
        for (names, text), (others, means) in zip(left, right, strict=True):
            yield line((f"{names:<{of_left}}", "key"), f"{text:<{text_width}}", (f"{others:<{of_right}}", "key"), means)
    else:
        for names, text in (*left, *right):
            yield from wrapped(line((f"{names:<10} ", "key"), text), width, 11)
    yield ()
    for spans in _LEGEND:
        yield from wrapped(line(*spans), width, 2)


def _with_keys(ids: str, keys: Keys) -> str:
    return re.sub(r"[a-z]+\.[a-z0-9-]*[a-z0-9](?=-view|\s|$)", lambda match: first(keys, match.group(0)), ids)


_WORDS = re.compile(r", |  ")
"""The separator of words that are explained in one row."""

COLUMN = 25
"""The largest width of the column of words, in cells."""

_MARKS: Rows = (
    ("►", "the node that this event is about"),
    ("!", "an error, nan or inf; on the bar where it happened"),
    ("█ ┃ ◉", "on the bar: this moment, the start of a phase or iteration, a mark"),
    ("●", "a breakpoint"),
    ("◆ x ○", "below the graph: the selected node, a cut of the graph, a parameter or leaf without a gradient"),
    ("^", "a watch that has changed since the last stop"),
    ("dashed box", "not run yet, freed, or its saved tensors are released: the word in its corner shows which"),
    ("(4) under grad", "on a narrow tape: the incoming gradient of a leaf, not yet added to its .grad"),
    ("param, const", "on the tape instead of inputs: a parameter, a constant; leaf: it gets a .grad"),
)

_TERMS: Rows = (
    ("grad", "in a box, on the tape: the incoming gradient of the node, in this pass"),
    ("·, not yet", "no number yet: the value is not computed, or no gradient has arrived"),
    ("incoming gradient", "the sum of the contributions that arrive at a tensor in one backward pass"),
    ("outgoing gradient", "what the backward rule of a node sends to one of its inputs"),
    ("contribution", "one gradient that arrives over one edge; those of all users of a tensor are added"),
    (".grad, accumulated gradient", "what the backward passes have added to a leaf since it was cleared"),
    ("leaf", "a tensor that requires a gradient and that no operation made; a pass adds to its .grad"),
    ("parameter", "a leaf that a module holds, for the optimizer"),
    ("frozen", "a parameter whose requires_grad is False: it gets no gradient"),
    ("saved tensors", "what a node keeps for its backward rule; released after its backward"),
    ("version", "how often the memory of a tensor was written in place: v2, twice"),
    ("retained gradient", "the .grad of a tensor that an operation made, kept because of retain_grad()"),
    ("pass, backward pass", "one run of backward() or autograd.grad; pass 7 is the 7th of the recording"),
    ("iteration, graph", "one turn of the training loop; a graph, where no loop is known yet"),
    ("phase", "forward, backward or optimizer; what lies between them is named by what came before"),
    ("event", "one entry of the recording: a node made, a contribution sent, memory written"),
    ("moment", "a position in the recording, right after an event"),
)

SECTIONS: tuple[tuple[str, Rows], ...] = (
    ("Words", _TERMS),
    ("The state of a node, in the corner of its box and in the notes of the tape", MEANINGS),
    ("Numbers", NUMBERS),
    ("Rules", RULES),
    ("Marks", _MARKS),
    ("Moments, for goto, --at and all that takes a place in time", MOMENTS),
)


def words_page(width: int) -> Iterator[Line]:
    """Yield every section, each word with its meaning."""
    for at, (title, rows) in enumerate(SECTIONS):
        if at:
            yield ()
        yield from wrapped(line((title, "title")), width)
        yield from _rows(rows, width)


def words_like(text: str) -> Rows:
    """Return the rows of words that begin like a text. All numbers match each other: ``2 of 3`` finds ``1 of 2``."""
    beginning = _numberless(text)
    every = [row for _, rows in SECTIONS for row in rows]
    return tuple(row for row in every if any(_numberless(word).startswith(beginning) for word in _WORDS.split(row[0])))


def words_named(text: str) -> Rows:
    """Return the rows of words that begin with a whole word: ``saved`` finds ``saved tensors``."""
    name = _numberless(text)
    every = [row for _, rows in SECTIONS for row in rows]
    return tuple(
        row for row in every if any(f"{_numberless(word)} ".startswith(f"{name} ") for word in _WORDS.split(row[0]))
    )


def about(rows: Rows) -> Callable[[int], Iterator[Line]]:
    """Return a page with these words only."""
    return partial(_rows, rows)


def _numberless(text: str) -> str:
    return re.sub(r"\d+", "0", text.casefold())


def _rows(rows: Rows, width: int) -> Iterator[Line]:
    column = min(COLUMN, width // 3)
    for word, means in rows:
        head = f"{word:<{column}}" if len(word) < column else f"{word} "
        yield from wrapped(line((head, "key"), " ", means), width, column + 1)
