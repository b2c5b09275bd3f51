"""The page as one file: its data packed, its look and its script inside, and nothing that could be fetched."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any
from zlib import compress

from gviz.render.boxes.state_words import MEANINGS
from gviz.render.legend import NUMBERS, PAINTED, RULES, Rows
from gviz.render.theme import DARK, LIGHT, Theme

SCRIPTS = ("unpack.js", "moves.js", "graph.js", "panes.js", "events.js", "page.js")
"""The parts of the script, in the order in which they are joined."""

SHAPES: Rows = (
    ("round box", "a tensor that no operation made: blue a parameter, grey a constant"),
    ("square box", "an operation and its result; with a double border the one that backward started from"),
    ("frame", "the call of a module, around what it computed"),
    ("thin arrow", "data, with the shape of the tensor; hollow: no gradient flows back"),
    ("thick blue arrow", "a gradient"),
    ("dotted", "a view: shares the memory of its input"),
)
"""What the page draws, beside words."""


def document(contents: Mapping[str, Any], theme: str) -> str:
    """The HTML text of a page; `theme` is ``light``, ``dark``, or ``auto``: as the reader's system is set."""
    style = "\n".join([_colours(), _part("page.css")])
    script = "\n".join(map(_part, SCRIPTS))
    return Template(_part("page.html")).substitute(
        title=escape(str(contents["title"])),
        theme=escape(theme),
        policy=_policy(style, script),
        style=style,
        script=script,
        words=_words(),
        data=pack(contents),
    )


def pack(contents: Mapping[str, Any]) -> str:
    """The data as JSON, deflated, in letters that mean nothing in HTML."""
    text = json.dumps(contents, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return b64encode(compress(text.encode("utf-8", "backslashreplace"), 6)).decode()


def _part(name: str) -> str:
    """A file of the page without its indentation and whole lines of comment, which only its writers read."""
    lines = files(__package__).joinpath(name).read_text("utf-8").splitlines()
    return "\n".join(line for line in map(str.strip, lines) if line and not line.startswith(("//", "/*")))


def _words() -> str:
    """What the words and marks in boxes mean, as rows of a list of definitions."""
    rows = (*SHAPES, *RULES, *NUMBERS, *MEANINGS)
    return "\n".join(f"<dt>{escape(word)}</dt><dd>{escape(means)}</dd>" for word, means in rows)


def _policy(style: str, script: str) -> str:
    """Nothing is loaded; only this style and this script are obeyed."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _colours() -> str:
    """Both themes: what the reader chose, else what the system prefers; paper is light."""
    light, dark = "\n".join(_rules(LIGHT)), "\n".join(_rules(DARK))
    return "\n".join(
        [
            light,
            "@media (prefers-color-scheme: dark) {",
            _scoped(dark, ":root:not([data-theme=light])"),
            "}",
            _scoped(dark, ":root[data-theme=dark]"),
            "@media print {",
            _scoped(light, ":root:root:root"),
            "}",
        ]
    )


def _rules(theme: Theme) -> Iterator[str]:
    names = "; ".join(f"--{style}: {colour}" for style, colour in theme.texts.items())
    yield f":root {{ color-scheme: {theme.name}; --canvas: {theme.canvas}; --line: {theme.edge}; {names} }}"
    paints = {**theme.paints, **dict.fromkeys(("nan", "inf"), theme.paints["error"]), "cut": theme.paints["missing"]}
    roles = [f"role-{name}" for name in paints if name not in PAINTED]
    for name in [*roles, *(f"state-{state}" for state in reversed(PAINTED))]:
        paint = paints[name.partition("-")[2]]
        yield f".{name} {{ --face: {paint.fill}; --rim: {paint.border} }}"


def _scoped(rules: str, scope: str) -> str:
    lines = (
        line.replace(":root", scope, 1) if line.startswith(":root") else f"{scope} {line}"
        for line in rules.splitlines()
    )
    return "\n".join(lines)
