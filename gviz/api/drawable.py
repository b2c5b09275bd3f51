"""Resolves what can be drawn and shown (traces, recordings, tensors, traced functions) to a timeline and a moment."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from gviz import argument_checks, frameworks
from gviz.api.module_recording import NO_INPUTS, is_module, recorded_call
from gviz.errors import GvizError
from gviz.render.picture_request import last_moment
from gviz.result_tensors import tensors_in
from gviz.trace import load
from gviz.trace.event_log import MemoryLog, with_names
from gviz.trace.file.reader import open_trace
from gviz.trace.iteration_and_phase_ends import end_of
from gviz.trace.recording import record as recording
from gviz.trace.timeline import Timeline

if TYPE_CHECKING:
    from gviz.engine.existing_graph import Drawable as OfEngine
    from gviz.engine.tensor import Tensor
    from gviz.frameworks import ForeignTensor

    OneTensor: TypeAlias = Tensor | ForeignTensor
    Drawable: TypeAlias = str | os.PathLike[str] | Timeline | OneTensor | tuple[OneTensor, ...] | OfEngine
    Named: TypeAlias = list[tuple[str, Any]]

    class Model(Protocol):
        """A module of PyTorch or of the built-in engine."""

        def named_parameters(self) -> Iterable[tuple[str, Any]]:
            """Return the parameters with their names."""

    Params: TypeAlias = Mapping[str, OneTensor] | Iterable[tuple[str, OneTensor]] | Model


@dataclass(frozen=True, slots=True)
class Drawn:
    """A graph to draw: all of a timeline, or what leads to a `node`, at moment `n` unless another one is requested.

    `recorded` is True if the graph was recorded as it was created; otherwise only its current state is known. `title`
    is its title.
    """

    timeline: Timeline
    n: int
    node: int = 0
    recorded: bool = True
    title: str = "gviz"
    path: Path | None = None
    """The trace file it is read from, if that contains everything shown."""


def drawn(thing: Any, params: Params | None = None, inputs: Any = NO_INPUTS, *, backward: bool = False) -> Drawn:
    """Return what to draw for a thing. Raises GvizError if there is nothing.

    Of a list, tuple, mapping or dataclass, the tensors in it are drawn. A module is called with `inputs`, and with
    `backward` also the backward pass from the sum of its results is recorded. A script is run and recorded.

    A tensor of the latest recording is drawn from that recording, any other from its current graph. A recording in
    progress is drawn as far as it goes. `params` gives tensors their names.
    """
    named = _named(params or ())
    if inputs is not NO_INPUTS and not is_module(thing):
        raise GvizError(
            f"inputs are for a module, and this is a {type(thing).__module__}.{type(thing).__qualname__}", exit_code=2
        )
    if isinstance(thing, Timeline):
        return Drawn(thing, last_moment(thing))
    if inputs is NO_INPUTS and _is_traced(thing):
        return _as_it_stands(thing, named)
    if is_module(thing):
        return _of_module(thing, inputs, named, backward=backward)
    if isinstance(thing, str | os.PathLike) and Path(thing).suffix == ".py":
        return _of_script(Path(thing))
    if isinstance(thing, str | os.PathLike):
        timeline = load(thing)
        return Drawn(timeline, last_moment(timeline), title=Path(thing).name, path=Path(thing))
    tensors = tuple(tensor for tensor, _ in tensors_in(thing))
    subject = tensors[0] if len(tensors) == 1 else tensors or thing
    return _from_recording(subject, named) or _as_it_stands(subject, named)


def _is_traced(thing: object) -> bool:
    """Return whether a thing is a traced module or function of the built-in engine, or a graph that it recorded."""
    jit = sys.modules.get("gviz.engine.jit")
    return jit is not None and isinstance(thing, (jit.StaticGraph, jit.TracedFunction, jit.TracedModule))


def _of_module(module: Any, inputs: Any, named: Named, *, backward: bool) -> Drawn:
    if inputs is NO_INPUTS:
        kind = type(module).__name__
        raise GvizError(
            f"{kind} is a module, and has no graph before it is called",
            hint="with inputs=x one call is recorded, with inputs=x, backward=True also its backward pass",
            exit_code=2,
        )
    recording, names = recorded_call(module, inputs, named, backward=backward)
    log = open_trace(os.fspath(recording))
    timeline = Timeline(log)
    n = last_moment(timeline)
    timeline = Timeline(with_names(log, names)) if names else timeline
    return Drawn(timeline, n, title=type(module).__name__, path=None if names else recording.path)


def _of_script(path: Path) -> Drawn:
    """Run a script as ``python script.py`` would, and record it."""
    if not path.is_file():
        raise GvizError(f"there is no script {str(path)!r}", exit_code=2)
    with frameworks.record() as recording, suppress(SystemExit):
        runpy.run_path(str(path), run_name="__main__")
    timeline = load(os.fspath(recording))
    return Drawn(timeline, last_moment(timeline), title=path.name, path=recording.path)


@dataclass(frozen=True, slots=True)
class Source:
    """What to draw, as a program passes it to `gviz.export`."""

    thing: Any
    params: Params
    inputs: Any
    backward: bool

    def drawn(self) -> Drawn:
        """Return the graph to draw."""
        return drawn(self.thing, self.params, self.inputs, backward=self.backward)


def _named(params: Any) -> Named:
    """Return the tensors to name, with their names: those of a mapping, of pairs, or the parameters of a module."""
    named = argument_checks.pairs("params", [*params.named_parameters()] if is_module(params) else params)
    for name, tensor in named:
        if not hasattr(tensor, "grad_fn"):
            raise argument_checks.refused(f"params[{name!r}]", tensor, "a tensor")
    return named


def _as_it_stands(thing: Any, named: Named) -> Drawn:
    events = frameworks.events_of_graph(thing if isinstance(thing, tuple) else (thing,), named)
    if events is None:
        from gviz.engine.existing_graph import events_of_graph  # only needed for the engine

        events = events_of_graph(thing, named)
    timeline = Timeline(MemoryLog(events))
    return Drawn(timeline, len(timeline), recorded=False, title="graph")


def _from_recording(thing: object, named: Named) -> Drawn | None:
    """Return a tensor's graph in the latest recording; None if the tensor or the file is not there."""
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
