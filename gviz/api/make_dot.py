"""`gviz.make_dot`: a graph to be changed, shown in a notebook or written, as other tools hand theirs out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gviz.api.moments import moment_of
from gviz.render.exporters import last_moment, moment_scene
from gviz.render.graphviz.dot import digraph
from gviz.render.graphviz.graph import Digraph
from gviz.render.scene import Options
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline

if TYPE_CHECKING:
    from gviz.engine.behind import Drawable, Params
    from gviz.engine.tensor import Tensor


def make_dot(
    var: Timeline | Drawable | Tensor | tuple[Tensor, ...],
    params: Params | None = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
    *,
    at: int | str | None = None,
    options: Options | None = None,
) -> Digraph:
    """The graph of a recording at event or moment `at` (else before the program took it down), the graph behind a
    tensor, or a static graph: what ``jit.trace`` gives, or its ``graph``.

    Takes what ``torchviz.make_dot`` takes: `params` gives leaves their names, as ``model.named_parameters()`` does,
    `show_attrs` says all that is known of every node, with each argument of an operation in `max_attr_chars` characters
    (at least 3), `show_saved` draws the tensors kept for backward. Of a tensor's graph only the leaves have values.
    """
    full = Options(density="full", saved=show_saved, attr_chars=max(max_attr_chars, 3))
    asked = options or (full if show_attrs else Options(saved=show_saved))
    if isinstance(var, Timeline):
        return digraph(moment_scene(var, last_moment(var) if at is None else moment_of(var, at), asked))
    timeline = behind(var, params or ())
    drawn = moment_scene(timeline, len(timeline) if at is None else moment_of(timeline, at), asked)
    return digraph(replace(drawn, caption=""))  # at its end nothing happens


def behind(thing: Any, params: Params = ()) -> Timeline:
    """The graph behind a tensor, several, or a traced function, as a recording; GvizError for anything else."""
    from gviz.engine.behind import events_behind  # only what is the engine's needs it

    return Timeline(MemoryLog(events_behind(thing, params)))
