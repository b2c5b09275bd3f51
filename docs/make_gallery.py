"""Draws the gallery anew, `docs/gallery.md` and its pictures, from the lessons. Run it as ``make gallery``."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gviz.api.export import export
from gviz.cli import lessons
from gviz.cli.session import Program, record_program

DOCS = Path(__file__).parent
FOLDER = "gallery"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One picture: its file, the lesson, what it shows, and the options of ``gviz export``."""

    file: str
    lesson: str
    shows: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def command(self) -> str:
        """The command that draws it."""
        words = ["gviz", "export", f"{self.lesson}.py", "-o", self.file]
        for name, value in self.options:
            words += [f"--{name}"] + ([] if value is True else [str(value)])
        return " ".join(map(shlex.quote, words))


EXHIBITS = (
    Exhibit("pass.svg", "01_product_and_sine", "The end of a backward pass: values in green, gradients in blue."),
    Exhibit("share.svg", "02_shared_input", "A second share arrives: `1 += 3`, and the arrow it came over is thick.",
            (("at", "13"),)),
    Exhibit("moving.anim.svg", "02_shared_input", "A whole pass, as an SVG that plays without a script."),
    Exhibit("full.svg", "01_product_and_sine", "In full: local derivatives, what is kept, types, lines.",
            (("labels", "full"),)),
    Exhibit("saved.svg", "01_product_and_sine", "The tensors that operations keep for backward, while they still do.",
            (("saved", True), ("at", "forward"))),
    Exhibit("torchviz.svg", "01_product_and_sine", "In the style of torchviz, with the values it does not show.",
            (("style", "torchviz"),)),
    Exhibit("micrograd.svg", "02_shared_input", "In the style of micrograd.", (("style", "micrograd"),)),
    Exhibit("cs231n.svg", "02_shared_input", "As in the CS231n notes: values above the wire, gradients below.",
            (("style", "cs231n"),)),
    Exhibit("mono.svg", "05_five_cases", "For print, without colour.", (("style", "mono"),)),
    Exhibit("in_place.svg", "08_in_place", "Writes in place, with the versions that they make."),
    Exhibit("nan.svg", "11_nan_in_backward", "Where a gradient first goes wrong.", (("at", "nan"),)),
    Exhibit("modules.svg", "10_recurrent_net", "A recurrent net with each call of its layer closed.",
            (("module", "linear"),)),
    Exhibit("part.svg", "10_recurrent_net", "One operation and what is next to it.",
            (("node", "op:Addmm"), ("radius", 1))),
    Exhibit("names.svg", "10_recurrent_net", "Names alone; shared weights are chips.", (("labels", "min"),)),
)  # fmt: skip


def draw(exhibit: Exhibit, trace: Path, folder: Path) -> Path:
    """Draw one picture into a folder."""
    options = {{"module": "modules"}.get(name, name): value for name, value in exhibit.options}
    if "modules" in options:
        options["modules"] = (options["modules"],)
    if "at" in options and str(options["at"]).isdigit():
        options["at"] = int(options["at"])
    return export(trace, folder / exhibit.file, force=True, note=lambda _: None, **options)[0]


def record(lesson: str, folder: Path) -> Path:
    """The trace of a lesson."""
    path = lessons.find(lesson).path
    trace = folder / f"{lesson}.gviz"
    return record_program(Program((str(path),), engine="builtin", output=trace)).trace


def page() -> str:
    """The gallery's text."""
    lines = [
        "# Gallery",
        "",
        "Drawn from the lessons by `make gallery`; do not edit. Every picture follows the theme of its reader.",
        "The lessons are in [samples](../samples).",
    ]
    for exhibit in EXHIBITS:
        lines += ["", f"**{exhibit.shows}**", "", f"![{exhibit.shows}]({FOLDER}/{exhibit.file})", "", "```console",
                  f"$ {exhibit.command}", "```"]  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    """Draw everything."""
    (DOCS / FOLDER).mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        traces = {lesson: record(lesson, Path(folder)) for lesson in {exhibit.lesson for exhibit in EXHIBITS}}
        for exhibit in EXHIBITS:
            draw(exhibit, traces[exhibit.lesson], DOCS / FOLDER)
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
