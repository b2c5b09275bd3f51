"""The marks of the interface, once in Unicode and once in ASCII, one cell each."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from gviz.values.plain_text import shown


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of characters; `table` rewrites the rest of a text for it."""

    now: str
    back: str
    nothing: str
    cut: str
    past: str
    future: str
    cursor: str
    boundary: str
    bad: str
    mark: str
    dot: str
    stop: str
    ascii: bool
    table: Mapping[int, str]

    def text(self, text: str) -> str:
        """`text` in this character set."""
        return text.translate(self.table) if self.ascii else text

    def clipped(self, text: str, width: int) -> str:
        """`text` in this character set, in at most `width` cells of a column."""
        plain = self.text(shown(text))
        return plain if len(plain) <= width else plain[: max(width - len(self.cut), 0)] + self.cut


UNICODE = Glyphs("►", "◄", "·", "…", "━", "─", "█", "┃", "!", "◉", "·", "●", ascii=False, table={})

ASCII = Glyphs(
    ">", "<", ".", "...", "=", "-", "#", "|", "!", "'", "-", "*", ascii=True,
    table=str.maketrans({
        "►": ">", "◄": "<", "·": ".", "…": "...", "━": "=", "─": "-", "█": "#", "┃": "|", "→": "->", "←": "<-",
        "μ": "mean", "σ": "std", "×": "x", "−": "-", "↻": "v", "—": "-", "–": "-", "≤": "<=", "≥": ">=", "│": "|",
        "²": "^2", "³": "^3", "√": "sqrt", "π": "pi", "Σ": "sum", "∑": "sum", "⊙": "*", "ᵀ": ".T", "⁻": "-", "¹": "1",
        "▁": "_", "▂": ".", "▃": ",", "▄": "-", "▅": "+", "▆": "*", "▇": "%",
    }),
)  # fmt: skip


def glyphs(*, ascii: bool) -> Glyphs:
    """The character set to draw with."""
    return ASCII if ascii else UNICODE


def wants_ascii(environ: Mapping[str, str] = os.environ, *, encoding: str = "") -> bool:
    """Whether only ASCII is sure to be shown as it is.

    So it is where ``GVIZ_ASCII`` asks for it, on the Linux console, and where the locale, or the `encoding` of what is
    written to, that of standard output if none is given, is not UTF-8.
    """
    if environ.get("GVIZ_ASCII", "0") not in ("", "0") or environ.get("TERM") == "linux":
        return True
    locale = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "")
    return not all(_is_unicode(named) for named in (locale, encoding or encoding_of(sys.stdout)) if named)


def encoding_of(out: object) -> str:
    """The encoding of what is written to, empty if it is not known."""
    return getattr(out, "encoding", None) or ""


def _is_unicode(name: str) -> bool:
    return "utf" in name.lower()
