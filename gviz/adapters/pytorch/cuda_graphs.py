"""Records captured CUDA graphs. A replay cannot be observed while it runs, so its results are recorded afterwards.

A capture is recorded as ordinary operations and backward passes without values: CUDA computes nothing during capture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import torch

from gviz.adapters.pytorch.in_place_writes import emit_all_written, grad_changed
from gviz.adapters.pytorch.private_api import replace, without_overrides
from gviz.adapters.pytorch.recording_state import Session, clock
from gviz.adapters.pytorch.tensor_properties import fills_its_memory
from gviz.adapters.pytorch.value_capture import as_it_lies
from gviz.events import ScopeEntered, ScopeLeft


def put_in(session: Session, leaving: ExitStack) -> None:
    """Observe captures and replays. Builds of PyTorch without CUDA have these names too."""
    kind, captures = torch.cuda.CUDAGraph, session.captures
    begin, end, replay, reset = kind.capture_begin, kind.capture_end, kind.replay, kind.reset

    @wraps(begin)
    def begun(graph: Any, *args: Any, **options: Any) -> Any:
        if session.is_recording:
            session.not_seen("replay")
        captures.begin(graph)
        try:
            return begin(graph, *args, **options)
        except BaseException:
            captures.forget(graph)
            raise

    @wraps(end)
    def ended(graph: Any, *args: Any, **options: Any) -> Any:
        try:
            return end(graph, *args, **options)
        finally:
            captures.end(graph)

    @wraps(replay)
    def replayed(graph: Any, *args: Any, **options: Any) -> Any:
        result = replay(graph, *args, **options)
        if session.is_recording:
            began = clock()
            session.not_seen("replay")
            if not session.is_outside:
                with without_overrides():
                    _emit_replayed(session, captures.noted(graph))
            session.spent += clock() - began
        return result

    @wraps(reset)
    def forgotten(graph: Any, *args: Any, **options: Any) -> Any:
        captures.forget(graph)
        return reset(graph, *args, **options)

    methods = {"capture_begin": begun, "capture_end": ended, "replay": replayed, "reset": forgotten}
    for name, listened in methods.items():
        replace(kind, name, listened, leaving)
    make = torch.cuda.make_graphed_callables
    for home in (torch.cuda, torch.cuda.graphs):
        replace(home, "make_graphed_callables", _without_warm_up(session, make), leaving)


def _without_warm_up(session: Session, make: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the maker of graphed callables so that its warm-up passes are not recorded.

    These passes start from gradients in uninitialized memory, so their numbers mean nothing.
    """

    @wraps(make)
    def without_recording(*args: Any, **options: Any) -> Any:
        thread = session.thread
        before, thread.is_making = thread.is_making, True
        try:
            return make(*args, **options)
        finally:
            thread.is_making = before

    return without_recording


def note_results(
    session: Session, args: Sequence[Any], kwargs: Mapping[str, Any], outputs: Sequence[torch.Tensor]
) -> None:
    """Note what a replay will write of a captured call's results: new memory, and memory that is noted already."""
    captures, marks = session.captures, session.marks
    tensors = [it for it in (*args, *kwargs.values()) if isinstance(it, torch.Tensor)]
    for tensor in outputs:
        is_fresh = fills_its_memory(as_it_lies(tensor)) and not marks.is_numbered(tensor)
        if captures.is_noted(tensor) or (is_fresh and not any(marks.share_memory(tensor, it) for it in tensors)):
            captures.note(tensor)


def _emit_replayed(session: Session, tensors: Sequence[torch.Tensor]) -> None:
    """Record what a replay wrote: the graph's tensors, and the `.grad`s that share their memory; each memory once."""
    if not tensors:
        return
    filled = [tensor for tensor in tensors if fills_its_memory(as_it_lies(tensor))]
    parts = [it for it in tensors if not any(it is one or session.marks.share_memory(it, one) for one in filled)]
    known = [(it, mark.node) for it in (*filled, *parts) if (mark := session.marks.of(it)) is not None]
    with _scope(session):
        emit_all_written(session, known)
        for tensor in tensors:
            grad_changed(session, tensor)


@contextmanager
def _scope(session: Session) -> Iterator[None]:
    """Open a scope for one replay, as for a captured graph of the built-in engine."""
    thread, channel = session.thread, session.channel
    scope = channel.next_scope()
    channel.emit(ScopeEntered(scope, thread.scopes[-1] if thread.scopes else 0, "replay", "captured graph"))
    try:
        yield
    finally:
        channel.emit(ScopeLeft(scope))
