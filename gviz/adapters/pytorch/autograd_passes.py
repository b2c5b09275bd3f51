"""Backward passes: wraps the function through which ``backward``, ``autograd.grad`` and checkpoints run the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch

from gviz import parameter_names
from gviz.adapters.pytorch.autograd_graph import border, edge_of, entered_end, visit
from gviz.adapters.pytorch.function_mode import CallListener
from gviz.adapters.pytorch.in_place_writes import emit_averaged, has_other_ranks
from gviz.adapters.pytorch.module_calls import name_uncalled
from gviz.adapters.pytorch.node_creation import NO_CALL, is_accumulator
from gviz.adapters.pytorch.private_api import without_overrides
from gviz.adapters.pytorch.recording_state import Pass, Session, clock
from gviz.adapters.pytorch.tensor_properties import is_leaf
from gviz.adapters.pytorch.value_capture import has_numbers, unseen
from gviz.events import BackwardFinished, BackwardStarted, Edge, GradCaptured

_TRACING = {"FakeTensor", "FunctionalTensor"}


def run(session: Session, engine: Callable[..., Any], roots: Sequence[Any], args: Sequence[Any], options: Any) -> Any:
    """Run PyTorch's engine and record the pass. The arguments are those of ``_engine_run_backward``."""
    if not session.is_recording or any(type(root).__name__ in _TRACING for root in roots):
        return engine(roots, *args, **options)
    seeds, retain_graph, create_graph, inputs = (*args[:4],) if len(args) > 3 else (*args[:3], ())
    captures = bool(inputs) and not options.get("accumulate_grad", args[5] if len(args) > 5 else False)
    began = clock()
    with without_overrides():
        ends = _ends(session, roots)
        current, edges = _start(session, roots, seeds, bool(retain_graph), bool(create_graph), inputs or ())
    session.spent += clock() - began
    thread = session.thread
    thread.passes.append(current)
    before = thread.running_step, thread.steps, thread.is_closed
    thread.steps, thread.is_closed = [], False
    error = "interrupted", ""
    try:
        with _listening(session):  # the caller's mode is off while ``Tensor.backward`` is handled
            result = engine(roots, *args, **options)
        error = "", ""
        if session.is_recording:
            with without_overrides():
                if captures:
                    _emit_captured(session, current, edges, result)
                emit_averaged(session, current.accumulated or ())
        return result
    except BaseException as raised:
        error = str(raised) or type(raised).__name__, type(raised).__name__
        raise
    finally:
        thread.passes.pop()
        thread.running_step, thread.steps, thread.is_closed = before
        session.forget(current)
        del ends
        if session.is_recording:
            session.channel.emit(BackwardFinished(current.number, *error))
        if session.pass_ended is not None and not thread.passes and not current.create_graph:
            session.pass_ended()


def _ends(session: Session, roots: Sequence[Any]) -> list[Any]:
    """Return the accumulators of the roots that are leaves.

    The caller must keep them alive, because there may be no other reference to them.
    """
    tensors = [root for root in roots if isinstance(root, torch.Tensor) and root.requires_grad and is_leaf(root)]
    return [] if session.is_partial else [entered_end(session, leaf) for leaf in tensors]


def _listening(session: Session) -> AbstractContextManager[object]:
    """Return the function mode for operations that run within a pass, if operations are recorded at all."""
    return CallListener(session) if session.hears_operations else nullcontext()


def _start(
    session: Session, roots: Sequence[Any], seeds: Sequence[Any], retain_graph: bool, create_graph: bool,
    inputs: Sequence[Any],
) -> tuple[Pass, list[Edge]]:  # fmt: skip
    channel = session.channel
    edges = [_edge(session, root) for root in roots]
    unnamed = session.marks.take_unnamed()
    if session.look_for_names is not None:
        session.look_for_names(bool(unnamed))
    elif not session.is_partial:
        name_uncalled(session, unnamed)
    input_edges = [_edge(session, one) for one in inputs]
    current = session.latest = Pass(channel.next_pass(), retain_graph, create_graph)
    if has_other_ranks():
        current.accumulated = []
        session.value.leave_nothing()  # gradients are compared with the recorded values, so every value is recorded
    if input_edges:
        current.needed = _leading_to(roots, {node for node, _ in input_edges}, session)
    values = []
    for root, edge, seed in zip(roots, edges, seeds, strict=True):
        gradient = seed
        if seed is None:
            with unseen(root):
                # ones on the CPU: made on the device, they would become part of a CUDA graph that is being captured
                on_device = has_numbers(root) and root.is_cuda
                gradient = torch.ones_like(root, device="cpu" if on_device else None)
        values.append(session.value(gradient))
        del root, edge, gradient
    parameter_names.emit_holders(channel, partial(_leaf_node, session))
    stack = channel.stack()
    started = BackwardStarted(
        current.number, tuple(edges), tuple(values), retain_graph, create_graph, tuple(input_edges), stack
    )
    channel.emit(started)
    return current, input_edges


def _leaf_node(session: Session, tensor: torch.Tensor) -> int | None:
    """Return the node of a leaf held by a variable, 0 if it has no node; None if the tensor gets no gradient."""
    with without_overrides():
        if not is_leaf(tensor) or not (tensor.requires_grad or issubclass(type(tensor), torch.nn.Parameter)):
            return None
        mark = session.marks.of_tensor(tensor)
    return mark.node if mark is not None else 0


def _edge(session: Session, root: Any) -> Edge:
    """Return the edge of a root or input of a pass, which is a tensor or a graph edge."""
    if isinstance(root, torch.Tensor):
        return edge_of(session, root)
    mark = session.marks.of_node(root.node) or (border if session.is_partial else visit)(
        session, root.node, {}, NO_CALL
    )
    return mark.node, root.output_nr


def _leading_to(roots: Sequence[Any], targets: set[int], session: Session) -> set[int]:
    """Return the nodes on paths from the roots to the `targets`, including those."""
    users: dict[int, list[int]] = {}
    stack = [root.grad_fn if isinstance(root, torch.Tensor) else root.node for root in roots]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if node is None or is_accumulator(node):
            continue
        mark = session.marks.of_node(node)
        for before, _ in node.next_functions:
            its = None if before is None else session.marks.of_node(before)
            if before is None or its is None or mark is None:
                continue
            users.setdefault(its.node, []).append(mark.node)
            if before not in seen:
                seen.add(before)
                stack.append(before)
    leading, waiting = set(targets), list(targets)
    while waiting:
        fresh = [user for user in users.get(waiting.pop(), ()) if user not in leading]
        leading.update(fresh)
        waiting.extend(fresh)
    return leading


def _emit_captured(session: Session, current: Pass, edges: Sequence[Edge], grads: Sequence[Any]) -> None:
    for (node, output_nr), grad in zip(edges, grads, strict=True):
        if isinstance(grad, torch.Tensor):
            if session.captures.is_noting:
                session.captures.note(grad)
            value = session.value(grad)
            session.channel.emit(GradCaptured(current.number, node, output_nr, value))
            if grad.grad_fn is not None:
                edge_of(session, grad)
