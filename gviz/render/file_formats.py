"""The table of all file formats for a moment of a trace. The command line can write every format in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from gviz.errors import GvizError
from gviz.render import page
from gviz.render.forms import animation, dot_text, gif, mermaid, picture_json, png_and_pdf, svg, text
from gviz.render.graphviz.process import Picture
from gviz.render.picture_request import ExportOptions, first_moment
from gviz.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Exporter:
    """One format: its name, the suffixes of its files, and the function that writes moment `n` of a timeline.

    * `moves`: it shows `ExportOptions.moments`, or the whole pass around `n`.
    * `picture`: Graphviz draws it, so it can be drawn for many moments in one layout.
    * `scales`: it can be drawn larger.
    * `opens`: it contains all moments, or `ExportOptions.moments`. The function returns the moment at which it opens if
      the user requests none.
    * `of_style`: what it uses of the picture's style. `of_figure`: whether it can be a figure.
    """

    name: str
    suffixes: tuple[str, ...]
    render: Callable[[Timeline, int, ExportOptions], str | bytes]
    moves: bool = False
    scales: bool = False
    picture: Picture | None = None
    opens: Callable[[Timeline], int] | None = None
    of_style: Literal["look", "words", "nothing"] = "look"
    of_figure: bool = False


EXPORTERS: tuple[Exporter, ...] = (
    Exporter("svg", (".svg",), svg.render, scales=True, picture="svg", of_figure=True),
    Exporter("dot", (".dot", ".gv"), dot_text.render, of_figure=True),
    Exporter("png", (".png",), png_and_pdf.png, scales=True, picture="png", of_figure=True),
    Exporter("pdf", (".pdf",), png_and_pdf.pdf, picture="pdf", of_figure=True),
    Exporter("txt", (".txt",), text.render, of_style="words"),
    Exporter("json", (".json",), picture_json.render, of_style="words"),
    Exporter("mermaid", (".mmd", ".mermaid"), mermaid.render),
    Exporter("html", (".html", ".htm"), page.render, opens=first_moment, of_style="nothing"),
    Exporter("animation", (".anim.svg",), animation.render, moves=True, scales=True, of_figure=True),
    Exporter("gif", (".gif",), gif.render, moves=True, scales=True, of_figure=True),
)


def exporter_for(path: str) -> Exporter:
    """Return the exporter for the suffix of a file name; if two suffixes match, the longer one decides."""
    name = PurePath(path).name.lower()
    fitting = [
        (suffix, exporter)
        for exporter in EXPORTERS
        for suffix in exporter.suffixes
        if name.endswith(suffix) and len(name) > len(suffix)
    ]
    if not fitting:
        raise GvizError(f"unknown format of {path!r}", hint=f"suffixes: {all_suffixes()}", exit_code=2)
    return max(fitting, key=lambda pair: len(pair[0]))[1]


def all_suffixes() -> str:
    """Return the suffixes of all files that can be written: ``.svg .dot``."""
    return " ".join(suffix for exporter in EXPORTERS for suffix in exporter.suffixes)
