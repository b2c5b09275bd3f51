"""Every way to write a moment of a trace to a file, in one table. Whatever is in it, the command line can write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from gviz.errors import GvizError
from gviz.render import page
from gviz.render.forms import animation, dot_text, gif, mermaid, picture_json, png_and_pdf, svg, text
from gviz.render.graphviz.process import Picture
from gviz.render.request import ExportOptions, first_moment
from gviz.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Exporter:
    """One format: its name, the suffixes of its files, and what writes it for moment `n` of a timeline.

    One that `moves` shows `ExportOptions.moments`, or all of the pass around `n`. One that is a `picture` of Graphviz
    can be drawn for many moments without anything moving; one that `scales` can be drawn larger. One that holds all
    moments, or only `ExportOptions.moments`, `opens` at one of its own if none is asked for. `of_style` says what it
    takes from the style of the picture.
    """

    name: str
    suffixes: tuple[str, ...]
    render: Callable[[Timeline, int, ExportOptions], str | bytes]
    moves: bool = False
    scales: bool = False
    picture: Picture | None = None
    opens: Callable[[Timeline], int] | None = None
    of_style: Literal["look", "words", "nothing"] = "look"


EXPORTERS: tuple[Exporter, ...] = (
    Exporter("svg", (".svg",), svg.render, scales=True, picture="svg"),
    Exporter("dot", (".dot", ".gv"), dot_text.render),
    Exporter("png", (".png",), png_and_pdf.png, scales=True, picture="png"),
    Exporter("pdf", (".pdf",), png_and_pdf.pdf, picture="pdf"),
    Exporter("txt", (".txt",), text.render, of_style="words"),
    Exporter("json", (".json",), picture_json.render, of_style="words"),
    Exporter("mermaid", (".mmd", ".mermaid"), mermaid.render),
    Exporter("html", (".html", ".htm"), page.render, opens=first_moment, of_style="nothing"),
    Exporter("animation", (".anim.svg",), animation.render, moves=True, scales=True),
    Exporter("gif", (".gif",), gif.render, moves=True, scales=True),
)


def exporter_for(path: str) -> Exporter:
    """The exporter that writes files of this name, by its suffix; of two that fit the longer one."""
    name = PurePath(path).name.lower()
    fitting = [
        (suffix, exporter)
        for exporter in EXPORTERS
        for suffix in exporter.suffixes
        if name.endswith(suffix) and len(name) > len(suffix)
    ]
    if not fitting:
        raise GvizError(f"cannot tell the format of {path!r}", hint=f"suffixes: {all_suffixes()}", exit_code=2)
    return max(fitting, key=lambda pair: len(pair[0]))[1]


def all_suffixes() -> str:
    """The suffixes of all files that can be written: ``.svg .dot``."""
    return " ".join(suffix for exporter in EXPORTERS for suffix in exporter.suffixes)
