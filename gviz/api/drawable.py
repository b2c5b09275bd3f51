"""What can be drawn and shown: traces, recordings, tensors and traced functions, each as a timeline and a moment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gviz import argument_checks, frameworks
from gviz.render.request import last_moment
from gviz.trace import load
from gviz.trace.file.reader import open_trace
from gviz.trace.log import MemoryLog
from gviz.trace.name_overlay import with_names
from gviz.trace.navigation import end_of
from gviz.trace.recording import record as recording
from gviz.trace.timeline import Timeline

if TYPE_CHECKING:
    from gviz.engine.existing_graph import Drawable as OfEngine
    from gviz.engine.tensor import Tensor
    from gviz.frameworks import ForeignTensor

    OneTensor: TypeAlias = Tensor | ForeignTensor
    Drawable: TypeAlias = str | os.PathLike[str] | Timeline | OneTensor | tuple[OneTensor, ...] | OfEngine
    Named: TypeAlias = list[tuple[str, Any]]
    Params: TypeAlias = Mapping[str, OneTensor] | Iterable[tuple[str, OneTensor]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A graph to draw: all of a timeline, or what leads to a `node` of it, at moment `n` unless another is asked for.

    `recorded` is whether it was seen while it came about; else it is known only as it stands. `title` names it.
    """

    timeline: Timeline
    n: int
    node: int = 0
    recorded: bool = True
    title: str = "gviz"
    path: Path | None = None
    """The trace it is read from, where that holds all there is to it."""


def drawn(thing: Any, params: Params | None = None) -> Drawn:
    """What there is to draw of a thing; GvizError if that is nothing.

    A tensor that the latest recording knows is drawn from that, any other from its graph as it stands. A recording in
    progress is drawn as far as it is. `params` gives tensors their names.
    """
    named = _named(params or ())
    if isinstance(thing, Timeline):
        return Drawn(thing, last_moment(thing))
    if isinstance(thing, str | os.PathLike):
        timeline = load(thing)
        return Drawn(timeline, last_moment(timeline), title=Path(thing).name, path=Path(thing))
    return _from_recording(thing, named) or _as_it_stands(thing, named)


def _named(params: object) -> Named:
    named = argument_checks.pairs("params", params)
    for name, given in named:
        if not hasattr(given, "grad_fn"):
            raise argument_checks.refused(f"params[{name!r}]", given, "a tensor")
    return named


def _as_it_stands(thing: Any, named: Named) -> Drawn:
    events = frameworks.events_behind(thing if isinstance(thing, tuple) else (thing,), named)
    if events is None:
        from gviz.engine.existing_graph import events_behind  # only what is the engine's needs it

        events = events_behind(thing, named)
    timeline = Timeline(MemoryLog(events))
    return Drawn(timeline, len(timeline), recorded=False, title="graph")


def _from_recording(thing: object, named: Named) -> Drawn | None:
    """A tensor in the recording that was begun last; None if that does not know it, or is not at hand any more."""
    latest = recording.latest
    node = latest.node_of(thing) if latest is not None else 0
    if latest is None or not node or not latest.path.exists():
        return None
    latest.flush()
    log = open_trace(latest.path)
    timeline = Timeline(log)
    if node not in timeline.nodes:  # only the last part of the run was kept
        return None
    n = end_of(timeline, timeline.iterations[timeline.info(node).iteration])
    names = {latest.node_of(tensor): name for name, tensor in named}
    known = {node: name for node, name in names.items() if node in timeline.nodes}
    new = {node: name for node, name in known.items() if timeline.info(node).name != name}
    if new:
        return Drawn(Timeline(with_names(log, new)), n, node, title=latest.path.name)
    return Drawn(timeline, n, node, title=latest.path.name, path=latest.path)
