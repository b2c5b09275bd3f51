"""How moments are written: the list for the help, the words for completion, and the forms of passes and iterations.

All commands and options share this list. It needs no timeline, because the help of every command shows it.
`gviz.query.moments` finds the event that a moment refers to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

MOMENTS: tuple[tuple[str, str], ...] = (
    ("12, @12", "right after this event; 0 is before all"),
    ("start, end", "before the first event, after the last"),
    (
        "forward, fwd",
        "the end of the forward of this iteration (from outside: of the last); } and { go to the beginnings",
    ),
    ("backward, bwd", "the end of the last backward pass of this iteration (from outside: of the last)"),
    ("iteration 3", "its end, or before its optimizer used the gradients; the list of passes goes to its beginning"),
    ("forward 3, backward 3", "the end of that pass of iteration 3 (of its last one, if it has several)"),
    ("pass 3", "the end of backward pass 3, counted over the whole recording as in the list of passes"),
    ("backward d_loss", "the end of the last backward pass from this loss"),
    (
        "nan, inf",
        "the first event with a nan (if there is none, with an inf, and a message), or with an inf",
    ),
    ("error", "where the program failed, or a pass whose error it caught"),
    ("'NAME", "a mark, set by mark() in the program or by the debugger"),
    (
        "#4, x, op:mul, demo.py:4",
        "the event that made this node; of several called x the last one made by now, else the next (from outside: the "
        "last), in every command that asks about one",
    ),
    ("x.grad, #4.grad", "where the last part of its gradient arrives, or is added to its .grad"),
    (
        "on receive h",
        "what break takes (on EVENT [PLACE], change EXPR): where it fits last by now, else next",
    ),
)
"""How a moment is written, and what it refers to."""

MOMENT_WORDS = ("start", "end", "forward", "backward", "fwd", "bwd", "nan", "inf", "error")
"""The moments that are plain words, for Tab completion."""

A_MOMENT = (
    "an event number, start, end, forward or backward (the end of that pass), 'backward d_loss', 'iteration 3' (its "
    "end, before its optimizer step), 'pass 3' (the 3rd backward pass), nan, inf, error, 'MARK, a node (x or #4), its "
    "gradient (x.grad), or a stop ('on receive x')"
)
"""What a moment can be, in a short phrase."""

SUCH_MOMENTS = "12, end, backward, iteration 3, nan, 'MARK, x, x.grad or change w"
"""Examples of moments, for the error about any other text."""

OF_ITERATION = re.compile(r"(iteration|forward|fwd|backward|bwd) +([0-9]+)")
"""An iteration by its number, or one of its passes."""
OF_LOSS = re.compile(r"(?:backward|bwd) +([^\s\d]\S*)")
"""The backward pass of a loss, by its name or number: ``backward d_loss``, ``backward #68``."""

OF_PASS = re.compile(r"pass +([0-9]+)")
"""A backward pass by its number in the recording."""

PASSES: Mapping[str, Literal["forward", "backward"]] = {
    "forward": "forward",
    "fwd": "forward",
    "backward": "backward",
    "bwd": "backward",
}
"""The words for a pass; as a moment, its end."""


def is_stretch(text: str) -> bool:
    """Return whether a text refers to a pass or an iteration, which has a beginning too."""
    return text in PASSES or any(form.fullmatch(text) for form in (OF_ITERATION, OF_PASS, OF_LOSS))
