"""`gviz.make_dot`: a graph to be changed, shown in a notebook or written, as other tools hand theirs out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gviz import argument_checks
from gviz.api.drawable import drawn
from gviz.api.moment_argument import moment_of
from gviz.render.boxes.fold import ALL, Filter
from gviz.render.graphviz.digraph import Digraph
from gviz.render.graphviz.dot import digraph
from gviz.render.request import moment_scene
from gviz.render.scene import Options

if TYPE_CHECKING:
    from gviz.api.drawable import Drawable, Params


def make_dot(
    var: Drawable,
    params: Params | None = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
    *,
    at: int | str | None = None,
    options: Options | None = None,
) -> Digraph:
    """The graph of a trace or recording at event or moment `at` (else before the program took it down), the graph
    behind a tensor of PyTorch or gviz, or a static graph: what gviz's ``jit.trace`` gives, or its ``graph``.

    Takes what ``torchviz.make_dot`` takes: `params` gives tensors their names, as ``model.named_parameters()`` does,
    `show_attrs` says all that is known of every node, with each argument of an operation in `max_attr_chars` characters
    (at least 3), `show_saved` draws the tensors kept for backward. A tensor that the latest recording knows is drawn
    from that, with all values; of any other graph only the tensor itself and the leaves have values.
    """
    if not isinstance(options, Options | None):
        raise argument_checks.refused("options", options, "gviz.render.scene.Options")
    most = max(argument_checks.whole("max_attr_chars", max_attr_chars), 3)
    full = Options(density="full", saved=show_saved, attr_chars=most)
    asked = options or (full if show_attrs else Options(saved=show_saved))
    of = drawn(var, params)
    if of.node and asked.wanted == ALL:
        asked = replace(asked, wanted=Filter(focus=of.node, ancestors=True))
    picture = moment_scene(of.timeline, of.n if at is None else moment_of(of.timeline, at), asked)
    return digraph(picture if of.recorded else replace(picture, caption=""))  # as it stands nothing happens
