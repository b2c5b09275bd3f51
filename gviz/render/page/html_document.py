"""The page as one file, with its packed data, its style sheet and its script. It loads nothing else."""

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

from gviz.render.boxes.node_states import MEANINGS
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
"""The shapes that the page draws besides words."""


def document(contents: Mapping[str, Any], theme: str) -> str:
    """Return the HTML text of a page. `theme` is ``light``, ``dark``, or ``auto`` (the reader's system setting)."""
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
    """Return the data as deflated JSON, in letters without a meaning in HTML."""
    text = json.dumps(contents, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return b64encode(compress(text.encode("utf-8", "backslashreplace"), 6)).decode()


def _part(name: str) -> str:
    """Return a file of the page without indentation and comment lines."""
    lines = files(__package__).joinpath(name).read_text("utf-8").splitlines()
    return "\n".join(line for line in map(str.strip, lines) if line and not line.startswith(("//", "/*")))


def _words() -> str:
    """Return the meanings of the words and marks in boxes, as rows of a definition list."""
    rows = (*SHAPES, *RULES, *NUMBERS, *MEANINGS)
    return "\n".join(f"<dt>{escape(word)}</dt><dd>{escape(means)}</dd>" for word, means in rows)


def _policy(style: str, script: str) -> str:
    """Return a content security policy: nothing is loaded, and only this style sheet and this script are used."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _colours() -> str:
    """Return both themes: the reader's choice comes first, then the system setting. Paper is light."""
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
