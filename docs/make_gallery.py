"""Draws the gallery anew, `docs/gallery.md` and its pictures, from the lessons. Run it as ``make gallery``."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gviz.api.export import export
from gviz.cli import lessons
from gviz.cli.program import Program, record_program

DOCS = Path(__file__).parent
FOLDER = "gallery"


FIGURES = """
## Figures for papers and slides

`--figure` draws the graph alone: no legend, caption, cursor, `[+]`, or numbers of nodes. The picture has exactly the
width of its place, and shows as much as fits there with readable text.

| `--figure` | width | text |
|---|---|---|
| `one-column` (the default) | 85 mm | 7 to 9 pt |
| `two-columns` | 175 mm | 7 to 9 pt |
| `16:9` | a slide of 13.3 x 7.5 inches | 12 to 20 pt |

Text in an SVG stays text, which Inkscape and Illustrator can edit. A PDF contains its fonts, for LaTeX.
`--theme dark` suits dark slides.
"""

IN_CODE = """
## In code

`gviz.export(thing, "graph.svg", labels="min")` takes the options above by name. The thing is a trace (its path, or what
`gviz.load` returns), a recording, in progress or over, or a tensor: of PyTorch, as [pytorch.md](pytorch.md) describes,
or of gviz's engine. `params=dict(model.named_parameters())` names tensors that were not recorded.
"""

LARGE = """
## Long and large graphs

Without options a picture shows as much as fits 1,600 x 1,200 points at its own size: every node if that fits, else
every call in the program, else modules. A line below the boxes says what was collapsed, and which option shows more.
The inputs, the child modules of a model, the loss and every cut have a box at any level.

| `--level` | what has a box |
|---|---|
| `modules` | every child module of a model (deeper ones with `--depth 2`); equal ones are one box, `layers.0–11 ×12` |
| `calls` | every call in the program with all its nodes: `linear`, `conv2d`, `cross_entropy`, `matmul` for `@` |
| `nodes` | every node of autograd: a `cross_entropy` is a `log_softmax` and an `nll_loss` |
| `auto` | as much as fits; this is the default |

`--expand layers.3` opens that module at any level. In Python, `gviz.export(…, level="calls", expand="layers.3")` and
`gviz.make_dot(…, level=…, expand=…)` take the same. A box of several equal modules shows the gradient of each as a bar,
with the least and the greatest. A box with a tab is a module, also one that makes a single call, as `Linear` does.

Up to about twelve levels flow from left to right, more from top to bottom (`--direction`), and the longest chain of
operations is straight. On a slide leave numbers out or show a part: `--scale` enlarges the whole picture, boxes and
text alike. `export` reports text that would be too small. The moment where gradients meet at `h` is
`--at h.grad --node h --radius 1`: each part over its arrow, the sum in the box.

| | |
|---|---|
| `--module cell` | one box for each call of a module, by path, by class (`LSTMCell`), or one call (`cell:5`) |
| `--only cell:200` | that call alone, with what comes into it |
| `--node loss --radius 20` | what lies within 20 lines of a node; `--ancestors`: all that it was made of |
| `--depth 1` | modules open one level deep; layers are closed, with the transposed weights (`T`) inside of them |
| `--at "iteration 3"` | that iteration, before its optimizer stepped; `--moments "iteration 3"`: all of it, moving |
| `--no-legend` | without what shapes, lines and words mean |
| `--labels min` | names alone, a third of the size; `--scale 0.5` half of it |
| `-o graph.html` | a page that scrolls, finds and steps |

Of more than 60 nodes those that autograd does not follow are left out (how a batch was put together, clipping,
metrics). A line marked `…` leads through them, from the data that they were made of. With `--module` or `--depth`, and
in pages and texts, modules close by themselves until 200 boxes are left, as far as that goes; above 1,500 boxes only
names are drawn, and where Graphviz takes longer than 20 seconds, or would have more than 1,500 boxes to place, a
simpler layout of gviz's own is used; each is said.

An SVG is one and a half times as large as torchviz's of the same graph: of that of a 12-layer transformer, values and
gradients are 24%, exact numbers as tooltips 19%, arrows of gradients 21%; both themes and the words for it 1%.
"""


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
    Exhibit("figure.svg", "10_recurrent_net", "A figure for a paper: no legend, caption, or numbers of nodes.",
            (("figure", "one-column"),)),
    Exhibit("mono.svg", "05_five_cases", "For print, without colour.", (("style", "mono"),)),
    Exhibit("in_place.svg", "08_in_place", "Writes in place, with the versions that they make."),
    Exhibit("nan.svg", "11_nan_in_backward", "Where a gradient first goes wrong.", (("at", "nan"),)),
    Exhibit("modules.svg", "10_recurrent_net", "A recurrent net with each call of its layer closed.",
            (("module", "linear"),)),
    Exhibit("call.svg", "10_recurrent_net", "One call of a layer alone, and what it adds to gradients that all share.",
            (("only", "linear:9"),)),
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
    return "\n".join(lines) + "\n" + FIGURES + IN_CODE + LARGE


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
