"""Draws the gallery anew, `docs/gallery.md` and its pictures, from the lessons. Run it as ``make gallery``."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gviz.api.export import export
from gviz.cli import lessons
from gviz.cli.program_run import Program, record_program

DOCS = Path(__file__).parent
FOLDER = "gallery"


FIGURES = """
## Figures for papers and slides

`--figure` draws only the graph: no legend, caption, cursor, `[+]`, or numbers of nodes. The picture has exactly the
width of its place, and shows as much as fits there with readable text. A line below the graph explains the letters in
it, `L: loss` and `|g|: norm of a gradient`; `--no-legend` leaves it out. With `--at`, what the program makes later is
left out, too: without `--figure` it is dashed. A figure of a moment before all backward passes has no place for
gradients. A GIF, an animated SVG and a series (`step%03d.png`) can be figures: all
their pictures have one size, and a box appears when it is made. They have one picture for each visible change: most
events of a backward pass happen inside of a box.

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

`gviz.export(thing, "graph.svg", labels="min")` takes the options above by name. The thing is one of these, also for
`gviz.make_dot` and `gviz.show`:

* a trace (its path, or what `gviz.load` returns), or a recording, in progress or over
* a tensor of PyTorch, as [pytorch.md](pytorch.md) describes, or of the built-in engine; or a list, tuple, dict,
  dataclass or `ModelOutput` of tensors. `params=dict(model.named_parameters())` names tensors that were not recorded.
* a module with `inputs=x` (or a tuple of arguments, or a dict of them): one forward is recorded. With `backward=True`
  also the backward pass from the sum of its results (of their real parts, if they are complex). gviz draws a copy:
  your module, its `.grad` and buffers, the inputs and their graphs, and the random numbers stay as they are. Hooks of
  modules run, hooks of tensors do not. An attribute that cannot be copied, such as a lock, is shared with the copy.
* a script, `"train.py"`: it is run and recorded
"""

LARGE = """
## Long and large graphs

Without options a picture shows as much as fits 1,600 x 1,200 points at its own size: every node if they fit, or else
every call in the program, or else modules. A line below the boxes says what was collapsed, and which option shows more.
The inputs, the child modules of a model, the loss and every cut have a box at any level.

| `--level` | what has a box |
|---|---|
| `modules` | every child module of a model (deeper ones with `--depth 2`); equal ones are one box, `layers.0–11 ×12` |
| `calls` | every call in the program with all its nodes: `linear`, `conv2d`, `cross_entropy`, `matmul` for `@` |
| `nodes` | every node of autograd: a `cross_entropy` is a `log_softmax` and an `nll_loss` |
| `auto` | as much as fits; this is the default |

Three or more operations that only prepare data are one box, `x  8 operations on data`, at the levels `modules` and
`auto`; `--expand x` shows them.

`--expand layers.3` opens that module at any level, and `--expand step` the box `step ×5` of a loop. A name may be a
glob (`'step*'`), in which `*` stays within one part of a dotted name: `'blocks.*'` opens `blocks.0`, and `'blocks.**'`
also all modules in it. It may also be the text in the picture (`'step index, RNNCell ×5'`). In Python,
`gviz.export(…, level="calls", expand="layers.3")` and `gviz.make_dot(…, level=…, expand=…)` take the same options. A
box of several equal modules shows the gradient of each as a bar, with the least and the greatest norm. The box of a
loop has a bar for each step, of the gradient of its result: in `h = cell(x[t], h)`, `|∂L/∂h|` shows whether it vanishes
through time. A box with a tab is a module, even if it makes only one call, as `Linear` does.

`--overlay memory` adds to each box what it saves for backward at the peak. `--overlay time` adds what a module takes,
forward and backward. The bytes of all boxes add up to the peak that `gviz show TRACE memory` reports. Times come from
`gviz monitor train.py`: recording an operation takes longer than most operations, so no other recording has them.

A graph flows from left to right if its levels fit the width of a page, otherwise from top to bottom (`--direction`).
The longest chain of operations is straight. For a slide, leave numbers out or show a part: `--scale` enlarges the whole
picture, boxes and text alike. `export` reports text that would be too small. To show how the gradients of `h` add up,
use `--at h.grad --node h --radius 1`: each contribution is over its arrow, the sum is in the box.

| | |
|---|---|
| `--module cell` | one box for each call of a module, by path, by class (`LSTMCell`), or one call (`cell:5`) |
| `--only cell:200` | only that call, with its inputs |
| `--node loss --radius 20` | the nodes within 20 lines of a node; `--ancestors`: all nodes that it was made from |
| `--depth 1` | modules expanded one level deep; layers are collapsed with their transposed weights (`t`) |
| `--at "iteration 3"` | that iteration, before its optimizer step; `--moments "iteration 3"`: all of it, animated |
| `--no-legend` | without the meaning of shapes, lines and words |
| `--labels min` | only names, a third of the size; `--scale 0.5`: half of the size |
| `-o graph.html` | a page that can be scrolled, searched and stepped |

In a graph of more than 60 nodes, untracked nodes are left out (the making of a batch, clipping, metrics). A line marked
`…` leads through them, from their original data. With `--module` or `--depth`, and in pages and texts, modules collapse
by themselves until 200 boxes are left, if possible. Above 1,500 boxes only names are drawn. If Graphviz takes longer
than 20 seconds, or would have more than 1,500 boxes to place, a simpler layout of gviz's own is used. A note reports
each of these.

An SVG is one and a half times as large as torchviz's SVG of the same graph. For a 12-layer transformer, values and
gradients take 24% of it, exact numbers as tooltips 19%, arrows of gradients 21%, both themes and the description 1%.
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
            (("node", "op:addmm"), ("radius", 1))),
    Exhibit("names.svg", "10_recurrent_net", "Names only; shared weights are chips.", (("labels", "min"),)),
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
