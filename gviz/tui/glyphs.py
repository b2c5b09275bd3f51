"""The characters of the interface, in Unicode and in ASCII, each one cell wide (the ASCII `cut` takes 3)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from gviz.values.plain_text import shown


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of characters; `table` translates any other text to it."""

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
        """Return `text` in this character set."""
        return text.translate(self.table) if self.ascii else text

    def clipped(self, text: str, width: int) -> str:
        """Return `text` in this character set, in at most `width` cells."""
        plain = self.text(shown(text))
        return plain if len(plain) <= width else plain[: max(width - len(self.cut), 0)] + self.cut


UNICODE = Glyphs("►", "◄", "·", "…", "━", "─", "█", "┃", "!", "◉", "·", "●", ascii=False, table={})

ASCII = Glyphs(
    ">", "<", ".", "...", "=", "-", "#", "|", "!", "'", "-", "*", ascii=True,
    table=str.maketrans({
        "►": ">", "◄": "<", "·": ".", "…": "...", "━": "=", "─": "-", "█": "#", "┃": "|", "→": "->", "←": "<-",
        "μ": "mean", "σ": "std", "×": "x", "−": "-", "↻": "v", "—": "-", "–": "-", "≤": "<=", "≥": ">=", "│": "|",
        "²": "^2", "³": "^3", "√": "sqrt", "π": "pi", "Σ": "sum", "∑": "sum", "⊙": "*", "ᵀ": ".T", "⁻": "-", "¹": "1",
        "∂": "d", "◆": "@", "○": "o", "▁": "_", "▂": ".", "▃": ",", "▄": "-", "▅": "+", "▆": "*", "▇": "%",
    }),
)  # fmt: skip


def glyphs(*, ascii: bool) -> Glyphs:
    """Return the character set to draw with."""
    return ASCII if ascii else UNICODE


def wants_ascii(environ: Mapping[str, str] = os.environ, *, encoding: str = "") -> bool:
    """Return whether only ASCII characters are sure to be displayed.

    This holds if ``GVIZ_ASCII`` is set, on the Linux console, and if the locale or the `encoding` of the output is not
    UTF-8. Without `encoding`, the encoding of standard output is tested.
    """
    if environ.get("GVIZ_ASCII", "0") not in ("", "0") or environ.get("TERM") == "linux":
        return True
    locale = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "")
    return not all(_is_unicode(named) for named in (locale, encoding or encoding_of(sys.stdout)) if named)


def encoding_of(out: object) -> str:
    """Return the encoding of an output stream; empty if it is unknown."""
    return getattr(out, "encoding", None) or ""


def _is_unicode(name: str) -> bool:
    return "utf" in name.lower()
